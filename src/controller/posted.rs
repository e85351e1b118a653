//! A definition as an object of the cluster: what it says, and what its metadata asks for.

use std::sync::Arc;

use serde_json::Value;
use tracing::warn;

use crate::cluster::event::About;
use crate::cluster::object::Object;
use crate::config::marks::{FINALIZERS, HELD, Mark, marks};
use crate::config::spec::Role;
use crate::config::{API_VERSION, Definition};
use crate::controller::pause::Pause;
use crate::controller::source::Name;
use crate::object::name::Gvk;
use crate::problem::Problem;

/// One object, read once for each of its generations.
#[derive(Clone)]
pub(crate) struct Posted {
    role: Role,
    pub about: About,
    pub generation: i64,
    /// A DecoratorController has several.
    pub definitions: Result<Vec<Arc<Definition>>, Refusal>,
    /// The finalizers that its parents may have of it.
    pub marks: Vec<Mark>,
    /// Whether the finalizers of its parents are to go with it.
    pub removes: bool,
    /// Whether its deletion waits for that.
    pub held: bool,
    /// Whether all of its parents are paused. The definitions, as they were read, say the same.
    pause: Option<Pause>,
    deleting: bool,
}

/// Why a definition is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub reason: &'static str,
    pub message: String,
}

impl Refusal {
    pub(crate) const UNUSABLE: &str = "CreateError";

    /// It cannot be used as it is.
    pub(crate) fn unusable(message: String) -> Self {
        Refusal { reason: Refusal::UNUSABLE, message }
    }
}

impl Posted {
    /// Reads an object; `None` where nothing that matters differs from what was read before.
    pub(super) fn read(role: Role, object: &Object, before: Option<&Posted>) -> Option<Posted> {
        let body = object.parsed();
        let before = before.filter(|before| *before.about.uid == *object.uid);
        let same = before.filter(|before| object.generation != 0 && before.generation == object.generation);
        let asked = body["metadata"]["annotations"].get(FINALIZERS).and_then(Value::as_str);
        let wishes = (asked == Some("remove"), is_held(object), object.deleting);
        let pause = Pause::of_definition(&body);
        let same = same.filter(|same| same.pause == pause);
        if same.is_some_and(|same| (same.removes, same.held, same.deleting) == wishes) {
            return None;
        }
        let (removes, held, deleting) = wishes;
        if let Some(other) = asked.filter(|asked| !matches!(*asked, "remove" | "keep")) {
            warn!(
                controller = object.key.name,
                "annotation `{FINALIZERS}` is `{other}`, which is taken for `keep`; expected `remove` or `keep`"
            );
        }
        Some(Posted {
            role,
            about: About {
                gvk: Gvk::new(API_VERSION, role.kind()),
                key: object.key.clone(),
                uid: object.uid.to_string(),
            },
            generation: object.generation,
            marks: marks(role, &body),
            definitions: same.map_or_else(|| read(body), |same| same.definitions.clone()),
            removes,
            held,
            pause,
            deleting,
        })
    }

    pub(crate) fn name(&self) -> Name {
        (self.role, self.about.key.name.clone())
    }

    /// What a DecoratorController decorates, in one line.
    pub(crate) fn targets(&self) -> Option<String> {
        let definitions = self.definitions.as_ref().ok().filter(|_| self.role == Role::Decorator)?;
        let resources = definitions.iter().map(|definition| &*definition.spec.parent.resource.resource);
        Some(resources.collect::<Vec<_>>().join(", "))
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// Whether it is not run any more: its parents' finalizers are going, or have gone and must not come again.
    pub(crate) fn is_ending(&self) -> bool {
        self.deleting && (self.held || self.removes)
    }

    /// The same, out of use for the sake of the file's definition of its name.
    pub(super) fn hidden(&self) -> Posted {
        let message = "the file of definitions has one of this name, which is used".into();
        Posted { definitions: Err(Refusal { reason: HIDDEN, message }), ..self.clone() }
    }

    pub(super) fn is_hidden(&self) -> bool {
        matches!(&self.definitions, Err(refusal) if refusal.reason == HIDDEN)
    }
}

const HIDDEN: &str = "DefinedInFile";

fn is_held(object: &Object) -> bool {
    object.finalizers.iter().any(|finalizer| **finalizer == *HELD)
}

fn read(body: Value) -> Result<Vec<Arc<Definition>>, Refusal> {
    match Definition::from_object(body) {
        Ok(read) => Ok(read.into_iter().map(Arc::new).collect()),
        Err(problems) => {
            let told: Vec<String> = problems.iter().map(Problem::to_string).collect();
            Err(Refusal::unusable(told.join("; ")))
        }
    }
}

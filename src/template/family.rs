//! Observed objects as templates ask for them: `children.find("Job", name)`, `children.list("Job")`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, ObjectRepr, Value, from_args};
use minijinja::{Error, State};
use serde_json::Value as Json;

use crate::problem::nearest;
use crate::template::data::{self, Absent, Data};
use crate::template::fault::{Fault, Subject};
use crate::template::registry::settled;

/// Objects by kind (`Job.batch/v1`), then by name (or `namespace/name`).
pub(in crate::template) type Groups = BTreeMap<String, BTreeMap<String, Json>>;

/// The groups as data, with the two questions that templates ask of them.
pub(in crate::template) struct Family {
    name: String,
    groups: Arc<Data>,
    kinds: Kinds,
}

/// Which of the declared kinds have a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) enum Kinds {
    /// Every one, as the protocol has it: another kind is a slip of the author.
    All,
    /// Those with objects: of another kind there is none.
    Some,
}

impl Family {
    pub(in crate::template) fn value(name: &str, groups: Groups, kinds: Kinds) -> Value {
        let groups = groups.into_iter().map(|(kind, objects)| (kind, objects.into_iter().collect::<Json>()));
        let data = data::from_json(groups.collect(), name);
        let groups = data.downcast_object::<Data>().expect("a JSON object becomes data");
        Value::from_object(Family { name: name.to_string(), groups, kinds })
    }

    /// `find(kind, name, namespace=)`: one object, or absence.
    fn find(&self, args: &[Value]) -> Result<Value, Error> {
        let (kind, name, options): (&str, &str, Kwargs) =
            self.arguments("find", "a kind and a name", args)?;
        let namespace: Option<String> = options.get("namespace")?;
        options.assert_all_used()?;
        let text = match &namespace {
            None => format!("{}.find({kind:?}, {name:?})", self.name),
            Some(namespace) => format!("{}.find({kind:?}, {name:?}, namespace={namespace:?})", self.name),
        };
        let Some(group) = self.group("find", kind)? else {
            return Ok(Absent::call(text, name, Vec::new()));
        };
        let found = group.keys().into_iter().filter(|key| is_called(key, &group, name, namespace.as_deref()));
        match found.collect::<Vec<_>>()[..] {
            [key] => Ok(group.field(key)),
            [] => Ok(Absent::call(text, name, group.keys().into_iter().map(bare_name).collect())),
            [..] => Err(Fault::new(format!("`{text}` finds one in more than one namespace"))
                .hint("say which: `namespace=…`")
                .into()),
        }
    }

    /// `list(kind)`: all objects of a kind, in the order of their names.
    fn list(&self, args: &[Value]) -> Result<Value, Error> {
        let (kind,): (&str,) = self.arguments("list", "a kind", args)?;
        let objects = self.group("list", kind)?.map(|group| {
            let keys = group.keys();
            keys.into_iter().map(|key| group.field(key)).collect::<Vec<_>>()
        });
        Ok(Value::from(objects.unwrap_or_default()))
    }

    fn arguments<'a, T: minijinja::value::FunctionArgs<'a, Output = T>>(
        &self,
        method: &str,
        expected: &str,
        args: &'a [Value],
    ) -> Result<T, Error> {
        from_args(args).map_err(|_| {
            Fault::new(format!("`{}.{method}` cannot read its arguments", self.name))
                .expected(expected)
                .into()
        })
    }

    /// The objects of a kind written as `Job` or `Job.batch/v1`; `None` where it is not known to be undeclared.
    fn group(&self, method: &str, kind: &str) -> Result<Option<Arc<Data>>, Fault> {
        let known = self.groups.keys();
        let matches: Vec<_> =
            known.iter().copied().filter(|group| *group == kind || bare_kind(group) == kind).collect();
        match matches[..] {
            [group] => Ok(self.groups.field(group).downcast_object::<Data>()),
            [] if known.is_empty() || self.kinds == Kinds::Some => Ok(None),
            [] => Err(self.unknown_kind(method, kind, &known)),
            [..] => Err(Fault::new(format!("`{kind}` is more than one kind in `{}`", self.name))
                .expected(listed(&matches))
                .hint("write the kind with its version, as above")),
        }
    }

    fn unknown_method(&self, method: &str) -> Fault {
        let fault = Fault::new(format!("`{}` has no method `{method}`", self.name));
        let fault = fault.about_its(Subject::Method(method.to_string()));
        match nearest(method, ["find", "list", "items", "keys", "values", "get"]) {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault.expected("`find` or `list`"),
        }
    }

    /// Whether every group is of a declared kind; related objects are grouped by what was asked for.
    fn declares(&self) -> bool {
        self.kinds == Kinds::All && self.name != "related"
    }

    /// A key that names no group; `None` where nothing is declared.
    fn unknown_group(&self, kind: &str) -> Option<Fault> {
        let known = self.groups.keys();
        let fault = Fault::new(format!("`{}[{kind:?}]` is no kind that is declared", self.name));
        let of_kind = known.iter().find(|group| bare_kind(group).eq_ignore_ascii_case(kind));
        match of_kind
            .or(known.iter().find(|group| format!("{}s", bare_kind(group)).eq_ignore_ascii_case(kind)))
        {
            _ if known.is_empty() => None,
            Some(group) => {
                Some(fault.hint(format!("write `{}.find(\"{}\", name)`", self.name, bare_kind(group))))
            }
            None => Some(fault.expected(listed(&known))),
        }
    }

    fn unknown_kind(&self, method: &str, kind: &str, known: &[&str]) -> Fault {
        let fault =
            Fault::new(format!("`{}.{method}` asks for the kind `{kind}`, which is not declared", self.name));
        let bare: Vec<_> = known.iter().map(|group| bare_kind(group)).collect();
        let near =
            if kind.contains('.') { nearest(kind, known.iter().copied()) } else { nearest(kind, bare) };
        match near {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault.expected(listed(known)),
        }
    }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

fn bare_kind(group: &str) -> &str {
    group.split('.').next().unwrap_or(group)
}

fn bare_name(key: &str) -> String {
    key.rsplit('/').next().unwrap_or(key).to_string()
}

/// Keys are `name` or `namespace/name`; where they are names alone, the object tells its namespace.
fn is_called(key: &str, group: &Data, name: &str, namespace: Option<&str>) -> bool {
    match (key.split_once('/'), namespace) {
        _ if key == name && namespace.is_none() => true,
        (Some((_, rest)), None) => rest == name,
        (Some((space, rest)), Some(namespace)) => rest == name && space == namespace,
        (None, None) => false,
        (None, Some(namespace)) => key == name && group.json()[key]["metadata"]["namespace"] == namespace,
    }
}

impl Object for Family {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let unknown = key.as_str().filter(|kind| self.declares() && !self.groups.keys().contains(kind));
        // `default(…)` would take the slip for an object that is not there yet.
        match unknown.and_then(|kind| self.unknown_group(kind)) {
            Some(fault) => Some(Value::from(Error::from(fault))),
            None => self.groups.get_value(key),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.groups.enumerate()
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.groups.enumerator_len()
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        let args = settled(state, args)?;
        match method {
            "find" => self.find(&args),
            "list" => self.list(&args),
            "items" | "keys" | "values" | "get" => Err(Error::from(minijinja::ErrorKind::UnknownMethod)),
            _ => Err(self.unknown_method(method).into()),
        }
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.name)
    }
}

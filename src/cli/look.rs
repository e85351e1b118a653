//! What `diff` and `record` have in common: a cluster that is only looked at, definitions, and the parents that are meant.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use crate::author::test::broken;
use crate::cli::{connect, show};
use crate::cluster::Manners;
use crate::cluster::gate::Gate;
use crate::cluster::object::Managers;
use crate::config::Definition;
use crate::config::spec::Target;
use crate::controller::preview::{Preview, definitions};
use crate::controller::{Hooks, source};
use crate::hook::PathService;
use crate::hook::local::Shelf;
use crate::hook::local::renders::Renders;
use crate::object::name::Key;
use crate::problem::{Problem, nearest};

#[derive(Args)]
#[group(skip)]
pub(super) struct Flags {
    /// The definitions to look at [default: those in the cluster]
    #[arg(long, value_name = "FILE", env = "SYNCWRIGHT_CONTROLLERS")]
    controllers: Option<PathBuf>,
    /// The hooks folder, for webhooks that have a path alone
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    pub hooks: PathBuf,
    /// Only parents in this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// The cluster; else $KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Field manager of children, as `run` has it
    #[arg(long, value_name = "NAME", default_value = "metacontroller")]
    field_manager: String,
}

/// The parents that were named: those of a definition, or one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    of: String,
    name: Option<String>,
}

impl Named {
    /// `mysqls`, `mysqls/shop`
    pub(super) fn parse(text: &str) -> Result<Named, String> {
        match text.split_once('/') {
            Some((of, name)) if !of.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Named { of: of.into(), name: Some(name.into()) })
            }
            None if !text.is_empty() => Ok(Named { of: text.into(), name: None }),
            _ => Err("expected a kind, or a kind, `/` and a name, such as `mysqls/shop`".into()),
        }
    }

    /// Whether a definition is meant: by its name, or by its parents' plural or kind.
    fn is_about(&self, definition: &Definition) -> bool {
        let resource = &definition.spec.parent.resource;
        let whole = format!("{}.{}", resource.resource, resource.group());
        [&definition.name, &resource.resource, &whole]
            .into_iter()
            .any(|name| name.eq_ignore_ascii_case(&self.of))
            || format!("{}s", self.of).eq_ignore_ascii_case(&resource.resource)
            || format!("{}es", self.of).eq_ignore_ascii_case(&resource.resource)
    }
}

/// Definitions at hand, each with the parents that are meant.
pub(super) struct Look {
    pub subjects: Vec<(Preview, Vec<Key>)>,
    pub shelf: Arc<Shelf>,
}

impl Flags {
    /// Connects, with a gate that lets no write through, and lists what the definitions are about.
    pub(super) async fn look(&self, named: Option<&Named>) -> Result<Look> {
        // A mistake in a file is told whether or not there is a cluster.
        let from_file = self.controllers.as_deref().map(in_file).transpose()?;
        let managers = Managers::named(&self.field_manager);
        let manners = Manners { gate: Gate::closed(), ..Manners::brisk(managers) };
        let cluster = connect(self.kubeconfig.as_deref(), manners).await?;
        let mut definitions = match from_file {
            Some(definitions) => definitions,
            None => {
                usable(definitions(&cluster).await, "in the cluster; hint: name a file with --controllers")?
            }
        };
        if let Some(named) = named {
            let all: Vec<String> =
                definitions.iter().map(|definition| format!("`{}`", definition.name)).collect();
            let known: Vec<String> = definitions
                .iter()
                .flat_map(|definition| {
                    [definition.name.to_string(), definition.spec.parent.resource.resource.clone()]
                })
                .collect();
            definitions.retain(|definition| named.is_about(definition));
            if definitions.is_empty() {
                let hint = nearest(&named.of, known.iter().map(String::as_str))
                    .map_or_else(String::new, |near| format!("; hint: did you mean `{near}`?"));
                bail!("no definition is about `{}`; found: {}{hint}", named.of, all.join(", "));
            }
        }
        let shelf = Shelf::open(&self.hooks);
        if definitions.iter().any(has_built_in) {
            broken(&shelf).iter().for_each(show);
        }
        let hooks = Hooks {
            paths: PathService::InProcess(Arc::new(Renders::new(shelf.clone()))),
            changes: None,
            meters: Arc::default(),
        };
        let mut subjects = Vec::new();
        for definition in definitions {
            let preview = Preview::open(definition, &cluster, &hooks).await;
            let preview = preview.map_err(|problem| anyhow::anyhow!("{problem}"))?;
            let parents = self.meant(&preview, named);
            subjects.push((preview, parents));
        }
        if subjects.iter().all(|(_, parents)| parents.is_empty())
            && let Some(Named { of, name: Some(name) }) = named
        {
            let place =
                self.namespace.as_ref().map_or_else(String::new, |namespace| format!(" in `{namespace}`"));
            bail!("there is no parent `{of}/{name}`{place}");
        }
        Ok(Look { subjects, shelf })
    }

    fn meant(&self, preview: &Preview, named: Option<&Named>) -> Vec<Key> {
        let name = named.and_then(|named| named.name.as_ref());
        let is_meant = |key: &Key| {
            name.is_none_or(|name| key.name == *name)
                && self.namespace.as_ref().is_none_or(|namespace| key.namespace == *namespace)
        };
        preview.parents().into_iter().filter(is_meant).collect()
    }
}

fn in_file(path: &Path) -> Result<Vec<Definition>> {
    let read = source::read_file(path)
        .map(|definitions| definitions.by_id.values().map(|definition| (**definition).clone()).collect());
    usable(read, &format!("in `{}`; hint: `syncwright new` writes one", path.display()))
}

/// Definitions that were read, at least one; `place` ends the sentence that there is none.
fn usable(read: Result<Vec<Definition>, Vec<Problem>>, place: &str) -> Result<Vec<Definition>> {
    match read {
        Ok(definitions) if definitions.is_empty() => {
            bail!("there is no definition {place}")
        }
        Ok(definitions) => Ok(definitions),
        Err(problems) => {
            problems.iter().for_each(show);
            bail!("the definitions cannot be used")
        }
    }
}

/// Whether any of its hooks is answered from the hooks folder.
fn has_built_in(definition: &Definition) -> bool {
    definition.spec.hooks.each().any(|hook| matches!(hook.webhook.target, Target::BuiltIn { .. }))
}

/// Runs what waits for a cluster.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_named_by_kind_and_name() {
        let named = |of: &str, name: Option<&str>| Named { of: of.into(), name: name.map(String::from) };
        assert_eq!(Named::parse("mysqls/shop"), Ok(named("mysqls", Some("shop"))));
        assert_eq!(Named::parse("MySQL"), Ok(named("MySQL", None)));
        for wrong in ["", "/", "mysqls/", "/shop", "a/b/c"] {
            Named::parse(wrong).unwrap_err();
        }
    }

    #[test]
    fn definition_is_meant_by_its_name_or_its_parents_kind() {
        let text = "apiVersion: metacontroller.k8s.io/v1alpha1\nkind: CompositeController\nmetadata: {name: db}\n\
             spec:\n  parentResource: {apiVersion: a.b/v1, resource: mysqls}\n  hooks: {sync: {webhook: {url: 'http://a'}}}\n";
        let definition = crate::config::load("f", text).unwrap().remove(0);
        for name in ["db", "mysqls", "mysql", "MySQL", "mysqls.a.b"] {
            assert!(Named::parse(name).unwrap().is_about(&definition), "{name}");
        }
        assert!(!Named::parse("shelves").unwrap().is_about(&definition));
    }
}

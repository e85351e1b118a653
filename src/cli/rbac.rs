//! `syncwright rbac`: the roles under which `run` works.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::author::rbac::related::{cluster_scoped, of_cases};
use crate::author::rbac::role::{Wanted, text};
use crate::author::rbac::{Duties, Related};
use crate::cli::out::print;
use crate::cli::value::{key, name, namespace};
use crate::cli::{Ended, show};
use crate::config::spec::ResourceName;
use crate::controller::source;
use crate::object::name::Key;
use crate::problem::nearest;
use crate::schema::Catalog;

/// Print the roles that `run` needs for these definitions, and no more
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// The definitions that are to run
    #[arg(long, value_name = "FILE", default_value = "controllers.yaml", env = "SYNCWRIGHT_CONTROLLERS")]
    controllers: PathBuf,
    /// The hooks folder: cases of customize hooks tell what these ask for
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    hooks: PathBuf,
    /// Name of the roles and bindings
    #[arg(long, value_name = "NAME", default_value = "syncwright", value_parser = name)]
    name: String,
    /// Also prints bindings to this service account
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = key)]
    service_account: Option<Key>,
    /// For `run --namespace`: nothing outside this namespace is looked at, and a Role is enough; may be repeated
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    namespace: Vec<String>,
    /// A kind that customize hooks ask for, such as v1/secrets or apps/v1/deployments; may be repeated
    #[arg(long, value_name = "APIVERSION/RESOURCE", value_parser = resource)]
    related: Vec<ResourceName>,
    /// The Lease of `run --leader-elect`
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = key)]
    lease: Option<Key>,
    /// The Secret of `run --webhook-host`
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = key)]
    webhook_secret: Option<Key>,
}

const AFTER_HELP: &str = "\
A kind of which only its hook knows is not in the roles: related objects are taken from the customize cases below --hooks
and from --related.

Examples:
  syncwright rbac | kubectl apply -f -
  syncwright rbac --service-account operators/syncwright --namespace shop --namespace blog
  syncwright rbac --lease operators/metacontroller --webhook-secret operators/syncwright-webhook

Exit codes: 0 printed, 2 the definitions cannot be read";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let definitions = match source::read_file(&flags.controllers) {
        Ok(definitions) => definitions,
        Err(problems) => {
            problems.iter().for_each(show);
            bail!("`{}` cannot be used", flags.controllers.display())
        }
    };
    let definitions: Vec<_> = definitions.by_id.values().map(|definition| &**definition).collect();
    let unread = || format!("hooks folder `{}` cannot be read", flags.hooks.display());
    let mut related = match of_cases(&flags.hooks, &definitions).with_context(unread)? {
        Ok(related) => related,
        Err(problem) => bail!("{problem}"),
    };
    related
        .extend(flags.related.into_iter().map(|resource| Related { resource, by_namespace_labels: false }));
    let follows_cluster = flags.namespace.is_empty();
    let duties = Duties {
        definitions,
        related,
        follows_cluster,
        lease: flags.lease,
        certificates: flags.webhook_secret,
    };
    let wanted = Wanted {
        name: flags.name,
        service_account: flags.service_account,
        namespaces: flags.namespace,
        cluster_scoped: cluster_scoped(&flags.hooks).with_context(unread)?,
    };
    for remark in duties.remarks() {
        eprintln!("note: {remark}");
    }
    print(&text(&duties.roles(&wanted)))?;
    Ok(Ended::Well)
}

fn resource(text: &str) -> Result<ResourceName, String> {
    let expected =
        || "expected a version and a plural, such as `v1/secrets` or `apps/v1/deployments`".to_string();
    let (api_version, resource) = text.rsplit_once('/').ok_or_else(expected)?;
    let catalog = Catalog::built_in();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if catalog.knows_all_of(group) && catalog.resource(api_version, resource).is_none() {
        // A role for what is none grants nothing, and nobody would say so.
        let kinds: Vec<_> =
            catalog.of_group(group).filter(|kind| kind.gvk.api_version() == api_version).collect();
        let kind = kinds.iter().find(|kind| kind.gvk.kind.eq_ignore_ascii_case(resource));
        let meant = kind.map(|kind| kind.plural.as_str());
        let meant = meant.or_else(|| nearest(resource, kinds.iter().map(|kind| kind.plural.as_str())));
        return Err(match meant {
            Some(meant) => {
                format!("there is no `{resource}` in `{api_version}`; did you mean `{api_version}/{meant}`?")
            }
            None => format!("there is no `{resource}` in `{api_version}`"),
        });
    }
    if api_version.is_empty() || resource.is_empty() || api_version.matches('/').count() > 1 {
        return Err(expected());
    }
    Ok(ResourceName { api_version: api_version.into(), resource: resource.into() })
}

//! `syncwright new`: writes a working hook folder and the definition that calls it.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::author::new::{self, Appended, From, Overwrite, Sketch, Target, Wish, Written};
use crate::cli::{Ended, out};

/// Make a working operator: a CRD, templates, cases, an example, and the entry of controllers.yaml
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// The hook: the name of the new folder below --hooks
    hook: String,
    /// API group of the kind, a domain of yours
    #[arg(long, value_name = "DOMAIN")]
    group: Option<String>,
    /// The kind; else it is made of the hook's name
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Version of the kind [default: v1, or the one that --from stores]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Plural of the kind, where it is not the usual one
    #[arg(long, value_name = "PLURAL")]
    plural: Option<String>,
    /// Start from a CustomResourceDefinition in a file
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Start from plain manifests: a folder, a file, or `-` for stdin, such as the output of `helm template`
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    from_manifests: Option<PathBuf>,
    /// The hooks folder
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    hooks: PathBuf,
    /// The file of definitions to append to; it is made where it is missing
    #[arg(long, value_name = "FILE", default_value = "controllers.yaml", env = "SYNCWRIGHT_CONTROLLERS")]
    controllers: PathBuf,
    /// Write over files that are there; an entry of controllers.yaml stays as it is
    #[arg(long)]
    force: bool,
}

const AFTER_HELP: &str = "\
Examples:
  syncwright new mysql --group database.example.com --kind MySQL
  syncwright new website --from crd.yaml
  syncwright new shop --group example.com --from-manifests manifests/
  helm template shop ./chart | syncwright new shop --group example.com --from-manifests -

From manifests, names and namespaces follow the parent's; images, replicas, resources, sizes, hosts, schedules and repeated ports
become fields of the spec. The example renders to the manifests that it was made from.

Exit codes: 0 written, 2 nothing was written";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let from = match (flags.from, flags.from_manifests) {
        (Some(file), _) => From::Crd(file),
        (None, Some(source)) => From::Manifests(source),
        (None, None) => From::Nothing,
    };
    let wish = Wish {
        hook: flags.hook,
        group: flags.group,
        kind: flags.kind,
        version: flags.version,
        plural: flags.plural,
    };
    let overwrite = if flags.force { Overwrite::Yes } else { Overwrite::No };
    let target = Target { hooks: flags.hooks, controllers: flags.controllers, overwrite };
    let made = new::sketch(wish, &from).and_then(|sketch| Ok((new::write(&sketch, &target)?, sketch)));
    match made {
        Ok((written, sketch)) => {
            out::print(&told(&written, &sketch, &target))?;
            Ok(Ended::Well)
        }
        Err(problem) => bail!("{}", problem.page()),
    }
}

fn told(written: &Written, sketch: &Sketch, target: &Target) -> String {
    let mut lines: Vec<String> =
        written.files.iter().map(|file| format!("wrote {}", file.display())).collect();
    let (hooks, controllers) = (target.hooks.display(), target.controllers.display());
    let hook = &sketch.names.hook;
    lines.push(match written.definition {
        Appended::Yes => format!("added controller `{hook}` to {controllers}"),
        Appended::WasThere => format!("kept controller `{hook}` in {controllers} as it is"),
    });
    lines.extend(sketch.notes.iter().map(|note| format!("note: {note}")));
    lines.extend([
        String::new(),
        "Next:".into(),
        format!("  syncwright test --only {hook}/"),
        format!("  kubectl apply -f {hooks}/{hook}/crd.yaml"),
        format!("  syncwright run --controllers {controllers}"),
    ]);
    lines.extend(sketch.namespace.iter().map(|namespace| format!("  kubectl create namespace {namespace}")));
    lines.push(format!("  kubectl apply -f {hooks}/{hook}/example.yaml"));
    lines.join("\n") + "\n"
}

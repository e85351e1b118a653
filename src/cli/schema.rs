//! `syncwright schema`: JSON Schema for editors and for those who write hooks in other languages.

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::author::schema::{Subject, crds, schema};
use crate::cli::Ended;
use crate::cli::out::print;

/// Print the JSON Schema of controllers.yaml, of a case's files, or of hook messages; or the CRDs of definitions
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// What to print the schema of
    #[arg(value_enum)]
    of: Of,
}

const AFTER_HELP: &str = "\
Examples:
  syncwright schema controllers > controllers.schema.json
  syncwright schema hook | jq '.[\"$defs\"] | keys'
  syncwright schema crds | kubectl apply -f -

An editor with a YAML language server takes a schema from a file's first line:
  # yaml-language-server: $schema=controllers.schema.json

Exit codes: 0 printed, 2 there is no such schema";

#[derive(Clone, Copy, ValueEnum)]
enum Of {
    /// A file of definitions: CompositeControllers and DecoratorControllers
    Controllers,
    /// A case's <call>.request.yaml
    CaseRequest,
    /// A case's <call>.response.yaml
    CaseResponse,
    /// Requests and answers of hooks, v1 and v2: each message under its name in `$defs`
    Hook,
    /// The CustomResourceDefinitions of CompositeControllers, DecoratorControllers and ControllerRevisions, for `kubectl apply`
    Crds,
}

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let subject = match flags.of {
        Of::Controllers => Subject::Controllers,
        Of::CaseRequest => Subject::CaseRequest,
        Of::CaseResponse => Subject::CaseResponse,
        Of::Hook => Subject::Hook,
        Of::Crds => {
            print(&crds())?;
            return Ok(Ended::Well);
        }
    };
    print(&format!("{:#}\n", schema(subject)))?;
    Ok(Ended::Well)
}

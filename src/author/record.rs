//! Keeping a real visit as a case: its requests with the values of Secrets masked, and what the templates answer to them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::author::case::usually_given;
use crate::hook::local::{Reason, Refusal, Shelf, to_yaml};
use crate::mask::{Secrets, Veil, Words};
use crate::problem::Problem;

/// One call of a visit, as the hook was sent it.
pub(crate) struct Call {
    /// The folder below the hooks folder, and the call's name in it.
    pub hook: String,
    pub call: String,
    pub request: Value,
    /// Whether the hook gave an answer to it.
    pub answered: bool,
}

/// Where and when it was.
pub(crate) struct Occasion {
    /// As the head of the file has it: `MySQL blog/shop`.
    pub parent: String,
    pub now: Timestamp,
}

/// What was written.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub files: Vec<PathBuf>,
    /// What the author should look at.
    pub remarks: Vec<String>,
}

/// Why nothing was.
pub(crate) enum Trouble {
    Io(io::Error),
    Problem(Problem),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Io(error)
    }
}

/// Writes the calls as the case of this name, which must not be there yet.
pub(crate) fn record(
    root: &Path,
    shelf: &Shelf,
    case: &str,
    calls: Vec<Call>,
    occasion: &Occasion,
) -> Result<Recorded, Trouble> {
    for call in &calls {
        let folder = folder(root, &call.hook, case);
        if folder.exists() {
            let problem = Problem::new(format!("there is a case `{}` already", folder.display()));
            return Err(Trouble::Problem(problem.hint("name another one with --case")));
        }
        if !root.join(&call.hook).is_dir() {
            let problem = Problem::new(format!("there is no hook `{}` in `{}`", call.hook, root.display()));
            return Err(Trouble::Problem(problem));
        }
    }
    let mut recorded = Recorded::default();
    for call in calls {
        recorded.keep(root, shelf, case, call, occasion)?;
    }
    Ok(recorded)
}

fn folder(root: &Path, hook: &str, case: &str) -> PathBuf {
    root.join(hook).join("cases").join(case)
}

impl Recorded {
    fn keep(
        &mut self,
        root: &Path,
        shelf: &Shelf,
        case: &str,
        call: Call,
        occasion: &Occasion,
    ) -> Result<(), Trouble> {
        let mut request = call.request;
        Veil::new(&Secrets::of(&request), Words::Kept).hide(&mut request);
        request["now"] = json!(occasion.now.to_string());
        request["entropy"] = json!(case);
        let answer = shelf.answer(&call.hook, &call.call, request.to_string().as_bytes(), usually_given());
        let (ending, text) = match answer {
            Ok(response) => ("response.yaml", to_yaml(&response.into_value())),
            Err(Refusal { reason: Reason::Fault, problem, .. }) => {
                if call.answered {
                    self.remarks.push(format!(
                        "`{}` has an answer to the real request and none to the masked one: put values that it can use into {}.request.yaml",
                        call.call, call.call
                    ));
                }
                ("error.txt", format!("{}\n", problem.page()))
            }
            Err(refusal) => return Err(Trouble::Problem(refusal.problem)),
        };
        let folder = folder(root, &call.hook, case);
        fs::create_dir_all(&folder)?;
        let head = head(shelf, &call.hook, occasion);
        self.write(folder.join(format!("{}.request.yaml", call.call)), &(head + &to_yaml(&request)))?;
        self.write(folder.join(format!("{}.{ending}", call.call)), &text)?;
        Ok(())
    }

    fn write(&mut self, file: PathBuf, text: &str) -> io::Result<()> {
        fs::write(&file, text)?;
        self.files.push(file);
        Ok(())
    }
}

fn head(shelf: &Shelf, hook: &str, occasion: &Occasion) -> String {
    let hooks = shelf.state().hooks;
    let revision = hooks.into_iter().find(|state| state.hook == hook).and_then(|state| state.revision);
    let revision = revision.map_or_else(String::new, |revision| format!(", revision {revision} of the hook"));
    format!("# {}, {}{revision}. Values of Secrets are masked.\n", occasion.parent, occasion.now)
}

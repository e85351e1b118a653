//! Plain scalars that YAML 1.1, and so kubectl, takes for something else: `on`, `0755`, `1_000`, a number of twenty digits.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::finding::{Findings, Rule};
use crate::author::check::requests::Request;
use crate::hook::wire::answer::Answer;
use crate::problem::{Place, Problem};
use crate::template::yaml::{Document, Trap};

impl Check {
    pub(super) fn traps(&mut self, request: &Request, answer: &Answer) {
        let origins = answer.children.iter().filter_map(|child| child.origin.as_ref());
        for origin in origins.chain(&answer.status_origin) {
            for (place, trap) in origin.traps() {
                tell(place, trap, Some(&request.file), &mut self.findings);
            }
        }
    }
}

/// Those of a file that is read as it stands.
pub(super) fn in_document(document: &Document, file: Option<&str>, findings: &mut Findings) {
    document.places.traps().for_each(|(place, trap)| tell(place, trap, file, findings));
}

fn tell(place: Place, trap: &Trap, file: Option<&str>, findings: &mut Findings) {
    if is_file_mode(trap) {
        return;
    }
    let Trap { text, meaning, is_key, .. } = trap;
    let problem = match (is_key, meaning) {
        (true, _) => Problem::new(format!("the key `{text}` is read as `{meaning}`"))
            .hint(format!("write `\"{text}\"` for the text")),
        (_, Value::Bool(truth)) => Problem::new(format!("`{text}` is read as `{meaning}`"))
            .hint(format!("write `{truth}`, or `\"{text}\"` for the text")),
        _ => Problem::new(format!("`{text}` is read as the number {meaning}"))
            .hint(format!("write `{meaning}`, or `\"{text}\"` for the text")),
    };
    let problem = problem.at(place);
    match file {
        Some(file) => findings.add_seen(Rule::YamlTrap, problem, file),
        None => findings.add(Rule::YamlTrap, problem),
    }
}

/// Modes of files are written with a leading zero everywhere, and are read as they are meant.
fn is_file_mode(trap: &Trap) -> bool {
    let mode = trap.field.as_deref().is_some_and(|field| field.to_lowercase().ends_with("mode"));
    mode && trap.meaning.is_number() && trap.text.starts_with('0') && !trap.text.contains('_')
}

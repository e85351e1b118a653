//! What a body is that cannot be read as a request: most often curl was told to send something else.

use serde_json::{Map, Value};

use crate::problem::Problem;

const WHOLE: &str = "curl sends a file as it is with `--data-binary @FILE`";

/// The problem of a body that is no YAML, with what was done to it on its way where that shows.
pub(super) fn mangled(text: &str, problem: Problem) -> Problem {
    let start = text.trim_start();
    if start.starts_with("--") && start.contains("Content-Disposition: form-data") {
        return Problem::new("the body is a form, and no request").hint(WHOLE);
    }
    // `curl -d` takes the line ends out of a file.
    let one_line = !text.trim_end().contains('\n') && text.contains("apiVersion:") && text.contains("kind:");
    if one_line { problem.hint(format!("the lines of it run into one: {WHOLE}")) } else { problem }
}

/// Why an object that stands alone can be no parent: the API server sends it, and not to this call.
pub(super) fn review(object: &Map<String, Value>) -> Option<Problem> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, _) = text("apiVersion").split_once('/')?;
    let calls = match (group, text("kind")) {
        ("admission.k8s.io", "AdmissionReview") => "`validate` or `default`",
        ("apiextensions.k8s.io", "ConversionReview") => "`convert`",
        _ => return None,
    };
    let problem = Problem::new(format!("an {} is no parent", text("kind")).replace("an Conv", "a Conv"));
    Some(problem.expected(format!("the path of a hook's {calls}")))
}

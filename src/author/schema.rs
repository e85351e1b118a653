//! JSON Schema for what authors write and hooks exchange. Each schema stands beside the code that reads what it describes.

use serde_json::Value;

use crate::config::json_schema::definitions;
use crate::config::schema::CRDS;
use crate::hook::local::json_schema::{case_request, case_response};
use crate::hook::wire::json_schema::messages;

/// What there is a schema of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Controllers,
    CaseRequest,
    CaseResponse,
    Hook,
}

/// The CustomResourceDefinitions of this API, as one file for `kubectl apply`.
pub(crate) fn crds() -> String {
    CRDS.map(|(_, text)| text.trim_start_matches("---\n")).join("---\n")
}

pub(crate) fn schema(subject: Subject) -> Value {
    match subject {
        Subject::Controllers => definitions(),
        Subject::CaseRequest => case_request(),
        Subject::CaseResponse => case_response(),
        Subject::Hook => messages(),
    }
}

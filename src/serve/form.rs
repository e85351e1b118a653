//! In which form a caller wants its answer: a machine gets JSON, a person at a terminal what a person reads.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, USER_AGENT};
use serde::Serialize;

use crate::hook::local::request::looks_like_json;
use crate::problem::{Place, Problem};

/// The forms of an answer and of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub yaml: bool,
    /// A problem as the page that a person reads.
    page: bool,
}

/// A problem for a machine. The page is in it too, to be shown as it is.
#[derive(Serialize)]
struct Error<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Place]>::is_empty")]
    trail: &'a [Place],
    page: String,
}

impl Form {
    /// What the headers ask for; what they leave open follows the body.
    pub(super) fn of(headers: &HeaderMap, body: &[u8]) -> Form {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let accepts = |kind: &str| {
            header(ACCEPT)
                .split(',')
                .filter_map(|range| range.split(';').next())
                .any(|range| range.contains(kind))
        };
        // curl calls every body a form: where neither is declared, the body itself tells.
        let declared = header(CONTENT_TYPE);
        let is_json = declared.contains("json") || body.is_empty() || looks_like_json(body);
        let yaml_body = declared.contains("yaml") || !is_json;
        let yaml = accepts("yaml") || (yaml_body && !accepts("json"));
        let person = header(USER_AGENT).starts_with("curl/") || accepts("text/");
        Form { yaml, page: yaml || (person && !accepts("json")) }
    }

    pub(super) fn problem(self, status: StatusCode, problem: &Problem) -> HttpResponse {
        if self.page {
            return HttpResponse::build(status)
                .content_type("text/plain; charset=utf-8")
                .body(format!("{}\n", problem.page()));
        }
        let place = problem.place.as_ref();
        HttpResponse::build(status).json(Error {
            message: &problem.message,
            file: place.map(|place| place.file.as_str()),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            found: problem.found.as_deref(),
            expected: problem.expected.as_deref(),
            hint: problem.hint.as_deref(),
            trail: &problem.trail,
            page: problem.page(),
        })
    }
}

//! What is told of a case, without the values of the Secrets in it: a test's output goes further than its files.

use serde_json::Value;

use crate::author::difference;
use crate::mask::{Secrets, Veil, Words, pair};
use crate::template::yaml;

/// Every place where `got` is not what was `expected`, to a request.
pub(super) fn differences(request: &[u8], expected: &Value, got: &Value) -> Vec<String> {
    let lines = difference::differences(expected, got);
    let mut secrets = of_request(request);
    secrets.add(expected);
    secrets.add(got);
    if lines.is_empty() || secrets.is_empty() {
        return lines;
    }
    let veil = Veil::new(&secrets, Words::Compared);
    let (mut expected, mut got) = (expected.clone(), got.clone());
    pair::hide_written(&veil, &mut expected, &mut got);
    match difference::differences(&expected, &got) {
        lines if lines.is_empty() => vec!["a Secret's own copy of its values is not the expected one".into()],
        lines => lines,
    }
}

/// Texts that tell of a request.
pub(super) fn texts(request: &[u8], texts: Vec<String>) -> Vec<String> {
    if texts.is_empty() {
        return texts;
    }
    let veil = Veil::new(&of_request(request), Words::Told);
    texts.iter().map(|text| veil.text(text).into_owned()).collect()
}

fn of_request(request: &[u8]) -> Secrets {
    let text = String::from_utf8_lossy(request);
    let documents = yaml::read("request", &text).unwrap_or_default();
    documents.first().map(|document| Secrets::of(&document.value)).unwrap_or_default()
}

//! Findings as SARIF 2.1.0, which code hosts show beside the lines.

use serde_json::{Map, Value, json};

use crate::author::check::Report;
use crate::author::check::finding::{Finding, Rule};
use crate::cli::check::forms::{level, told};

pub(super) fn sarif(report: &Report) -> Value {
    let rules = |rule: Rule| {
        json!({
            "id": rule.name(),
            "shortDescription": {"text": rule.about()},
            "defaultConfiguration": {"level": level(rule.level())},
        })
    };
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "syncwright check",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": Rule::all().map(rules).collect::<Value>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": report.findings.iter().map(result).collect::<Value>(),
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let index = Rule::all().position(|rule| rule == finding.rule);
    let mut result = json!({
        "ruleId": finding.rule.name(),
        "ruleIndex": index,
        "level": level(finding.rule.level()),
        "message": {"text": told(finding)},
    });
    if let Some(place) = &finding.problem.place {
        let mut region = Map::from_iter([
            ("startLine".to_string(), json!(place.line)),
            ("startColumn".to_string(), json!(place.column)),
        ]);
        if let Some(snippet) = &finding.problem.snippet {
            region.insert("endColumn".into(), json!(place.column + snippet.width));
        }
        let uri = uri(&place.file);
        result["locations"] =
            json!([{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}]);
    }
    result
}

/// A path as a relative reference: what is no letter of one is escaped.
fn uri(path: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    path.strip_prefix("./").unwrap_or(path).bytes().map(escape).collect()
}

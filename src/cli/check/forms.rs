//! Findings for programs: plain JSON, and the annotations of GitHub's workflows.

use serde_json::{Value, json};

use crate::author::check::Report;
use crate::author::check::finding::{Finding, Level};

/// `{"findings": [{"rule", "level", "message", "place", …}], …}`; a finding's other fields are those of an error page.
pub(super) fn json(report: &Report) -> Value {
    let finding = |finding: &Finding| {
        let mut fields = serde_json::to_value(&finding.problem).expect("a problem is written to memory");
        fields["rule"] = finding.rule.name().into();
        fields["level"] = level(finding.rule.level()).into();
        if let Some(seen) = &finding.seen {
            fields["seenIn"] = json!({"file": seen.file, "requests": seen.times});
        }
        fields
    };
    json!({
        "findings": report.findings.iter().map(finding).collect::<Value>(),
        "hooks": report.hooks,
        "requests": report.renders,
        "kubernetes": report.version,
        "withoutSchema": report.unchecked,
    })
}

pub(super) fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
    }
}

/// One command for each finding, as a step's output is read.
/// See <https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>.
pub(super) fn github(report: &Report) -> String {
    let line = |finding: &Finding| {
        let mut properties = Vec::new();
        if let Some(place) = &finding.problem.place {
            properties.push(format!("file={}", property(&place.file)));
            properties.push(format!("line={}", place.line));
            properties.push(format!("col={}", place.column));
            if let Some(snippet) = &finding.problem.snippet {
                properties.push(format!("endColumn={}", place.column + snippet.width));
            }
        }
        properties.push(format!("title={}", property(finding.rule.name())));
        format!("::{} {}::{}\n", level(finding.rule.level()), properties.join(","), data(&told(finding)))
    };
    report.findings.iter().map(line).collect()
}

/// Message, found, expected, hint: a line each, without the place.
pub(super) fn told(finding: &Finding) -> String {
    let problem = &finding.problem;
    let parts = [("found", &problem.found), ("expected", &problem.expected), ("hint", &problem.hint)];
    let rest = parts.into_iter().filter_map(|(label, text)| Some(format!("\n{label}: {}", text.as_ref()?)));
    std::iter::once(problem.message.clone()).chain(rest).collect()
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

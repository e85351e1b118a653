//! Results in the forms that machines read: JUnit's XML and JSON.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::author::case::Verdict;
use crate::author::test::{Outcome, Results};
use crate::problem::Problem;

impl Results {
    /// One object: counts, cases, and the problems of hooks that do not compile.
    pub(crate) fn json(&self) -> Value {
        let count = |what| self.outcomes.iter().filter(|outcome| said(&outcome.verdict).0 == what).count();
        let mut report = json!({
            "passed": count("passed"),
            "accepted": count("accepted"),
            "failed": count("failed"),
            "seconds": seconds(self.took),
            "cases": self.outcomes.iter().map(case_as_json).collect::<Vec<_>>(),
            "problems": self.problems,
        });
        if let Some(coverage) = &self.coverage {
            report["coverage"] = coverage.json();
        }
        report
    }

    /// A test suite for each hook, and one for the files that do not compile.
    pub(crate) fn junit(&self) -> String {
        let failed = self.count(|verdict| matches!(verdict, Verdict::Failed(_)));
        let counts = Counts { tests: self.outcomes.len(), failed, errors: self.problems.len() };
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(xml, "<testsuites name=\"syncwright\"{}>", counts.with(self.took));
        for suite in self.outcomes.chunk_by(|one, other| one.hook == other.hook) {
            write_suite(&mut xml, suite);
        }
        if !self.problems.is_empty() {
            write_problems(&mut xml, &self.problems);
        }
        xml.push_str("</testsuites>\n");
        xml
    }
}

/// A verdict's name, and what is said of it.
fn said(verdict: &Verdict) -> (&'static str, &[String]) {
    match verdict {
        Verdict::Passed => ("passed", &[]),
        Verdict::Accepted(_) => ("accepted", &[]),
        Verdict::Failed(lines) => ("failed", lines),
    }
}

fn case_as_json(outcome: &Outcome) -> Value {
    let (verdict, lines) = said(&outcome.verdict);
    let mut case = json!({
        "hook": outcome.hook, "case": outcome.case, "verdict": verdict, "seconds": seconds(outcome.took),
    });
    match &outcome.verdict {
        Verdict::Failed(_) => case["lines"] = json!(lines),
        Verdict::Accepted(file) => case["wrote"] = json!(file.display().to_string()),
        Verdict::Passed => {}
    }
    case
}

/// To the microsecond: a case takes some fifty of them.
fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1e6).round() / 1e6
}

struct Counts {
    tests: usize,
    failed: usize,
    errors: usize,
}

impl Counts {
    fn with(&self, took: Duration) -> String {
        let Counts { tests, failed, errors } = self;
        format!(" tests=\"{tests}\" failures=\"{failed}\" errors=\"{errors}\" time=\"{}\"", seconds(took))
    }
}

fn write_suite(xml: &mut String, suite: &[Outcome]) {
    let hook = text(&suite[0].hook);
    let failed = suite.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Failed(_))).count();
    let counts = Counts { tests: suite.len(), failed, errors: 0 };
    let took = suite.iter().map(|outcome| outcome.took).sum();
    let _ = writeln!(xml, "  <testsuite name=\"{hook}\"{}>", counts.with(took));
    for outcome in suite {
        let case = text(&outcome.case);
        let _ = write!(
            xml,
            "    <testcase classname=\"{hook}\" name=\"{case}\" time=\"{}\"",
            seconds(outcome.took)
        );
        let Verdict::Failed(lines) = &outcome.verdict else {
            xml.push_str("/>\n");
            continue;
        };
        let first = text(lines.first().map_or("", String::as_str));
        let all = text(&lines.join("\n"));
        let _ = writeln!(xml, ">\n      <failure message=\"{first}\">{all}</failure>\n    </testcase>");
    }
    xml.push_str("  </testsuite>\n");
}

fn write_problems(xml: &mut String, problems: &[Problem]) {
    let counts = Counts { tests: 0, failed: 0, errors: problems.len() };
    let _ = writeln!(xml, "  <testsuite name=\"compile\"{}>", counts.with(Duration::ZERO));
    for problem in problems {
        let file = text(problem.place.as_ref().map_or("hooks", |place| place.file.as_str()));
        let (message, page) = (text(&problem.message), text(&problem.page()));
        let _ = writeln!(xml, "    <testcase classname=\"compile\" name=\"{file}\">");
        let _ = writeln!(xml, "      <error message=\"{message}\">{page}</error>\n    </testcase>");
    }
    xml.push_str("  </testsuite>\n");
}

/// Text of an element or an attribute. XML 1.0 has no form for control characters.
fn text(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let outcome = |hook: &str, case: &str, verdict| Outcome {
            hook: hook.into(),
            case: case.into(),
            verdict,
            took: Duration::from_micros(1500),
        };
        let failed = Verdict::Failed(vec!["a.b: expected \"<x>\", got 1 & \u{1b}".into(), "second".into()]);
        Results {
            outcomes: vec![
                outcome("a", "one/sync", Verdict::Passed),
                outcome("a", "two/sync", failed),
                outcome("b", "one/finalize", Verdict::Accepted("b/finalize.response.yaml".into())),
            ],
            problems: vec![Problem::new("unknown name `x`")],
            coverage: None,
            took: Duration::from_millis(2),
        }
    }

    #[test]
    fn junit_has_a_suite_for_each_hook_and_one_for_what_does_not_compile() {
        let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"syncwright\" tests=\"3\" failures=\"1\" errors=\"1\" time=\"0.002\">
  <testsuite name=\"a\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"0.003\">
    <testcase classname=\"a\" name=\"one/sync\" time=\"0.0015\"/>
    <testcase classname=\"a\" name=\"two/sync\" time=\"0.0015\">
      <failure message=\"a.b: expected &quot;&lt;x&gt;&quot;, got 1 &amp; \u{fffd}\">a.b: expected &quot;&lt;x&gt;&quot;, got 1 &amp; \u{fffd}
second</failure>
    </testcase>
  </testsuite>
  <testsuite name=\"b\" tests=\"1\" failures=\"0\" errors=\"0\" time=\"0.0015\">
    <testcase classname=\"b\" name=\"one/finalize\" time=\"0.0015\"/>
  </testsuite>
  <testsuite name=\"compile\" tests=\"0\" failures=\"0\" errors=\"1\" time=\"0\">
    <testcase classname=\"compile\" name=\"hooks\">
      <error message=\"unknown name `x`\">unknown name `x`</error>
    </testcase>
  </testsuite>
</testsuites>
";
        assert_eq!(results().junit(), expected);
    }

    #[test]
    fn json_has_counts_cases_and_problems() {
        let lines = ["a.b: expected \"<x>\", got 1 & \u{1b}", "second"];
        let expected = json!({
            "passed": 1, "accepted": 1, "failed": 1, "seconds": 0.002,
            "cases": [
                {"hook": "a", "case": "one/sync", "verdict": "passed", "seconds": 0.0015},
                {"hook": "a", "case": "two/sync", "verdict": "failed", "seconds": 0.0015, "lines": lines},
                {"hook": "b", "case": "one/finalize", "verdict": "accepted", "seconds": 0.0015,
                 "wrote": "b/finalize.response.yaml"},
            ],
            "problems": [{"message": "unknown name `x`"}],
        });
        assert_eq!(results().json(), expected);
    }
}

//! Prometheus' text format, version 0.0.4: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use crate::metric::count::Histogram;

/// The content type of such a text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A label's name and value.
pub(crate) type Label<'a> = (&'static str, &'a str);

/// The metrics of one process, as far as they are written.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

/// The samples of one name. All of them have to be written before the next family begins.
pub(crate) struct Family<'t> {
    name: &'t str,
    text: &'t mut String,
}

impl Text {
    pub(crate) fn counter<'t>(&'t mut self, name: &'t str, help: &str) -> Family<'t> {
        self.family(name, "counter", help)
    }

    pub(crate) fn gauge<'t>(&'t mut self, name: &'t str, help: &str) -> Family<'t> {
        self.family(name, "gauge", help)
    }

    pub(crate) fn histogram<'t>(&'t mut self, name: &'t str, help: &str) -> Family<'t> {
        self.family(name, "histogram", help)
    }

    fn family<'t>(&'t mut self, name: &'t str, sort: &str, help: &str) -> Family<'t> {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {sort}");
        Family { name, text: &mut self.0 }
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

impl Family<'_> {
    pub(crate) fn sample(&mut self, labels: &[Label], value: impl Display) {
        self.line("", labels, value);
    }

    pub(crate) fn timed(&mut self, labels: &[Label], histogram: &Histogram) {
        let snapshot = histogram.snapshot();
        let mut labels = labels.to_vec();
        for (bound, count) in snapshot.buckets {
            let bound = bound.to_string();
            let within: Vec<Label> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.line("_bucket", &within, count);
        }
        labels.push(("le", "+Inf"));
        self.line("_bucket", &labels, snapshot.count);
        labels.pop();
        self.line("_sum", &labels, snapshot.seconds);
        self.line("_count", &labels, snapshot.count);
    }

    fn line(&mut self, suffix: &str, labels: &[Label], value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (number, (label, value)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }
}

/// Most values have nothing to escape.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_family_has_its_help_its_type_and_its_samples() {
        let mut text = Text::default();
        text.gauge("up", "Whether it is up.").sample(&[], 1);
        let mut family = text.counter("calls_total", "Calls.");
        family.sample(&[("hook", "a\"\\\n"), ("call", "sync")], 2);
        let histogram = Histogram::new(&[0.5]);
        histogram.note(Duration::from_millis(250));
        histogram.note(Duration::from_secs(1));
        text.histogram("took_seconds", "Time.").timed(&[("a", "b")], &histogram);
        let expected = r#"# HELP up Whether it is up.
# TYPE up gauge
up 1
# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{hook="a\"\\\n",call="sync"} 2
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{a="b",le="0.5"} 1
took_seconds_bucket{a="b",le="+Inf"} 2
took_seconds_sum{a="b"} 1.25
took_seconds_count{a="b"} 2
"#;
        assert_eq!(text.into_string(), expected);
    }
}

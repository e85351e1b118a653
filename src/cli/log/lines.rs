//! What is logged, one line for each event, with the fields of the spans that it happens in as its own.
//!
//! tracing-subscriber's own JSON keeps the fields of spans, of the event and its message in places of their own; here a
//! thing has the same key in every line, wherever it is known from. docs/observability.md has the keys.

use std::borrow::Cow;
use std::fmt::{Debug, Write as _};
use std::io::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::mask::scope;

/// How a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Text,
    /// For a terminal.
    Coloured,
}

/// Writes each event to stderr.
pub(super) struct Lines(pub Form);

/// Fields by their keys, in the order in which they came; a later value replaces an earlier one. They are few.
#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).expect("a span that begins is there").extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).expect("a span that is used is there");
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let line = line(self.0, Timestamp::now(), event.metadata(), fields_of(event, &context));
        // Whoever has closed stderr wants no log; that is no reason to end.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, value.to_string());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.set(field.name(), value.into());
    }

    fn set(&mut self, key: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.0.push((key, value)),
        }
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| *known == key)?;
        Some(self.0.remove(at).1)
    }
}

/// The event's own fields after those of the spans around it, the innermost last.
fn fields_of<S>(event: &Event<'_>, context: &Context<'_, S>) -> Fields
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let mut fields = Fields::default();
    for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
        if let Some(of_span) = span.extensions().get::<Fields>() {
            of_span.0.iter().for_each(|(key, value)| fields.set(key, value.clone()));
        }
    }
    let mut own = Fields::default();
    event.record(&mut own);
    own.0.into_iter().for_each(|(key, value)| fields.set(key, sayable(value)));
    fields
}

/// What an event tells of, without the values of the Secrets that are at hand where it happens.
fn sayable(value: Value) -> Value {
    match value {
        Value::String(text) => match scope::spoken(&text) {
            Cow::Owned(said) => said.into(),
            Cow::Borrowed(_) => text.into(),
        },
        other => other,
    }
}

fn line(form: Form, now: Timestamp, metadata: &Metadata<'_>, mut fields: Fields) -> String {
    let message = fields.take("message").unwrap_or_default();
    let message = message.as_str().unwrap_or_default();
    let level = metadata.level();
    let mut line = String::with_capacity(256);
    match form {
        Form::Json => json(&mut line, now, metadata, message, &fields),
        Form::Text => text(&mut line, now, (level.as_str(), message), ["", "", ""], &fields),
        Form::Coloured => {
            text(&mut line, now, (level.as_str(), message), [colour(*level), "\x1b[2m", "\x1b[0m"], &fields);
        }
    }
    line.push('\n');
    line
}

fn json(line: &mut String, now: Timestamp, metadata: &Metadata<'_>, message: &str, fields: &Fields) {
    let now = format!("{now:.6}");
    let first = [
        ("timestamp", now.as_str()),
        ("level", metadata.level().as_str()),
        ("message", message),
        ("target", metadata.target()),
    ];
    for (index, (key, value)) in first.iter().enumerate() {
        let _ = write!(line, "{}\"{key}\":{}", if index == 0 { '{' } else { ',' }, Value::from(*value));
    }
    // A crate's own field of such a name would say something else.
    let others = fields.0.iter().filter(|(key, _)| !first.iter().any(|(taken, _)| taken == key));
    for (key, value) in others {
        let _ = write!(line, ",{}:{value}", Value::from(*key));
    }
    line.push('}');
}

fn text(
    line: &mut String,
    now: Timestamp,
    (level, message): (&str, &str),
    [paint, faint, plain]: [&str; 3],
    fields: &Fields,
) {
    let _ = write!(line, "{faint}{now:.6}{plain} {paint}{level:>5}{plain} {}", printable(message));
    for (key, value) in &fields.0 {
        let _ = match value {
            Value::String(text) => write!(line, " {faint}{key}={plain}{}", quoted(text)),
            other => write!(line, " {faint}{key}={plain}{other}"),
        };
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        _ => "\x1b[34m",
    }
}

/// A value that ends where a reader thinks it ends.
fn quoted(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '"' && c != '=';
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("\"{}\"", printable(&text.replace('\\', "\\\\").replace('"', "\\\""))))
}

/// What stays within its line, and paints nothing on a terminal.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Keeps what the lines would be, at a fixed time.
    struct Kept(Arc<Mutex<Vec<String>>>, Form);

    impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Kept {
        fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
            Lines(self.1).on_new_span(attributes, id, context);
        }

        fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
            let fields = fields_of(event, &context);
            self.0.lock().unwrap().push(line(self.1, Timestamp::UNIX_EPOCH, event.metadata(), fields));
        }
    }

    #[track_caller]
    fn check(form: Form, log: impl FnOnce(), expected: &[&str]) {
        let kept = Arc::<Mutex<Vec<String>>>::default();
        let subscriber = tracing_subscriber::registry().with(Kept(kept.clone(), form));
        tracing::subscriber::with_default(subscriber, log);
        assert_eq!(*kept.lock().unwrap(), expected);
    }

    fn within_a_visit() {
        let span = tracing::error_span!("visit", controller = "web", namespace = None::<&str>, name = "a");
        let _within = span.enter();
        tracing::info!(target: "t", child = "Pod n/b", count = 2, name = "c", "child \"b\" created");
        tracing::warn!(target: "t", error = "x=1\ny\x1b[1m", "went\nwrong");
    }

    #[test]
    fn fields_of_spans_are_the_events_own() {
        check(
            Form::Json,
            within_a_visit,
            &[
                "{\"timestamp\":\"1970-01-01T00:00:00.000000Z\",\"level\":\"INFO\",\"message\":\"child \\\"b\\\" created\",\
                 \"target\":\"t\",\"controller\":\"web\",\"name\":\"c\",\"child\":\"Pod n/b\",\"count\":2}\n",
                "{\"timestamp\":\"1970-01-01T00:00:00.000000Z\",\"level\":\"WARN\",\"message\":\"went\\nwrong\",\
                 \"target\":\"t\",\"controller\":\"web\",\"name\":\"a\",\"error\":\"x=1\\ny\\u001b[1m\"}\n",
            ],
        );
    }

    #[test]
    fn a_text_stays_within_its_line() {
        check(
            Form::Text,
            within_a_visit,
            &[
                "1970-01-01T00:00:00.000000Z  INFO child \"b\" created controller=web name=c child=\"Pod n/b\" count=2\n",
                "1970-01-01T00:00:00.000000Z  WARN went\\nwrong controller=web name=a error=\"x=1\\ny\\u{1b}[1m\"\n",
            ],
        );
    }
}

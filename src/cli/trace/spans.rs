//! The spans of `tracing` that are ours, as spans of OpenTelemetry.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::time::SystemTime;

use http::HeaderMap;
use jiff::Timestamp;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, Tracer as _,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, Span};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer;
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::mask::scope;

/// Spans that may begin a trace. Any other is a part of one, or nothing: what is done for no visit is in no trace.
const FIRST: [&str; 2] = ["visit", "call"];

/// Ends each span where it belongs. It is shown our spans alone.
pub(super) struct Spans(pub SdkTracer);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: layer::Context<'_, S>) {
        let span = context.span(id).expect("a span that begins is there");
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let within =
            span.parent().and_then(|parent| Some(parent.extensions().get::<Span>()?.span_context().clone()));
        let parent = match within.or_else(|| fields.remote_parent()) {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None if FIRST.contains(&span.name()) => Context::new(),
            None => return,
        };
        let began = fields.began.take().map_or_else(SystemTime::now, SystemTime::from);
        let name = fields.name.take().unwrap_or_else(|| span.name().into());
        let builder = SpanBuilder::from_name(name)
            .with_kind(fields.kind.take().unwrap_or(SpanKind::Internal))
            .with_start_time(began)
            .with_attributes(std::mem::take(&mut fields.attributes));
        let mut begun = self.0.build_with_context(builder, &parent);
        fields.fail(&mut begun);
        span.extensions_mut().insert(begun);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: layer::Context<'_, S>) {
        let span = context.span(id).expect("a span that is used is there");
        let mut extensions = span.extensions_mut();
        let Some(begun) = extensions.get_mut::<Span>().filter(|begun| begun.is_recording()) else { return };
        let mut fields = Fields::default();
        values.record(&mut fields);
        begun.set_attributes(std::mem::take(&mut fields.attributes));
        fields.fail(begun);
    }

    fn on_close(&self, id: Id, context: layer::Context<'_, S>) {
        let span = context.span(&id).expect("a span that ends is there");
        if let Some(mut begun) = span.extensions_mut().remove::<Span>() {
            begun.end();
        }
    }
}

/// Fields of a span: most are attributes, some are more.
#[derive(Default)]
struct Fields {
    attributes: Vec<KeyValue>,
    name: Option<Cow<'static, str>>,
    kind: Option<SpanKind>,
    began: Option<Timestamp>,
    error: Option<String>,
    /// Headers of the request that the span is about.
    headers: HashMap<&'static str, String>,
}

impl Fields {
    fn remote_parent(&self) -> Option<SpanContext> {
        let parent =
            TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(&self.headers));
        Some(parent.span().span_context().clone()).filter(SpanContext::is_valid)
    }

    fn fail(&mut self, span: &mut Span) {
        if let Some(error) = self.error.take() {
            span.set_status(Status::error(error));
        }
    }

    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.attributes.push(KeyValue::new(field.name(), value.into()));
    }

    /// Without the values of the Secrets that are at hand where it happens.
    fn put_text(&mut self, field: &Field, text: Cow<'_, str>) {
        let text = scope::spoken(&text);
        match field.name() {
            "began" => self.began = text.parse().ok(),
            "error" => self.error = Some(text.into_owned()),
            "otel.name" => self.name = Some(text.into_owned().into()),
            "otel.kind" => {
                self.kind = Some(if text == "server" { SpanKind::Server } else { SpanKind::Client })
            }
            "traceparent" | "tracestate" => drop(self.headers.insert(field.name(), text.into_owned())),
            _ => self.put(field, text.into_owned()),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put_text(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

struct Headers<'a>(&'a HashMap<&'static str, String>);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().copied().collect()
    }
}

/// Writes into the headers of a request whose part it is.
pub(super) fn carry(span: &tracing::Span, headers: &mut HeaderMap) {
    let context = span.with_subscriber(|(id, dispatch)| {
        let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
        let extensions = span.extensions();
        Some(extensions.get::<Span>()?.span_context().clone())
    });
    if let Some(context) = context.flatten() {
        let context = Context::new().with_remote_span_context(context);
        TraceContextPropagator::new().inject_context(&context, &mut Written(headers));
    }
}

struct Written<'a>(&'a mut HeaderMap);

impl Injector for Written<'_> {
    fn set(&mut self, key: &str, value: String) {
        let name = http::HeaderName::try_from(key);
        // One without a value says nothing.
        if let (Ok(name), Ok(value), false) = (name, http::HeaderValue::try_from(&value), value.is_empty()) {
            self.0.insert(name, value);
        }
    }
}

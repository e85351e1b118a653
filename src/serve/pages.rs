//! What can be read about the hooks: which there are, how they stand, what went wrong last.

use std::borrow::Cow;
use std::fmt::Write;

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, ALLOW, HeaderValue};
use actix_web::web::{self, Data, Query};
use actix_web::{HttpRequest, HttpResponse, Resource, Route};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::hook::local::edition::Rejected;
use crate::hook::local::renders::Renders;
use crate::hook::local::{CallState, HookState, State};
use crate::metric::text::{CONTENT_TYPE, Text};
use crate::problem::Problem;
use crate::serve::form::Form;

/// Letters of a path that are repeated to whoever asked for it.
const SHOWN: usize = 200;

/// A path with one method; any other is told which.
pub(super) fn only(path: &str, route: Route) -> Resource {
    web::resource(path).route(route).default_service(web::to(wrong_method))
}

async fn wrong_method(request: HttpRequest) -> HttpResponse {
    let allowed = if request.match_info().is_empty() { "GET" } else { "POST" };
    let problem =
        Problem::new(format!("`{}` takes no {}", shown(request.path()), shown(request.method().as_str())))
            .expected(allowed);
    let mut response = Form::of(request.headers(), b"").problem(StatusCode::METHOD_NOT_ALLOWED, &problem);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Enough of what a caller sent to tell it by.
fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

pub(super) async fn nothing_here(request: HttpRequest) -> HttpResponse {
    let problem = Problem::new(format!("there is nothing at `{}`", shown(request.path())))
        .expected("`POST /<hook>/<call>`")
        .hint("`GET /` lists the hooks and their calls");
    Form::of(request.headers(), b"").problem(StatusCode::NOT_FOUND, &problem)
}

pub(super) async fn no_such_page(request: HttpRequest) -> HttpResponse {
    let problem = Problem::new(format!("there is nothing at `{}`", shown(request.path())));
    Form::of(request.headers(), b"").problem(StatusCode::NOT_FOUND, &problem)
}

pub(super) async fn health() -> &'static str {
    "ok\n"
}

#[derive(Deserialize)]
pub(super) struct Detail {
    verbose: Option<String>,
}

pub(super) async fn readiness(renders: Data<Renders>, detail: Query<Detail>) -> HttpResponse {
    let state = renders.shelf().state();
    let mut text = String::new();
    if detail.verbose.is_some() {
        state.unreadable.iter().for_each(|problem| line(&mut text, format_args!("[-] {problem}")));
        state.hooks.iter().for_each(|hook| text.push_str(&readiness_of(hook)));
    }
    if state.ready() {
        text.push_str("ready\n");
        return HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(text);
    }
    line(&mut text, format_args!("not ready: {}", why_not_ready(&state)));
    HttpResponse::ServiceUnavailable().content_type("text/plain; charset=utf-8").body(text)
}

pub(super) async fn metrics(renders: Data<Renders>) -> HttpResponse {
    let mut text = Text::default();
    renders.shelf().write_metrics(&mut text);
    HttpResponse::Ok().content_type(CONTENT_TYPE).body(text.into_string())
}

pub(super) async fn index(request: HttpRequest, renders: Data<Renders>) -> HttpResponse {
    let state = renders.shelf().state();
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.contains("json") {
        return HttpResponse::Ok().json(index_json(&state));
    }
    HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(index_text(&state))
}

fn why_not_ready(state: &State) -> String {
    let rejected = state.hooks.iter().find_map(|hook| hook.rejected.as_ref()?.problems.first());
    match state.unreadable.as_ref().or(rejected) {
        Some(problem) => problem.to_string(),
        None => "the hooks folder holds no hook".into(),
    }
}

fn readiness_of(hook: &HookState) -> String {
    let mut text = String::new();
    match (&hook.revision, &hook.rejected) {
        (Some(revision), None) => line(&mut text, format_args!("[+] {}: revision {revision}", hook.hook)),
        (revision, Some(rejected)) => {
            let answering =
                revision.as_ref().map_or("no revision".into(), |known| format!("revision {known}"));
            let newer = &rejected.revision;
            line(&mut text, format_args!("[-] {}: {answering} answers, {newer} does not compile", hook.hook));
            text.push_str(&indented(rejected));
        }
        (None, None) => line(&mut text, format_args!("[-] {}: no revision", hook.hook)),
    }
    text
}

fn indented(rejected: &Rejected) -> String {
    rejected.problems.iter().map(|problem| format!("    {problem}\n")).collect()
}

fn index_text(state: &State) -> String {
    let mut text = String::from("POST a parent or a request, JSON or YAML, to one of these:\n");
    if state.hooks.is_empty() {
        line(&mut text, format_args!("  none: {}", why_not_ready(state)));
    }
    for hook in &state.hooks {
        text.push('\n');
        for CallState { call, last_error } in &hook.calls {
            line(&mut text, format_args!("  /{}/{}", hook.hook, call.name()));
            if let Some(error) = last_error {
                line(&mut text, format_args!("    last error, {}: {}", error.at, error.text));
            }
        }
        if let Some(rejected) = &hook.rejected {
            let answering = hook.revision.as_deref().unwrap_or("none");
            let newer = &rejected.revision;
            line(&mut text, format_args!("  revision {newer} does not compile, {answering} answers:"));
            text.push_str(&indented(rejected));
        }
    }
    text
}

fn index_json(state: &State) -> Value {
    let call = |state: &CallState| {
        let error = state.last_error.as_ref();
        let error = error.map(|error| json!({"at": error.at.to_string(), "message": error.text}));
        (state.call.name().to_string(), json!({"lastError": error}))
    };
    let rejected =
        |rejected: &Rejected| json!({"revision": rejected.revision, "problems": rejected.problems});
    let hook = |hook: &HookState| {
        let calls: serde_json::Map<String, Value> = hook.calls.iter().map(call).collect();
        let rejected = hook.rejected.as_ref().map(rejected);
        (hook.hook.clone(), json!({"revision": hook.revision, "rejected": rejected, "calls": calls}))
    };
    let hooks: serde_json::Map<String, Value> = state.hooks.iter().map(hook).collect();
    json!({"hooks": hooks, "problem": state.unreadable})
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{words}");
}

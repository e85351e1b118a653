//! One hook call: body in, answer or problem out.

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use tracing::field::Empty;

use crate::hook::local::answer::Response;
use crate::hook::local::renders::Renders;
use crate::hook::local::{Reason, Refusal, to_yaml};
use crate::hook::review::Review;
use crate::problem::Problem;
use crate::serve::body::{Room, Unread};
use crate::serve::form::Form;
use crate::serve::{pages, review};
use crate::trace;

/// A hook is a folder and a call is a file of it: no system has longer names, and no answer repeats one.
const LONGEST_NAME: usize = 255;

/// Answers within the caller's trace, where it has one.
pub(super) async fn answer(
    request: HttpRequest,
    path: Path<(String, String)>,
    payload: Payload,
    renders: Data<Renders>,
    room: Data<Room>,
) -> HttpResponse {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let trace = trace::span!(
        "call",
        traceparent = header("traceparent"),
        tracestate = header("tracestate"),
        otel.name = "POST /{hook}/{call}",
        otel.kind = "server",
        http.request.method = "POST",
        http.route = "/{hook}/{call}",
        hook = Empty,
        call = Empty,
        request_bytes = Empty,
        http.response.status_code = Empty,
        error = Empty
    );
    let response = trace::within(&trace, answered(request, path, payload, renders, room)).await;
    trace.record("http.response.status_code", response.status().as_u16());
    if response.status().is_server_error() {
        trace.record("error", response.status().as_str());
    }
    response
}

async fn answered(
    request: HttpRequest,
    path: Path<(String, String)>,
    payload: Payload,
    renders: Data<Renders>,
    room: Data<Room>,
) -> HttpResponse {
    let (hook, call) = path.into_inner();
    if hook.len().max(call.len()) > LONGEST_NAME {
        return pages::nothing_here(request).await;
    }
    let held = match room.read(&request, payload).await {
        Ok(held) => held,
        Err(unread) => return unread_response(Form::of(request.headers(), b""), &unread),
    };
    trace::current().record("hook", &hook).record("call", &call).record("request_bytes", held.bytes.len());
    let form = Form::of(request.headers(), &held.bytes);
    match Review::read(&call, &held.bytes) {
        None => {}
        Some(Ok(read)) => return review::answer(form, &hook, &call, &read, &renders).await,
        Some(Err(problem)) => return form.problem(StatusCode::BAD_REQUEST, &problem),
    }
    // An answer is put into its final bytes where it was rendered, off this thread.
    let finish = move |result: Result<Response, Refusal>| {
        result.map(|response| {
            let value = response.into_value();
            if form.yaml { to_yaml(&value).into_bytes() } else { json_line(&value) }
        })
    };
    match renders.answer(&hook, &call, held.bytes.clone(), finish).await {
        Ok(Ok(answer)) => answer_response(form, answer.into()),
        Ok(Err(refusal)) => refused(form, &hook, &call, &refusal),
        Err(_overload) => later(form, "too many calls wait for a render"),
    }
}

fn json_line(value: &serde_json::Value) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("JSON is written to memory");
    line.push(b'\n');
    line
}

fn answer_response(form: Form, answer: Bytes) -> HttpResponse {
    let kind = if form.yaml { "application/yaml" } else { "application/json" };
    HttpResponse::Ok().content_type(kind).body(answer)
}

pub(super) fn refused(form: Form, hook: &str, call: &str, refusal: &Refusal) -> HttpResponse {
    let status = match refusal.reason {
        Reason::Malformed => StatusCode::BAD_REQUEST,
        Reason::Unknown => StatusCode::NOT_FOUND,
        Reason::Fault => StatusCode::UNPROCESSABLE_ENTITY,
        Reason::NotReady => StatusCode::SERVICE_UNAVAILABLE,
        Reason::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let (status_code, error) = (status.as_u16(), &refusal.problem);
    if refusal.repeated || refusal.reason == Reason::Unknown {
        tracing::debug!(hook, call, status = status_code, %error, "call not answered");
    } else {
        tracing::warn!(hook, call, status = status_code, %error, "call not answered");
    }
    form.problem(status, &refusal.problem)
}

pub(super) fn later(form: Form, message: &str) -> HttpResponse {
    let mut response = form.problem(StatusCode::TOO_MANY_REQUESTS, &Problem::new(message));
    response.headers_mut().insert(RETRY_AFTER, 1.into());
    response
}

fn unread_response(form: Form, unread: &Unread) -> HttpResponse {
    let (status, problem) = match unread {
        Unread::TooLarge { limit } => {
            let hint = "raise it with --max-body-bytes";
            let problem = Problem::new(format!("the body has more than {limit} bytes")).hint(hint);
            (StatusCode::PAYLOAD_TOO_LARGE, problem)
        }
        Unread::NoRoom => return later(form, "the bodies of other calls fill the memory for them"),
        Unread::TooSlow => (StatusCode::REQUEST_TIMEOUT, Problem::new("the body took too long to arrive")),
        Unread::Encoded(encoding) => {
            let problem = Problem::new(format!("the body's encoding `{encoding}` is not understood"));
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, problem.expected("a body without `Content-Encoding`"))
        }
        Unread::Broken(cause) => {
            tracing::debug!(error = cause, "body broke off");
            (StatusCode::BAD_REQUEST, Problem::new("the body broke off"))
        }
    };
    form.problem(status, &problem)
}

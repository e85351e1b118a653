//! A review of the API server: each of its objects is a call, and the answers are one response.

use actix_web::HttpResponse;

use crate::hook::local::answer::Response;
use crate::hook::local::renders::Renders;
use crate::hook::local::{Reason, Refusal};
use crate::hook::review::Review;
use crate::serve::call::{later, refused};
use crate::serve::form::Form;

/// What a template refuses, or is at fault about, is an answer. Where there is no template that could answer, the status says
/// so, and the webhook's `failurePolicy` decides.
pub(super) async fn answer(
    form: Form,
    hook: &str,
    call: &str,
    review: &Review,
    renders: &Renders,
) -> HttpResponse {
    let mut answers = Vec::new();
    for question in review.questions() {
        let finish = |result: Result<Response, Refusal>| result.map(Response::into_value);
        match renders.answer(hook, call, question, finish).await {
            Err(_overload) => return later(form, "too many calls wait for a render"),
            Ok(Ok(answer)) => answers.push(Ok(answer)),
            Ok(Err(refusal)) if matches!(refusal.reason, Reason::Fault | Reason::Malformed) => {
                tell(hook, call, &refusal);
                answers.push(Err(refusal.problem));
            }
            Ok(Err(refusal)) => return refused(form, hook, call, &refusal),
        }
    }
    HttpResponse::Ok().json(review.answered(answers))
}

fn tell(hook: &str, call: &str, refusal: &Refusal) {
    let error = &refusal.problem;
    if error.on_purpose || refusal.repeated {
        tracing::debug!(hook, call, %error, "review refused");
    } else {
        tracing::warn!(hook, call, %error, "review refused");
    }
}

//! What an unsuccessful request means for a visit.

use crate::cluster::request::Error;
use crate::plan::refusal::{self, Cause, Verdict};

/// The API server's refusal told apart, with its words in one line. No answer is `Transient`.
pub(crate) fn verdict(error: &Error) -> (Verdict, String) {
    let Error::Refused(status) = error else { return (Verdict::Transient, error.to_string()) };
    let causes: Vec<Cause> = status
        .details
        .causes
        .iter()
        .map(|cause| Cause { reason: &cause.reason, message: &cause.message, field: &cause.field })
        .collect();
    let status = refusal::Status {
        code: status.code,
        reason: &status.reason,
        message: &status.message,
        causes: &causes,
    };
    (refusal::classify(&status), refusal::summary(&status))
}

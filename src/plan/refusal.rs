//! What the API server meant when it refused a write.
//!
//! Much of it is only in the message: a misspelt field is an error 500 without a reason, a forbidden change says so in
//! a dozen wordings. `refusals.jsonl` holds the answers that this is made for.

use serde_json::Value;

/// A refusal as the API server's Status tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status<'a> {
    pub code: u16,
    pub reason: &'a str,
    pub message: &'a str,
    pub causes: &'a [Cause<'a>],
}

/// One of the Status' `details.causes`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause<'a> {
    pub reason: &'a str,
    pub message: &'a str,
    pub field: &'a str,
}

/// What kind of refusal it is. Fields are paths, empty where the server names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The field cannot be changed in a live object.
    Immutable {
        field: String,
    },
    /// The field's value is not allowed.
    Invalid {
        field: String,
    },
    /// The kind has no such field, or a value of it has the wrong type.
    Schema {
        field: String,
    },
    /// A quota, a policy or an admission webhook is against it.
    Denied {
        by: String,
    },
    /// We lack the right to.
    Forbidden {
        verb: String,
        resource: String,
    },
    /// Nothing can be created in a namespace that is being deleted.
    NamespaceTerminating,
    NamespaceMissing,
    /// The API server does not serve this kind.
    KindMissing,
    NotFound,
    AlreadyExists,
    /// Other managers own the fields, and the write was not to take them.
    Conflict {
        managers: Vec<String>,
        fields: Vec<String>,
    },
    /// The object of this uid is gone; another one may have its name.
    Replaced,
    /// The object was changed meanwhile.
    Stale,
    /// It may go better next time.
    Transient,
}

impl Verdict {
    /// Whether the same write to the same object would be refused again.
    pub(crate) fn lasts(&self) -> bool {
        matches!(self, Verdict::Immutable { .. } | Verdict::Invalid { .. } | Verdict::Schema { .. })
    }
}

const TYPED_PATCH: &str = "failed to create typed patch object";
const CONVERSION: &str = "failed to convert new object";

/// Tells what kind of refusal a Status is.
pub(crate) fn classify(status: &Status) -> Verdict {
    let denied = ["denied the request", "denied request: ", "exceeded quota: "];
    if status.code < 500 && denied.iter().any(|text| status.message.contains(text)) {
        return Verdict::Denied { by: after_forbidden(status.message) };
    }
    match status.code {
        400 | 405 | 413 | 415 => Verdict::Invalid { field: String::new() },
        401 | 403 => forbidden(status),
        404 => missing(status),
        409 => conflict(status),
        422 => invalid(status),
        500 if status.message.starts_with(TYPED_PATCH) => {
            let (field, _) = schema_error(status.message);
            Verdict::Schema { field }
        }
        500 if status.message.starts_with(CONVERSION) => Verdict::Schema { field: String::new() },
        _ => Verdict::Transient,
    }
}

/// The refusal in one line for a condition: which fields and why, without the values that the server prints whole.
pub(crate) fn summary(status: &Status) -> String {
    if status.message.starts_with(TYPED_PATCH) {
        let (field, text) = schema_error(status.message);
        return if field.is_empty() { text } else { format!("{field}: {text}") };
    }
    if status.message.starts_with(CONVERSION) {
        let text = status.message.split_once(" to proper version: ").map_or("", |(_, text)| text);
        return one_line(
            text.rsplit_once("Kind=").and_then(|(_, rest)| rest.split_once(": ")).map_or(text, |it| it.1),
        );
    }
    if let Verdict::Conflict { managers, fields } = classify(status) {
        return format!("{} owned by {}", fields.join(", "), managers.join(", "));
    }
    let mut parts: Vec<String> = Vec::new();
    let of_field = |cause: &&Cause| status.code == 422 && !matches!(cause.field, "" | "<nil>");
    for cause in status.causes.iter().filter(of_field) {
        let part = format!("{}: {}", cause.field, one_line(&without_value(cause.message)));
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    if parts.is_empty() { one_line(status.message) } else { parts.join("; ") }
}

fn forbidden(status: &Status) -> Verdict {
    let terminating = status.causes.iter().any(|cause| cause.reason == "NamespaceTerminating");
    if terminating || status.message.contains("because it is being terminated") {
        return Verdict::NamespaceTerminating;
    }
    let right = status.message.split_once(" cannot ").and_then(|(_, rest)| rest.split_once(" resource \""));
    // The class of the claim would have to change first, so that trying again is no use.
    if status.message.contains("storageclass that provisions the pvc must support resize") {
        return Verdict::Immutable { field: "spec.resources.requests.storage".into() };
    }
    match right.and_then(|(verb, rest)| Some((verb, rest.split_once('"')?.0))) {
        Some((verb, resource)) => Verdict::Forbidden { verb: verb.into(), resource: resource.into() },
        None if status.code == 401 => Verdict::Forbidden { verb: String::new(), resource: String::new() },
        None => Verdict::Denied { by: after_forbidden(status.message) },
    }
}

fn after_forbidden(message: &str) -> String {
    one_line(message.split_once(" is forbidden: ").map_or(message, |(_, rest)| rest))
}

fn missing(status: &Status) -> Verdict {
    match status.reason {
        "NotFound" if status.message.starts_with("namespaces \"") => Verdict::NamespaceMissing,
        "NotFound" if status.message.contains("could not find the requested resource") => {
            Verdict::KindMissing
        }
        "NotFound" => Verdict::NotFound,
        // The text of an unknown path is no Status at all.
        _ => Verdict::KindMissing,
    }
}

fn conflict(status: &Status) -> Verdict {
    if status.reason == "AlreadyExists" {
        return Verdict::AlreadyExists;
    }
    let owned: Vec<&Cause> =
        status.causes.iter().filter(|cause| cause.reason == "FieldManagerConflict").collect();
    if !owned.is_empty() {
        let mut managers: Vec<String> = owned.iter().map(|cause| manager(cause.message)).collect();
        managers.sort();
        managers.dedup();
        let fields = owned.iter().map(|cause| without_dot(cause.field)).collect();
        return Verdict::Conflict { managers, fields };
    }
    let replaced =
        status.message.contains("uid mismatch") || status.message.contains("UID in the precondition");
    if replaced { Verdict::Replaced } else { Verdict::Stale }
}

/// Out of `conflict with "kube-controller-manager" with subresource "scale" using apps/v1`.
fn manager(message: &str) -> String {
    message.split('"').nth(1).unwrap_or(message).into()
}

fn invalid(status: &Status) -> Verdict {
    let immutable = status.causes.iter().find(|cause| forbids_change(cause.message));
    match (immutable, status.causes.first()) {
        // The uid goes along with an apply so that it reaches no other object.
        (Some(cause), _) if cause.field == "metadata.uid" => Verdict::Replaced,
        (Some(cause), _) => Verdict::Immutable { field: cause.field.into() },
        (None, Some(cause)) => Verdict::Invalid { field: cause.field.into() },
        (None, None) => Verdict::Invalid { field: String::new() },
    }
}

/// Whether a cause says that a live object's field can't be changed.
fn forbids_change(message: &str) -> bool {
    let message = message.to_lowercase();
    let wordings = [
        "immutable",
        "may not change",
        "may not be changed",
        "can not be changed",
        "cannot be changed",
        "cannot change",
        "must not be changed",
        "not be updated",
        "updates to ",
        "less than previous",
        "can not be less than",
    ];
    wordings.iter().any(|wording| message.contains(wording))
}

/// The first field and error of `failed to create typed patch object (…): .spec.x: field not declared in schema`.
fn schema_error(message: &str) -> (String, String) {
    let errors = message.split_once("): ").map_or(message, |(_, errors)| errors);
    let first =
        errors.strip_prefix("errors:\n").unwrap_or(errors).trim_start().lines().next().unwrap_or_default();
    let (field, text) = first.split_once(": ").unwrap_or(("", first));
    // The value in Go's words could be a secret.
    let text = text
        .split_once(", got &value.")
        .map_or_else(|| text.into(), |(text, _)| format!("{text}, got another type"));
    (without_dot(field), one_line(&text))
}

fn without_dot(field: &str) -> String {
    field.strip_prefix('.').unwrap_or(field).into()
}

/// `Invalid value: {…}: field is immutable` without a long value, and without examples and a pattern at the end.
fn without_value(message: &str) -> String {
    const LENGTH: usize = 40;
    let message = message.split_once(" (e.g. ").map_or(message, |(text, _)| text);
    let Some((_, value)) = message.split_once("Invalid value: ") else { return message.into() };
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
    let length = match values.next() {
        Some(Ok(_)) => values.byte_offset(),
        // Older servers print values in Go's words.
        _ => value.rfind(": ").unwrap_or(value.len()),
    };
    match value[length..].strip_prefix(": ") {
        Some(text) if length > LENGTH => text.into(),
        _ => message.into(),
    }
}

fn one_line(text: &str) -> String {
    const LENGTH: usize = 400;
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(LENGTH) {
        None => line.into(),
        Some((cut, _)) => format!("{}…", &line[..cut]),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Recorded {
        case: String,
        status: RecordedStatus,
    }

    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct RecordedStatus {
        code: u16,
        reason: String,
        message: String,
        details: Details,
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Details {
        causes: Vec<RecordedCause>,
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct RecordedCause {
        reason: String,
        message: String,
        field: String,
    }

    fn judged(status: &RecordedStatus) -> (Verdict, String) {
        let causes: Vec<Cause> = status
            .details
            .causes
            .iter()
            .map(|cause| Cause { reason: &cause.reason, message: &cause.message, field: &cause.field })
            .collect();
        let status =
            Status { code: status.code, reason: &status.reason, message: &status.message, causes: &causes };
        (classify(&status), summary(&status))
    }

    /// Each answer of Kubernetes v1.36.3 with what is made of it.
    #[test]
    fn every_recorded_refusal_is_told_apart() {
        let mut page = String::new();
        for line in include_str!("refusals.jsonl").lines() {
            let recorded: Recorded = serde_json::from_str(line).unwrap();
            let (verdict, summary) = judged(&recorded.status);
            page += &format!("{}\n  {verdict:?}\n  {summary}\n", recorded.case);
        }
        assert_eq!(page, include_str!("refusals.txt"));
    }

    #[test]
    fn what_a_person_must_change_lasts() {
        let field = String::new();
        assert!(Verdict::Immutable { field: field.clone() }.lasts());
        assert!(Verdict::Schema { field: field.clone() }.lasts());
        for passing in [
            Verdict::Denied { by: field },
            Verdict::NamespaceTerminating,
            Verdict::Replaced,
            Verdict::Transient,
        ] {
            assert!(!passing.lasts());
        }
    }

    #[test]
    fn value_in_gos_words_is_cut_like_one_in_json() {
        let value = "Invalid value: core.PodTemplateSpec{Spec:core.PodSpec{Containers:[]core.Container{core.Container{Name:\"b\"}}}}: field is immutable";
        assert_eq!(without_value(value), "field is immutable");
    }

    #[test]
    fn several_schema_errors_show_the_first() {
        let message = "failed to create typed patch object (a/b; v1, Kind=ConfigMap): errors:\n  .data.a: expected string, got &value.valueUnstructured{Value:5}\n  .data.b: expected string, got map";
        let status = RecordedStatus { code: 500, message: message.into(), ..Default::default() };
        let field = "data.a".into();
        assert_eq!(
            judged(&status),
            (Verdict::Schema { field }, "data.a: expected string, got another type".into())
        );
    }
}

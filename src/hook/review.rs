//! What the API server posts and wants back: AdmissionReview and ConversionReview, version 1.
//!
//! Knows no template and no transport: a review is split into requests for the calls, and their answers are put together.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::hook::local::request::text_at;
use crate::problem::Problem;

/// A review that was posted.
#[derive(Debug)]
pub(crate) struct Review {
    call: Asked,
    api_version: String,
    request: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Validate,
    Default,
    Convert,
}

const ADMISSION: &str = "admission.k8s.io/v1";
const CONVERSION: &str = "apiextensions.k8s.io/v1";

impl Review {
    /// `None` where the body is no review, but a request as people write it.
    pub(crate) fn read(call: &str, body: &[u8]) -> Option<Result<Review, Problem>> {
        let call = match call {
            "validate" => Asked::Validate,
            "default" => Asked::Default,
            "convert" => Asked::Convert,
            _ => return None,
        };
        let Value::Object(mut body) = serde_json::from_slice(body).ok()? else { return None };
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let group = api_version.split('/').next().unwrap_or_default();
        if !matches!(
            (group, kind.as_str()),
            ("admission.k8s.io", _) | ("apiextensions.k8s.io", "ConversionReview")
        ) {
            return None;
        }
        let wanted = if call == Asked::Convert {
            (CONVERSION, "ConversionReview")
        } else {
            (ADMISSION, "AdmissionReview")
        };
        if (api_version.as_str(), kind.as_str()) != wanted {
            return Some(Err(Problem::new("the review is of another kind than the call")
                .found(format!("`{api_version}` `{kind}`"))
                .expected(format!("`{}` `{}`", wanted.0, wanted.1))));
        }
        Some(match body.remove("request") {
            Some(Value::Object(request)) => Ok(Review { call, api_version, request }),
            _ => Err(Problem::new("the review has no `request`")),
        })
    }

    /// The bodies of the calls that it takes, in order.
    pub(crate) fn questions(&self) -> Vec<Bytes> {
        let bytes = |question: Value| Bytes::from(question.to_string());
        if self.call != Asked::Convert {
            let part = |name: &str| self.request.get(name).cloned().unwrap_or_default();
            let user = part("userInfo");
            return vec![bytes(json!({
                "object": part("object"), "old": part("oldObject"), "operation": part("operation"),
                "dry_run": part("dryRun"),
                "user": {
                    "name": user["username"].as_str().unwrap_or_default(),
                    "groups": user["groups"].as_array().cloned().unwrap_or_default(),
                },
            }))];
        }
        let to = self.desired().rsplit('/').next().unwrap_or_default();
        self.objects().map(|object| bytes(json!({"object": object, "to": to}))).collect()
    }

    /// The review with its response. There is an answer to each question.
    pub(crate) fn answered(&self, answers: Vec<Result<Value, Problem>>) -> Value {
        let response = match self.call {
            Asked::Convert => self.converted(answers),
            _ => self.admitted(answers.into_iter().next().expect("an admission is one question")),
        };
        let kind = if self.call == Asked::Convert { "ConversionReview" } else { "AdmissionReview" };
        let mut whole =
            Map::from_iter([("uid".to_string(), self.request.get("uid").cloned().unwrap_or_default())]);
        whole.extend(response);
        json!({"apiVersion": self.api_version, "kind": kind, "response": whole})
    }

    fn desired(&self) -> &str {
        self.request.get("desiredAPIVersion").and_then(Value::as_str).unwrap_or_default()
    }

    fn objects(&self) -> impl Iterator<Item = &Value> {
        self.request.get("objects").and_then(Value::as_array).into_iter().flatten()
    }

    fn admitted(&self, answer: Result<Value, Problem>) -> Map<String, Value> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(problem) if problem.on_purpose => return self.denied(problem.message, json!([])),
            Err(problem) => return self.denied(problem.page(), json!([])),
        };
        let errors = answer["errors"].as_array().cloned().unwrap_or_default();
        let mut response = if errors.is_empty() {
            Map::from_iter([("allowed".to_string(), json!(true))])
        } else {
            let text = |error: &Value, name: &str| error[name].as_str().unwrap_or_default().to_string();
            let said: Vec<String> = errors
                .iter()
                .map(|error| format!("{}: {}", text(error, "field"), text(error, "message")))
                .collect();
            let causes: Vec<Value> = errors
                .iter()
                .map(|error| json!({"reason": "FieldValueInvalid", "field": error["field"], "message": error["message"]}))
                .collect();
            self.denied(said.join("; "), causes.into())
        };
        if let Some(warnings) = answer["warnings"].as_array().filter(|warnings| !warnings.is_empty()) {
            response.insert("warnings".into(), warnings.clone().into());
        }
        let mut patch = Vec::new();
        if let (Some(Value::Object(object)), Value::Object(defaults)) =
            (self.request.get("object"), &answer["defaults"])
        {
            fill(object, defaults, "", &mut patch);
        }
        if !patch.is_empty() {
            response.insert("patchType".into(), json!("JSONPatch"));
            response.insert("patch".into(), STANDARD.encode(Value::Array(patch).to_string()).into());
        }
        response
    }

    fn denied(&self, message: String, causes: Value) -> Map<String, Value> {
        let mut status = json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": message});
        if causes != json!([]) {
            let kind = self.request.get("kind").cloned().unwrap_or_default();
            let name = self.request.get("name").cloned().unwrap_or_default();
            status["details"] =
                json!({"name": name, "group": kind["group"], "kind": kind["kind"], "causes": causes});
        }
        Map::from_iter([("allowed".to_string(), json!(false)), ("status".to_string(), status)])
    }

    /// All of them or none: the first that fails is named.
    fn converted(&self, answers: Vec<Result<Value, Problem>>) -> Map<String, Value> {
        let mut converted = Vec::new();
        for (object, answer) in self.objects().zip(answers) {
            match answer {
                Ok(object) => converted.push(object),
                Err(problem) => return not_converted(object, &problem),
            }
        }
        Map::from_iter([
            ("convertedObjects".to_string(), converted.into()),
            ("result".to_string(), json!({"status": "Success"})),
        ])
    }
}

fn not_converted(object: &Value, problem: &Problem) -> Map<String, Value> {
    let text = |way: &[&str]| text_at(object, way).unwrap_or_default();
    let mut message = format!("{} ", text(&["kind"]));
    if let Some(namespace) = text_at(object, &["metadata", "namespace"]) {
        let _ = write!(message, "{namespace}/");
    }
    let why = if problem.on_purpose { problem.message.clone() } else { problem.page() };
    let _ = write!(message, "{}: {why}", text(&["metadata", "name"]));
    Map::from_iter([("result".to_string(), json!({"status": "Failure", "message": message}))])
}

/// Notes what the object lacks, as operations of a JSON patch. What is there stays.
fn fill(object: &Map<String, Value>, defaults: &Map<String, Value>, path: &str, patch: &mut Vec<Value>) {
    for (name, value) in defaults {
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        match (object.get(name), value) {
            (_, Value::Null) => {}
            (None, value) => patch.push(json!({"op": "add", "path": path, "value": value})),
            (Some(Value::Object(object)), Value::Object(defaults)) => fill(object, defaults, &path, patch),
            (Some(_), _) => {}
        }
    }
}

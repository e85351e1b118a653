//! Children that follow the clock or chance: they would be written, or made and deleted, at each visit for ever.
//!
//! It is found out by asking the same once more, a second later and with other chance, when the first answer has been carried
//! out. What a template keeps, in a child, in a related object or in the status, is kept here too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::author::case;
use crate::author::check::Check;
use crate::author::check::change::after;
use crate::author::check::children::{is_others, place, same};
use crate::author::check::finding::Rule;
use crate::author::check::jobs::kept;
use crate::author::check::requests::{Request, gvk};
use crate::config::spec::UpdateMethod;
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::Problem;
use crate::schema::dotted;

/// What the second of the two is given.
const LATER: i64 = 1;

impl Check {
    pub(super) fn unsteady(&mut self, request: &Request, answer: &Answer) {
        let parent = kept(request.parent(), answer);
        let observed = as_stored(after(request, answer));
        let asked = request.with(&parent, &observed);
        let (Some(one), Some(other)) =
            (self.asked_again(&moment(&asked, 0)), self.asked_again(&moment(&asked, LATER)))
        else {
            return;
        };
        for child in &one.children {
            let object = Value::Object(child.object.clone());
            let twin = other.children.iter().map(|twin| Value::Object(twin.object.clone()));
            match twin.into_iter().find(|twin| same(twin, &object)) {
                None => self.tell_of_name(request, child),
                Some(twin) => self.tell_of_value(request, child, &twin),
            }
        }
    }

    fn tell_of_name(&mut self, request: &Request, child: &DesiredChild) {
        let kind = gvk(&Value::Object(child.object.clone())).kind;
        let problem = Problem::new(format!("{kind}: its name is another one at each visit"))
            .at(place(child, &["metadata", "name"]))
            .expected("the same name for as long as the parent stays as it is")
            .hint("keep `now` and `random_string` out of names: a child with a new name is made, and the one before deleted");
        self.findings.add_seen(Rule::Unsteady, problem, &request.file);
    }

    fn tell_of_value(&mut self, request: &Request, child: &DesiredChild, twin: &Value) {
        let object = Value::Object(child.object.clone());
        let gvk = gvk(&object);
        let methods = self.declared(&request.hook, &gvk).unwrap_or_default();
        let never_written =
            !methods.is_empty() && methods.iter().all(|method| *method == UpdateMethod::OnDelete);
        let Some(path) = parting(&object, twin).filter(|_| !never_written || is_others(&object)) else {
            return;
        };
        let steps: Vec<&str> = path.iter().map(String::as_str).collect();
        let message = format!("{}: `{}` is another one at each visit", gvk.kind, dotted(&path));
        let problem = Problem::new(message).at(place(child, &steps)).hint(
            "it follows `now` or random text, so that the child is written for ever; keep the value that the child has: \
             `children.find(…).… | default(…)`",
        );
        self.findings.add_seen(Rule::Unsteady, problem, &request.file);
    }
}

/// The same request so many seconds later, with chance of its own. Its children can be seen as related objects too.
fn moment(request: &Request, seconds: i64) -> Request {
    let mut fields = request.fields.clone();
    let written = fields.get("now").and_then(Value::as_str).and_then(|now| now.parse().ok());
    let now: jiff::Timestamp = written.unwrap_or(case::usually_given().now);
    fields.insert("now".into(), json!((now + jiff::SignedDuration::from_secs(seconds)).to_string()));
    fields.insert("entropy".into(), json!(seconds.to_string()));
    let related = fields.entry("related").or_insert_with(|| json!([]));
    if let Value::Array(related) = related {
        for child in request.observed() {
            if !related.iter().any(|known| same(known, child)) {
                related.push(child.clone());
            }
        }
    }
    let body = serde_json::to_vec(&fields).expect("JSON is written to memory");
    Request {
        hook: request.hook.clone(),
        call: request.call.clone(),
        file: request.file.clone(),
        body,
        fields,
        document: None,
        refused: false,
    }
}

/// The API server keeps the texts of a Secret among its data.
fn as_stored(mut objects: Vec<Value>) -> Vec<Value> {
    for object in objects.iter_mut().filter(|object| gvk(object).group_kind() == ("", "Secret")) {
        let texts = object.as_object_mut().and_then(|object| object.shift_remove("stringData"));
        let Some(Value::Object(texts)) = texts else { continue };
        if !object["data"].is_object() {
            object["data"] = Value::Object(Map::new());
        }
        for (key, text) in texts {
            object["data"][key] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
        }
    }
    objects
}

/// The path to the first place where two values part.
fn parting(one: &Value, other: &Value) -> Option<Vec<String>> {
    if one == other {
        return None;
    }
    let below = |step: String, one: &Value, other: &Value| {
        parting(one, other).map(|rest| [vec![step], rest].concat())
    };
    let deeper = match (one, other) {
        (Value::Object(one), Value::Object(other)) => one
            .iter()
            .find_map(|(key, value)| below(key.clone(), value, other.get(key).unwrap_or(&Value::Null))),
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other).enumerate();
            pairs.into_iter().find_map(|(index, (one, other))| below(index.to_string(), one, other))
        }
        _ => None,
    };
    Some(deeper.unwrap_or_default())
}

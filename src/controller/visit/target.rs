//! What a decorator's answer makes of its target: labels, annotations and status, written only where they differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tracing::{info, warn};

use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::{Part, Writer};
use crate::controller::room::Room;
use crate::controller::visit::refused::verdict;
use crate::controller::visit::{Conclusion, Ended, Situation, Visit, note};
use crate::hook::wire::answer::Answer;

impl Visit<'_> {
    /// Makes of the target what the answer says. Gives the visit's end where the API server refuses it for good: then
    /// nothing else of the answer is done, unless that held up a deletion.
    pub(super) async fn decorate(
        &self,
        situation: &mut Situation,
        answer: &Answer,
    ) -> Result<Option<Conclusion>, Error> {
        let error = match write(self.room, self.writer, &situation.parent, answer).await {
            Ok(target) => {
                situation.parent = target;
                return Ok(None);
            }
            Err(error) => error,
        };
        let (verdict, summary) = verdict(&error);
        if !verdict.lasts() {
            return Err(error);
        }
        if situation.parent.deleting {
            warn!(%error, "target left as it is");
            return Ok(None);
        }
        let ended = Ended::Stuck(note("TargetRefused", summary));
        Ok(Some(Conclusion { resync_after: answer.resync_after, ..Conclusion::new(ended) }))
    }
}

/// Writes what differs, the status first. Gives the target as it then is. A target that changed meanwhile is an error
/// of the API server's, and nothing else of the answer is done.
async fn write(
    room: &Room,
    writer: &Writer<'_>,
    target: &Arc<Object>,
    answer: &Answer,
) -> Result<Arc<Object>, Error> {
    let live = target.parsed();
    let (kind, resource) = (&room.parents, &room.parent_resource);
    let now = || room.parents.get(&target.key).filter(|now| now.uid == target.uid);
    let mut target = target.clone();
    let status = answer.status.as_ref().and_then(|status| replaced(&live["status"], status));
    let mut fields = marked(&live, answer);
    match status {
        Some(status) if resource.has_status => {
            writer.merge(kind, resource, &target, Part::Status, json!({ "status": status })).await?;
            info!("status of the target written");
            target = now().unwrap_or(target);
        }
        Some(status) => drop(fields.insert("status".into(), status)),
        None => {}
    }
    if !fields.is_empty() {
        let changed: Vec<&str> = fields.keys().map(String::as_str).collect();
        let changed = changed.join(", ");
        writer.merge(kind, resource, &target, Part::Main, Value::Object(fields)).await?;
        info!(differences = changed, "target changed");
        target = now().unwrap_or(target);
    }
    Ok(target)
}

/// The labels and annotations that are to change, as a merge patch.
fn marked(live: &Value, answer: &Answer) -> Map<String, Value> {
    let mut metadata = Map::new();
    for (field, wanted) in [("labels", &answer.labels), ("annotations", &answer.annotations)] {
        let changes = changes(&live["metadata"][field], wanted);
        if !changes.is_empty() {
            metadata.insert(field.into(), Value::Object(changes));
        }
    }
    let mut fields = Map::new();
    if !metadata.is_empty() {
        fields.insert("metadata".into(), Value::Object(metadata));
    }
    fields
}

fn changes(live: &Value, wanted: &BTreeMap<String, Option<String>>) -> Map<String, Value> {
    let differs = |(name, text): &(&String, &Option<String>)| {
        live.get(*name).and_then(Value::as_str) != text.as_deref()
    };
    let change = |(name, text): (&String, &Option<String>)| (name.clone(), json!(text));
    wanted.iter().filter(differs).map(change).collect()
}

/// The merge patch that makes the live status the wanted one, if there is anything to change.
fn replaced(live: &Value, wanted: &Map<String, Value>) -> Option<Value> {
    let empty = Map::new();
    let patch = difference(live.as_object().unwrap_or(&empty), wanted);
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn difference(live: &Map<String, Value>, wanted: &Map<String, Value>) -> Map<String, Value> {
    let gone = live.keys().filter(|name| !wanted.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let mut patch: Map<String, Value> = gone.collect();
    for (name, wanted) in wanted {
        match (live.get(name), wanted) {
            (Some(live), wanted) if live == wanted => {}
            // The server keeps no null of its own accord: absent is as good.
            (None, Value::Null) => {}
            (Some(Value::Object(live)), Value::Object(wanted)) => {
                let inner = difference(live, wanted);
                if !inner.is_empty() {
                    patch.insert(name.clone(), Value::Object(inner));
                }
            }
            (_, wanted) => drop(patch.insert(name.clone(), wanted.clone())),
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn only_labels_and_annotations_that_differ_are_written() {
        let live = json!({"metadata": {"labels": {"same": "1", "old": "x", "other": "y"}}});
        let marks = [("same", Some("1")), ("new", Some("2")), ("old", None), ("absent", None)];
        let labels = marks.map(|(name, text)| (name.to_string(), text.map(String::from))).into();
        let answer = Answer { labels, ..Answer::default() };
        let expected = json!({"metadata": {"labels": {"new": "2", "old": null}}});
        assert_eq!(Value::Object(marked(&live, &answer)), expected);
        assert!(marked(&live, &Answer::default()).is_empty());
    }

    #[test]
    fn status_is_replaced_as_a_whole_and_not_written_when_it_is_the_same() {
        let live = json!({"a": 1, "b": {"c": 1, "d": 2}, "gone": true, "list": [1]});
        let wanted = map(json!({"a": 1, "b": {"c": 1, "d": 3, "e": null}, "list": [2]}));
        assert_eq!(replaced(&live, &wanted), Some(json!({"gone": null, "b": {"d": 3}, "list": [2]})));
        assert_eq!(
            replaced(&live, &map(json!({}))),
            Some(json!({"a": null, "b": null, "gone": null, "list": null}))
        );
        assert_eq!(replaced(&live, &map(live.clone())), None);
        assert_eq!(replaced(&Value::Null, &map(json!({}))), None);
    }
}

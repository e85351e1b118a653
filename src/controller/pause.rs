//! Pausing a parent, or all parents of a definition, by an annotation: nothing of them is written until it ends.
//!
//! Only reads what the annotation says; a visit acts on it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::object::Object;
use crate::schedule::duration::parse_duration;

/// On a parent or a definition: `true`, the time at which it ends by itself, or how long it lasts from now.
pub(crate) const PAUSED: &str = "syncwright.io/paused";
/// Why such a parent's condition is what it is.
pub(crate) const REASON: &str = "Paused";

/// What the annotation asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// As long as the annotation is there.
    On,
    Until(Timestamp),
    /// From the moment at which it is first seen.
    For(Duration),
    /// Something else: whoever wrote it wanted hands off.
    Unclear(String),
}

impl Pause {
    fn read(text: &str) -> Option<Pause> {
        match text {
            "" | "false" => return None,
            "true" => return Some(Pause::On),
            _ => {}
        }
        if let Ok(until) = text.parse::<Timestamp>() {
            return Some(Pause::Until(until));
        }
        let duration = parse_duration(text).ok().and_then(|duration| Duration::try_from(duration).ok());
        Some(duration.map_or_else(|| Pause::Unclear(text.into()), Pause::For))
    }

    /// What a definition asks for, for all of its parents.
    pub(crate) fn of_definition(definition: &Value) -> Option<Pause> {
        let text = definition.get("metadata")?.get("annotations")?.get(PAUSED)?.as_str()?;
        Some(match Pause::read(text)? {
            // There is no place to write the end down: a file's definition is not ours to change.
            Pause::For(_) => Pause::Unclear(text.into()),
            pause => pause,
        })
    }

    /// What a parent asks for itself.
    pub(crate) fn of_parent(parent: &Object) -> Option<Pause> {
        // Hardly any parent has it, and reading it all to find out is the most that most visits do.
        parent.body.as_ref().filter(|body| body.get().contains(PAUSED))?;
        let body = parent.parsed();
        Pause::read(body.get("metadata")?.get("annotations")?.get(PAUSED)?.as_str()?)
    }

    /// How long it still lasts: `None` for good. It is over where nothing is left.
    pub(crate) fn left(&self, now: Timestamp) -> Option<Duration> {
        match self {
            Pause::On | Pause::Unclear(_) => None,
            Pause::For(duration) => Some(*duration),
            Pause::Until(until) => Some(Duration::try_from(until.duration_since(now)).unwrap_or_default()),
        }
    }

    /// Says of whom it is, until when, and how it ends.
    pub(crate) fn words(&self, of: &str) -> String {
        match self {
            Pause::On | Pause::For(_) => format!("{of} has the annotation `{PAUSED}`; remove it to go on"),
            Pause::Until(until) => format!("{of} has the annotation `{PAUSED}`; it goes on at {until}"),
            Pause::Unclear(text) => format!(
                "{of} has the annotation `{PAUSED}: {text}`; expected `true`, a time such as `2026-12-24T18:00:00Z`, or on a \
                 parent a duration such as `2h`; remove it to go on"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn annotation_says_whether_and_for_how_long() {
        let noon = at("2026-12-24T12:00:00Z");
        assert_eq!(Pause::read("false"), None);
        assert_eq!(Pause::read("true").map(|pause| pause.left(noon)), Some(None));
        let until = Pause::read("2026-12-24T14:00:00+01:00").expect("a pause");
        assert_eq!(until.left(noon), Some(Duration::from_secs(3600)));
        assert_eq!(until.left(at("2026-12-24T13:00:00Z")), Some(Duration::ZERO));
        assert_eq!(until.left(at("2026-12-31T00:00:00Z")), Some(Duration::ZERO), "long over");
        assert_eq!(Pause::read("1h30m"), Some(Pause::For(Duration::from_secs(5400))));
        assert_eq!(Pause::read("until monday"), Some(Pause::Unclear("until monday".into())));
    }

    #[test]
    fn definition_has_no_place_for_the_end_of_a_duration() {
        let definition = |text: &str| json!({"metadata": {"annotations": {PAUSED: text}}});
        assert_eq!(Pause::of_definition(&json!({"metadata": {}})), None);
        assert_eq!(Pause::of_definition(&definition("true")), Some(Pause::On));
        assert_eq!(Pause::of_definition(&definition("2h")), Some(Pause::Unclear("2h".into())));
    }
}

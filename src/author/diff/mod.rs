//! What a visit would change, for a person to read: object by object, path by path.

mod paths;

use serde_json::Value;

use crate::author::diff::paths::paths;
use crate::author::difference::names;
use crate::hook::local::to_yaml;
use crate::mask::pair::pair;
use crate::plan::preview::{Change, Outcome, Sort};

/// One line, with what it tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub tone: Tone,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// A parent.
    Head,
    Added,
    Removed,
    Wrong,
}

impl Line {
    fn new(tone: Tone, text: impl Into<String>) -> Line {
        Line { tone, text: text.into() }
    }
}

/// What would become of one parent; nothing where all would stay as it is.
pub(crate) fn lines(outcome: &Outcome) -> Vec<Line> {
    let mut lines = Vec::new();
    for change in &outcome.changes {
        lines.extend(of_change(outcome, change));
    }
    if let Some(trouble) = &outcome.trouble {
        lines.push(Line::new(Tone::Wrong, format!("  ! {}: {}", trouble.reason, trouble.message)));
    }
    if !lines.is_empty() {
        let head = format!("{} {}", outcome.gvk.kind, outcome.parent);
        lines.insert(0, Line::new(Tone::Head, head));
    }
    lines
}

fn of_change(outcome: &Outcome, change: &Change) -> Vec<Line> {
    let (mark, tone, told) = match change.sort {
        Sort::Create => ("+", Tone::Added, ""),
        Sort::Change => ("~", Tone::Plain, ""),
        Sort::Recreate => ("-/+", Tone::Removed, ", to be made anew"),
        Sort::Delete => ("-", Tone::Removed, ""),
        Sort::Immutable => ("!", Tone::Wrong, ", stays as it is: a field that cannot change is to change"),
        Sort::Refused => ("!", Tone::Wrong, ", refused"),
    };
    let same_namespace = change.key.namespace == outcome.parent.namespace;
    let name = if same_namespace { change.key.name.clone() } else { change.key.to_string() };
    let mut lines = vec![Line::new(tone, format!("  {mark} {} {name}{told}", change.gvk.kind))];
    let (mut before, mut after) = (change.before.clone(), change.after.clone());
    pair(&mut before, &mut after);
    match change.sort {
        Sort::Create => lines.extend(manifest(after)),
        Sort::Delete => {}
        Sort::Change => lines.extend(paths(&before, &after)),
        // What is stated is only a part of the object.
        Sort::Recreate | Sort::Immutable | Sort::Refused if before.is_null() => lines.extend(manifest(after)),
        Sort::Recreate | Sort::Immutable | Sort::Refused => {
            let after = laid_over(&before, &after);
            lines.extend(paths(&before, &after));
        }
    }
    lines
}

/// An object that is not there yet, whole.
fn manifest(object: Value) -> Vec<Line> {
    let Value::Object(mut fields) = object else { return Vec::new() };
    fields.shift_remove("status");
    // As manifests are written: the API server keeps what it is given in the order of the alphabet.
    let first = ["apiVersion", "kind", "metadata"].map(|field| fields.shift_remove_entry(field));
    let object: Value = first.into_iter().flatten().chain(fields).collect();
    to_yaml(&object).lines().map(|line| Line::new(Tone::Added, format!("      + {line}"))).collect()
}

/// The object with what is stated of it in place of what it holds: what is not stated, such as a default, stays.
fn laid_over(object: &Value, stated: &Value) -> Value {
    if let (Value::Array(items), Value::Array(stated)) = (object, stated) {
        return Value::Array(items_laid_over(items, stated));
    }
    let (Value::Object(fields), Value::Object(stated)) = (object, stated) else { return stated.clone() };
    let mut fields = fields.clone();
    for (name, value) in stated {
        let laid = fields.get(name).map_or_else(|| value.clone(), |field| laid_over(field, value));
        fields.insert(name.clone(), laid);
    }
    Value::Object(fields)
}

/// Items that have names are laid over those of the same name, others over those in the same place if there are as many.
fn items_laid_over(items: &[Value], stated: &[Value]) -> Vec<Value> {
    let named = |item: &Value| items.iter().find(|known| known["name"] == item["name"]);
    let by_name = names(items).is_some() && names(stated).is_some();
    let known = |index: usize, item: &Value| match by_name {
        true => named(item),
        false => items.get(index).filter(|_| items.len() == stated.len()),
    };
    let laid = |(index, item): (usize, &Value)| {
        known(index, item).map_or(item.clone(), |known| laid_over(known, item))
    };
    stated.iter().enumerate().map(laid).collect()
}

/// How many parents and objects change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    parents: usize,
    changing: usize,
    unknown: usize,
    by_sort: [usize; 6],
}

impl Summary {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.parents += 1;
        self.changing += usize::from(!outcome.changes.is_empty());
        self.unknown += usize::from(!outcome.is_known());
        outcome.changes.iter().for_each(|change| self.by_sort[change.sort as usize] += 1);
    }

    pub(crate) fn changes(&self) -> bool {
        self.changing > 0
    }

    /// The parents of which it cannot be told what would happen.
    pub(crate) fn unknown(&self) -> usize {
        self.unknown
    }

    pub(crate) fn text(&self) -> String {
        let many = if self.parents == 1 { "parent" } else { "parents" };
        let verb = if self.changing == 1 || self.parents == 1 { "changes" } else { "change" };
        let mut text = format!("{} of {} {many} {verb}", self.changing, self.parents);
        let words =
            ["to create", "to change", "to make anew", "to delete", "with an immutable field", "refused"];
        let counts = self.by_sort.iter().zip(words).filter(|(count, _)| **count > 0);
        let counts: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
        if !counts.is_empty() {
            text = format!("{text}; objects: {}", counts.join(", "));
        }
        if self.unknown > 0 {
            text = format!("{text}; {} cannot be told", self.unknown);
        }
        text
    }
}

#[cfg(test)]
mod tests;

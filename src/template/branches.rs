//! Which branches of templates were taken: for a person who asks what the cases do not try.
//!
//! Where a library is compiled to be watched, each condition and each loop passes its value through a filter that notes
//! what came of it. Nothing else about a render changes.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minijinja::Environment;
use minijinja::value::Value;

use crate::problem::Place;

/// The filter's name, which no author can write.
pub(in crate::template) const FILTER: &str = "__branch";

/// Whether a library notes which branches are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Watching {
    #[default]
    Nothing,
    Branches,
}

/// What decides between two branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) enum Fork {
    /// `if`, `elif` and `… if … else …`: whether it was true.
    Condition,
    /// `for`: whether there was an item.
    Loop,
}

/// One condition or loop of a file, before it has run.
#[derive(Clone, Debug)]
pub(in crate::template) struct Site {
    pub fork: Fork,
    /// Of the condition, or of what is looped over.
    pub range: Range<usize>,
}

/// A condition or a loop, and which ways it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    pub place: Place,
    /// The condition as it is written, or what is looped over.
    pub text: String,
    fork: Fork,
    yes: bool,
    no: bool,
}

/// What happened at each site so far.
pub(in crate::template) struct Seen(Vec<[AtomicBool; 2]>);

impl Seen {
    pub(in crate::template) fn new(sites: usize) -> Arc<Seen> {
        Arc::new(Seen((0..sites).map(|_| Default::default()).collect()))
    }

    fn note(&self, site: usize, went: bool) {
        if let Some(ways) = self.0.get(site) {
            ways[usize::from(went)].store(true, Ordering::Relaxed);
        }
    }

    pub(in crate::template) fn branch(&self, index: usize, site: &Site, place: Place, text: &str) -> Branch {
        let went =
            |way: bool| self.0.get(index).is_some_and(|ways| ways[usize::from(way)].load(Ordering::Relaxed));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Branch { place, text, fork: site.fork, yes: went(true), no: went(false) }
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} branches>", self.0.len() * 2)
    }
}

/// Adds the filter.
pub(in crate::template) fn install(environment: &mut Environment<'static>, seen: Arc<Seen>) {
    environment.add_filter(FILTER, move |value: Value, site: usize, is_loop: bool| {
        seen.note(site, if is_loop { has_items(&value) } else { value.is_true() });
        value
    });
}

fn has_items(value: &Value) -> bool {
    match value.len() {
        Some(length) => length > 0,
        None => value.try_iter().is_ok_and(|mut items| items.next().is_some()),
    }
}

impl Branch {
    /// The same condition, seen by another hook that has the file.
    pub(crate) fn join(&mut self, other: &Branch) {
        self.yes |= other.yes;
        self.no |= other.no;
    }

    /// How many of its two ways were taken.
    pub(crate) fn taken(&self) -> usize {
        usize::from(self.yes) + usize::from(self.no)
    }

    /// What never happened, in words.
    pub(crate) fn untaken(&self) -> Vec<String> {
        let ways = match self.fork {
            Fork::Condition => [(self.yes, "was never true"), (self.no, "was never false")],
            Fork::Loop => [(self.yes, "never had an item"), (self.no, "was never empty")],
        };
        let untaken = ways.into_iter().filter(|(taken, _)| !taken);
        untaken.map(|(_, never)| format!("`{}` {never}", self.text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::template::{Budget, Context, Library};

    /// What never happened in renders of `text` with these values of `parent`.
    #[track_caller]
    fn check(text: &str, parents: &[serde_json::Value], untaken: &[&str]) {
        let sources = BTreeMap::from([("a.yaml".to_string(), text.to_string())]);
        let library = Library::compile_watched("", sources, Watching::Branches).unwrap();
        for parent in parents {
            let mut context = Context::new("2026-01-01T00:00:00Z".parse().unwrap(), [0; 32]);
            context.set("parent", parent.clone());
            library.render(&["a.yaml".to_string()], context, &Budget::default()).unwrap();
        }
        let said = library.branches().iter().flat_map(Branch::untaken).collect::<Vec<_>>();
        assert_eq!(said, untaken);
    }

    #[test]
    fn each_way_of_each_branch_is_seen() {
        use serde_json::json;
        let text = "{% if parent.a %}\na: 1\n{% elif parent.b == 2 %}\n{% set x = 1 %}\n{% endif %}\n";
        check(text, &[json!({"b": 3})], &["`parent.a` was never true", "`parent.b == 2` was never true"]);
        check(
            text,
            &[json!({"a": true})],
            &[
                "`parent.a` was never false",
                "`parent.b == 2` was never true",
                "`parent.b == 2` was never false",
            ],
        );
        check(text, &[json!({"a": true}), json!({"b": 2}), json!({"b": 3})], &[]);
        let text = "{% for x in parent.list | default([]) %}\n- {{ x if x is odd else 0 }}\n{% endfor %}\n";
        check(
            text,
            &[json!({})],
            &[
                "`parent.list | default([])` never had an item",
                "`x is odd` was never true",
                "`x is odd` was never false",
            ],
        );
        check(text, &[json!({}), json!({"list": [1, 2]})], &[]);
        let text = "{% if parent.a not in [1] %}a: 1{% endif %}\n{% if parent.a is not odd %}b: 1{% endif %}\n\
                    {% if not parent.a %}c: 1{% endif %}\n{% for x in [1, 2] if x not in [parent.a] %}\n{% endfor %}\n";
        check(
            text,
            &[json!({"a": 1})],
            &[
                "`parent.a not in [1]` was never true",
                "`parent.a is not odd` was never true",
                "`not parent.a` was never true",
                "`[1, 2]` was never empty",
            ],
        );
    }
}

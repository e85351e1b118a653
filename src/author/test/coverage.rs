//! Which branches of the templates the cases took.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::author::test::Outcome;
use crate::hook::local::Shelf;
use crate::problem::Place;
use crate::template::Branch;

/// The branches of the hooks whose cases were run, by file.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    pub files: Vec<FileCoverage>,
}

/// The branches of one file.
#[derive(Debug)]
pub(crate) struct FileCoverage {
    pub file: String,
    branches: Vec<Branch>,
}

impl Coverage {
    /// What the shelf has seen since it was opened.
    pub(in crate::author::test) fn of(shelf: &Shelf, outcomes: &[Outcome]) -> Coverage {
        let hooks: BTreeSet<&str> = outcomes.iter().map(|outcome| outcome.hook.as_str()).collect();
        let mut by_place: BTreeMap<Place, Branch> = BTreeMap::new();
        for branch in hooks.into_iter().flat_map(|hook| shelf.branches(hook)) {
            by_place.entry(branch.place.clone()).and_modify(|known| known.join(&branch)).or_insert(branch);
        }
        let mut files: Vec<FileCoverage> = Vec::new();
        for (place, branch) in by_place {
            match files.last_mut() {
                Some(last) if last.file == place.file => last.branches.push(branch),
                _ => files.push(FileCoverage { file: place.file, branches: vec![branch] }),
            }
        }
        Coverage { files }
    }

    /// How many branches were taken, and how many there are.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let counts = self.files.iter().map(FileCoverage::counts);
        counts.fold((0, 0), |(taken, all), (more, of)| (taken + more, all + of))
    }

    pub(in crate::author::test) fn json(&self) -> Value {
        let (taken, all) = self.counts();
        let file = |file: &FileCoverage| {
            let (taken, all) = file.counts();
            let untaken: Vec<Value> = file
                .untaken()
                .map(|(place, what)| json!({"line": place.line, "column": place.column, "what": what}))
                .collect();
            json!({"file": file.file, "taken": taken, "branches": all, "untaken": untaken})
        };
        json!({"taken": taken, "branches": all, "files": self.files.iter().map(file).collect::<Vec<_>>()})
    }
}

impl FileCoverage {
    /// How many branches were taken, and how many there are.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.branches.iter().map(Branch::taken).sum(), self.branches.len() * 2)
    }

    /// What never happened, and where, in the order of the lines.
    pub(crate) fn untaken(&self) -> impl Iterator<Item = (&Place, String)> {
        self.branches.iter().flat_map(|branch| branch.untaken().into_iter().map(|what| (&branch.place, what)))
    }
}

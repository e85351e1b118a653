//! Objects that a hook is never asked about: a parent of another kind, an observed child that no definition declares.

use std::fs;

use serde_json::Value;

use crate::author::case;
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::author::check::{Check, crds, is_review};
use crate::object::name::Gvk;
use crate::problem::{Place, Problem};
use crate::template::yaml::{self, Document};

impl Check {
    /// Examples without a parent in them.
    pub(super) fn strange_examples(&mut self) {
        for (hook, folder) in case::folders_in(self.shelf.root()).unwrap_or_default() {
            let file = folder.join("example.yaml");
            if !file.is_file() {
                continue;
            }
            let (name, text) = (file.display().to_string(), fs::read_to_string(&file).unwrap_or_default());
            match yaml::read(&name, &text) {
                Ok(documents) => self.example_of(&hook, &name, &documents),
                // It is told with the examples.
                Err(_) => drop(self.faulty.insert(hook)),
            }
        }
    }

    fn example_of(&mut self, hook: &str, file: &str, documents: &[Document]) {
        if documents.iter().any(|document| self.is_parent(hook, &document.value)) {
            return;
        }
        let first = documents.first();
        let place = first.and_then(|document| document.places.place(&["apiVersion"]));
        let place = place.unwrap_or_else(|| Place { file: file.into(), line: 1, column: 1 });
        let found = first.map_or_else(|| "no object".into(), |document| kind_of(&document.value));
        let problem = Problem::new(format!("the example has no parent of `{hook}`")).at(place).found(found);
        self.findings.add(Rule::OddCase, self.expecting(hook, problem));
        self.faulty.insert(hook.into());
    }

    /// The parent and the observed children of a case.
    pub(super) fn strangers(&mut self, request: &Request) {
        let Some(document) = &request.document else { return };
        if is_review(&request.call) {
            return;
        }
        for (at, object) in request.objects() {
            let observed = matches!(at.first().map(String::as_str), Some("children" | "attachments"));
            let problem = match observed {
                true => self.undeclared_observed(&request.hook, object),
                false => self.no_parent(&request.hook, object),
            };
            let path: Vec<&str> = at.iter().map(String::as_str).chain(["kind"]).collect();
            if let Some(problem) = problem {
                self.findings.add(Rule::OddCase, crds::at(problem, document, &path));
            }
        }
    }

    fn no_parent(&self, hook: &str, object: &Value) -> Option<Problem> {
        let stated = object["kind"].is_string() && object["apiVersion"].is_string();
        if !stated || self.is_parent(hook, object) {
            return None;
        }
        let problem = Problem::new(format!("the case is about no parent of `{hook}`"));
        Some(self.expecting(hook, problem.found(kind_of(object))))
    }

    fn undeclared_observed(&self, hook: &str, object: &Value) -> Option<Problem> {
        let own = gvk(object);
        let problem = self.declared(hook, &own).err().filter(|_| !own.kind.is_empty())?;
        let message = format!("an observed child that no controller sends: {}", problem.message);
        Some(Problem { message, ..problem })
    }

    fn expecting(&self, hook: &str, problem: Problem) -> Problem {
        let parents: Vec<String> = self.parents(hook).iter().map(|gvk| format!("`{gvk}`")).collect();
        if parents.is_empty() { problem } else { problem.expected(parents.join(" or ")) }
    }
}

/// How messages call an object of another kind.
fn kind_of(object: &Value) -> String {
    let own: Gvk = gvk(object);
    if own.kind.is_empty() { "an object without a kind".into() } else { format!("`{own}`") }
}

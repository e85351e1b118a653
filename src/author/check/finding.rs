//! What a check finds, and by which rule.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::mask::Veil;
use crate::problem::Problem;
use crate::schema::Nature;

/// One finding; its problem has the place where it can be mended.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub rule: Rule,
    pub problem: Problem,
    pub seen: Option<Seen>,
}

impl Finding {
    pub(super) fn by_place(one: &Finding, other: &Finding) -> Ordering {
        let key = |finding: &Finding| (finding.problem.place.clone(), finding.rule);
        key(one).cmp(&key(other))
    }
}

/// In which renders a finding showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The file of the first request: a case's or an example.
    pub file: String,
    pub times: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// A template, the API server or the controller refuses it.
    Error,
    /// It may be meant, and is seldom.
    Warning,
}

/// What findings are of. The names are an interface: CI configurations and comments in templates hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Rule {
    Syntax,
    Definition,
    Crd,
    Render,
    MissingTemplate,
    UnusedTemplate,
    NeverRendered,
    OddCase,
    UndeclaredKind,
    UnusedKind,
    UnknownKind,
    NoEffect,
    UnknownField,
    WrongType,
    MissingField,
    BadValue,
    RepeatedKey,
    NullField,
    QuotedNumber,
    BadName,
    LongName,
    BadLabel,
    BadReference,
    BadNamespace,
    SelectorMismatch,
    PrunedStatus,
    BadSchedule,
    ShortDeadline,
    YamlTrap,
    ImmutableField,
    DroppedChild,
    RerunJob,
    EndlessChildren,
    UselessAllow,
    Unsteady,
    NeverUpdated,
    SharedParent,
    NeverFinalized,
}

/// A rule's name, level, and what it is about.
type About = (Rule, &'static str, Level, &'static str);

const ABOUT: [About; 38] = [
    (Rule::Syntax, "syntax", Level::Error, "A file is neither YAML nor Jinja that can be read"),
    (Rule::Definition, "definition", Level::Error, "A controller's definition is not valid"),
    (Rule::Crd, "crd", Level::Error, "A CustomResourceDefinition lacks what a parent's kind needs"),
    (Rule::Render, "render", Level::Error, "A template does not answer a request"),
    (
        Rule::MissingTemplate,
        "missing-template",
        Level::Error,
        "A definition calls a hook that has no template",
    ),
    (Rule::UnusedTemplate, "unused-template", Level::Warning, "No definition calls a template"),
    (Rule::NeverRendered, "never-rendered", Level::Warning, "No case and no example renders a template"),
    (
        Rule::OddCase,
        "odd-case",
        Level::Warning,
        "A case or an example is about objects that no cluster would send",
    ),
    (Rule::UndeclaredKind, "undeclared-kind", Level::Error, "A child is of a kind that is not declared"),
    (Rule::UnusedKind, "unused-kind", Level::Warning, "A declared kind is never rendered"),
    (Rule::UnknownKind, "unknown-kind", Level::Error, "The cluster has no such kind"),
    (Rule::NoEffect, "no-effect", Level::Warning, "Another field leaves a field without effect"),
    (Rule::UnknownField, "unknown-field", Level::Error, "The kind has no such field"),
    (Rule::WrongType, "wrong-type", Level::Error, "A field holds a value of another type"),
    (Rule::MissingField, "missing-field", Level::Error, "A required field is absent"),
    (Rule::BadValue, "bad-value", Level::Error, "The schema does not allow a value"),
    (Rule::RepeatedKey, "repeated-key", Level::Error, "Two elements of a list have the same key"),
    (Rule::NullField, "null-field", Level::Warning, "A field is null and will be left out"),
    (Rule::QuotedNumber, "quoted-number", Level::Error, "A number in quotes is taken for a name"),
    (Rule::BadName, "bad-name", Level::Error, "A name is too long or has characters that are not allowed"),
    (Rule::LongName, "long-name", Level::Warning, "A name is too long where the parent's name is long"),
    (Rule::BadLabel, "bad-label", Level::Error, "A label or annotation is not allowed"),
    (Rule::BadReference, "bad-reference", Level::Error, "A name refers to nothing in the same object"),
    (
        Rule::BadNamespace,
        "bad-namespace",
        Level::Error,
        "A child is in another namespace than its parent, or in none",
    ),
    (
        Rule::SelectorMismatch,
        "selector-mismatch",
        Level::Error,
        "A selector does not match the template's labels",
    ),
    (Rule::PrunedStatus, "pruned-status", Level::Error, "The CRD has no such field in its status"),
    (Rule::BadSchedule, "bad-schedule", Level::Error, "A schedule or a time zone cannot be read"),
    (
        Rule::ShortDeadline,
        "short-deadline",
        Level::Warning,
        "A CronJob leaves out a run that would start some seconds late",
    ),
    (Rule::YamlTrap, "yaml-trap", Level::Warning, "A plain scalar is read as something else than it says"),
    (
        Rule::ImmutableField,
        "immutable-field",
        Level::Error,
        "An immutable field follows a field that can change",
    ),
    (
        Rule::DroppedChild,
        "dropped-child",
        Level::Warning,
        "A child that exists is left out by the next visit, or while another is not ready or gone",
    ),
    (Rule::RerunJob, "rerun-job", Level::Warning, "A Job is made again once its TTL has removed it"),
    (
        Rule::EndlessChildren,
        "endless-children",
        Level::Error,
        "Each parent makes another one of its own kind",
    ),
    (
        Rule::UselessAllow,
        "useless-allow",
        Level::Warning,
        "A comment allows a rule that does not exist, or one that finds nothing there",
    ),
    (
        Rule::Unsteady,
        "unsteady",
        Level::Error,
        "A child is wanted otherwise at each visit, so that there is no end",
    ),
    (
        Rule::NeverUpdated,
        "never-updated",
        Level::Warning,
        "Children follow the spec, and their rule does not say that they are updated",
    ),
    (Rule::SharedParent, "shared-parent", Level::Error, "Two definitions have the same parents"),
    (Rule::NeverFinalized, "never-finalized", Level::Warning, "A finalize hook lets no parent go"),
];

impl Rule {
    pub(crate) fn all() -> impl Iterator<Item = Rule> {
        ABOUT.iter().map(|(rule, ..)| *rule)
    }

    pub(crate) fn name(self) -> &'static str {
        self.about_it().1
    }

    pub(crate) fn level(self) -> Level {
        self.about_it().2
    }

    /// One sentence without a full stop.
    pub(crate) fn about(self) -> &'static str {
        self.about_it().3
    }

    pub(crate) fn named(name: &str) -> Option<Rule> {
        Rule::all().find(|rule| rule.name() == name)
    }

    fn about_it(self) -> &'static About {
        ABOUT.iter().find(|(rule, ..)| *rule == self).expect("every rule is in the table")
    }

    pub(super) fn of(nature: Nature) -> Rule {
        match nature {
            Nature::Unknown => Rule::UnknownField,
            Nature::Type => Rule::WrongType,
            Nature::Missing => Rule::MissingField,
            Nature::Value => Rule::BadValue,
            Nature::Repeated => Rule::RepeatedKey,
            Nature::Null => Rule::NullField,
            Nature::QuotedNumber => Rule::QuotedNumber,
        }
    }
}

/// Findings as they come: what many renders show is one finding.
#[derive(Default)]
pub(super) struct Findings {
    all: Vec<(Finding, Option<Arc<Veil>>)>,
    /// By rule, place, and what is said without its numbers and values.
    known: HashMap<(Rule, String, String), usize>,
    /// Hides the values of the Secrets that what is looked at may hold.
    pub veil: Option<Arc<Veil>>,
}

impl Findings {
    pub(super) fn add(&mut self, rule: Rule, problem: Problem) {
        self.put(rule, problem, None);
    }

    /// A finding in what a request of this file rendered to.
    pub(super) fn add_seen(&mut self, rule: Rule, problem: Problem, file: &str) {
        self.put(rule, problem, Some(Seen { file: file.into(), times: 1 }));
    }

    fn put(&mut self, rule: Rule, problem: Problem, seen: Option<Seen>) {
        let place = problem.place.as_ref().map(ToString::to_string).unwrap_or_default();
        let key = (rule, place, subject(&problem.message));
        match (self.known.get(&key), seen) {
            (Some(index), Some(again)) => {
                if let Some(seen) = self.all[*index].0.seen.as_mut().filter(|seen| seen.file != again.file) {
                    seen.times += 1;
                }
            }
            (Some(_), None) => {}
            (None, seen) => {
                self.known.insert(key, self.all.len());
                self.all.push((Finding { rule, problem, seen }, self.veil.clone()));
            }
        }
    }

    /// By file, line and column; those without a place come first. Each with what its problem is to be told through.
    pub(super) fn sorted(mut self) -> Vec<(Finding, Option<Arc<Veil>>)> {
        self.all.sort_by(|(one, _), (other, _)| {
            let key = |finding: &Finding| (finding.problem.place.clone(), finding.rule);
            key(one).cmp(&key(other))
        });
        self.all
    }
}

/// The first quoted part of a message, without indices: the field that it is about.
fn subject(message: &str) -> String {
    let quoted = message.split('`').nth(1).unwrap_or(message);
    quoted.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> = Rule::all().map(Rule::name).collect();
        assert_eq!(names.len(), ABOUT.len());
        assert!(Rule::all().all(|rule| Rule::named(rule.name()) == Some(rule)));
    }
}

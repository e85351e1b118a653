//! What the API server asks of built-in kinds beyond their schemas: which look each kind gets, and the words for it.

use serde_json::Value;

use crate::author::check::examples::Wrong;
use crate::author::check::finding::Rule;
use crate::object::name::Gvk;
use crate::object::validity::dns_subdomain;
use crate::problem::{Problem, shown};
use crate::schema::{Whole, dotted};

/// A look at one object.
pub(super) struct Look<'k> {
    kind: &'k str,
    found: Vec<Wrong>,
}

/// Everything that is wrong with an object of a built-in kind, as far as its own fields tell.
pub(super) fn wrong(gvk: &Gvk, object: &Value, whole: Whole) -> Vec<Wrong> {
    let mut look = Look { kind: &gvk.kind, found: Vec::new() };
    let (spec, path) = (&object["spec"], ["spec".to_string()]);
    match gvk.group_kind() {
        _ if whole == Whole::No => {}
        ("", "Service") => look.service(spec),
        ("", "PersistentVolumeClaim") => look.claim(spec, &path),
        ("networking.k8s.io", "Ingress") => look.ingress(spec),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => look.subjects(object),
        ("policy", "PodDisruptionBudget") => look.shares(spec, &path),
        ("apps", "Deployment") => {
            look.shares(&spec["strategy"]["rollingUpdate"], &below(&path, &["strategy", "rollingUpdate"]))
        }
        _ => {}
    }
    if whole == Whole::Yes && matches!(&*gvk.group, "apps" | "batch") {
        look.counts(spec, &path);
    }
    if whole == Whole::Yes {
        for (index, template) in items(&spec["volumeClaimTemplates"]) {
            look.claim(&template["spec"], &below(&path, &["volumeClaimTemplates", &index, "spec"]));
        }
        look.pods(gvk, object);
    }
    look.found
}

/// Of workloads and Jobs.
const COUNTS: [&str; 12] = [
    "replicas",
    "minReadySeconds",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "startingDeadlineSeconds",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
];

impl Look<'_> {
    pub(super) fn say(&mut self, rule: Rule, path: &[String], rest: &str) -> &mut Problem {
        let problem = Problem::new(format!("{}: `{}` {rest}", self.kind, dotted(path)));
        self.found.push((rule, path.to_vec(), problem));
        &mut self.found.last_mut().expect("one was put there").2
    }

    /// Numbers of pods, or shares of them.
    fn shares(&mut self, map: &Value, path: &[String]) {
        for field in ["maxSurge", "maxUnavailable", "minAvailable"] {
            let Some(text) = map[field].as_str() else { continue };
            let digits = text.strip_suffix('%').unwrap_or(text);
            // Digits in quotes are told by the schema.
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let said = self.say(Rule::BadValue, &below(path, &[field]), &format!("is `{text}`"));
                said.expected = Some("a number, or a share such as `25%`".into());
            }
        }
    }

    /// Who is given the rights of a role.
    fn subjects(&mut self, object: &Value) {
        let subjects = ["subjects".to_string()];
        for (index, subject) in items(&object["subjects"]) {
            let path = below(&subjects, &[&index]);
            match subject["kind"].as_str() {
                Some("ServiceAccount") if subject["namespace"].as_str().unwrap_or_default().is_empty() => {
                    self.say(Rule::MissingField, &path, "has no `namespace`").hint =
                        Some("a ServiceAccount is named with its namespace, of whatever binding".into());
                }
                Some("ServiceAccount" | "User" | "Group") | None => {}
                Some(kind) => {
                    self.say(Rule::BadValue, &below(&path, &["kind"]), &format!("is `{kind}`")).expected =
                        Some("`ServiceAccount`, `User` or `Group`".into());
                }
            }
        }
        if let Some(kind) =
            object["roleRef"]["kind"].as_str().filter(|kind| !["Role", "ClusterRole"].contains(kind))
        {
            self.say(Rule::BadValue, &below(&[], &["roleRef", "kind"]), &format!("is `{kind}`")).expected =
                Some("`Role` or `ClusterRole`".into());
        }
    }

    /// How many or how long: the API server wants none of them below zero.
    fn counts(&mut self, spec: &Value, path: &[String]) {
        for field in COUNTS {
            if let Some(number) = spec[field].as_i64().filter(|number| *number < 0) {
                let said = self.say(Rule::BadValue, &below(path, &[field]), &format!("is {number}"));
                said.expected = Some("0 or more".into());
            }
        }
    }

    pub(super) fn port(&mut self, value: &Value, path: &[String]) {
        if value.as_i64().is_some_and(|port| !(1..=65535).contains(&port)) {
            self.say(Rule::BadValue, path, &format!("is {}", shown(value))).expected =
                Some("1 to 65535".into());
        }
    }

    /// The name of a port is one of a registry of services: short, and no number.
    pub(super) fn port_name(&mut self, value: &Value, path: &[String]) {
        let Some(name) = value.as_str().filter(|name| !name.is_empty()) else { return };
        let part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let ends = name.starts_with('-') || name.ends_with('-') || name.contains("--");
        let letters = name.chars().any(|c| c.is_ascii_lowercase());
        // Digits alone are told by the schema.
        let digits = name.chars().all(|c| c.is_ascii_digit());
        if name.len() > 15 || !name.chars().all(part) || ends || !(letters || digits) {
            let said = self.say(Rule::BadName, path, &format!("is `{name}`"));
            said.expected =
                Some("at most 15 lower-case letters, digits and single `-`, one letter at least".into());
        }
    }

    /// A DNS label.
    pub(super) fn label(&mut self, value: &Value, path: &[String]) {
        let Some(name) = value.as_str() else { return };
        let why = match name {
            name if name.len() > 63 => Some(format!("has {} characters, at most 63 are allowed", name.len())),
            name if name.contains('.') => Some("must not contain dots".into()),
            name => dns_subdomain(name).err(),
        };
        if let Some(why) = why {
            self.say(Rule::BadName, path, &format!("is `{name}`, which {why}"));
        }
    }
}

/// The elements of a list with their indices as text.
pub(super) fn items(list: &Value) -> impl Iterator<Item = (String, &Value)> {
    list.as_array().into_iter().flatten().enumerate().map(|(index, item)| (index.to_string(), item))
}

pub(super) fn below(path: &[String], steps: &[&str]) -> Vec<String> {
    path.iter().cloned().chain(steps.iter().map(|step| step.to_string())).collect()
}

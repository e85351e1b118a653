//! The way from a spec as it is written to what it means. Here is checked what a schema can't say.

use std::time::Duration;

use serde_json::Value;

use crate::config::manifest::{
    self, ChildResource, CompositeSpec, DecoratorSpec, EndpointConfig, HookBlock, HooksBlock, ParentResource,
    Resource, StatusCheck, Target,
};
use crate::config::marks::finalizer_prefix;
use crate::config::schema::{Fault, Path};
use crate::config::spec::{
    self, ChildRule, ConditionCheck, HookSpec, HookVersion, Hooks, ParentRule, ReadyWhen, ResourceName, Role,
    Spec, StatusChecks, UpdateMethod,
};
use crate::config::webhook::{endpoints, target, webhook};
use crate::object::name::plural;
use crate::object::selector::{Selector, SelectorError};
use crate::object::validity::label_key;
use crate::problem::Problem;

/// What the spec of the CompositeController called `name` means, or everything that is wrong with it.
pub(super) fn composite(name: &str, written: CompositeSpec) -> Result<Spec, Vec<Fault>> {
    let mut faults = Faults::default();
    let at = Path::default().key("spec");
    let hooks = hooks(written.hooks, written.endpoint_configs, &at, &mut faults);
    let used = hooks.finalize.is_some();
    let finalizer = match written.finalizer {
        Some(finalizer) => own_finalizer(finalizer, &at, &mut faults),
        None => finalizer(Role::Composite, name, used, &mut faults),
    };
    let meaning = Spec {
        role: Role::Composite,
        parent: parent(written.parent_resource, &at.key("parentResource"), &mut faults),
        children: children(written.child_resources, &at.key("childResources"), &mut faults),
        hooks,
        resync_period: resync_period(written.resync_period_seconds),
        generate_selector: written.generate_selector,
        finalizer,
    };
    if faults.0.is_empty() { Ok(meaning) } else { Err(faults.0) }
}

/// The same for a DecoratorController: a spec for each kind of object that it decorates.
pub(super) fn decorator(name: &str, written: DecoratorSpec) -> Result<Vec<Spec>, Vec<Fault>> {
    let mut faults = Faults::default();
    let at = Path::default().key("spec");
    let hooks = hooks(written.hooks, written.endpoint_configs, &at, &mut faults);
    let finalizer = finalizer(Role::Decorator, name, hooks.finalize.is_some(), &mut faults);
    let children = children(written.attachments, &at.key("attachments"), &mut faults);
    let spec = |parent: ParentRule| Spec {
        role: Role::Decorator,
        parent,
        children: children.clone(),
        hooks: hooks.clone(),
        resync_period: resync_period(written.resync_period_seconds),
        generate_selector: false,
        finalizer: finalizer.clone(),
    };
    let specs: Vec<Spec> =
        targets(written.resources, &at.key("resources"), &mut faults).into_iter().map(spec).collect();
    if faults.0.is_empty() { Ok(specs) } else { Err(faults.0) }
}

fn targets(written: Vec<Target>, at: &Path, faults: &mut Faults) -> Vec<ParentRule> {
    if written.is_empty() {
        faults.add(at, Problem::new(format!("`{at}` is empty")).expected("the objects to decorate"));
    }
    let mut rules: Vec<ParentRule> = Vec::new();
    for (index, target) in written.into_iter().enumerate() {
        let at = at.index(index);
        let rule = ParentRule {
            resource: resource(target.name, &at, faults),
            selector: selector(&target.label_selector, &at.key("labelSelector"), faults),
            annotations: annotations(&target.annotation_selector, &at.key("annotationSelector"), faults),
            ignore_status_changes: target.ignore_status_changes,
            revision_paths: Vec::new(),
        };
        if rules.iter().any(|other| other.resource == rule.resource) {
            let problem = Problem::new(format!("`{at}` repeats an earlier one: {}", rule.resource));
            faults.add(&at, problem.expected("one rule for each kind"));
        }
        rules.push(rule);
    }
    rules
}

fn resync_period(seconds: Option<i64>) -> Option<Duration> {
    seconds.map(|seconds| Duration::from_secs(seconds.max(1) as u64))
}

#[derive(Default)]
pub(super) struct Faults(pub Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, path: &Path, problem: Problem) {
        self.0.push(Fault::new(path, problem));
    }
}

fn parent(written: ParentResource, at: &Path, faults: &mut Faults) -> ParentRule {
    let paths = written.revision_history.map(|history| history.field_paths).unwrap_or_default();
    check_field_paths(&paths, &at.key("revisionHistory").key("fieldPaths"), faults);
    ParentRule {
        resource: resource(written.name, at, faults),
        selector: selector(&written.label_selector, &at.key("labelSelector"), faults),
        annotations: Selector::everything(),
        ignore_status_changes: written.ignore_status_changes,
        revision_paths: if paths.is_empty() { vec!["spec".into()] } else { paths },
    }
}

/// Paths are split at dots, as Metacontroller does it: nothing else in them has a meaning.
fn check_field_paths(paths: &[String], at: &Path, faults: &mut Faults) {
    for (index, path) in paths.iter().enumerate() {
        if path.split('.').any(str::is_empty) {
            let at = at.index(index);
            let problem = Problem::new(format!("`{at}` is the text `{path}`"));
            faults.add(&at, problem.expected("names with dots between them, such as `spec.template`"));
        }
    }
}

fn selector(written: &Value, at: &Path, faults: &mut Faults) -> Selector {
    checked(Selector::from_json(written), at, faults)
}

fn annotations(written: &Value, at: &Path, faults: &mut Faults) -> Selector {
    checked(Selector::of_annotations(written), at, faults)
}

fn checked(read: Result<Selector, SelectorError>, at: &Path, faults: &mut Faults) -> Selector {
    read.unwrap_or_else(|error| {
        let dot = if error.path.is_empty() { "" } else { "." };
        faults.add(at, Problem::new(format!("`{at}{dot}{}`: {}", error.path, error.message)));
        Selector::everything()
    })
}

fn children(written: Vec<ChildResource>, at: &Path, faults: &mut Faults) -> Vec<ChildRule> {
    let mut rules: Vec<ChildRule> = Vec::new();
    for (index, child) in written.into_iter().enumerate() {
        let rule = child_rule(child, &at.index(index), faults);
        let same = |other: &ChildRule| {
            other.resource.resource == rule.resource.resource
                && other.resource.group() == rule.resource.group()
        };
        if let Some(first) = rules.iter().position(same) {
            let problem = Problem::new(format!(
                "`{}` repeats `{}`: {}",
                at.index(index),
                at.index(first),
                rule.resource
            ));
            faults.add(&at.index(index), problem.expected("one rule for each kind"));
        }
        rules.push(rule);
    }
    rules
}

fn child_rule(written: ChildResource, at: &Path, faults: &mut Faults) -> ChildRule {
    let (method, checks) = match written.update_strategy {
        Some(strategy) => (strategy.method, strategy.status_checks),
        None => (None, None),
    };
    let resource = resource(written.name, at, faults);
    let status_checks = checks.map(|checks| status_checks(checks, &resource, at, faults)).unwrap_or_default();
    ChildRule { resource, update: update_method(method.as_deref()), status_checks }
}

/// Kinds whose status tells by rules of their own whether all is well: `plan::rollout::ready` knows these.
const KINDS_WITH_STATUS: [(&str, &str); 7] = [
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "jobs"),
    ("", "persistentvolumeclaims"),
    ("", "pods"),
];

fn status_checks(
    written: manifest::StatusChecks,
    resource: &ResourceName,
    at: &Path,
    faults: &mut Faults,
) -> StatusChecks {
    let check = |check: StatusCheck| ConditionCheck {
        kind: check.kind,
        status: check.status.filter(|status| !status.is_empty()),
        reason: check.reason.filter(|reason| !reason.is_empty()),
    };
    let conditions = written.conditions.into_iter().map(check).collect();
    let ready_when = written.ready_when.map(|_| ReadyWhen::KindStatus);
    if ready_when.is_some() && !KINDS_WITH_STATUS.contains(&(resource.group(), &resource.resource)) {
        let at = at.key("updateStrategy").key("statusChecks").key("readyWhen");
        let known = KINDS_WITH_STATUS.map(|(_, resource)| format!("`{resource}`")).join(", ");
        let problem =
            Problem::new(format!("`{at}`: the status of {resource} has no rule that is known here"));
        let problem = problem.expected(format!("one of the kinds {known}"));
        faults.add(&at, problem.hint("name the conditions that count: `statusChecks.conditions`"));
    }
    StatusChecks { conditions, ready_when }
}

fn update_method(written: Option<&str>) -> UpdateMethod {
    match written {
        Some("Recreate") => UpdateMethod::Recreate,
        Some("InPlace") => UpdateMethod::InPlace,
        Some("RollingRecreate") => UpdateMethod::RollingRecreate,
        Some("RollingInPlace") => UpdateMethod::RollingInPlace,
        _ => UpdateMethod::OnDelete,
    }
}

fn resource(written: Resource, at: &Path, faults: &mut Faults) -> ResourceName {
    let (version_at, resource_at) = (at.key("apiVersion"), at.key("resource"));
    let name = ResourceName { api_version: written.api_version, resource: written.resource };
    if !is_api_version(&name.api_version) {
        let problem = Problem::new(format!("`{version_at}` is the text `{}`", name.api_version));
        faults.add(
            &version_at,
            problem.expected("a group and a version such as `apps/v1`, or `v1` for the core group"),
        );
    }
    let lower = name.resource.to_lowercase();
    let problem = Problem::new(format!("`{resource_at}` is the text `{}`", name.resource))
        .expected("the plural of a kind in lower case, such as `deployments`");
    if name.resource != lower {
        let already = lower.ends_with('s') && !lower.ends_with("ss");
        let plural = if already { lower } else { plural(&lower) };
        let hint = format!("use the plural, `{plural}`");
        faults.add(&resource_at, problem.hint(hint));
    } else if lower.is_empty() || !lower.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        faults.add(&resource_at, problem);
    }
    name
}

/// `v1`, or a DNS name, a slash and a version. The core group has the one version.
fn is_api_version(text: &str) -> bool {
    let is_label = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    match text.split_once('/') {
        None => text == "v1",
        Some((group, version)) => group.split('.').all(is_label) && is_label(version),
    }
}

/// A finalizer is named after its definition, as Metacontroller names it, unless the definition has a name for it.
fn finalizer(role: Role, name: &str, used: bool, faults: &mut Faults) -> String {
    let prefix = finalizer_prefix(role);
    let finalizer = format!("{prefix}{name}");
    // The API server wants a finalizer to be a qualified name with a prefix.
    if used && label_key(&finalizer).is_err() {
        let limit = 63 - prefix.len() + "metacontroller.io/".len();
        let problem =
            Problem::new(format!("`{name}` is too long a name for a definition with a finalize hook"))
                .expected(format!("at most {limit} characters: it becomes part of a finalizer's name"));
        let problem = match role {
            Role::Composite => problem.hint("or give the finalizer a name of its own: `spec.finalizer`"),
            Role::Decorator => problem,
        };
        faults.add(&Path::default().key("metadata").key("name"), problem);
    }
    finalizer
}

fn own_finalizer(written: String, at: &Path, faults: &mut Faults) -> String {
    let at = at.key("finalizer");
    if let Err(why) = label_key(&written) {
        faults.add(&at, Problem::new(format!("`{at}`: `{written}` {why}")));
    } else if !written.contains('/') {
        let problem = Problem::new(format!("`{at}`: `{written}` has no prefix"));
        faults.add(&at, problem.expected("a name such as `example.com/cleanup`"));
    }
    written
}

fn hooks(
    written: Option<HooksBlock>,
    endpoint_configs: Vec<EndpointConfig>,
    at: &Path,
    faults: &mut Faults,
) -> Hooks {
    let mut hooks = called(written, at, faults);
    let endpoints = endpoints(endpoint_configs, &at.key("endpointConfigs"), faults);
    for hook in [&mut hooks.sync, &mut hooks.finalize, &mut hooks.customize].into_iter().flatten() {
        endpoints.give_access(&mut hook.webhook);
    }
    hooks
}

fn called(written: Option<HooksBlock>, at: &Path, faults: &mut Faults) -> Hooks {
    let Some(written) = written else {
        let problem = Problem::new(format!("`{at}` has no `hooks`"));
        faults.add(at, problem.expected("`hooks.sync.webhook`, or `hooks.finalize.webhook`"));
        return Hooks::default();
    };
    let at = at.key("hooks");
    if written.sync.is_none() && written.finalize.is_none() {
        let problem = Problem::new(format!("`{at}` has neither `sync` nor `finalize`"));
        faults.add(&at, problem.expected("at least one of them: nothing would ever be called"));
    }
    let mut read = |block: Option<HookBlock>, call: &str| hook(block?, (call, &at.key(call)), faults);
    Hooks {
        sync: read(written.sync, "sync"),
        finalize: read(written.finalize, "finalize"),
        customize: read(written.customize, "customize"),
    }
}

/// A hook without a webhook is refused. Metacontroller takes `finalize: {}` for a hook that never answers, and
/// the parent's deletion never ends; leaving it out in silence would skip a clean-up that somebody counts on.
///
/// `call` is the name of the hook's field.
fn hook(written: HookBlock, (call, at): (&str, &Path), faults: &mut Faults) -> Option<HookSpec> {
    let version = if written.version.as_deref() == Some("v2") { HookVersion::V2 } else { HookVersion::V1 };
    let Some(block) = written.webhook else {
        let problem = Problem::new(format!("`{at}` has no `webhook`"));
        faults.add(at, problem.hint(format!("without anything to call, leave `{at}` out")));
        return None;
    };
    let at = at.key("webhook");
    let target = target(&block, &at, faults)?;
    check_call(call, &target, &at.key("path"), faults);
    Some(HookSpec { version, webhook: webhook(block, target, version, &at, faults) })
}

/// The calls that a hook of the built-in service may have.
const CALLS: [&str; 6] = ["sync", "finalize", "customize", "validate", "default", "convert"];

/// A path whose last part is another call's name is a slip, and an expensive one: what `finalize` answers to a parent that
/// lives has no children. One template may serve `sync` and `finalize`, as it is told which of the two it is. What a path
/// on a server elsewhere means is that server's to say.
fn check_call(call: &str, target: &spec::Target, at: &Path, faults: &mut Faults) {
    let spec::Target::BuiltIn { hook, call: called } = target else { return };
    let shared = call == "finalize" && called == "sync";
    if called == call || shared || !CALLS.contains(&called.as_str()) {
        return;
    }
    let problem = Problem::new(format!("`{at}` is the path of `{called}`, and the hook is `{call}`"));
    faults.add(at, problem.found(format!("`/{hook}/{called}`")).expected(format!("`/{hook}/{call}`")));
}

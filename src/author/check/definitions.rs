//! `controllers.yaml` against the folder: hooks without templates, templates without hooks, kinds that are not there or not
//! used.

use std::fs;
use std::io;
use std::path::Path;

use crate::author::check::Check;
use crate::author::check::finding::{Findings, Rule};
use crate::author::check::traps;
use crate::config::spec::{ChildRule, HookSpec, ResourceName, Role, StatusChecks, Target};
use crate::config::{self, Definition};
use crate::object::name::Gvk;
use crate::problem::{Place, Problem, nearest};
use crate::template::yaml::{self, Document};

/// The definitions of a file, with their places.
pub(super) struct Definitions {
    pub(super) all: Vec<Definition>,
    documents: Vec<Document>,
    /// One that is at fault says nothing of what it calls.
    whole: bool,
}

impl Definitions {
    pub(super) fn load(file: &Path, findings: &mut Findings) -> io::Result<Definitions> {
        let (name, text) = (file.display().to_string(), fs::read_to_string(file)?);
        let (all, problems) = match config::load(&name, &text) {
            Ok(definitions) => (definitions, Vec::new()),
            Err(problems) => (Vec::new(), problems),
        };
        let whole = problems.is_empty();
        let documents = yaml::read(&name, &text);
        let rule = if documents.is_ok() { Rule::Definition } else { Rule::Syntax };
        problems.into_iter().for_each(|problem| findings.add(rule, problem));
        let documents = documents.unwrap_or_default();
        documents.iter().for_each(|document| traps::in_document(document, None, findings));
        Ok(Definitions { all, documents, whole })
    }

    /// Where a definition says something: the nearest to `path` that is there.
    pub(super) fn place(&self, definition: &Definition, path: &[&str]) -> Option<Place> {
        let is_it = |object: &serde_json::Value| {
            object["metadata"]["name"] == *definition.name && object["kind"] == definition.spec.role.kind()
        };
        self.documents.iter().find_map(|document| {
            if is_it(&document.value) {
                return document.places.place(path);
            }
            let index = document.value["items"].as_array()?.iter().position(is_it)?.to_string();
            document
                .places
                .place(&["items", &index].into_iter().chain(path.iter().copied()).collect::<Vec<_>>())
        })
    }
}

/// The built-in hook that a definition's hook is.
pub(super) fn built_in(hook: &HookSpec) -> Option<(&str, &str)> {
    match &hook.webhook.target {
        Target::BuiltIn { hook, call } => Some((hook, call)),
        Target::Url(_) => None,
    }
}

/// A definition's hooks by the names of their fields.
fn hooks(definition: &Definition) -> impl Iterator<Item = (&'static str, &HookSpec)> {
    let hooks = &definition.spec.hooks;
    let named = [("sync", &hooks.sync), ("finalize", &hooks.finalize), ("customize", &hooks.customize)];
    named.into_iter().filter_map(|(name, hook)| Some((name, hook.as_ref()?)))
}

/// The field that lists the kinds of children.
pub(super) fn list_field(role: Role) -> &'static str {
    match role {
        Role::Composite => "childResources",
        Role::Decorator => "attachments",
    }
}

impl Check {
    /// The definitions that call a hook.
    pub(super) fn callers(&self, hook: &str) -> Vec<&Definition> {
        self.definitions.iter().flat_map(|definitions| self.callers_of(definitions, hook)).collect()
    }

    pub(super) fn callers_of<'d>(&self, definitions: &'d Definitions, hook: &str) -> Vec<&'d Definition> {
        let all = definitions.all.iter();
        all.filter(|definition| {
            hooks(definition).filter_map(|(_, hook)| built_in(hook)).any(|(called, _)| called == hook)
        })
        .collect()
    }

    pub(super) fn definitions(&mut self) {
        let Some(definitions) = self.definitions.take() else { return };
        for definition in &definitions.all {
            self.called(&definitions, definition);
            self.kinds(&definitions, definition);
            self.selector_field(&definitions, definition);
            self.paths_beside_urls(&definitions, definition);
            self.never_finalized(&definitions, definition);
        }
        self.rivals(&definitions);
        if definitions.whole {
            self.uncalled(&definitions);
        }
        self.definitions = Some(definitions);
    }

    /// Every built-in hook that a definition calls has a template.
    fn called(&mut self, definitions: &Definitions, definition: &Definition) {
        let state = self.shelf.state();
        for (field, hook) in hooks(definition) {
            let Some((hook, call)) = built_in(hook) else { continue };
            let own = state.hooks.iter().find(|state| state.hook == hook);
            // Of a hook that does not compile it is not known which calls it answers.
            let compiles = own.is_none_or(|own| own.revision.is_some());
            let calls: Vec<&str> =
                own.iter().flat_map(|own| &own.calls).map(|state| state.call.name()).collect();
            if !compiles || calls.contains(&call) {
                continue;
            }
            let names = state.hooks.iter().map(|state| state.hook.as_str());
            let label = self.shelf.label();
            let mut problem =
                Problem::new(format!("`{}` calls `/{hook}/{call}`, which has no template", definition.name));
            problem = match own.is_none().then(|| nearest(hook, names)).flatten().or(nearest(call, calls)) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.expected(format!("a file `{label}/{hook}/{call}.yaml`")),
            };
            let others = self.files_of_no_call(hook);
            let problem = if others.is_empty() { problem } else { problem.found(others.join(", ")) };
            let path = ["spec", "hooks", field, "webhook", "path"];
            self.findings.add(Rule::MissingTemplate, at(problem, definitions.place(definition, &path)));
        }
    }

    /// Every template is called.
    fn uncalled(&mut self, definitions: &Definitions) {
        let called: Vec<(&str, &str)> = definitions
            .all
            .iter()
            .flat_map(|definition| hooks(definition).filter_map(|(_, hook)| built_in(hook)))
            .collect();
        for hook in self.shelf.state().hooks {
            for call in hook.calls.iter().filter(|call| !call.call.is_review()) {
                let call = call.call.name();
                if called.contains(&(&hook.hook, call)) {
                    continue;
                }
                let path = format!("/{}/{call}", hook.hook);
                let problem = Problem::new(format!("no definition calls `{path}`"))
                    .at(self.template(&hook.hook, call))
                    .hint(format!(
                        "a definition calls it by `hooks: {{{call}: {{webhook: {{path: {path}}}}}}}`"
                    ));
                self.findings.add(Rule::UnusedTemplate, problem);
            }
        }
    }

    /// The kinds that a definition names exist, and those of its children are rendered.
    fn kinds(&mut self, definitions: &Definitions, definition: &Definition) {
        let spec = &definition.spec;
        let list = list_field(spec.role);
        if spec.role == Role::Composite {
            self.known(definitions, definition, &spec.parent.resource, &["spec", "parentResource"]);
            self.parent(definitions, definition);
        }
        for (index, child) in spec.children.iter().enumerate() {
            let path = ["spec", list, &index.to_string()].map(String::from);
            let path = path.each_ref().map(String::as_str);
            self.known(definitions, definition, &child.resource, &path);
            self.used(definitions, definition, &child.resource, &path);
            self.effective(definitions, definition, child, &path);
        }
    }

    /// Only a rollout waits for a child to pass its checks. Empty ones are what old definitions are full of.
    fn effective(&mut self, all: &Definitions, definition: &Definition, child: &ChildRule, path: &[&str]) {
        if child.update.is_rolling() || child.status_checks == StatusChecks::default() {
            return;
        }
        let problem = Problem::new(format!(
            "`statusChecks` of `{}` have no effect: they hold up a rollout, and the method is none",
            child.resource.resource
        ))
        .found(format!("`{}`", child.update.name()))
        .expected("`RollingInPlace` or `RollingRecreate`, or no `statusChecks`");
        let path: Vec<&str> = path.iter().copied().chain(["updateStrategy", "statusChecks"]).collect();
        self.findings.add(Rule::NoEffect, at(problem, all.place(definition, &path)));
    }

    fn known(&mut self, all: &Definitions, definition: &Definition, name: &ResourceName, path: &[&str]) {
        let Some((field, problem)) = self.unknown_resource(name) else { return };
        let path: Vec<&str> = path.iter().copied().chain([field]).collect();
        self.findings.add(Rule::UnknownKind, at(problem, all.place(definition, &path)));
    }

    /// What is wrong with the name of a resource, and in which of its fields, where all of its group are known.
    pub(super) fn unknown_resource(&self, name: &ResourceName) -> Option<(&'static str, Problem)> {
        let plural = &name.resource;
        if self.catalog.resource(&name.api_version, plural).is_some()
            || !self.catalog.knows_all_of(name.group())
        {
            return None;
        }
        let group: Vec<_> = self.catalog.of_group(name.group()).collect();
        let other = group.iter().find(|kind| kind.plural == *plural);
        let problem = Problem::new(format!("there is no `{plural}` in `{}`", name.api_version));
        let by_kind = group.iter().find(|kind| kind.gvk.kind.eq_ignore_ascii_case(plural));
        let meant = by_kind.map(|kind| kind.plural.as_str());
        let meant = meant.or_else(|| nearest(plural, group.iter().map(|kind| kind.plural.as_str())));
        let (field, hint) = match (other.or(self.catalog.named(plural).as_ref()), meant) {
            (Some(kind), _) => ("apiVersion", Some(format!("it is in `{}`", kind.gvk.api_version()))),
            (None, meant) => ("resource", meant.map(|meant| format!("did you mean `{meant}`?"))),
        };
        Some((field, Problem { hint, ..problem }))
    }

    /// The parent's CRD has what the controller writes.
    fn parent(&mut self, definitions: &Definitions, definition: &Definition) {
        let name = &definition.spec.parent.resource;
        let Some(kind) = self.catalog.resource(&name.api_version, &name.resource).cloned() else { return };
        let place = |path: &[&str]| {
            let own = self.crds.place(&kind.gvk, path);
            own.or(definitions.place(definition, &["spec", "parentResource"]))
        };
        let mut found = Vec::new();
        if !kind.status_subresource {
            let problem = Problem::new(format!("`{}` has no status subresource", kind.gvk.kind));
            let problem = problem.expected("`subresources: {status: {}}`");
            let hint = "without it each status that is written counts as a change of the parent";
            found.push((Rule::Crd, at(problem.hint(hint), place(&["subresources"]))));
        }
        for field in ["observedGeneration", "conditions"] {
            if !kind.has(&["status", field]) {
                let problem = Problem::new(format!("the status of `{}` has no `{field}`", kind.gvk.kind))
                    .hint("the controller writes it; the guide's chapter on the folder has its schema");
                let path = ["schema", "openAPIV3Schema", "properties", "status", "properties"];
                found.push((Rule::PrunedStatus, at(problem, place(&path))));
            }
        }
        found.into_iter().for_each(|(rule, problem)| self.findings.add(rule, problem));
    }

    fn used(&mut self, all: &Definitions, definition: &Definition, name: &ResourceName, path: &[&str]) {
        let mut own = hooks(definition).filter(|(field, _)| *field != "customize");
        // What a remote hook answers, or one that is at fault, is not known.
        let rendered = own.all(|(_, hook)| {
            built_in(hook).is_some_and(|(hook, call)| {
                self.answered.contains(&(hook.into(), call.into())) && !self.faulty.contains(hook)
            })
        });
        let Some(kind) = self.catalog.resource(&name.api_version, &name.resource) else { return };
        let kind = kind.gvk.to_string();
        let seen = hooks(definition)
            .filter_map(|(_, hook)| built_in(hook))
            .any(|(hook, _)| self.rendered.contains(&(hook.into(), kind.clone())));
        if !rendered || seen {
            return;
        }
        let problem = Problem::new(format!("no case and no example renders a `{kind}`"))
            .hint("write a case that does, or leave the kind out");
        self.findings.add(Rule::UnusedKind, at(problem, all.place(definition, path)));
    }

    /// How the callers of a hook let its children of a kind be changed; `Err` names a caller that does not declare the kind.
    pub(super) fn declared(
        &self,
        hook: &str,
        gvk: &Gvk,
    ) -> Result<Vec<crate::config::spec::UpdateMethod>, Problem> {
        let mut methods = Vec::new();
        for definition in self.callers(hook) {
            let children = &definition.spec.children;
            let kind = |name: &ResourceName| self.catalog.resource(&name.api_version, &name.resource);
            let rule = children.iter().find(|rule| kind(&rule.resource).is_some_and(|kind| kind.gvk == *gvk));
            // A rule whose kind is not known may be meant.
            let doubt = children
                .iter()
                .any(|rule| kind(&rule.resource).is_none() && rule.resource.group() == gvk.group);
            match rule {
                Some(rule) => methods.push(rule.update),
                None if doubt => {}
                None => {
                    return Err(undeclared(
                        definition,
                        gvk,
                        children.iter().filter_map(|rule| kind(&rule.resource).map(|kind| &kind.gvk)),
                    ));
                }
            }
        }
        Ok(methods)
    }
}

fn undeclared<'a>(definition: &Definition, gvk: &Gvk, declared: impl Iterator<Item = &'a Gvk>) -> Problem {
    let list = list_field(definition.spec.role);
    let declared: Vec<&Gvk> = declared.collect();
    let problem = Problem::new(format!("`{}` does not declare `{gvk}`", definition.name));
    let in_words = |known: &&&Gvk| known.kind.eq_ignore_ascii_case(&gvk.kind) && known.group == gvk.group;
    match declared.iter().find(|known| known.group_kind() == gvk.group_kind()) {
        Some(known) => problem.expected(format!("`{}`", known.api_version())),
        None => match declared.iter().find(in_words) {
            Some(known) => problem.hint(format!("did you mean `{}`?", known.kind)),
            None => problem.hint(format!("add it to `{list}` of the definition")),
        },
    }
}

pub(super) fn at(problem: Problem, place: Option<Place>) -> Problem {
    match place {
        Some(place) => problem.at(place),
        None => problem,
    }
}

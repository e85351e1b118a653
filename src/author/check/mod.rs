//! Everything that can be known of a folder of hooks without a cluster: all findings at once.
//!
//! Every case and every example is rendered, and what comes out is held against the schemas of its kinds and against the
//! definitions that call the hook. What no case renders is not looked at, which is a finding of its own.

mod change;
mod children;
mod coverage;
pub(in crate::author) mod crds;
mod definitions;
mod endless;
mod examples;
mod finalized;
pub(crate) mod finding;
mod jobs;
mod later;
mod likeness;
mod long_name;
mod look;
pub(in crate::author) mod names;
mod ownership;
mod pods;
mod ports;
mod possible;
mod related;
pub(in crate::author) mod requests;
mod reviews;
mod rivals;
mod selected;
mod services;
mod sources;
mod stale;
mod status;
mod steady;
mod strangers;
mod traps;
mod unread;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::author::case;
use crate::author::check::crds::Crds;
use crate::author::check::definitions::Definitions;
use crate::author::check::finding::{Finding, Findings, Rule};
use crate::author::check::requests::Request;
use crate::author::check::sources::Sources;
use crate::hook::local::{Reason, Refusal, Shelf, State, in_file};
use crate::hook::wire::Call;
use crate::hook::wire::answer::Answer;
use crate::mask::{Secrets, Veil, Words};
use crate::problem::{Place, Problem};
use crate::schema::Catalog;

/// What is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Project<'a> {
    pub hooks: &'a Path,
    /// Where the definitions are, if they are in a file.
    pub definitions: Option<&'a Path>,
    /// A cluster's `/openapi/v2`, in place of the schemas that the program carries.
    pub openapi: Option<&'a Path>,
    /// Rules whose findings are not told.
    pub allowed: &'a [Rule],
    /// The hooks whose findings are told; empty for all.
    pub only: &'a [String],
}

impl Project<'_> {
    /// Whether a file's findings are asked for: those of another hook are not.
    fn asks_for(&self, file: &str) -> bool {
        let Ok(way) = Path::new(file).strip_prefix(self.hooks) else { return true };
        let folder = way.iter().next().map(|name| name.to_string_lossy()).unwrap_or_default();
        let shared = folder.starts_with('_') || way.components().count() == 1;
        shared || self.asks_for_hook(&folder)
    }

    fn asks_for_hook(&self, hook: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == hook)
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Report {
    pub findings: Vec<Finding>,
    pub hooks: usize,
    pub renders: usize,
    /// The Kubernetes version of the schemas.
    pub version: String,
    /// Rendered kinds of which no schema is known, so that nothing inside them was checked.
    pub unchecked: BTreeSet<String>,
}

/// A check under way.
struct Check {
    shelf: Arc<Shelf>,
    catalog: Catalog,
    crds: Crds,
    definitions: Option<Definitions>,
    findings: Findings,
    unchecked: BTreeSet<String>,
    /// The kinds that each call rendered, by hook: `apps/v1 Deployment`.
    rendered: BTreeSet<(String, String)>,
    /// The calls that were asked, whatever came of it: hook and call.
    asked: BTreeSet<(String, String)>,
    /// Those that were never at fault.
    answered: BTreeSet<(String, String)>,
    /// Hooks that do not compile, or whose example cannot be used.
    faulty: BTreeSet<String>,
}

/// Checks a project; `Err` where it cannot be read.
pub(crate) fn check(project: &Project) -> Result<Report, Problem> {
    if !project.hooks.is_dir() {
        let problem = Problem::new(format!("there is no hooks folder `{}`", project.hooks.display()));
        return Err(problem.hint("name it with --hooks"));
    }
    let mut findings = Findings::default();
    let mut catalog = catalog(project)?;
    let crds = Crds::load(project.hooks, &mut catalog, &mut findings).map_err(unreadable(project.hooks))?;
    let definitions = match project.definitions {
        Some(file) => Some(Definitions::load(file, &mut findings).map_err(unreadable(file))?),
        None => None,
    };
    let mut check = Check {
        shelf: Shelf::open(project.hooks),
        catalog,
        crds,
        definitions,
        findings,
        unchecked: BTreeSet::new(),
        rendered: BTreeSet::new(),
        asked: BTreeSet::new(),
        answered: BTreeSet::new(),
        faulty: BTreeSet::new(),
    };
    let requests = check.requests(project.hooks).map_err(unreadable(project.hooks))?;
    check.run(&requests);
    let state = check.shelf.state();
    if state.hooks.is_empty() {
        let problem = Problem::new(format!("there is no hook below `{}`", project.hooks.display()));
        let problem = problem.expected("a folder for each hook, with a `sync.yaml` in it");
        return Err(match case::one_hook(project.hooks) {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
    }
    let mut sources = Sources::new(project.hooks, check.shelf.label());
    let told = |(finding, veil): (Finding, Option<Arc<Veil>>)| {
        let problem = sources.complete(finding.problem);
        let allowed = sources.allow(finding.rule, &problem) || project.allowed.contains(&finding.rule);
        let asked = problem.place.as_ref().is_none_or(|place| project.asks_for(&place.file));
        let problem = match veil {
            Some(veil) => problem.reworded(|text| veil.text(text).into_owned()),
            None => problem,
        };
        (asked && !allowed).then_some(Finding { problem, ..finding })
    };
    let mut findings: Vec<Finding> = check.findings.sorted().into_iter().filter_map(told).collect();
    if !project.allowed.contains(&Rule::UselessAllow) {
        let useless = sources.useless(project.definitions).into_iter();
        let asked = useless
            .filter(|problem| problem.place.as_ref().is_none_or(|place| project.asks_for(&place.file)));
        findings.extend(asked.map(|problem| Finding { rule: Rule::UselessAllow, problem, seen: None }));
        findings.sort_by(Finding::by_place);
    }
    Ok(Report {
        findings,
        hooks: state.hooks.iter().filter(|state| project.asks_for_hook(&state.hook)).count(),
        renders: requests.iter().filter(|request| project.asks_for_hook(&request.hook)).count(),
        version: check.catalog.version.clone(),
        unchecked: check.unchecked,
    })
}

fn catalog(project: &Project) -> Result<Catalog, Problem> {
    let Some(file) = project.openapi else { return Ok(Catalog::built_in().clone()) };
    let text = fs::read(file).map_err(unreadable(file))?;
    Catalog::from_openapi(&text).map_err(|why| {
        Problem::new(format!("`{}` is no OpenAPI document of a cluster: {why}", file.display()))
            .expected("the output of `kubectl get --raw /openapi/v2`")
    })
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> Problem {
    let path = path.display().to_string();
    move |error| Problem::new(format!("`{path}` cannot be read: {error}"))
}

impl Check {
    fn run(&mut self, requests: &[Request]) {
        self.compile();
        self.examples();
        self.strange_examples();
        let calls = |request: &Request| (request.hook.clone(), request.call.clone());
        self.answered = requests.iter().map(calls).collect();
        for request in requests {
            self.strangers(request);
            if let Some(answer) = self.answer(request) {
                self.findings.veil = veil(request, &answer);
                self.likeness(request);
                self.children(request, &answer);
                self.status(request, &answer);
                self.traps(request, &answer);
                self.changes(request, &answer);
                self.long_name(request, &answer);
                self.ports(request, &answer);
                self.related(request, &answer);
                self.endless(request, &answer);
                self.findings.veil = None;
            }
        }
        self.definitions();
        self.coverage();
        self.too_deep();
    }

    /// Why hooks do not compile. A broken file that several hooks include is told once.
    fn compile(&mut self) {
        let State { hooks, unreadable } = self.shelf.state();
        let broken = hooks.iter().filter(|hook| hook.rejected.is_some());
        self.faulty.extend(broken.map(|hook| hook.hook.clone()));
        let rejected = hooks.into_iter().filter_map(|hook| hook.rejected);
        for problem in rejected.flat_map(|rejected| rejected.problems).chain(unreadable) {
            self.findings.add(Rule::Syntax, problem);
        }
    }

    /// What a request gets, where it gets an answer.
    fn answer(&mut self, request: &Request) -> Option<Answer> {
        let asked = (request.hook.clone(), request.call.clone());
        let answered = self.shelf.answer(&request.hook, &request.call, &request.body, case::usually_given());
        let answered = match answered {
            Ok(response) if is_review(&request.call) => {
                self.asked.insert(asked);
                self.review(request, &response);
                return None;
            }
            answered => answered,
        };
        let answer = answered.and_then(|response| {
            let fault = |problem| Refusal { reason: Reason::Fault, problem, repeated: false };
            response.into_answer().map_err(fault)
        });
        match answer {
            Ok(answer) => {
                self.asked.insert(asked);
                Some(answer)
            }
            Err(refusal) if refusal.reason == Reason::Fault && request.refused => {
                self.asked.insert(asked);
                None
            }
            Err(refusal) if refusal.reason == Reason::NotReady => None,
            Err(refusal) => {
                self.answered.remove(&asked);
                self.asked.insert(asked);
                let problem = in_file(refusal.problem, &request.file);
                let problem = match problem.place {
                    Some(_) => problem,
                    None => problem.at(Place { file: request.file.clone(), line: 1, column: 1 }),
                };
                self.findings.add_seen(Rule::Render, problem, &request.file);
                None
            }
        }
    }

    /// Where a call's template begins.
    fn template(&self, hook: &str, call: &str) -> Place {
        let (label, file) = (self.shelf.label(), format!("{hook}/{call}.yaml"));
        let file = if self.shelf.root().join(&file).is_file() { file } else { format!("{hook}/{call}") };
        Place { file: format!("{label}/{file}"), line: 1, column: 1 }
    }
}

/// Hides the Secrets in a request and its answer, where there are any.
fn veil(request: &Request, answer: &Answer) -> Option<Arc<Veil>> {
    let mut secrets = Secrets::of(&Value::Object(request.fields.clone()));
    answer.children.iter().for_each(|child| secrets.add(&Value::Object(child.object.clone())));
    (!secrets.is_empty()).then(|| Arc::new(Veil::new(&secrets, Words::Told)))
}

/// Whether the API server asks this call, and no controller.
fn is_review(call: &str) -> bool {
    [Call::Validate, Call::Default, Call::Convert].into_iter().any(|review| review.name() == call)
}

//! Tries hooks with many odd parents that their kind's schema allows.
//!
//! Of each: the hook answers or fails on purpose, with `fail(…)`; it answers the same twice; every child is one that a
//! cluster takes; and all that holds again once the children are observed. A parent that shows a fault is made as small as
//! it can be and still show it.

mod judge;
mod shrink;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::author::case::folders_in;
use crate::author::parents::crd::{self, Crd, Meant};
use crate::author::parents::dice::Dice;
use crate::author::parents::odd;
use crate::author::properties::judge::Judge;
use crate::author::text;
use crate::config::{self, Definition};
use crate::hook::local::Shelf;
use crate::problem::Problem;
use crate::schema::{Catalog, Whole};
use crate::template::yaml;

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial<'a> {
    pub hooks: &'a Path,
    /// The file of definitions, for the kinds of children; where it is missing, any kind is taken.
    pub definitions: Option<&'a Path>,
    /// Parents of each hook.
    pub runs: u64,
    pub seed: u64,
}

/// How a hook did.
#[derive(Debug)]
pub(crate) struct Tried {
    pub hook: String,
    /// Parents that it answered or refused on purpose.
    pub good: u64,
    /// Of those, how many it refused.
    pub refused: u64,
    pub fault: Option<Found>,
    pub took: Duration,
}

/// The smallest parent that shows a fault.
#[derive(Debug)]
pub(crate) struct Found {
    pub parent: Value,
    /// The call, and what was observed beside the parent: `sync`, `sync with its children observed`.
    pub call: String,
    pub problem: Problem,
}

/// Tries each hook below the folder that has a CRD and whose name is meant.
pub(crate) fn run(
    trial: &Trial,
    shelf: &Shelf,
    is_meant: impl Fn(&str) -> bool,
) -> Result<Vec<Tried>, Problem> {
    let folders = folders_in(trial.hooks).map_err(|error| {
        Problem::new(format!("hooks folder `{}` cannot be read: {error}", trial.hooks.display()))
    })?;
    let definitions = definitions(trial.definitions)?;
    let mut tried = Vec::new();
    for (hook, folder) in folders {
        let file = folder.join("crd.yaml");
        if !file.is_file() || !is_meant(&hook) {
            continue;
        }
        // Where a kind has several versions, the definition says which one its hook is given.
        let version = version_of(&definitions, &hook);
        let crd = crd::read(&file, Meant { kind: None, version: version.as_deref() })?;
        let known = known_good(&folder);
        let judge = Judge::new(shelf, &hook, &definitions, catalog(&crd)?);
        tried.push(try_hook(trial, &judge, &crd, &known)?);
    }
    Ok(tried)
}

fn definitions(file: Option<&Path>) -> Result<Option<Vec<Definition>>, Problem> {
    let Some(file) = file else { return Ok(None) };
    let text = fs::read_to_string(file)
        .map_err(|error| Problem::new(format!("`{}` cannot be read: {error}", file.display())))?;
    let first = |problems: Vec<Problem>| problems.into_iter().next().expect("a refusal has a problem");
    config::load(&file.display().to_string(), &text).map(Some).map_err(first)
}

fn version_of(definitions: &Option<Vec<Definition>>, hook: &str) -> Option<String> {
    let calls_it = |definition: &&Definition| judge::calls(definition, hook);
    let definition = definitions.iter().flatten().find(calls_it)?;
    let api_version = &definition.spec.parent.resource.api_version;
    api_version.rsplit('/').next().map(str::to_string)
}

/// The author's own example: what the API server is known to take where a rule is not ours to judge.
fn known_good(folder: &Path) -> Value {
    let path = folder.join("example.yaml");
    let text = text::read(&path).unwrap_or_default();
    let documents = yaml::read(&path.display().to_string(), &text).unwrap_or_default();
    documents.into_iter().next().map(|document| document.value).unwrap_or_default()
}

fn catalog(crd: &Crd) -> Result<Catalog, Problem> {
    let mut catalog = Catalog::built_in().clone();
    catalog.add_crd(&crd.manifest).map_err(|(_, why)| Problem::new(format!("`{}`: {why}", crd.kind)))?;
    Ok(catalog)
}

fn try_hook(trial: &Trial, judge: &Judge, crd: &Crd, known: &Value) -> Result<Tried, Problem> {
    let began = Instant::now();
    let api_version = format!("{}/{}", crd.group, crd.version);
    let mut tried = Tried { hook: judge.hook.into(), good: 0, refused: 0, fault: None, took: Duration::ZERO };
    for run in 0..trial.runs {
        let mut dice = Dice::new(trial.seed, run);
        let made = odd::parent(&api_version, &crd.kind, &crd.schema, known, &mut dice);
        let Some(parent) = judge.allowed(made) else { continue };
        match judge.fault(&parent) {
            Ok(refused) => {
                tried.good += 1;
                tried.refused += u64::from(refused);
            }
            Err(found) => {
                tried.fault = Some(shrink::smallest(judge, *found));
                break;
            }
        }
    }
    tried.took = began.elapsed();
    Ok(tried)
}

impl Judge<'_> {
    /// The parent as the API server would have it, with defaults; `None` where it would refuse it.
    fn allowed(&self, mut parent: Value) -> Option<Value> {
        let kind = self.kind_of(&parent)?;
        kind.fill(&mut parent);
        kind.misfits(&parent, Whole::Yes).is_empty().then_some(parent)
    }
}

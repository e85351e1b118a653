//! One compiled revision of all template files below a hooks folder.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, OutputSpan, UndefinedBehavior};
use sha2::{Digest, Sha256};

use crate::problem::{Problem, nearest};
use crate::template::branches::{self, Branch, Seen, Site, Watching};
use crate::template::document::{Document, Rendered};
use crate::template::fault::Fault;
use crate::template::placeholder::{self, Values};
use crate::template::registry::Registry;
use crate::template::render::{Budget, Context};
use crate::template::source::{Kind, Source, Use};
use crate::template::yaml::{self, Limits, Origin, Places};
use crate::template::{CONTEXT_NAMES, functions, habits, inclusion, jinja, operator, report};

/// All templates of one revision, compiled; renders run in parallel on it.
pub(crate) struct Library {
    environment: Environment<'static>,
    files: Arc<Files>,
    revision: String,
    seen: Arc<Seen>,
}

/// The sources of a library, for messages.
#[derive(Debug)]
pub(in crate::template) struct Files {
    label: String,
    sources: BTreeMap<String, Source>,
    /// What the library's environment allows a render.
    pub budget: Budget,
}

impl Library {
    /// Compiles every source. `label` is put before each path in a place (`hooks`); sources are relative path → text.
    #[cfg(test)]
    pub(crate) fn compile(label: &str, sources: BTreeMap<String, String>) -> Result<Library, Vec<Problem>> {
        Library::compile_watched(label, sources, Watching::Nothing)
    }

    /// The same, for a library that may note which branches are taken.
    pub(crate) fn compile_watched(
        label: &str,
        mut sources: BTreeMap<String, String>,
        watching: Watching,
    ) -> Result<Library, Vec<Problem>> {
        let budget = Budget::default();
        let revision = digest(&sources);
        inclusion::end_lines(&mut sources);
        let mut registry = registry(&budget, sources.keys().cloned().collect());
        let mut files = Files { label: label.to_string(), sources: BTreeMap::new(), budget };
        let mut problems = Vec::new();
        let mut sites = 0;
        for (name, text) in sources {
            let first_site = (watching == Watching::Branches).then_some(sites);
            match Source::read(&name, text.clone(), syntax(), &registry.functions, first_site) {
                Ok(source) => {
                    sites += source.sites.len();
                    files.sources.insert(name, source);
                }
                Err((fault, range)) => {
                    let source = Source::plain(text);
                    problems.push(report::at(&files, &name, &source, range, fault.into_problem()));
                }
            }
        }
        problems.extend(files.unknown_names(&registry));
        problems.extend(inclusion::misplaced(&files));
        if !problems.is_empty() {
            return Err(problems);
        }
        let seen = Seen::new(sites);
        branches::install(&mut registry.environment, seen.clone());
        for (name, source) in &files.sources {
            if let Err(error) = registry.environment.add_template_owned(name.clone(), source.guarded.clone())
            {
                problems.push(report::problem(&files, &budget, &[], &error));
            }
        }
        if problems.is_empty() {
            Ok(Library { environment: registry.environment, files: Arc::new(files), revision, seen })
        } else {
            Err(problems)
        }
    }

    /// The conditions and loops of all files, with the ways that renders took; none where they are not watched.
    pub(crate) fn branches(&self) -> Vec<Branch> {
        let sites = self
            .files
            .sources
            .iter()
            .flat_map(|(file, source)| source.sites.iter().map(move |site| (file, source, site)));
        let branch = |(index, (file, source, site)): (usize, (&String, &Source, &Site))| {
            let place = report::place(&self.files, file, source, site.range.start);
            let text = source.text.get(site.range.clone()).unwrap_or_default();
            self.seen.branch(index, site, place, text)
        };
        sites.enumerate().map(branch).collect()
    }

    /// A short digest of all sources.
    #[cfg(test)]
    pub(crate) fn revision(&self) -> &str {
        &self.revision
    }

    /// Renders the files in order; their documents make one answer. Fuel is counted for each file, time for all.
    pub(crate) fn render(
        &self,
        files: &[String],
        context: Context,
        budget: &Budget,
    ) -> Result<Vec<Document>, Problem> {
        let (root, run) = context.into_root(budget);
        let environment = self.environment_for(budget);
        let mut documents: Vec<Document> = Vec::new();
        for file in files {
            let (text, spans) = self.text(&environment, file, &root, budget)?;
            let origin = Rendered { files: self.files.clone(), main: file.clone(), spans };
            let limits =
                Limits { bytes: budget.output_bytes, documents: budget.documents, ..Limits::default() };
            let values = std::mem::take(&mut *run.values());
            let read = yaml::read_stream(&text, &limits, Some(&Values(&values)));
            let read = read.map_err(|trouble| origin.problem(*trouble))?;
            let origin: Arc<dyn Origin> = Arc::new(origin);
            let ends: Vec<usize> = read.iter().skip(1).map(|(_, marks)| yaml::start(marks)).collect();
            let ends = ends.into_iter().chain([usize::MAX]);
            documents.extend(read.into_iter().zip(ends).map(|((value, marks), end)| Document {
                value,
                places: Places::new(marks, origin.clone()).ending_at(end),
            }));
            if let Some(first) = documents.get(budget.documents) {
                let fault = yaml::over("documents", budget.documents);
                return Err(fault.into_problem().at(first.place()));
            }
        }
        Ok(documents)
    }

    fn text(
        &self,
        environment: &Environment<'static>,
        file: &str,
        root: &Value,
        budget: &Budget,
    ) -> Result<(String, Vec<OutputSpan>), Problem> {
        if !self.files.sources.contains_key(file) {
            return Err(report::unknown_file(file, &self.files).into_problem());
        }
        let rendered = environment.get_template(file).and_then(|file| file.render_with_spans(root.clone()));
        rendered.map_err(|error| {
            let given: Vec<String> =
                root.try_iter().into_iter().flatten().map(|name| name.to_string()).collect();
            report::problem(&self.files, budget, &given, &error)
        })
    }

    /// Fuel and recursion are bounded by the environment; one with other bounds is a cheap copy.
    fn environment_for(&self, budget: &Budget) -> Cow<'_, Environment<'static>> {
        let same = (budget.fuel, budget.recursion) == (self.files.budget.fuel, self.files.budget.recursion);
        if same {
            return Cow::Borrowed(&self.environment);
        }
        let mut environment = self.environment.clone();
        bound(&mut environment, budget);
        Cow::Owned(environment)
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<library {}>", self.revision)
    }
}

fn digest(sources: &BTreeMap<String, String>) -> String {
    let mut hasher = Sha256::new();
    for (name, text) in sources {
        for part in [name, text] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

pub(in crate::template) fn syntax() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    builder.build().expect("Jinja's own delimiters are valid")
}

fn registry(budget: &Budget, names: BTreeSet<String>) -> Registry {
    let mut environment = Environment::empty();
    environment.set_syntax(syntax());
    environment.set_debug(true);
    environment.set_auto_reload(false);
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|_| AutoEscape::Custom("yaml".into()));
    environment.set_formatter(placeholder::write);
    environment.set_path_join_callback(move |name, from| beside(name, from, &names));
    bound(&mut environment, budget);
    operator::install(&mut environment);
    let mut registry = Registry::new(environment);
    jinja::install(&mut registry);
    functions::install(&mut registry);
    registry
}

fn bound(environment: &mut Environment<'static>, budget: &Budget) {
    environment.set_fuel(Some(budget.fuel));
    environment.set_recursion_limit(budget.recursion);
}

/// A file is named by its path from the folder of the file that names it, or else from the hooks folder.
fn beside<'s>(name: &'s str, from: &'s str, names: &BTreeSet<String>) -> Cow<'s, str> {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    if names.contains(&path) { path.into() } else { name.into() }
}

impl Files {
    pub(in crate::template) fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }

    pub(in crate::template) fn all(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().map(|(name, source)| (name.as_str(), source))
    }

    /// The file that `file` means by a name.
    pub(in crate::template) fn included(&self, file: &str, name: &str) -> Option<&Source> {
        let names = self.names().map(String::from).collect();
        self.sources.get(beside(name, file, &names).as_ref())
    }

    pub(in crate::template) fn find(&self, name: &str) -> Option<(&str, &Source)> {
        self.sources.get_key_value(name).map(|(name, source)| (name.as_str(), source))
    }

    /// A file's path as its author knows it.
    pub(in crate::template) fn shown(&self, name: &str) -> String {
        if self.label.is_empty() { name.to_string() } else { format!("{}/{name}", self.label) }
    }

    /// Every name that cannot be known to any render.
    fn unknown_names(&self, registry: &Registry) -> Vec<Problem> {
        let assigned: BTreeSet<&str> =
            self.sources.values().flat_map(|source| &source.assigned).map(String::as_str).collect();
        let mut problems = Vec::new();
        for (file, source) in &self.sources {
            for used in &source.uses {
                let Some(fault) = self.unknown(file, used, registry, &assigned) else { continue };
                let fault = habits::of_unknown(fault, &source.text, used.range.start);
                let fault = habits::of_comment(fault, &source.text, used.range.start);
                problems.push(report::at(self, file, source, used.range.clone(), fault.into_problem()));
            }
        }
        problems
    }

    fn unknown(
        &self,
        file: &str,
        used: &Use,
        registry: &Registry,
        assigned: &BTreeSet<&str>,
    ) -> Option<Fault> {
        let name = used.name.as_str();
        let variables = || CONTEXT_NAMES.iter().copied().chain(assigned.iter().copied());
        let functions = || registry.functions.iter().copied();
        match used.kind {
            Kind::Refused(what, why) => Some(Fault::new(format!("{what} has no meaning here")).hint(why)),
            Kind::Filter => unknown("filter", name, registry.filters.iter().copied())
                .map(|fault| jinja::elsewhere(name, fault)),
            Kind::Test => unknown("test", name, registry.tests.iter().copied()),
            Kind::Variable if IMPLICIT.contains(&name) => None,
            Kind::Function if IMPLICIT.contains(&name) => None,
            Kind::Variable => unknown("name", name, variables().chain(functions()))
                .map(|fault| habits::of_name(name, fault)),
            Kind::Function => unknown("function", name, functions().chain(variables()))
                .map(|fault| habits::of_name(name, jinja::elsewhere(name, fault))),
            Kind::File
                if self
                    .sources
                    .contains_key(beside(name, file, &self.names().map(String::from).collect()).as_ref()) =>
            {
                None
            }
            Kind::File => Some(report::unknown_file(name, self)),
        }
    }
}

/// Names that Jinja itself gives in loops, macros and blocks.
const IMPLICIT: &[&str] = &["loop", "caller", "self", "super"];

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Option<Fault> {
    let known: Vec<&str> = known.collect();
    if known.contains(&name) {
        return None;
    }
    let fault = Fault::new(format!("unknown {what} `{name}`"));
    Some(match nearest(name, known) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault,
    })
}

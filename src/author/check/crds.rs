//! The parents' kinds: `hooks/<hook>/crd.yaml`.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::author::case;
use crate::author::check::finding::{Findings, Rule};
use crate::author::check::requests::gvk;
use crate::author::check::traps;
use crate::author::text;
use crate::object::name::Gvk;
use crate::problem::{Place, Problem};
use crate::schema::{self, Catalog, Misfit, Whole};
use crate::template::yaml::{self, Document};

/// Every CRD below the hooks folder.
#[derive(Default)]
pub(super) struct Crds(Vec<Crd>);

struct Crd {
    hook: String,
    document: Document,
    kinds: Vec<Gvk>,
}

impl Crds {
    /// Reads them all and adds their kinds to the catalog.
    pub(super) fn load(hooks: &Path, catalog: &mut Catalog, findings: &mut Findings) -> io::Result<Crds> {
        let mut crds = Crds::default();
        for (hook, folder) in case::folders_in(hooks)? {
            let file = folder.join("crd.yaml");
            if !file.exists() {
                continue;
            }
            let name = file.display().to_string();
            match text::read(&file).and_then(|text| yaml::read(&name, &text)) {
                Ok(documents) if documents.is_empty() => {
                    let place = Place { file: file.display().to_string(), line: 1, column: 1 };
                    let problem = Problem::new("there is no CustomResourceDefinition in it").at(place);
                    findings.add(Rule::Crd, problem.hint("`syncwright new` writes one to begin with"));
                }
                Ok(documents) => {
                    documents.into_iter().for_each(|document| crds.add(&hook, document, catalog, findings));
                }
                Err(problem) => findings.add(Rule::Syntax, problem),
            }
        }
        Ok(crds)
    }

    fn add(&mut self, hook: &str, document: Document, catalog: &mut Catalog, findings: &mut Findings) {
        traps::in_document(&document, None, findings);
        let own = gvk(&document.value);
        if own.kind != "CustomResourceDefinition" {
            let problem = Problem::new("this is no CustomResourceDefinition").at(document.places.start());
            findings.add(Rule::Crd, problem.hint("other objects are for `example.yaml`"));
            return;
        }
        if own.group == "apiextensions.k8s.io" && own.version != "v1" {
            let problem = Problem::new(format!("there is no `{}`", own.api_version()));
            let problem = problem.expected("`apiextensions.k8s.io/v1`");
            findings.add(Rule::Crd, at(problem, &document, &["apiVersion"]));
        }
        let kind = catalog.kind(&own);
        let misfits = kind.map(|kind| kind.misfits(&document.value, Whole::Yes)).unwrap_or_default();
        misfits.into_iter().for_each(|misfit| {
            findings.add(Rule::of(misfit.nature), in_document(misfit, "CustomResourceDefinition", &document));
        });
        let faults = schema::faults(&document.value);
        let told: Vec<Vec<String>> = faults.iter().map(|fault| fault.path.clone()).collect();
        for fault in faults {
            findings.add(Rule::Crd, in_document(fault, "CustomResourceDefinition", &document));
        }
        named(&document, findings);
        if let Some(path) = without_schema(&document.value) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let version = document.value.pointer(&format!("/{}/name", path.join("/")));
            let problem = Problem::new(format!("version `{}` has no schema", text_of(version)))
                .expected("`schema: {openAPIV3Schema: {type: object, …}}`")
                .hint("the guide's chapter on the folder has one to begin with");
            findings.add(Rule::Crd, at(problem, &document, &path));
        } else if let Err((path, why)) = catalog.add_crd(&document.value)
            && !told.iter().any(|fault| fault.starts_with(&path))
        {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let problem = Problem::new(format!("the schema cannot be read: {why}"));
            findings.add(Rule::Crd, at(problem, &document, &path));
        }
        let kinds = kinds(&document.value);
        defaults(&document, &kinds, catalog, findings);
        self.told_once(hook, &document, &kinds, findings);
        self.0.push(Crd { hook: hook.into(), document, kinds });
    }

    /// Two hooks may have the same parents, but a kind has one definition: the one that is applied last.
    fn told_once(&self, hook: &str, document: &Document, kinds: &[Gvk], findings: &mut Findings) {
        let same = |crd: &&Crd| {
            crd.hook != hook
                && crd
                    .kinds
                    .iter()
                    .any(|kind| kinds.iter().any(|own| own.group == kind.group && own.kind == kind.kind))
        };
        let Some(first) = self.0.iter().find(same).filter(|first| first.document.value != document.value)
        else {
            return;
        };
        let kind = kinds.first().map_or_else(String::new, |kind| format!("{}.{}", kind.kind, kind.group));
        let problem = Problem::new(format!("`{kind}` is defined in two ways"))
            .found(format!("the other one at {}", first.document.places.start()))
            .hint("a cluster keeps the one that is applied last: keep one file, and delete the other");
        findings.add(Rule::Crd, at(problem, document, &["spec", "names", "kind"]));
    }

    /// The kinds of a hook's own `crd.yaml`.
    pub(super) fn of_hook<'a>(&'a self, hook: &'a str) -> impl Iterator<Item = &'a Gvk> {
        self.0.iter().filter(move |crd| crd.hook == hook).flat_map(|crd| &crd.kinds)
    }

    /// The schema of a kind's objects, as its CRD has it.
    pub(super) fn schema(&self, gvk: &Gvk) -> Option<&Value> {
        let crd = self.0.iter().find(|crd| crd.kinds.contains(gvk))?;
        let index = crd.kinds.iter().position(|kind| kind == gvk)?;
        Some(&crd.document.value["spec"]["versions"][index]["schema"]["openAPIV3Schema"])
    }

    /// Where the CRD of a kind says something of that version: the nearest to `path` that is there.
    pub(super) fn place(&self, gvk: &Gvk, path: &[&str]) -> Option<Place> {
        let crd = self.0.iter().find(|crd| crd.kinds.contains(gvk))?;
        let index = crd.kinds.iter().position(|kind| kind == gvk)?.to_string();
        let path: Vec<&str> = ["spec", "versions", &index].into_iter().chain(path.iter().copied()).collect();
        crd.document.places.place(&path)
    }
}

/// A default that its own schema does not allow.
fn defaults(document: &Document, kinds: &[Gvk], catalog: &Catalog, findings: &mut Findings) {
    for (index, gvk) in kinds.iter().enumerate() {
        for mut misfit in catalog.kind(gvk).map(|kind| kind.unfit_defaults()).unwrap_or_default() {
            let version =
                ["spec", "versions", &index.to_string(), "schema", "openAPIV3Schema"].map(String::from);
            misfit.path.splice(0..0, version);
            findings.add(Rule::Crd, in_document(misfit, "CustomResourceDefinition", document));
        }
    }
}

/// A CRD's name is made of what it says, or the API server refuses it.
fn named(document: &Document, findings: &mut Findings) {
    let (spec, name) = (&document.value["spec"], document.value["metadata"].get("name"));
    let (plural, group) = (text_of(spec["names"].get("plural")), text_of(spec.get("group")));
    let expected = format!("{plural}.{group}");
    if name.is_none() || plural.is_empty() || group.is_empty() || text_of(name) == expected {
        return;
    }
    let problem = Problem::new("the CustomResourceDefinition is not named after its plural and its group")
        .found(format!("`{}`", text_of(name)))
        .expected(format!("`{expected}`"));
    findings.add(Rule::Crd, at(problem, document, &["metadata", "name"]));
}

/// Where the first version is that has no schema.
fn without_schema(crd: &Value) -> Option<Vec<String>> {
    let mut versions = crd["spec"]["versions"].as_array()?.iter();
    let index = versions.position(|version| version["schema"]["openAPIV3Schema"].is_null())?;
    Some(["spec", "versions", &index.to_string()].map(String::from).to_vec())
}

fn text_of(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_string()
}

/// The kinds that a CustomResourceDefinition defines, a version each.
pub(in crate::author) fn kinds(crd: &Value) -> Vec<Gvk> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let spec = &crd["spec"];
    let version = |version: &Value| Gvk {
        group: text(&spec["group"]),
        version: text(&version["name"]),
        kind: text(&spec["names"]["kind"]),
    };
    spec["versions"].as_array().into_iter().flatten().map(version).collect()
}

/// A misfit in an object that was written as it is.
pub(super) fn in_document(misfit: Misfit, kind: &str, document: &Document) -> Problem {
    let path: Vec<&str> = misfit.path.iter().map(String::as_str).collect();
    at(problem(&misfit, kind), document, &path)
}

/// What is said of a misfit, before its place is known.
pub(in crate::author) fn problem(misfit: &Misfit, kind: &str) -> Problem {
    let mut problem = Problem::new(format!("{kind}: {}", misfit.message));
    problem.expected.clone_from(&misfit.expected);
    problem.hint.clone_from(&misfit.hint);
    problem
}

pub(super) fn at(problem: Problem, document: &Document, path: &[&str]) -> Problem {
    match document.places.place(path) {
        Some(place) => problem.at(place),
        None => problem,
    }
}

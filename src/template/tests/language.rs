//! One folder below `tests/language` for each behaviour of the language.
//!
//! `template.yaml` is rendered, the other files are there to be included; `context.yaml` is what it is given.
//! `output.yaml` is the exact answer, or `error.txt` the exact page of each problem. `places.txt` asks where fields
//! were written: a path in the answer, beginning with the document's number, and its place.
//! `UPDATE=1 cargo test language` writes what came out; read it before you commit it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value as Json;

use crate::problem::Problem;
use crate::template::{Budget, Context, Document, Library, yaml};

// B41 (`numbers`), B44 (`absent-*`), B50 (`include-chain`), B51 (`yaml-key-given-twice`), B54 (`types-of-ports-and-percents`)
#[test]
fn every_language_case_answers_as_recorded() {
    let mut wrong = Vec::new();
    for folder in folders(&root()) {
        let name = folder.strip_prefix(root()).expect("a case is below the root").display().to_string();
        if let Err(difference) = check(&folder) {
            wrong.push(format!("== {name}\n{difference}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language")
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(root).expect("tests/language is a folder").map(|entry| entry.expect("readable").path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn check(folder: &Path) -> Result<(), String> {
    let rendered = render(folder);
    let (file, text) = match &rendered {
        Ok(documents) => ("output.yaml", shown(documents)),
        Err(page) => ("error.txt", page.clone()),
    };
    if std::env::var_os("UPDATE").is_some() {
        for old in ["output.yaml", "error.txt"] {
            let _ = fs::remove_file(folder.join(old));
        }
        fs::write(folder.join(file), &text).expect("the case's folder can be written");
    }
    compare(folder, file, &text)?;
    match (rendered, fs::read_to_string(folder.join("places.txt"))) {
        (Ok(documents), Ok(asked)) => check_places(&documents, &asked),
        _ => Ok(()),
    }
}

fn compare(folder: &Path, file: &str, text: &str) -> Result<(), String> {
    let Ok(expected) = fs::read_to_string(folder.join(file)) else {
        return Err(format!("no {file}, but this came out:\n{text}"));
    };
    if file == "output.yaml" {
        let documents = yaml::read(file, &expected).map_err(|problem| problem.page())?;
        let values: Vec<String> = documents.iter().map(|document| document.value.to_string()).collect();
        let actual = yaml::read("answer", text).map_err(|problem| problem.page())?;
        if values == actual.iter().map(|document| document.value.to_string()).collect::<Vec<_>>() {
            return Ok(());
        }
    }
    if expected == text { Ok(()) } else { Err(difference(&expected, text)) }
}

fn difference(expected: &str, actual: &str) -> String {
    similar::TextDiff::from_lines(expected, actual).unified_diff().header("expected", "actual").to_string()
}

fn check_places(documents: &[Document], asked: &str) -> Result<(), String> {
    let mut found = String::new();
    for line in asked.lines() {
        let (path, _) = line.split_once(" at ").expect("a line is `path at place`");
        let mut path = path.split(' ');
        let index: usize =
            path.next().and_then(|number| number.parse().ok()).expect("a path begins with a number");
        let path: Vec<&str> = path.collect();
        let place = match &path[..] {
            [] => Some(documents[index].place()),
            path => documents[index].place_of(path),
        };
        let path = path.iter().map(|element| format!(" {element}")).collect::<String>();
        found += &format!("{index}{path} at {}\n", place.expect("every field has a place"));
    }
    if found == asked { Ok(()) } else { Err(difference(asked, &found)) }
}

/// What came out, or the pages of what went wrong.
fn render(folder: &Path) -> Result<Vec<Document>, String> {
    let pages = |problems: Vec<Problem>| {
        problems.iter().map(|problem| problem.page() + "\n").collect::<Vec<_>>().join("\n")
    };
    let sources = sources(folder);
    let library = Library::compile("hooks", sources).map_err(pages)?;
    let (context, budget) = given(folder);
    library.render(&["template.yaml".to_string()], context, &budget).map_err(|problem| pages(vec![problem]))
}

fn sources(folder: &Path) -> BTreeMap<String, String> {
    let mut sources = BTreeMap::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).expect("a case is a folder") {
            let path = entry.expect("readable").path();
            let name = path.strip_prefix(folder).expect("below the case").to_string_lossy().into_owned();
            match path.is_dir() {
                true => pending.push(path),
                false
                    if !name.ends_with(".yaml")
                        || ["context.yaml", "output.yaml"].contains(&name.as_str()) => {}
                false => drop(sources.insert(name, fs::read_to_string(path).expect("a template is text"))),
            }
        }
    }
    sources
}

fn given(folder: &Path) -> (Context, Budget) {
    let text = fs::read_to_string(folder.join("context.yaml")).unwrap_or_default();
    let documents = yaml::read("context.yaml", &text).expect("context.yaml is YAML");
    let names =
        documents.first().and_then(|document| document.value.as_object().cloned()).unwrap_or_default();
    let now = names.get("now").and_then(Json::as_str).unwrap_or("2026-11-30T17:00:00Z");
    let now: Timestamp = now.parse().expect("`now` is a time");
    let mut context = Context::new(now, [7; 32]);
    let mut budget = Budget::default();
    context.set("now", Json::String(now.to_string()));
    for (name, value) in names {
        match name.as_str() {
            "now" => {}
            "children" | "related" => context.set_family(&name, groups(&value)),
            "budget" => limit(&mut budget, &value),
            name => context.set(name, value),
        }
    }
    (context, budget)
}

fn groups(value: &Json) -> BTreeMap<String, BTreeMap<String, Json>> {
    serde_json::from_value(value.clone()).expect("groups are kind to name to object")
}

fn limit(budget: &mut Budget, asked: &Json) {
    let number = |name: &str| asked.get(name).and_then(Json::as_u64);
    if let Some(fuel) = number("fuel") {
        budget.fuel = fuel;
    }
    if let Some(milliseconds) = number("milliseconds") {
        budget.time = Duration::from_millis(milliseconds);
    }
    for (name, field) in [
        ("outputBytes", &mut budget.output_bytes),
        ("documents", &mut budget.documents),
        ("recursion", &mut budget.recursion),
    ] {
        if let Some(limit) = number(name) {
            *field = usize::try_from(limit).expect("a limit fits a machine word");
        }
    }
}

fn shown(documents: &[Document]) -> String {
    let texts = documents.iter().map(|document| {
        serde_saphyr::to_string(&document.value)
            .expect("a document can be written as YAML")
            .trim_end()
            .to_string()
    });
    texts.collect::<Vec<_>>().join("\n---\n") + "\n"
}

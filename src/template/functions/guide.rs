//! Runs every example of the author's guide, `hooks/README.md`.
//!
//! A fence `yaml template` is rendered as `website/sync.yaml`, with the fences `yaml file NAME` before it beside it and the
//! fence `yaml request` as its request, and beside it what a review is given, the fence `yaml review`. The fence after it is what comes out: `yaml output`, or the page of `text error`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::object::name::Gvk;
use crate::template::functions::arguments::Shape;
use crate::template::functions::builtins;
use crate::template::library::Library;
use crate::template::render::{Budget, Context};
use crate::template::yaml;

const GUIDE: &str = include_str!("../../../hooks/README.md");

struct Fence<'a> {
    kind: &'a str,
    line: usize,
    text: String,
}

fn fences() -> Vec<Fence<'static>> {
    let mut fences = Vec::new();
    let mut open: Option<Fence> = None;
    for (index, line) in GUIDE.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => fences.extend(open.take()),
            (Some(kind), None) => open = Some(Fence { kind, line: index + 1, text: String::new() }),
            (None, Some(fence)) => fence.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "the last fence is closed");
    fences
}

fn documents(text: &str) -> Vec<Json> {
    let documents =
        yaml::read("hooks/README.md", text).unwrap_or_else(|problem| panic!("{}", problem.page()));
    documents.into_iter().map(|document| document.value).collect()
}

fn context() -> Context {
    let request = fences().into_iter().find(|fence| fence.kind == "yaml request").expect("the request");
    let [request] = &documents(&request.text)[..] else { panic!("one request") };
    let now = request["now"].as_str().expect("a time");
    let mut context = Context::new(now.parse().expect("a time"), [7; 32]);
    for name in ["parent", "finalizing", "now"] {
        context.set(name, request[name].clone());
    }
    for name in ["children", "related"] {
        context.set_family(name, grouped(request[name].as_array().expect("a list of objects")));
    }
    let review = fences().into_iter().find(|fence| fence.kind == "yaml review").expect("a review");
    let [Json::Object(review)] = &documents(&review.text)[..] else { panic!("one review") };
    for (name, value) in review {
        context.set(name, value.clone());
    }
    context
}

fn grouped(children: &[Json]) -> BTreeMap<String, BTreeMap<String, Json>> {
    let mut groups: BTreeMap<String, BTreeMap<String, Json>> =
        ["Secret.v1", "Service.v1"].map(|kind| (kind.to_string(), BTreeMap::new())).into();
    for child in children {
        let text = |value: &Json| value.as_str().expect("text").to_string();
        let key = Gvk::new(&text(&child["apiVersion"]), &text(&child["kind"])).grouping_key();
        groups.entry(key).or_default().insert(text(&child["metadata"]["name"]), child.clone());
    }
    groups
}

/// What a template makes: its documents, or the whole page of its problem.
fn rendered(template: &str, files: &BTreeMap<String, String>) -> Result<Vec<Json>, String> {
    let mut sources = files.clone();
    sources.insert("website/sync.yaml".to_string(), template.to_string());
    let library = Library::compile("hooks", sources).map_err(|problems| problems[0].page())?;
    let files = ["website/sync.yaml".to_string()];
    let documents =
        library.render(&files, context(), &Budget::default()).map_err(|problem| problem.page())?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

#[test]
fn every_example_makes_what_the_guide_says() {
    let mut files = BTreeMap::new();
    let mut wrong = Vec::new();
    let fences = fences();
    for (fence, next) in fences.iter().zip(fences.iter().skip(1)) {
        match fence.kind.split_once(' ') {
            Some(("yaml", "template")) => wrong.extend(differing(fence, next, &files)),
            Some(("yaml", file)) if file.starts_with("file ") => {
                files.insert(format!("website/{}", &file["file ".len()..]), fence.text.clone());
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn differing(template: &Fence, expected: &Fence, files: &BTreeMap<String, String>) -> Option<String> {
    let made = rendered(&template.text, files);
    let same = match (&made, expected.kind) {
        (Ok(made), "yaml output") => *made == documents(&expected.text),
        (Err(page), "text error") => page.trim_end() == expected.text.trim_end(),
        _ => false,
    };
    let made = match made {
        Ok(documents) => {
            documents.iter().map(|document| format!("{document:#}")).collect::<Vec<_>>().join("\n---\n")
        }
        Err(page) => page,
    };
    (!same).then(|| {
        format!(
            "hooks/README.md:{}: the example makes\n{made}\nand the guide says\n{}",
            template.line, expected.text
        )
    })
}

/// Headings such as ``#### `cron_next(schedule, after=now)` ``, as function and parameters.
fn headings() -> Vec<(&'static str, Vec<&'static str>)> {
    let signature = |line: &'static str| line.strip_prefix("#### `")?.strip_suffix(")`")?.split_once('(');
    let parameter = |text: &'static str| text.trim().split('=').next().expect("a name").trim_end_matches('…');
    let headings = GUIDE.lines().filter_map(signature);
    headings.map(|(name, parameters)| (name, parameters.split(", ").map(parameter).collect())).collect()
}

#[test]
fn the_guide_has_every_function_with_its_arguments_and_no_other() {
    let described: BTreeMap<_, _> = headings().into_iter().collect();
    let installed: BTreeMap<_, _> =
        builtins().map(|builtin| (builtin.name, builtin.parameters.to_vec())).collect();
    assert_eq!(described, installed);
    assert_eq!(headings().len(), builtins().count(), "each once");
    for builtin in builtins().filter(|builtin| builtin.shape == Shape::Many) {
        assert!(GUIDE.contains(&format!("`{}({}…", builtin.name, builtin.parameters[0])), "{}", builtin.name);
    }
}

#[test]
fn every_function_has_an_example() {
    let examples: String =
        fences().into_iter().filter(|fence| fence.kind == "yaml template").map(|fence| fence.text).collect();
    let words: BTreeSet<&str> = examples.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let missing: Vec<_> =
        builtins().map(|builtin| builtin.name).filter(|name| !words.contains(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn every_template_is_followed_by_what_it_makes() {
    let kinds: Vec<_> = fences().into_iter().map(|fence| (fence.kind, fence.line)).collect();
    for pair in kinds.windows(2).filter(|pair| pair[0].0 == "yaml template") {
        assert!(["yaml output", "text error"].contains(&pair[1].0), "hooks/README.md:{}", pair[0].1);
    }
}

//! One hook's files at one moment, compiled: with everything they include and nothing else.
//!
//! A broken file therefore stops only the hooks that use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::hook::local::folder::Folder;
use crate::hook::wire::Call;
use crate::problem::{Place, Problem};
use crate::template::{Library, Watching};

pub(super) const CALLS: [Call; 6] =
    [Call::Sync, Call::Finalize, Call::Customize, Call::Validate, Call::Default, Call::Convert];

/// What answers a hook's calls.
pub(super) struct Edition {
    pub library: Library,
    /// The texts by the path that places name, to show the line of a fault.
    texts: BTreeMap<String, String>,
    /// The files that make each call's response together, in name order.
    pub calls: BTreeMap<Call, Vec<String>>,
    pub revision: String,
}

/// An edition that does not compile, and why.
#[derive(Clone, Debug)]
pub(crate) struct Rejected {
    pub revision: String,
    pub problems: Vec<Problem>,
}

/// A hook's place on the shelf.
pub(super) struct Shelved {
    /// The newest edition that compiled.
    pub edition: Option<Arc<Edition>>,
    pub rejected: Option<Rejected>,
    /// The newest revision that was tried, good or not.
    tried: String,
}

/// Puts each hook of the folder on the shelf; a hook whose files did not change keeps its place.
pub(super) fn shelve(
    label: &str,
    folder: &Folder,
    before: &BTreeMap<String, Arc<Shelved>>,
    watching: Watching,
) -> BTreeMap<String, Arc<Shelved>> {
    let references = references_of_all(folder);
    let place = |hook: String| {
        let sources = sources_of(&hook, folder, &references);
        let revision = revision_of(&sources);
        let shelved = match before.get(&hook) {
            Some(shelved) if shelved.tried == revision => shelved.clone(),
            earlier => {
                let edition = edition_of(label, &hook, sources, &revision, watching);
                Arc::new(shelved(edition, revision, earlier))
            }
        };
        (hook, shelved)
    };
    hooks_of(folder).into_iter().map(place).collect()
}

type Sources = BTreeMap<String, Result<String, String>>;

fn shelved(
    edition: Result<Edition, Vec<Problem>>,
    revision: String,
    earlier: Option<&Arc<Shelved>>,
) -> Shelved {
    match edition {
        Ok(edition) => Shelved { edition: Some(Arc::new(edition)), rejected: None, tried: revision },
        Err(problems) => Shelved {
            edition: earlier.and_then(|earlier| earlier.edition.clone()),
            rejected: Some(Rejected { revision: revision.clone(), problems }),
            tried: revision,
        },
    }
}

fn edition_of(
    label: &str,
    hook: &str,
    sources: Sources,
    revision: &str,
    watching: Watching,
) -> Result<Edition, Vec<Problem>> {
    let (mut texts, mut problems) = (BTreeMap::new(), Vec::new());
    for (path, text) in sources {
        match text {
            Ok(text) => drop(texts.insert(path, text)),
            Err(reason) => problems.push(Problem::new(reason).at(start_of(label, &path))),
        }
    }
    let calls = calls_of(label, hook, texts.keys(), &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let named = texts.iter().map(|(path, text)| (format!("{label}/{path}"), text.clone())).collect();
    let library = Library::compile_watched(label, texts, watching)?;
    Ok(Edition { library, texts: named, calls, revision: revision.to_string() })
}

impl Edition {
    /// Adds the line that the problem is on, where it is without.
    pub(super) fn with_line(&self, problem: Problem) -> Problem {
        let (Some(place), None) = (&problem.place, &problem.snippet) else { return problem };
        let Some(text) = self.texts.get(&place.file) else { return problem };
        let line = text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
        let from_place = line.chars().skip(place.column.saturating_sub(1));
        let width =
            from_place.take_while(|c| !c.is_whitespace() && !matches!(c, ':' | ',' | ']' | '}')).count();
        problem.with_source(text, width)
    }
}

/// The files of each call: `sync.yaml`, or every `*.yaml` of `sync/`.
fn calls_of<'a>(
    label: &str,
    hook: &str,
    paths: impl Iterator<Item = &'a String>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<Call, Vec<String>> {
    let mut calls: BTreeMap<Call, Vec<String>> = BTreeMap::new();
    for path in paths {
        let Some(part) = part_of(path).filter(|part| part.hook == hook) else { continue };
        let name = part.call.name();
        if path.ends_with(".yml") {
            let problem = Problem::new(format!("`{path}` is not read: a call's files end in `.yaml`"));
            let hint = format!("rename it to `{}.yaml`", path.trim_end_matches(".yml"));
            problems.push(problem.at(start_of(label, path)).hint(hint));
            continue;
        }
        let files = calls.entry(part.call).or_default();
        if files.iter().any(|file| part_of(file).is_some_and(|other| other.single != part.single)) {
            let problem = Problem::new(format!("`{hook}` answers `{name}` twice"))
                .at(start_of(label, path))
                .expected(format!("either `{hook}/{name}.yaml` or files in `{hook}/{name}/`"));
            problems.push(problem);
            continue;
        }
        files.push(path.clone());
    }
    calls
}

/// What a file contributes to: a hook's call, alone or with others.
struct Part<'a> {
    hook: &'a str,
    call: Call,
    /// `sync.yaml`, and not a file of `sync/`.
    single: bool,
}

fn part_of(path: &str) -> Option<Part<'_>> {
    let (hook, rest) = path.split_once('/')?;
    if hook.starts_with('_') {
        return None;
    }
    let named = |name: &str| CALLS.into_iter().find(|call| call.name() == name);
    let stem = |file: &'_ str| file.strip_suffix(".yaml").or(file.strip_suffix(".yml")).map(str::len);
    match rest.split_once('/') {
        None => Some(Part { hook, call: named(&rest[..stem(rest)?])?, single: true }),
        Some((folder, file)) if !file.contains('/') && !file.starts_with('_') => {
            stem(file)?;
            Some(Part { hook, call: named(folder)?, single: false })
        }
        Some(_) => None,
    }
}

fn hooks_of(folder: &Folder) -> Vec<String> {
    let paths = folder.texts.keys().chain(folder.unreadable.keys());
    let mut hooks: Vec<String> = paths.filter_map(|path| Some(part_of(path)?.hook.to_string())).collect();
    hooks.sort();
    hooks.dedup();
    hooks
}

/// The names a file includes, imports or extends.
#[derive(Default)]
struct References {
    names: Vec<String>,
    /// A name is made at render time, so it may be that of any file.
    computed: bool,
}

fn references_of_all(folder: &Folder) -> BTreeMap<&str, References> {
    folder.texts.iter().map(|(path, text)| (path.as_str(), references_of(text))).collect()
}

fn references_of(text: &str) -> References {
    let mut references = References::default();
    for tag in text.split("{%").skip(1) {
        let tag = tag.split("%}").next().unwrap_or_default().trim_matches(['-', '+', ' ', '\n', '\t', '\r']);
        let (word, rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        if !matches!(word, "include" | "import" | "from" | "extends") {
            continue;
        }
        references.computed |=
            !rest.trim_start().starts_with(['"', '\'', '[']) || rest.contains(['~', '+', '|']);
        for quote in ['"', '\''] {
            references.names.extend(rest.split(quote).skip(1).step_by(2).map(str::to_string));
        }
    }
    references
}

/// A hook's own files and those that they include, from wherever.
fn sources_of(hook: &str, folder: &Folder, references: &BTreeMap<&str, References>) -> Sources {
    let all: BTreeMap<&String, Result<&String, &String>> = folder
        .texts
        .iter()
        .map(|(path, text)| (path, Ok(text)))
        .chain(folder.unreadable.iter().map(|(path, reason)| (path, Err(reason))))
        .collect();
    let own = format!("{hook}/");
    let mut open: Vec<&String> = all.keys().copied().filter(|path| path.starts_with(&own)).collect();
    let mut sources = Sources::new();
    while let Some(path) = open.pop() {
        if sources.contains_key(path) {
            continue;
        }
        sources.insert(path.clone(), all[path].cloned().map_err(String::clone));
        let Some(references) = references.get(path.as_str()) else { continue };
        if references.computed {
            open.extend(all.keys().copied());
        }
        for name in &references.names {
            for candidate in [name.clone(), beside(path, name)] {
                open.extend(all.get_key_value(&candidate).map(|(path, _)| *path));
            }
        }
    }
    sources
}

/// The path of a file that `path` names by the way from its own folder.
fn beside(path: &str, name: &str) -> String {
    let mut steps: Vec<&str> = path.split('/').collect();
    steps.pop();
    for step in name.split('/') {
        match step {
            "." | "" => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.join("/")
}

/// Twelve hexadecimal digits of the sources' digest.
fn revision_of(sources: &Sources) -> String {
    let mut digest = Sha256::new();
    for (path, text) in sources {
        let text = text.as_ref().unwrap_or_else(|reason| reason);
        for part in [path, text] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
    }
    digest.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn start_of(label: &str, path: &str) -> Place {
    Place { file: format!("{label}/{path}"), line: 1, column: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::local::folder::Listing;

    fn folder(texts: &[(&str, &str)]) -> Folder {
        let texts = texts.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        Folder { texts, unreadable: BTreeMap::new(), listing: Listing::default() }
    }

    #[track_caller]
    fn check_sources(texts: &[(&str, &str)], expected: &[&str]) {
        let folder = folder(texts);
        let sources = sources_of("a", &folder, &references_of_all(&folder));
        assert_eq!(sources.into_keys().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_hook_has_its_own_files_and_what_they_include() {
        check_sources(
            &[
                ("_lib/deep/x.yaml", ""),
                ("_lib/deep/y.yaml", "{% extends '../z.yaml' %}"),
                ("_lib/labels.yaml", "{% include 'deep/x.yaml' %}{% include './deep/y.yaml' %}"),
                ("_lib/unused.yaml", ""),
                ("_lib/z.yaml", ""),
                (
                    "a/sync.yaml",
                    "{%- from \"_lib/labels.yaml\" import labels -%}\n{% include ['no', 'b/part.yaml'] %}",
                ),
                ("b/part.yaml", ""),
                ("b/sync.yaml", ""),
            ],
            &[
                "_lib/deep/x.yaml",
                "_lib/deep/y.yaml",
                "_lib/labels.yaml",
                "_lib/z.yaml",
                "a/sync.yaml",
                "b/part.yaml",
            ],
        );
    }

    #[test]
    fn a_computed_name_may_be_that_of_any_file() {
        check_sources(
            &[
                ("_lib/x.yaml", ""),
                ("a/sync.yaml", "{% include '_lib/' ~ parent.kind %}"),
                ("b/sync.yaml", ""),
            ],
            &["_lib/x.yaml", "a/sync.yaml", "b/sync.yaml"],
        );
    }

    #[test]
    fn a_call_is_a_file_or_a_folder_of_files() {
        let folder = folder(&[
            ("_lib/sync.yaml", ""),
            ("a/customize.yaml", ""),
            ("a/parts/sync.yaml", ""),
            ("a/sync/10-config.yaml", ""),
            ("a/sync/20-pods.yaml", ""),
            ("a/sync/_labels.yaml", ""),
            ("a/sync/deeper/x.yaml", ""),
            ("lib/labels.yaml", ""),
        ]);
        assert_eq!(hooks_of(&folder), ["a"]);
        let mut problems = Vec::new();
        let calls = calls_of("hooks", "a", folder.texts.keys(), &mut problems);
        let customize = vec!["a/customize.yaml".to_string()];
        let sync = vec!["a/sync/10-config.yaml".to_string(), "a/sync/20-pods.yaml".to_string()];
        assert_eq!(calls, BTreeMap::from([(Call::Sync, sync), (Call::Customize, customize)]));
        assert_eq!(problems, []);
    }

    #[test]
    fn two_ways_to_write_a_call_are_one_too_many() {
        let folder = folder(&[("a/finalize.yml", ""), ("a/sync.yaml", ""), ("a/sync/x.yaml", "")]);
        let mut problems = Vec::new();
        calls_of("hooks", "a", folder.texts.keys(), &mut problems);
        let pages: Vec<String> = problems.iter().map(Problem::page).collect();
        assert_eq!(
            pages,
            [
                "hooks/a/finalize.yml:1:1: `a/finalize.yml` is not read: a call's files end in `.yaml`\nhint: rename it to `a/finalize.yaml`",
                "hooks/a/sync/x.yaml:1:1: `a` answers `sync` twice\nexpected: either `a/sync.yaml` or files in `a/sync/`",
            ]
        );
    }
}

//! The texts of the files that findings are in: for the line under a caret, and for comments that allow a finding.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use crate::author::check::finding::Rule;
use crate::author::text;
use crate::problem::{Place, Problem, Snippet, nearest};

/// Reads each file once.
pub(super) struct Sources {
    hooks: PathBuf,
    /// What places call the hooks folder, with a slash.
    label: String,
    lines: HashMap<String, Vec<String>>,
    /// The comments that allowed something: file, line and rule.
    used: BTreeSet<(String, usize, Rule)>,
}

impl Sources {
    pub(super) fn new(hooks: &Path, label: &str) -> Sources {
        Sources {
            hooks: hooks.to_path_buf(),
            label: format!("{label}/"),
            lines: HashMap::new(),
            used: BTreeSet::new(),
        }
    }

    /// The problem with its files named by the way from here, and with the line it is on.
    pub(super) fn complete(&mut self, mut problem: Problem) -> Problem {
        let rename = |place: &mut Place| {
            if let Some(rest) = place.file.strip_prefix(&self.label) {
                place.file = self.hooks.join(rest).display().to_string();
            }
        };
        problem.place.iter_mut().chain(&mut problem.trail).for_each(rename);
        let (Some(place), None) = (&problem.place, &problem.snippet) else { return problem };
        let Some(text) = self.line(&place.file, place.line).map(String::from) else { return problem };
        let width = width(&text.chars().skip(place.column.saturating_sub(1)).collect::<String>()).max(1);
        Problem { snippet: Some(Snippet { text, width }), ..problem }
    }

    /// Whether a comment on the problem's line or the one above it says `check: allow RULE`.
    pub(super) fn allow(&mut self, rule: Rule, problem: &Problem) -> bool {
        let Some(place) = &problem.place else { return false };
        let lines = [place.line, place.line.saturating_sub(1)];
        let allows = |sources: &mut Sources, line: usize| {
            sources
                .line(&place.file, line)
                .is_some_and(|line| words(line).any(|(_, word)| word == rule.name()))
        };
        let Some(line) = lines.into_iter().find(|line| allows(self, *line)) else { return false };
        self.used.insert((place.file.clone(), line, rule));
        true
    }

    /// Comments that allow nothing, in all files of the folder and of the definitions.
    pub(super) fn useless(&mut self, definitions: Option<&Path>) -> Vec<Problem> {
        let mut files = Vec::new();
        templates_in(&self.hooks, DEPTH, &mut files);
        files.extend(definitions.map(Path::to_path_buf));
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let mut found: Vec<Problem> = files.iter().flat_map(|file| self.useless_in(file)).collect();
        found = found.into_iter().map(|problem| self.complete(problem)).collect();
        found
    }

    fn useless_in(&mut self, file: &str) -> Vec<Problem> {
        self.line(file, 1);
        let mut found = Vec::new();
        for (index, line) in self.lines[file].iter().enumerate() {
            let named: Vec<(usize, &str)> = words(line).collect();
            // What follows the rules is why.
            let rules = named.iter().map_while(|(at, word)| Some((*at, Rule::named(word)?)));
            let unused = rules.filter(|(_, rule)| !self.used.contains(&(file.into(), index + 1, *rule)));
            let place = |column| Place { file: file.into(), line: index + 1, column };
            found.extend(unused.map(|(at, rule)| {
                Problem::new(format!("`{}` finds nothing here that is to be allowed", rule.name()))
                    .at(place(at))
                    .hint("it counts for its own line and the one below")
            }));
            if let Some((at, word)) = named.first().filter(|(_, word)| Rule::named(word).is_none()) {
                let problem = Problem::new(format!("there is no rule `{word}`")).at(place(*at));
                found.push(match nearest(word, Rule::all().map(Rule::name)) {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")),
                    None => problem.hint("`syncwright check --help` lists the rules"),
                });
            }
        }
        found
    }

    fn line(&mut self, file: &str, number: usize) -> Option<&str> {
        if !self.lines.contains_key(file) {
            let text = text::read(Path::new(file)).unwrap_or_default();
            self.lines.insert(file.to_string(), text.lines().map(String::from).collect());
        }
        self.lines[file].get(number.checked_sub(1)?).map(String::as_str)
    }
}

/// Folders in folders deeper than this hold no templates.
const DEPTH: usize = 8;

/// All YAML files of a folder.
fn templates_in(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && depth > 0 {
            templates_in(&path, depth - 1, files);
        } else if path.is_file() && path.extension().is_some_and(|ending| ending == "yaml") {
            files.push(path);
        }
    }
}

/// The words after `check: allow`, each with its column.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    const MARK: &str = "check: allow ";
    let rest = line.find(MARK).map_or("", |at| &line[at + MARK.len()..]);
    let before = line.len() - rest.len();
    rest.split([',', ' ', '#', '}']).filter(|word| !word.is_empty()).map(move |word| {
        let at = before + (word.as_ptr() as usize - rest.as_ptr() as usize);
        (line[..at].chars().count() + 1, word)
    })
}

/// How much of a text a caret line is put under: a word, or a text in quotes.
fn width(text: &str) -> usize {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\''))
        && let Some(length) = text.chars().skip(1).position(|c| c == quote)
    {
        return length + 2;
    }
    text.chars().take_while(|c| !c.is_whitespace() && !matches!(c, ':' | ',' | ']' | '}')).count()
}

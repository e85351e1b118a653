//! Files as somebody has them who makes mistakes: those of the repository, each with a few changes that follow a seed.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

/// Choices that look random and are the same in every run.
#[derive(Clone, Debug)]
pub(crate) struct Mutations(u64);

/// What is put in where it does not belong.
const PIECES: [&str; 44] = [
    "\n",
    "\n  ",
    "\n- ",
    "\t",
    " ",
    ": ",
    ":",
    "- ",
    "? ",
    "# ",
    "\"",
    "'",
    "|",
    "|+2\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!str ",
    "!x ",
    "---\n",
    "...\n",
    "[",
    "]",
    "{",
    "}",
    ",",
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "null",
    "~",
    "yes",
    "0x1F",
    "1e400",
    "-0.0",
    "2026-01-01",
    "é",
    "\u{feff}",
    "\u{0}",
    "\u{2028}",
    "\r",
];

impl Mutations {
    pub(crate) fn new(seed: u64) -> Mutations {
        Mutations(seed)
    }

    /// Below this number; 0 for 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// The text with one to three changes.
    pub(crate) fn of_text(&mut self, text: &str) -> String {
        (0..=self.below(3)).fold(text.to_string(), |text, _| self.change(&text))
    }

    fn change(&mut self, text: &str) -> String {
        if self.below(2) == 0 { self.change_letters(text) } else { self.change_lines(text) }
    }

    fn change_letters(&mut self, text: &str) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        let from = self.below(letters.len() + 1);
        let to = (from + self.below(8)).min(letters.len());
        let put = match self.below(4) {
            0 => String::new(),
            1 => letters[from..to].iter().rev().collect(),
            2 => letters[from..to].iter().collect::<String>().repeat(2),
            _ => (*self.pick(&PIECES)).to_string(),
        };
        letters.splice(from..to, put.chars());
        if self.below(20) == 0 {
            letters.truncate(from);
        }
        letters.into_iter().collect()
    }

    fn change_lines(&mut self, text: &str) -> String {
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        let (one, other) = (self.below(lines.len()), self.below(lines.len()));
        if lines.is_empty() {
            return "a: 1\n".into();
        }
        match self.below(6) {
            0 => drop(lines.remove(one)),
            1 => lines.insert(one, lines[other].clone()),
            2 => lines.swap(one, other),
            3 => lines[one].insert_str(0, &" ".repeat(1 + self.below(3))),
            4 => lines[one] = lines[one].trim_start().to_string(),
            _ => {
                let odd = ["", "[]", "{}", "null", "7", "\"x\"", "a: b", "- a"];
                let key = lines[one].split(':').next().unwrap_or_default().to_string();
                lines[one] = format!("{key}: {}", self.pick(&odd));
            }
        }
        lines.join("\n") + "\n"
    }

    /// Changes one to three things somewhere in a value.
    pub(crate) fn of_value(&mut self, value: &Json) -> Json {
        let mut changed = value.clone();
        for _ in 0..=self.below(3) {
            self.spoil(&mut changed);
        }
        changed
    }

    fn spoil(&mut self, value: &mut Json) {
        let go_on = self.below(6) > 0;
        match value {
            Json::Object(fields) if go_on && !fields.is_empty() => {
                let at = self.below(fields.len());
                let key = fields.keys().nth(at).expect("it was counted").clone();
                match self.below(10) {
                    0 => drop(fields.remove(&key)),
                    1 => {
                        let moved = fields.remove(&key).expect("it is there");
                        fields.insert(format!("{key}x"), moved);
                    }
                    _ => self.spoil(&mut fields[&key]),
                }
            }
            Json::Array(items) if go_on && !items.is_empty() => {
                let at = self.below(items.len());
                match self.below(8) {
                    0 => items.push(items[at].clone()),
                    1 => drop(items.remove(at)),
                    _ => self.spoil(&mut items[at]),
                }
            }
            other => *other = self.odd(),
        }
    }

    fn odd(&mut self) -> Json {
        match self.below(21) {
            0 => json!(null),
            1 => json!(true),
            2 => json!(0),
            3 => json!(-1),
            4 => json!(u64::MAX),
            5 => json!(1e308),
            6 => json!(0.5),
            7 => json!(""),
            8 => json!("\u{0}\u{feff}"),
            9 => "x".repeat(3000).into(),
            10 => json!("a/b"),
            11 => json!([]),
            12 => json!({}),
            13 => json!([null]),
            14 => json!({"": {"": null}}),
            15 => json!({"name": 5}),
            16 => json!("v1"),
            17 => json!("{{ x }}"),
            18 => json!("Pod"),
            19 => json!("1.5Gi"),
            // Deeper than JSON is read.
            _ => (0..150).fold(json!(1), |inner, _| Json::Array(vec![inner])),
        }
    }
}

/// The files below a folder of the repository whose names end so, each with its path there, in the order of their names.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), ending, &mut found);
    found.sort();
    assert!(!found.is_empty(), "no `*{ending}` below `{folder}`");
    found
}

fn collect(folder: &Path, ending: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        let name = path.display().to_string();
        if path.is_dir() {
            collect(&path, ending, found);
        } else if name.ends_with(ending)
            && let Ok(text) = fs::read_to_string(&path)
        {
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
            found.push((name.trim_start_matches(root).to_string(), text));
        }
    }
}

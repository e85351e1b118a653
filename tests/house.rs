//! The house keeps its shape: a room imports only from floors below its own, and some names stay in their rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms by floor, from the ground up. Rooms of one floor do not know each other.
const FLOORS: [&[&str]; 5] = [
    &["mask", "metric", "object", "problem", "proxy", "schedule", "trace"],
    &["config", "schema", "template"],
    &["cluster", "plan", "hook"],
    &["controller", "serve", "author", "trust", "migrate", "uninstall"],
    &["cli"],
];

/// Neighbours that may be known all the same, with the reason.
const NEIGHBOURS: [(&str, &str); 3] = [
    // Definitions are YAML as authors write it, read with their places.
    ("config", "template"),
    // Problems and quantities are the ground's own small words.
    ("object", "problem"),
    ("schedule", "problem"),
];

/// Crates that only one room may name.
const KEPT: [(&str, &[&str]); 12] = [
    ("kube", &["cluster"]),
    ("minijinja", &["template"]),
    ("actix_web", &["serve"]),
    ("actix_http", &["serve"]),
    ("actix_server", &["serve"]),
    ("actix_service", &["serve"]),
    ("socket2", &["serve"]),
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
    ("granit_parser", &["template"]),
    ("opentelemetry", &["cli"]),
    ("opentelemetry_sdk", &["cli"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Every source file with its room and text.
fn house() -> Vec<(String, PathBuf, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    files
        .into_iter()
        .filter_map(|path| {
            let inner = path.strip_prefix(&src).expect("below src");
            let room = inner.iter().next()?.to_string_lossy().trim_end_matches(".rs").to_string();
            let text = fs::read_to_string(&path).expect("a source file");
            (room != "main").then_some((room, path, text))
        })
        .collect()
}

fn floor(room: &str) -> usize {
    FLOORS
        .iter()
        .position(|floor| floor.contains(&room))
        .unwrap_or_else(|| panic!("`src/{room}` is on no floor: draw it in tests/house.rs and in the README"))
}

/// Rooms that a text names as `crate::room`.
fn named(text: &str) -> Vec<String> {
    text.split("crate::")
        .skip(1)
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

#[test]
fn rooms_import_only_from_floors_below() {
    let mut wrong: BTreeMap<(String, String), PathBuf> = BTreeMap::new();
    for (room, path, text) in house() {
        for other in named(&text) {
            let below = other == room
                || floor(&other) < floor(&room)
                || NEIGHBOURS.contains(&(room.as_str(), other.as_str()));
            if !below {
                wrong.insert((room.clone(), other), path.clone());
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that do not point down: {wrong:#?}");
}

#[test]
fn crates_stay_in_their_rooms() {
    let mut wrong = Vec::new();
    for (room, path, text) in house() {
        for (name, rooms) in KEPT {
            let named = text.lines().any(|line| {
                let code = line.split("//").next().unwrap_or_default();
                code.contains(&format!("{name}::")) || code.contains(&format!("use {name};"))
            });
            if named && !rooms.contains(&room.as_str()) {
                wrong.push((name, path.clone()));
            }
        }
    }
    assert!(wrong.is_empty(), "crates named outside their rooms: {wrong:#?}");
}

#[test]
fn pure_rooms_read_no_clock_and_nothing_outside() {
    let mut wrong = Vec::new();
    for (room, path, text) in house() {
        let pure = matches!(
            room.as_str(),
            "plan" | "config" | "metric" | "object" | "problem" | "schedule" | "schema"
        );
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let test_file = path.file_name().is_some_and(|name| name.to_string_lossy().contains("test"));
        if !pure || test_file {
            continue;
        }
        for word in
            ["async fn", "Instant::now", "Timestamp::now", "std::env::", "std::fs::", "std::net::", "tokio::"]
        {
            if code.contains(word) {
                wrong.push((word, path.clone()));
            }
        }
    }
    assert!(wrong.is_empty(), "pure rooms that are not: {wrong:#?}");
}

/// The names of all tests in the sources of the program and of its tests.
fn tests() -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    }
    let mut found = BTreeSet::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a source file");
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            let name =
                line.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).map(|(name, _)| name);
            match name {
                Some(name) if marked => drop(found.insert(name.to_owned())),
                _ => {}
            }
            marked = line.starts_with("#[test")
                || line.starts_with("#[tokio::test")
                || (marked && line.starts_with("#["));
        }
    }
    found
}

#[test]
fn comparison_with_metacontroller_names_tests_that_exist() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("METACONTROLLER.md"));
    let page = page.expect("the comparison is there");
    let tests = tests();
    let (mut rows, mut wrong) = (0, Vec::new());
    for line in page.lines().filter(|line| line.starts_with('|') && !line.starts_with("| ---")) {
        let cell = line.trim_end_matches('|').rsplit('|').next().unwrap_or_default().trim();
        if cell == "tests" {
            continue;
        }
        rows += 1;
        let names: Vec<&str> = cell.split(", ").map(|name| name.trim_matches('`')).collect();
        wrong.extend(
            names.into_iter().filter(|name| !tests.contains(*name)).map(|name| format!("{name} in {line}")),
        );
    }
    assert!(wrong.is_empty(), "no such test: {wrong:#?}");
    assert!(rows > 50, "the tables are read: {rows} rows");
}

/// Licences under which the crates in the binary may be.
const LICENCES: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "Unicode-3.0",
    "ISC",
    "Zlib",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "0BSD",
    "Unlicense",
    "CC0-1.0",
];

/// Crates that are there in several versions, and who asks for the older one. It goes when they move on.
const TWICE: [(&str, &str); 9] = [
    ("base64", "k8s-openapi: 0.22"),
    ("getrandom", "ring: 0.2"),
    ("hashbrown", "kube-runtime: 0.16"),
    ("http", "actix-web: 0.2"),
    ("rand", "rust_decimal names two of its features' versions: 0.8"),
    ("rand_chacha", "rand 0.8: 0.3"),
    ("rand_core", "rand 0.8: 0.6"),
    ("syn", "macros of asn1-rs, derive_more and tracing: 2"),
    ("synstructure", "macros of asn1-rs: 0.13"),
];

/// The crates that are built into the binary on Linux, with all of its features.
fn crates() -> Vec<serde_json::Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args([
            "metadata",
            "--format-version=1",
            "--all-features",
            "--locked",
            "--offline",
            "--filter-platform=x86_64-unknown-linux-gnu",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs the tests");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    let nodes = metadata["resolve"]["nodes"].as_array().expect("a list");
    let root = packages.iter().find(|package| package["name"] == "syncwright").expect("it is this one")["id"]
        .clone();
    let (mut found, mut next) = (vec![root.clone()], vec![root]);
    while let Some(id) = next.pop() {
        let node = nodes.iter().find(|node| node["id"] == id).expect("it is resolved");
        for dependency in node["deps"].as_array().expect("a list") {
            let kinds = dependency["dep_kinds"].as_array().expect("a list");
            let is_built_in = kinds.iter().any(|kind| kind["kind"].is_null());
            if is_built_in && !found.contains(&dependency["pkg"]) {
                found.push(dependency["pkg"].clone());
                next.push(dependency["pkg"].clone());
            }
        }
    }
    packages.iter().filter(|package| found.contains(&package["id"])).cloned().collect()
}

/// Whether a licence expression allows what we do under one of ours: each term that is joined by AND must.
fn is_allowed(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], " ").replace('/', " OR ");
    plain
        .split(" AND ")
        .all(|term| term.split(" OR ").map(str::trim).any(|licence| LICENCES.contains(&licence)))
}

#[test]
fn crates_in_the_binary_have_licences_that_we_know_and_one_version() {
    let crates = crates();
    assert!(crates.len() > 100, "{}", crates.len());
    let text =
        |package: &serde_json::Value, field: &str| package[field].as_str().unwrap_or_default().to_string();
    let unknown: Vec<String> = crates
        .iter()
        .filter(|package| !is_allowed(&text(package, "license")))
        .map(|package| {
            format!("{} {}: `{}`", text(package, "name"), text(package, "version"), text(package, "license"))
        })
        .collect();
    assert_eq!(unknown, [""; 0], "read these licences, then add them to the list or leave the crate");
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in &crates {
        versions.entry(text(package, "name")).or_default().insert(text(package, "version"));
    }
    let twice: Vec<&str> =
        versions.iter().filter(|(_, all)| all.len() > 1).map(|(name, _)| name.as_str()).collect();
    assert_eq!(twice, TWICE.map(|(name, _)| name), "one version of each crate, but for those with a reason");
}

#[test]
fn licence_expressions_are_read() {
    for allowed in
        ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(MIT OR GPL-2.0) AND Unicode-3.0", "Apache-2.0 / MIT"]
    {
        assert!(is_allowed(allowed), "{allowed}");
    }
    for refused in ["", "GPL-3.0", "MIT AND GPL-3.0", "LicenseRef-x"] {
        assert!(!is_allowed(refused), "{refused}");
    }
}

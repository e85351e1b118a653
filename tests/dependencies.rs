//! What is built in stays within the licences and the doubled versions that were looked at, each with its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Licences that a crate may have: none asks more of whoever ships the binary than to keep the notice.
const LICENCES: [&str; 11] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    // notify: given to the public domain.
    "CC0-1.0",
    // webpki-roots, webpki-root-certs: lists of certificates, data and no code.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that the lock file holds more than once, with who keeps the older version.
const DOUBLED: &[(&str, &str)] = &[
    ("base64", "boon, k8s-openapi, tower-http"),
    ("bit-vec", "yasna (rcgen)"),
    ("getrandom", "ring; rand_core of rust_decimal's rand"),
    ("hashbrown", "kube-runtime"),
    ("http", "actix-http"),
    ("r-efi", "getrandom, on UEFI only"),
    ("rand", "rust_decimal, in features that are off"),
    ("rand_chacha", "rust_decimal's rand"),
    ("rand_core", "rust_decimal's rand"),
    ("syn", "macros of asn1-rs, jiff, tracing and zerocopy; not in the binary"),
    ("synstructure", "asn1-rs-derive; not in the binary"),
    ("tower-http", "reqwest, in tests only"),
    ("windows-sys", "ring, on Windows only"),
];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The platform that runs this test: its crates are those that have been fetched for the build.
fn host() -> String {
    let answer = Command::new("rustc").arg("-vV").output().expect("rustc answers");
    let text = String::from_utf8(answer.stdout).expect("rustc writes text");
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.expect("rustc names its host").to_string()
}

/// Every crate of the build for this platform, with the licence it states.
fn licences() -> Vec<(String, Option<String>)> {
    let answer = Command::new(env!("CARGO"))
        .current_dir(here())
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", &host()])
        .output()
        .expect("cargo answers");
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let metadata: Value = serde_json::from_slice(&answer.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let strangers = packages.iter().filter(|package| !package["source"].is_null());
    strangers
        .map(|package| {
            let name = package["name"].as_str().expect("a name").to_string();
            (name, package["license"].as_str().map(str::to_string))
        })
        .collect()
}

/// Whether an SPDX expression can be met by `LICENCES`: one side of each `OR`, both of each `AND`.
fn allowed(expression: &str) -> bool {
    let expression = without_brackets(expression.trim());
    if let Some((left, right)) = split(expression, " OR ") {
        return allowed(left) || allowed(right);
    }
    if let Some((left, right)) = split(expression, " AND ") {
        return allowed(left) && allowed(right);
    }
    LICENCES.contains(&expression)
}

/// The two sides of the first such word that stands outside brackets.
fn split<'a>(expression: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let outside = |at: &usize| {
        let before = &expression[..*at];
        before.matches('(').count() == before.matches(')').count()
    };
    let at = expression.match_indices(word).map(|(at, _)| at).find(outside)?;
    Some((&expression[..at], &expression[at + word.len()..]))
}

/// The expression inside one pair of brackets that holds all of it.
fn without_brackets(expression: &str) -> &str {
    let inner = expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    inner.filter(|inner| !inner.contains(['(', ')'])).unwrap_or(expression)
}

/// Crates of the lock file that it holds in several versions.
fn doubled() -> BTreeMap<String, BTreeSet<String>> {
    let lock = fs::read_to_string(here().join("Cargo.lock")).expect("a lock file");
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let start = format!("{name} = \"");
            let line = entry.lines().find_map(|line| line.strip_prefix(start.as_str()));
            line.and_then(|rest| rest.strip_suffix('"')).expect("a field of a package").to_string()
        };
        versions.entry(field("name")).or_default().insert(field("version"));
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions
}

#[test]
fn an_expression_is_met_by_one_side_of_or_and_by_both_of_and() {
    for met in ["MIT", "MIT OR GPL-3.0", "(MIT OR GPL-3.0) AND ISC", "ISC AND (GPL-3.0 OR MIT)"] {
        assert!(allowed(met), "`{met}` can be met");
    }
    for unmet in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "GPL-2.0 OR GPL-3.0", ""] {
        assert!(!allowed(unmet), "`{unmet}` cannot be met");
    }
}

#[test]
fn every_crate_has_an_allowed_licence() {
    let crates = licences();
    assert!(crates.len() > 100, "only {} crates were read", crates.len());
    let refused: Vec<_> = crates
        .iter()
        // Crates older than SPDX write `MIT/Apache-2.0` for a choice.
        .filter(|(_, licence)| {
            !licence.as_ref().is_some_and(|text| allowed(&text.replace(" / ", "/").replace('/', " OR ")))
        })
        .collect();
    assert!(
        refused.is_empty(),
        "licences nobody has looked at; allow them with a reason, or do without: {refused:?}"
    );
}

#[test]
fn no_crate_is_doubled_without_a_reason() {
    let found = doubled();
    let tolerated: BTreeSet<&str> = DOUBLED.iter().map(|(name, _)| *name).collect();
    let new: Vec<_> = found.iter().filter(|(name, _)| !tolerated.contains(name.as_str())).collect();
    assert!(
        new.is_empty(),
        "doubled crates; bring the versions together, or say who keeps the older one: {new:?}"
    );
    let gone: Vec<_> = tolerated.iter().filter(|name| !found.contains_key(**name)).collect();
    assert!(gone.is_empty(), "no longer doubled; take them off the list: {gone:?}");
}

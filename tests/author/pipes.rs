//! Output whose reader has gone, as `head` goes: no page about a panic, and the exit code is the same.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::{Said, folder, syncwright};

/// The command with a stdout that nobody reads; nothing can be said of what it printed.
fn unread(folder: &Path, arguments: &[&str]) -> Said {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_syncwright"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("SYNCWRIGHT_HOOKS")
        .stdout(writer)
        .output()
        .expect("the program starts");
    let err = String::from_utf8(output.stderr).expect("it prints text");
    Said { code: output.status.code().expect("it ends by itself"), out: String::new(), err }
}

#[test]
fn every_verb_bears_a_reader_that_has_gone() {
    let project = folder(&[]);
    let new = ["new", "website", "--group", "example.com"];
    assert_eq!(unread(project.path(), &new), Said { code: 0, out: String::new(), err: String::new() });
    let case = "hooks/website/cases/first-sync/sync.response.yaml";
    std::fs::write(project.path().join(case), "status: {}\n").expect("the case is there");
    let lines = [
        "test",
        "test --json -",
        "test --junit -",
        "test --coverage",
        "test --properties",
        "check",
        "check --format json",
        "check --format sarif",
        "check --format github",
        "render website sync hooks/website/example.yaml",
        "render website sync hooks/website/example.yaml -o yaml",
        "render website sync hooks/website/example.yaml --explain",
        "rbac",
        "rbac --namespace",
        "schema controllers",
        "manual",
        "completions bash",
        "--help",
        "--version",
    ];
    for line in lines {
        let arguments: Vec<&str> = line.split(' ').collect();
        let read = syncwright(project.path(), &arguments);
        let unread = unread(project.path(), &arguments);
        assert_eq!((unread.code, unread.err), (read.code, read.err), "{line}");
    }
}

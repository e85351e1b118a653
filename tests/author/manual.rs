//! Completions, man pages and the reference of all commands come from one definition.

use std::fs;
use std::path::Path;

use crate::{folder, syncwright};

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let said = syncwright(folder(&[]).path(), arguments);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    said.out
}

/// `UPDATE=1 cargo test --test author reference` writes the page anew.
#[test]
fn the_reference_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("COMMANDS.md");
    let reference = printed(&["manual", "--markdown"]);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &reference).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(reference.lines()).find(|(written, now)| written != now);
    assert!(
        written == reference,
        "COMMANDS.md is old: run `UPDATE=1 cargo test --test author reference`; first difference: {differs:?}"
    );
}

#[test]
fn every_command_has_a_man_page_and_examples() {
    let folder = folder(&[]);
    let said = syncwright(folder.path(), &["manual", "man"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
    let page = |name: &str| fs::read_to_string(folder.path().join(format!("man/{name}.1"))).unwrap();
    assert!(page("syncwright").contains("Exit codes"), "{}", page("syncwright"));
    let reference = printed(&["manual", "--markdown"]);
    let sections: Vec<&str> = reference.split("\n## syncwright ").skip(1).collect();
    assert!(sections.len() >= 7, "{reference}");
    for section in sections {
        let verb = section.lines().next().unwrap();
        assert!(page(&format!("syncwright-{verb}")).contains(".SH"), "{verb} has a man page");
        assert!(section.contains("Exit codes: 0"), "the help of {verb} tells its exit codes");
        assert!(section.contains("Example") || section.contains("Try:"), "the help of {verb} has examples");
    }
}

#[test]
fn completions_know_the_commands_of_each_shell() {
    for (shell, word) in
        [("bash", "complete -F"), ("zsh", "#compdef syncwright"), ("fish", "complete -c syncwright")]
    {
        let script = printed(&["completions", shell]);
        assert!(script.contains(word) && script.contains("render"), "{shell}: {script}");
    }
    let said = syncwright(folder(&[]).path(), &["completions", "tcsh"]);
    assert_eq!(said.code, 2);
}

#[test]
fn nothing_is_coloured_where_no_terminal_is() {
    for arguments in [&["--help"][..], &["test", "--help"], &["tset"], &["render", "a", "sync", "none.yaml"]]
    {
        let said = syncwright(folder(&[]).path(), arguments);
        assert!(!said.out.contains('\x1b') && !said.err.contains('\x1b'), "{arguments:?}");
    }
}

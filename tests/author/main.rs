//! The author's commands as an author meets them: files, a command, what is printed.

#[path = "../support/canary.rs"]
mod canary;
mod cases;
mod charts;
mod check;
mod conversions;
mod manual;
mod mistakes;
mod new;
mod pipes;
mod properties;
mod recipes;
mod render;
mod reviews;
mod secrets;
mod values;
mod website;
mod wrong_files;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub(crate) const SYNC: &str = "\
status:
  phase: {{ parent.spec.phase }}
  now: {{ now }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ parent.metadata.name }}}
data: {text: \"{{ parent.spec.text | default('') }}\"}
";
pub(crate) const PARENT: &str = "apiVersion: v1\nkind: A\nmetadata: {name: x}\nspec: {phase: Running}\n";
pub(crate) const ANSWER: &str = "\
status:
  phase: Running
  now: \"2026-01-01T00:00:00Z\"
children:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: x
  data:
    text: \"\"
";

/// What a command printed, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

pub(crate) fn syncwright(folder: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_syncwright"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("SYNCWRIGHT_HOOKS")
        .env_remove("SYNCWRIGHT_LOG_LEVEL")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints text");
    Said { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

#[track_caller]
pub(crate) fn says(said: &Said, code: i32, out: &str, err: &str) {
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (code, out, err));
}

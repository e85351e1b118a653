//! Helm, with nothing of this machine's settings, and what it renders.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");

pub struct Helm {
    program: PathBuf,
    home: TempDir,
}

impl Helm {
    #[track_caller]
    pub fn new() -> Helm {
        let program = controlplane::helm().unwrap_or_else(|error| panic!("{error}"));
        Helm { program, home: tempfile::tempdir().expect("a folder for temporary files") }
    }

    /// Helm at the repository's top level, so that `chart` names the chart.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(ROOT).env_clear();
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HOME"] {
            command.env(variable, self.home.path());
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().expect("Helm was built for this test")
    }

    /// What it prints, where it succeeds.
    #[track_caller]
    pub fn answer(&self, arguments: &[&str]) -> String {
        done(&self.run(arguments))
    }

    /// The manifests of a release `sw` in the namespace `ops`.
    #[track_caller]
    pub fn template(&self, more: &[&str]) -> String {
        self.answer(&[&["template", "sw", "chart", "--namespace=ops"], more].concat())
    }
}

#[track_caller]
pub fn done(output: &Output) -> String {
    let (answer, talk) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "helm: {}\n{talk}\n{answer}", output.status);
    answer
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The objects of a stream of manifests.
#[track_caller]
pub fn objects(manifests: &str) -> Vec<Value> {
    let texts = format!("\n{manifests}");
    let objects = texts.split("\n---").filter(|text| text.contains("kind:"));
    objects.map(|text| yaml(text.split_once('\n').map_or("", |(_, rest)| rest))).collect()
}

#[track_caller]
pub fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The one object of this kind and name.
#[track_caller]
pub fn find<'o>(objects: &'o [Value], kind: &str, name: &str) -> &'o Value {
    let of = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects.iter().find(of).unwrap_or_else(|| panic!("no {kind} {name} among {objects:#?}"))
}

#[track_caller]
pub fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(ROOT).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

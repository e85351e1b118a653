//! What a kubelet would do with a pod of the chart: no container runs here, so the test runs the program itself, with the
//! arguments of the container, under its service account, beside its mounted ConfigMap.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use controlplane::{ControlPlane, User};
use serde_json::Value;
use tempfile::TempDir;

use crate::controller::Controller;

/// A container of a Deployment or Job, with its ConfigMap mounted into a folder.
pub struct Mounted<'p> {
    plane: &'p ControlPlane,
    namespace: String,
    pod: Value,
    pub user: User,
    folder: TempDir,
}

impl<'p> Mounted<'p> {
    /// Of the pod template of the object at an API path.
    #[track_caller]
    pub fn of(plane: &'p ControlPlane, namespace: &str, path: &str) -> Mounted<'p> {
        let owner = plane.get(path).unwrap_or_else(|| panic!("nothing at {path}"));
        let pod = owner["spec"]["template"]["spec"].clone();
        let user = plane.sign_in(namespace, string(&pod["serviceAccountName"]));
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let mounted = Mounted { plane, namespace: namespace.into(), pod, user, folder };
        mounted.update();
        mounted
    }

    /// Brings the folder up to date in one step, as a kubelet does: files in a new folder, to which `..data` then leads.
    #[track_caller]
    pub fn update(&self) {
        let volume = &self.pod["volumes"][0]["configMap"];
        let path = format!("/api/v1/namespaces/{}/configmaps/{}", self.namespace, string(&volume["name"]));
        let map = self.plane.get(&path).expect("the pod's ConfigMap is there");
        let version = format!("..{}", string(&map["metadata"]["resourceVersion"]));
        for (path, text) in files(volume, &map["data"]) {
            write(&self.folder.path().join(&version).join(path), text);
        }
        let next = self.folder.path().join("..data_tmp");
        symlink(&version, &next).expect("the folder is ours");
        fs::rename(next, self.folder.path().join("..data")).expect("the folder is ours");
        for entry in fs::read_dir(self.folder.path().join(&version)).expect("it was just written") {
            let name = entry.expect("an entry").file_name();
            let _ = symlink(Path::new("..data").join(&name), self.folder.path().join(&name));
        }
    }

    /// The container's command. It begins with what the image's entry point is.
    pub fn command(&self) -> Command {
        let container = &self.pod["containers"][0];
        let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
        command.args(container["args"].as_array().expect("the container has arguments").iter().map(string));
        assert_eq!(container["workingDir"], container["volumeMounts"][0]["mountPath"]);
        command.current_dir(self.folder.path()).env("KUBECONFIG", &self.user.kubeconfig);
        command
    }

    pub fn start(&self) -> Controller {
        Controller::start_as(self.command(), self.folder.path(), "..log")
    }
}

fn files<'v>(volume: &'v Value, data: &'v Value) -> Vec<(PathBuf, &'v str)> {
    match volume["items"].as_array() {
        Some(items) => items
            .iter()
            .map(|item| (PathBuf::from(string(&item["path"])), string(&data[string(&item["key"])])))
            .collect(),
        None => {
            data.as_object().unwrap().iter().map(|(key, text)| (PathBuf::from(key), string(text))).collect()
        }
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the folder is ours");
    fs::write(path, text).expect("the folder is ours");
}

#[track_caller]
fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text, and not {value}"))
}

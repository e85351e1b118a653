//! The product: built from this workspace, and run against the control plane.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fmt, thread};

use controlplane::{ControlPlane, spawn_tied, spawn_tied_group};

use crate::ending;
use crate::kinds::Kinds;

/// Builds the binary as `cargo build` does, beside this one. Cargo says on stderr how far it is.
pub fn build(root: &Path) -> Result<PathBuf, String> {
    let folder = folder()?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked", "--bin", "syncwright"]).current_dir(root).stdin(Stdio::null());
    // What `cargo run` says of this package would make build scripts run again, and what depends on them.
    for (name, _) in env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            cargo.env_remove(name);
        }
    }
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let status = spawn_tied_group(cargo).and_then(|mut cargo| cargo.wait());
    match status.map_err(|error| format!("running cargo: {error}"))? {
        status if status.success() => Ok(folder.join("syncwright")),
        _ => Err("cargo build did not succeed".to_owned()),
    }
}

/// Where cargo has put this binary and puts the product.
fn folder() -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| format!("asking for the path of this program: {error}"))?;
    Ok(this.parent().expect("a program lies in a folder").to_owned())
}

/// Where the controller keeps the certificate with which it answers the API server.
const SECRET: &str = "default/syncwright-webhook";

pub struct Controller {
    arguments: Vec<String>,
    address: String,
    log: PathBuf,
}

impl Controller {
    /// In a control plane of the demo's own it also converts objects, for which another one could hardly reach it.
    pub fn start(
        plane: &ControlPlane,
        kinds: &Kinds,
        program: &Path,
        root: &Path,
    ) -> Result<Controller, String> {
        let log = folder()?.join("demo.log");
        let address = address(8090)?;
        let mut arguments =
            vec!["run", "--controllers", "controllers.yaml", "--hooks", "hooks", "--listen", &address];
        let webhooks = address_of_webhooks(plane, kinds)?;
        if let Some(webhooks) = &webhooks {
            arguments.extend(["--webhook-listen", webhooks, "--webhook-host", "127.0.0.1"]);
            arguments.extend(["--webhook-secret", SECRET]);
        }
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let file = File::create(&log).map_err(|error| format!("creating {}: {error}", log.display()))?;
        let also = file.try_clone().map_err(|error| format!("creating {}: {error}", log.display()))?;
        let mut command = Command::new(program);
        command.args(&arguments).current_dir(root).env("KUBECONFIG", plane.kubeconfig());
        command.stdin(Stdio::null()).stdout(file).stderr(also);
        let child =
            spawn_tied(command).map_err(|error| format!("starting {}: {error}", program.display()))?;
        *ending::controller() = Some(child);
        Ok(Controller { arguments, address, log })
    }

    /// An error that shows its log if it has ended.
    pub fn check(&self) -> Result<(), String> {
        match ending::controller().as_mut().map(|child| child.try_wait()) {
            Some(Ok(Some(status))) => Err(format!("syncwright ended ({status})\n{}", self.last_lines())),
            _ => Ok(()),
        }
    }

    /// Waits until it ends, which it only does when something is wrong.
    pub fn wait(&self) -> String {
        loop {
            if let Err(ended) = self.check() {
                return ended;
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn last_lines(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        format!(
            "the last lines of {}:\n{}",
            self.log.display(),
            lines[lines.len().saturating_sub(20)..].join("\n")
        )
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn log(&self) -> &Path {
        &self.log
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "syncwright {}", self.arguments.join(" "))
    }
}

/// Where the API server is answered, which it is told of.
fn address_of_webhooks(plane: &ControlPlane, kinds: &Kinds) -> Result<Option<String>, String> {
    if plane.is_existing() {
        return Ok(None);
    }
    let address = address(9443)?;
    kinds.convert_at(plane, &address, SECRET)?;
    Ok(Some(address))
}

/// The port that the documentation names, or any other where somebody has it.
fn address(port: u16) -> Result<String, String> {
    let listener = TcpListener::bind(("127.0.0.1", port)).or_else(|_| TcpListener::bind("127.0.0.1:0"));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.to_string()).map_err(|error| format!("no free port on 127.0.0.1: {error}"))
}

/// Writes a script `kubectl` for this control plane, for people who have none on their PATH.
pub fn write_kubectl(plane: &ControlPlane, namespace: &str, root: &Path) -> Result<PathBuf, String> {
    let path = folder()?.join("kubectl");
    let kubectl = plane.kubectl();
    let kubeconfig = plane.kubeconfig().display();
    let program = kubectl.get_program().display();
    let script =
        format!("#!/bin/sh\nKUBECONFIG='{kubeconfig}' exec '{program}' --namespace '{namespace}' \"$@\"\n");
    let written =
        fs::write(&path, script).and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("writing {}: {error}", path.display()))?;
    Ok(path.strip_prefix(root).map(Path::to_owned).unwrap_or(path))
}

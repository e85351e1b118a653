//! The programs of a control plane, and Helm: taken from `KUBEBUILDER_ASSETS`, or built once from Go modules and kept.

use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Doing, Error};
use crate::{folder, process, say};

const KUBERNETES: &str = "1.36.3";
const GO: (u32, u32) = (1, 26);

/// A Go module that holds no code: what it names as tools is built.
struct Module {
    /// What is built, in words.
    makes: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    linker_flags: fn() -> String,
}

const CONTROL_PLANE: Module = Module {
    makes: "the control plane",
    go_mod: include_str!("../go/go.mod"),
    go_sum: include_str!("../go/go.sum"),
    linker_flags: control_plane_flags,
};

/// A module of its own, since Helm's Kubernetes libraries are newer ones.
const HELM: Module = Module {
    makes: "Helm",
    go_mod: include_str!("../helm/go.mod"),
    go_sum: include_str!("../helm/go.sum"),
    linker_flags: helm_flags,
};

/// How often a long step says how far it is.
const PROGRESS: Duration = Duration::from_secs(5);

/// Where each program lies.
pub(crate) struct Programs {
    pub(crate) etcd: PathBuf,
    pub(crate) api_server: PathBuf,
    pub(crate) controller_manager: PathBuf,
    pub(crate) scheduler: PathBuf,
    pub(crate) kwok: PathBuf,
    pub(crate) kubectl: PathBuf,
}

/// A program's name as envtest knows it, the package it is built from, and the name `go build` gives it.
struct Source {
    name: &'static str,
    package: &'static str,
    built: &'static str,
}

const SOURCES: [Source; 6] = [
    Source { name: "etcd", package: "go.etcd.io/etcd/server/v3", built: "server" },
    Source {
        name: "kube-apiserver",
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
        built: "kube-apiserver",
    },
    Source {
        name: "kube-controller-manager",
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
        built: "kube-controller-manager",
    },
    Source {
        name: "kube-scheduler",
        package: "k8s.io/kubernetes/cmd/kube-scheduler",
        built: "kube-scheduler",
    },
    Source { name: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok", built: "kwok" },
    Source { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl", built: "kubectl" },
];

const HELM_SOURCE: Source = Source { name: "helm", package: "helm.sh/helm/v3/cmd/helm", built: "helm" };

impl Programs {
    pub(crate) fn obtain() -> Result<Programs, Error> {
        let assets = assets();
        let missing =
            SOURCES.iter().filter(|source| given(assets.as_deref(), source).is_none()).collect::<Vec<_>>();
        let built = if missing.is_empty() { PathBuf::new() } else { build_once(&CONTROL_PLANE, &missing)? };
        let path = |name: &str| {
            let source =
                SOURCES.iter().find(|source| source.name == name).expect("the table names every program");
            given(assets.as_deref(), source).unwrap_or_else(|| built.join(source.built))
        };
        Ok(Programs {
            etcd: path("etcd"),
            api_server: path("kube-apiserver"),
            controller_manager: path("kube-controller-manager"),
            scheduler: path("kube-scheduler"),
            kwok: path("kwok"),
            kubectl: path("kubectl"),
        })
    }
}

/// kubectl alone, for a cluster that exists: also the one on PATH will do.
pub(crate) fn kubectl() -> Result<PathBuf, Error> {
    let source = SOURCES.iter().find(|source| source.name == "kubectl").expect("the table names kubectl");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.is_file());
    match given(assets().as_deref(), source).or(on_path) {
        Some(kubectl) => Ok(kubectl),
        None => Ok(build_once(&CONTROL_PLANE, &[source])?.join(source.built)),
    }
}

/// Helm in the version that the tests of the chart are written for. The first call builds it, in a minute or two.
pub fn helm() -> Result<PathBuf, Error> {
    match given(assets().as_deref(), &HELM_SOURCE) {
        Some(helm) => Ok(helm),
        None => Ok(build_once(&HELM, &[&HELM_SOURCE])?.join(HELM_SOURCE.built)),
    }
}

fn assets() -> Option<PathBuf> {
    std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from).filter(|folder| !folder.as_os_str().is_empty())
}

fn given(assets: Option<&Path>, source: &Source) -> Option<PathBuf> {
    assets.map(|folder| folder.join(source.name)).filter(|program| program.is_file())
}

/// The folder with the programs of `sources`, built by the first process that needs them.
fn build_once(of: &Module, sources: &[&Source]) -> Result<PathBuf, Error> {
    let cache = folder::cache()?;
    let done = cache.join(fingerprint(of, sources));
    if done.is_dir() {
        return Ok(done);
    }
    let _building = wait_for_lock(&cache.join("build.lock"))?;
    if done.is_dir() {
        return Ok(done);
    }
    // An interrupted build is never taken for a good one: the folder gets its name when it is complete.
    let unfinished = cache.join("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(unfinished.join("module"))
        .doing(|| format!("making the folder {}", unfinished.display()))?;
    build(of, sources, &unfinished)?;
    fs::rename(&unfinished, &done).doing(|| format!("naming the finished build {}", done.display()))?;
    Ok(done)
}

/// What the programs are made from: other versions or flags lie in another folder.
fn fingerprint(of: &Module, sources: &[&Source]) -> String {
    let mut text = format!("{}{}{}", of.go_mod, of.go_sum, (of.linker_flags)());
    sources.iter().for_each(|source| text.push_str(source.package));
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn wait_for_lock(path: &Path) -> Result<File, Error> {
    let file = File::create(path).doing(|| format!("opening {}", path.display()))?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        say("waiting for another process that builds from Go modules");
        file.lock().doing(|| format!("locking {}", path.display()))?;
    }
    Ok(file)
}

fn build(of: &Module, sources: &[&Source], into: &Path) -> Result<(), Error> {
    let module = into.join("module");
    for (name, content) in [("go.mod", of.go_mod), ("go.sum", of.go_sum)] {
        fs::write(module.join(name), content).doing(|| format!("writing {name}"))?;
    }
    check_go(&module)?;
    let packages: Vec<&str> = sources.iter().map(|source| source.package).collect();
    let names: Vec<&str> = sources.iter().map(|source| source.name).collect();
    say(&format!("building {} from Go modules, once: {}", of.makes, names.join(", ")));
    let needed = download(of, &module, &packages)?;
    let mut command = go(&module);
    command.args([
        "build",
        "-v",
        "-mod=readonly",
        "-buildvcs=false",
        "-trimpath",
        "-ldflags",
        &(of.linker_flags)(),
        "-o",
    ]);
    command.arg(format!("{}/", into.display())).args(&packages);
    let compiled = |lines: usize| format!("compiled {lines} of at most {needed} packages");
    run(command, &format!("building {}", of.makes), compiled).map(|_| ())?;
    fs::remove_dir_all(&module).doing(|| format!("removing {}", module.display()))
}

/// Downloads the modules and counts the packages to compile. A package compiled before is counted and not compiled.
fn download(of: &Module, module: &Path, packages: &[&str]) -> Result<usize, Error> {
    let mut command = go(module);
    command.args(["list", "-mod=readonly", "-deps"]).args(packages);
    let step = format!("downloading the Go modules of {}", of.makes);
    let list = run(command, &step, |lines| format!("downloaded {lines} modules"))?;
    Ok(list.lines().count())
}

/// kubectl refuses to work without a version of its own that it can parse.
fn control_plane_flags() -> String {
    let (major, minor) = kubernetes_version();
    let set = |name: &str, value: &str| format!(" -X k8s.io/component-base/version.{name}={value}");
    let version = set("gitVersion", &format!("v{KUBERNETES}"));
    format!("-s -w{version}{}{}", set("gitMajor", major), set("gitMinor", minor))
}

/// Helm takes the cluster that charts are rendered for without one to be of this version.
fn helm_flags() -> String {
    let (major, minor) = kubernetes_version();
    let set = |package: &str| {
        let variable = format!("helm.sh/helm/v3/pkg/{package}.k8sVersion");
        format!(" -X {variable}Major={major} -X {variable}Minor={minor}")
    };
    format!("-s -w{}{}", set("chartutil"), set("lint/rules"))
}

fn kubernetes_version() -> (&'static str, &'static str) {
    let (major_minor, _) = KUBERNETES.rsplit_once('.').expect("a version has three parts");
    major_minor.split_once('.').expect("a version has three parts")
}

fn go(module: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(module).env("CGO_ENABLED", "0").env("GOWORK", "off").stdin(Stdio::null());
    // An older Go (1.21 or newer) fetches the one that go.mod asks for, as it fetches modules.
    if std::env::var_os("GOTOOLCHAIN").is_none() {
        command.env("GOTOOLCHAIN", "auto");
    }
    command
}

fn check_go(module: &Path) -> Result<(), Error> {
    let instead =
        "or name existing servers with KUBEBUILDER_ASSETS, or an existing cluster with SYNCWRIGHT_KUBECONFIG";
    let (major, minor) = GO;
    let want = format!(
        "the tests' programs are built from Go modules: install Go {major}.{minor} or newer, {instead}"
    );
    let answer = go(module).args(["env", "GOVERSION"]).output();
    let answer = answer.map_err(|error| Error::new(format!("`go` cannot be run ({error}); {want}")))?;
    let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    match parse_go_version(&version) {
        Some(found) if found >= GO => Ok(()),
        Some(_) => Err(Error::new(format!("Go is too old: found {version}; {want}"))),
        None => Err(Error::with_output(
            format!("`go` does not work here; {want}"),
            &String::from_utf8_lossy(&answer.stderr),
        )),
    }
}

fn parse_go_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix("go")?.split(['.', '-', 'r', 'b', ' ']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Runs a step of the build, says every few seconds how far it is, and answers its standard output.
fn run(mut command: Command, step: &str, progress: impl Fn(usize) -> String) -> Result<String, Error> {
    let started = Instant::now();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process::spawn_tied_group(command).doing(|| step.to_owned())?;
    let mut stdout = child.stdout.take().expect("standard output is piped");
    let stderr = BufReader::new(child.stderr.take().expect("standard error is piped"));
    let answer = thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        text
    });
    let (lines, inbox) = channel();
    thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let mut log = Vec::new();
    let mut next = started + PROGRESS;
    loop {
        match inbox.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(line) => log.push(line),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                say(&format!("{step}: {}, {} s", progress(log.len()), started.elapsed().as_secs()));
                next = Instant::now() + PROGRESS;
            }
        }
    }
    let status = child.wait().doing(|| step.to_owned())?;
    match status.success() {
        true => Ok(answer.join().expect("reading a pipe does not panic")),
        false => Err(Error::with_output(format!("{step} did not succeed ({status})"), &log.join("\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_go_version;

    #[test]
    fn go_version_is_read_from_what_go_prints() {
        assert_eq!(parse_go_version("go1.26.8"), Some((1, 26)));
        assert_eq!(parse_go_version("go1.27rc1"), Some((1, 27)));
        assert_eq!(parse_go_version("go1.9"), Some((1, 9)));
        assert_eq!(parse_go_version("devel +abc"), None);
    }
}

//! Starting the parts of a control plane, each tied to this process, with its log in the control plane's folder.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

use crate::client;
use crate::error::{Doing, Error};
use crate::folder::{Folder, random_hex};
use crate::process::{end, spawn_tied};
use crate::programs::Programs;
use crate::wait::try_until;

/// The API server answers after two to three seconds on a quiet machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

const CERTIFICATE: &str = "certificates/apiserver.crt";

/// Requests of service accounts are written down, those of the control plane itself are not.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: Metadata, userGroups: [\"system:serviceaccounts\"]}
- {level: None}
";

/// A running part. It is killed when it is dropped.
pub(crate) struct Component {
    pub(crate) name: &'static str,
    /// None while it is away on purpose.
    child: Option<Child>,
    /// The program, and its arguments.
    words: Vec<OsString>,
}

impl Drop for Component {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Component {
    pub(crate) fn start(name: &'static str, mut command: Command, folder: &Path) -> Result<Component, Error> {
        let log = File::create(log_of(folder, name)).doing(|| format!("creating the log of {name}"))?;
        let also = log.try_clone().doing(|| format!("creating the log of {name}"))?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words = words.map(ToOwned::to_owned).collect();
        command.current_dir(folder).stdin(Stdio::null()).stdout(log).stderr(also);
        let child = spawn_tied(command).doing(|| format!("starting {name}"))?;
        Ok(Component { name, child: Some(child), words })
    }

    /// SIGKILL: it finishes nothing.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            end(&mut child);
        }
    }

    /// Starts one that was killed as it was started before. Its log goes on.
    pub(crate) fn start_again(&mut self, folder: &Path) -> Result<(), Error> {
        let opening = || format!("opening the log of {}", self.name);
        let log = File::options().append(true).open(log_of(folder, self.name)).doing(opening)?;
        let also = log.try_clone().doing(opening)?;
        let mut command = component(Path::new(&self.words[0]));
        command.args(&self.words[1..]).current_dir(folder).stdin(Stdio::null()).stdout(log).stderr(also);
        self.child = Some(spawn_tied(command).doing(|| format!("starting {}", self.name))?);
        Ok(())
    }

    /// An error with the log's last lines, if it has ended.
    pub(crate) fn check(&mut self, folder: &Path) -> Result<(), Error> {
        match self.child.as_mut().map_or(Ok(None), Child::try_wait) {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                Err(Error::with_output(format!("{} ended ({status})", self.name), &self.log(folder)))
            }
            Err(error) => Err(Error::new(format!("asking for the state of {}: {error}", self.name))),
        }
    }

    /// Another process may have taken the port between our look and the server's start.
    pub(crate) fn lost_its_port(&mut self, folder: &Path) -> bool {
        self.check(folder).is_err() && self.log(folder).contains("address already in use")
    }

    fn log(&self, folder: &Path) -> String {
        fs::read_to_string(log_of(folder, self.name)).unwrap_or_default()
    }
}

fn log_of(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join(format!("{name}.log"))
}

/// Waits until `look` succeeds, and no longer than all `components` live.
pub(crate) fn wait_for(
    what: &str,
    patience: Duration,
    components: &mut [Component],
    folder: &Path,
    mut look: impl FnMut() -> Result<(), String>,
) -> Result<(), Error> {
    let step = || match components.iter_mut().try_for_each(|component| component.check(folder)) {
        Err(ended) => Ok(Err(ended)),
        Ok(()) => look().map(Ok),
    };
    let waited = try_until(patience, step);
    waited.unwrap_or_else(|seen| {
        Err(Error::new(format!("waited {} s in vain for {what}; last seen: {seen}", patience.as_secs())))
    })
}

/// etcd, the API server, and the proxy through which it is asked.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) components: Vec<Component>,
}

impl Server {
    /// Starts them on free ports, with other ones where somebody else was quicker, and waits until they are ready.
    pub(crate) fn start(programs: &Programs, folder: &Folder, flags: &[String]) -> Result<Server, Error> {
        write_keys(folder)?;
        folder.write("audit.yaml", AUDIT_POLICY)?;
        let token = random_hex(16);
        folder.write("tokens.csv", &format!("{token},admin,admin,\"system:masters\"\n"))?;
        let mut tries = 5;
        loop {
            tries -= 1;
            let mut server = Server::start_once(programs, folder.path(), flags)?;
            match server.wait_ready(programs, folder, &token) {
                Ok(()) => return Ok(server),
                Err(error) if tries == 0 || !server.lost_its_ports(folder.path()) => return Err(error),
                Err(_) => {}
            }
        }
    }

    fn start_once(programs: &Programs, folder: &Path, flags: &[String]) -> Result<Server, Error> {
        let _ = fs::remove_dir_all(folder.join("etcd"));
        let _ = fs::remove_dir_all(folder.join("certificates"));
        let _ = fs::remove_file(folder.join("proxy.sock"));
        let [client, peer, secure] = free_ports()?;
        let etcd = Component::start("etcd", etcd(&programs.etcd, client, peer), folder)?;
        let api = api_server(&programs.api_server, client, secure, flags);
        let api = Component::start("kube-apiserver", api, folder)?;
        Ok(Server { url: format!("https://127.0.0.1:{secure}"), components: vec![etcd, api] })
    }

    fn wait_ready(&mut self, programs: &Programs, folder: &Folder, token: &str) -> Result<(), Error> {
        let certificate = folder.path().join(CERTIFICATE);
        wait_for("the API server's certificate", PATIENCE, &mut self.components, folder.path(), || {
            fs::metadata(&certificate).map(|_| ()).map_err(|error| error.to_string())
        })?;
        let kubeconfig = folder.write("kubeconfig", &kubeconfig(&self.url, folder.path(), token)?)?;
        let proxy = proxy(&programs.kubectl, &kubeconfig);
        self.components.push(Component::start("kubectl-proxy", proxy, folder.path())?);
        wait_for_readyz(PATIENCE, &mut self.components, folder.path())
    }

    fn lost_its_ports(&mut self, folder: &Path) -> bool {
        self.components.iter_mut().any(|component| component.lost_its_port(folder))
    }
}

pub(crate) fn wait_for_readyz(
    patience: Duration,
    components: &mut [Component],
    folder: &Path,
) -> Result<(), Error> {
    wait_for("/readyz", patience, components, folder, || client::look(folder, "/readyz", |_| true))
}

/// Below the range from which the system takes the ports of outgoing connections.
fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    // All are held at once, so that they differ.
    let mut held = Vec::new();
    for _ in 0..200 {
        let number = u16::from_str_radix(&random_hex(2), 16).expect("two bytes in hexadecimal");
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", 12_000 + number % 18_000)) {
            held.push(listener.local_addr().doing(|| "asking for a port".into())?.port());
            if let Ok(ports) = held.clone().try_into() {
                return Ok(ports);
            }
        }
    }
    Err(Error::new("no free port on 127.0.0.1 between 12000 and 30000"))
}

fn etcd(program: &Path, client: u16, peer: u16) -> Command {
    let mut command = component(program);
    command.args(["--name=etcd", "--data-dir=etcd", "--unsafe-no-fsync", "--quota-backend-bytes=4294967296"]);
    command.args([
        "--auto-compaction-mode=revision",
        "--auto-compaction-retention=10000",
        "--log-level=warn",
    ]);
    command.arg(format!("--listen-client-urls=http://127.0.0.1:{client}"));
    command.arg(format!("--advertise-client-urls=http://127.0.0.1:{client}"));
    command.arg(format!("--listen-peer-urls=http://127.0.0.1:{peer}"));
    command.arg(format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"));
    command.arg(format!("--initial-cluster=etcd=http://127.0.0.1:{peer}"));
    command
}

fn api_server(program: &Path, etcd: u16, secure: u16, flags: &[String]) -> Command {
    let mut command = component(program);
    command.arg(format!("--etcd-servers=http://127.0.0.1:{etcd}")).arg(format!("--secure-port={secure}"));
    command.args(["--bind-address=127.0.0.1", "--cert-dir=certificates", "--endpoint-reconciler-type=none"]);
    command.args([
        "--service-cluster-ip-range=10.96.0.0/12",
        "--service-account-issuer=https://kubernetes.default.svc",
    ]);
    command.args([
        "--service-account-key-file=service-account.pub",
        "--service-account-signing-key-file=service-account.key",
    ]);
    command.args([
        "--authorization-mode=RBAC",
        "--token-auth-file=tokens.csv",
        "--disable-admission-plugins=ServiceAccount",
    ]);
    command.args([
        "--audit-policy-file=audit.yaml",
        "--audit-log-path=audit.log",
        "--audit-log-maxsize=100000",
    ]);
    command.args(["--profiling=false", "--allow-privileged=true"]).args(flags);
    command
}

/// Generous limits for its client, so that what tests wait for is not its own queue.
pub(crate) fn controller_manager(programs: &Programs) -> Command {
    let mut command = component(&programs.controller_manager);
    command.args(["--kubeconfig=kubeconfig", "--leader-elect=false", "--secure-port=0", "--profiling=false"]);
    command.args(["--kube-api-qps=500", "--kube-api-burst=1000", "--use-service-account-credentials=false"]);
    command.arg("--service-account-private-key-file=service-account.key");
    command
}

pub(crate) fn scheduler(programs: &Programs) -> Command {
    let mut command = component(&programs.scheduler);
    command.args(["--kubeconfig=kubeconfig", "--leader-elect=false", "--secure-port=0", "--profiling=false"]);
    command.args(["--kube-api-qps=500", "--kube-api-burst=1000"]);
    command
}

pub(crate) fn kwok(programs: &Programs) -> Command {
    let mut command = component(&programs.kwok);
    command.args(["--kubeconfig=kubeconfig", "--config=stages.yaml", "--manage-all-nodes"]);
    command.arg("--node-lease-duration-seconds=40");
    command
}

/// `kubectl proxy` for the user of `kubeconfig`; what it cannot reach yet it answers with 502.
pub(crate) fn proxy(kubectl: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(kubectl);
    command.arg("--kubeconfig").arg(kubeconfig).args(["proxy", "--unix-socket=proxy.sock"]);
    command
}

/// Nothing of the caller's environment or home changes what a component does.
fn component(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", ".").env("TMPDIR", ".");
    command
}

/// The key that signs the tokens of service accounts, and the one that checks them.
fn write_keys(folder: &Folder) -> Result<(), Error> {
    let random = ring::rand::SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let private = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("the system gives random numbers");
    let pair =
        EcdsaKeyPair::from_pkcs8(algorithm, private.as_ref(), &random).expect("a key just made is a key");
    let public = [P256_PUBLIC_KEY_HEAD, pair.public_key().as_ref()].concat();
    folder.write("service-account.key", &pem("PRIVATE KEY", private.as_ref()))?;
    folder.write("service-account.pub", &pem("PUBLIC KEY", &public)).map(|_| ())
}

/// What stands before the point of a P-256 key in a SubjectPublicKeyInfo: both lengths and both object identifiers.
const P256_PUBLIC_KEY_HEAD: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", lines.collect::<String>())
}

/// A kubeconfig that trusts the API server's own certificate.
pub(crate) fn kubeconfig(url: &str, folder: &Path, token: &str) -> Result<String, Error> {
    let certificate = folder.join(CERTIFICATE);
    let certificate = fs::read(&certificate).doing(|| format!("reading {}", certificate.display()))?;
    let authority = BASE64_STANDARD.encode(certificate);
    Ok(format!(
        "apiVersion: v1
kind: Config
clusters:
- name: control-plane
  cluster: {{server: \"{url}\", certificate-authority-data: {authority}}}
users:
- name: user
  user: {{token: \"{token}\"}}
contexts:
- name: control-plane
  context: {{cluster: control-plane, user: user}}
current-context: control-plane
"
    ))
}

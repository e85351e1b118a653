//! The built binary, `syncwright run`, for one test: of the suite on a real control plane, and of that on a fake one.
#![allow(dead_code, reason = "each suite calls what it needs")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use controlplane::{spawn_tied, wait_until};

/// A running controller. It is killed when it is dropped, and its log is shown if that is because the test failed.
pub struct Controller {
    child: Child,
    log: PathBuf,
}

impl Controller {
    /// Starts `syncwright run` in `folder`, with nothing in its environment that was meant for somebody else. Many
    /// controllers run at once here, so that its pages for machines are nowhere, unless the arguments say otherwise.
    pub fn start(folder: &Path, log: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Controller {
        let nowhere = [("SYNCWRIGHT_METRICS_ADDRESS", "0"), ("SYNCWRIGHT_HEALTH_PROBE_BIND_ADDRESS", "0")];
        Controller::start_in(folder, log, arguments, &[&nowhere, environment].concat())
    }

    /// The same, where its pages are where they usually are.
    pub fn start_with_usual_ports(folder: &Path, log: &str, arguments: &[&str]) -> Controller {
        Controller::start_in(folder, log, arguments, &[])
    }

    fn start_in(folder: &Path, log: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Controller {
        let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
        command.arg("run").args(arguments).envs(variables.iter().copied());
        Controller::start_as(command, folder, log)
    }

    /// Starts what the command says in `folder`. What it doesn't say of the environment is not the machine's either.
    pub fn start_as(mut command: Command, folder: &Path, log: &str) -> Controller {
        let log = folder.join(log);
        let file = File::create(&log).expect("the test's folder is writable");
        command.current_dir(folder).stdin(Stdio::null());
        for name in
            ["KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"]
        {
            if command.get_envs().all(|(known, _)| known != name) {
                command.env_remove(name);
            }
        }
        command.stdout(Stdio::null()).stderr(file);
        Controller { child: spawn_tied(command).expect("the binary was built for this test"), log }
    }

    /// SIGKILL: nothing is finished.
    pub fn kill(mut self) {
        self.end();
    }

    /// SIGTERM, and waits for the end.
    pub fn terminate(self) -> ExitStatus {
        self.ask_to_end();
        self.wait()
    }

    /// Waits for the end.
    #[track_caller]
    pub fn wait(mut self) -> ExitStatus {
        wait_until(Duration::from_secs(40), "the controller has ended", || match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            other => Err(format!("{other:?}")),
        })
    }

    /// Sends SIGTERM without waiting.
    pub fn ask_to_end(&self) {
        self.signal(libc::SIGTERM);
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a plain system call; the child is not yet waited for, so its id is still its own.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// A field of what the kernel says of the process, in KiB: `VmRSS`, `VmHWM`.
    pub fn memory(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or_else(|| panic!("no `{field}` in: {status}"))
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(80)..];
            println!("--- {} ---\n{}\n---", self.log.display(), last.join("\n"));
        }
    }
}

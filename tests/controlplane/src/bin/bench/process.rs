//! The measured process: its memory as the kernel counts it, and its own metrics.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use controlplane::{spawn_tied, wait_until};

/// A controller that is measured. It is killed when it is dropped.
pub struct Controller {
    child: Child,
    metrics: String,
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Memory in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The most that was ever resident.
    pub peak: u64,
    pub resident: u64,
    /// What is resident without the pages of files, of which the program is the largest.
    pub anonymous: u64,
}

impl Controller {
    /// Starts it in `folder` with its log there, and waits until it says where its metrics are.
    pub fn start(program: &Path, folder: &Path, arguments: &[&str]) -> Result<Controller, String> {
        let log = folder.join("bench.log");
        let file = File::create(&log).map_err(|error| format!("creating {}: {error}", log.display()))?;
        let mut command = Command::new(program);
        command.args(["run", "--metrics-address", "127.0.0.1:0", "--health-probe-bind-address", "0"]);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let child =
            spawn_tied(command).map_err(|error| format!("starting {}: {error}", program.display()))?;
        let metrics = wait_until(Duration::from_secs(20), "metrics are served", || address(&log));
        Ok(Controller { child, metrics })
    }

    pub fn memory(&self) -> Memory {
        let path = PathBuf::from(format!("/proc/{}/status", self.child.id()));
        let status = fs::read_to_string(path).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        Memory { peak: field("VmHWM:"), resident: field("VmRSS:"), anonymous: field("RssAnon:") }
    }

    /// The sum of a metric over all its labels.
    pub fn sum(&self, metric: &str) -> u64 {
        let text = page(&self.metrics).unwrap_or_default();
        let samples = text.lines().filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            (name.split('{').next() == Some(metric)).then(|| value.parse::<f64>().ok())?
        });
        samples.sum::<f64>() as u64
    }
}

fn address(log: &Path) -> Result<String, String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let line = text.lines().find(|line| line.contains("serving metrics"));
    let port = line.and_then(|line| line.split("127.0.0.1:").nth(1)).ok_or_else(|| text.clone())?;
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    Ok(format!("127.0.0.1:{port}"))
}

fn page(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

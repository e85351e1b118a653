//! How long it takes from the start of the program to its first answer, beside the start of a program that does nothing.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use controlplane::{ControlPlane, Options, spawn_tied};

use crate::serve::{PATH, Server, request};
use crate::{load, root};

/// A program that is not ready by then is not going to be.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two questions whether it is ready.
const PAUSE: Duration = Duration::from_millis(1);

pub fn measure(program: &Path, starts: usize) -> Result<(), String> {
    let size = fs::metadata(program).map_err(|error| format!("{}: {error}", program.display()))?.len();
    println!("The program has {:.1} MB.\n", size as f64 / 1e6);
    let body = {
        let server = Server::start(program)?;
        request(&server.address).map_err(|error| format!("{}: {error}", server.address))?
    };
    eprintln!("bench: a fresh API server");
    let plane = ControlPlane::start(Options { bare: true, ..Options::default() })
        .map_err(|error| error.to_string())?;
    for operator in ["backupschedule", "postgresqlcluster", "mysql"] {
        let path = root().join("hooks").join(operator).join("crd.yaml");
        let crd = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        plane.apply("default", &crd);
    }
    println!("| from the start to | median, ms | least, ms | most, ms |");
    println!("| --- | --- | --- | --- |");
    print("the end of `true`", starts, || ended(Path::new("true"), &[]))?;
    print("the end of `syncwright --version`", starts, || ended(program, &["--version"]))?;
    print("the first sync answered by `syncwright serve`", starts, || answered(program, &body))?;
    print("`/readyz` of `syncwright run`", starts, || ready(program, &plane))
}

/// The programs that were started are ended outside of the time.
fn print<T>(what: &str, starts: usize, start: impl Fn() -> Result<T, String>) -> Result<(), String> {
    let mut times = Vec::with_capacity(starts);
    for _ in 0..starts {
        let began = Instant::now();
        let _running = start()?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_unstable_by(f64::total_cmp);
    let [least, .., most] = times[..] else { return Err("two starts at least are needed".into()) };
    println!("| {what} | {:.1} | {least:.1} | {most:.1} |", times[starts / 2]);
    Ok(())
}

fn ended(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("starting {}: {error}", program.display()))?;
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn answered(program: &Path, body: &str) -> Result<Server, String> {
    let server = Server::start(program)?;
    load::ask(&server.address, PATH, body).map_err(|error| format!("{}: {error}", server.address))?;
    Ok(server)
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ready: definitions are read, caches are synced.
fn ready(program: &Path, plane: &ControlPlane) -> Result<Running, String> {
    let mut command = Command::new(program);
    command.args(["run", "--metrics-address", "0", "--health-probe-bind-address", "127.0.0.1:0"]);
    command.arg("--kubeconfig").arg(plane.kubeconfig());
    command
        .arg("--controllers")
        .arg(root().join("controllers.yaml"))
        .arg("--hooks")
        .arg(root().join("hooks"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = spawn_tied(command).map_err(|error| format!("starting {}: {error}", program.display()))?;
    let mut running = Running(child);
    let mut log = BufReader::new(running.0.stderr.take().expect("it is piped"));
    let mut told = String::new();
    let address = loop {
        let mut line = String::new();
        if log.read_line(&mut line).unwrap_or(0) == 0 {
            return Err(format!("it served no probes:\n{told}"));
        }
        if let Some((_, port)) = line.split_once("127.0.0.1:").filter(|_| line.contains("probes")) {
            let port: String = port.chars().take_while(char::is_ascii_digit).collect();
            break format!("127.0.0.1:{port}");
        }
        told.push_str(&line);
    };
    // Nobody else reads what it logs, and it is not to wait for that.
    thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    let deadline = Instant::now() + PATIENCE;
    while !is_ready(&address) {
        if Instant::now() > deadline {
            return Err(format!("it is not ready after {} s", PATIENCE.as_secs()));
        }
        thread::sleep(PAUSE);
    }
    Ok(running)
}

fn is_ready(address: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    ask().is_ok_and(|text| text.split(' ').nth(1) == Some("200"))
}

//! The program under test, on a free port, with a hooks folder of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use controlplane::{spawn_tied, wait_until};
use reqwest::blocking::{Client, RequestBuilder, Response};
use serde_json::Value;
use tempfile::TempDir;

use crate::protocol::check;

const START: Duration = Duration::from_secs(20);

pub struct Server {
    process: Child,
    pub address: String,
    pub client: Client,
    folder: TempDir,
    log: Arc<Mutex<Vec<Value>>>,
}

/// A status and the text that came with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub kind: String,
    pub body: String,
}

impl Server {
    pub fn start(files: &[(&str, &str)]) -> Server {
        Server::start_with(files, &[])
    }

    pub fn start_with(files: &[(&str, &str)], flags: &[&str]) -> Server {
        Server::start_in(folder_of(files), flags)
    }

    /// Serves the `hooks` of a folder that is there already.
    pub fn start_in(folder: TempDir, flags: &[&str]) -> Server {
        Server::start_by(Command::new(env!("CARGO_BIN_EXE_syncwright")), folder, flags)
    }

    /// Starts it with variables in its environment.
    #[cfg(not(feature = "otel"))]
    pub fn start_where(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
        command.envs(variables.iter().copied());
        Server::start_by(command, folder_of(files), &[])
    }

    /// Starts it with so many files and sockets at most, of which it cannot get more.
    pub fn start_with_files(files: &[(&str, &str)], flags: &[&str], at_most: usize) -> Server {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &format!("ulimit -n {at_most} && exec \"$0\" \"$@\""),
            env!("CARGO_BIN_EXE_syncwright"),
        ]);
        Server::start_by(command, folder_of(files), flags)
    }

    fn start_by(mut command: Command, folder: TempDir, flags: &[&str]) -> Server {
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--hooks"]);
        command.arg(folder.path().join("hooks")).args(flags).stderr(Stdio::piped());
        let mut process = spawn_tied(command).expect("the program starts");
        let log = Arc::new(Mutex::new(Vec::new()));
        let listening = follow(BufReader::new(process.stderr.take().expect("stderr is piped")), log.clone());
        let address = listening.recv_timeout(START).unwrap_or_else(|_| panic!("it never listened: {log:?}"));
        let client = Client::builder().no_proxy().build().expect("a client can be made");
        Server { process, address, client, folder, log }
    }

    pub fn hooks(&self) -> PathBuf {
        self.folder.path().join("hooks")
    }

    /// Writes as an editor does that keeps the file: truncates, then fills it.
    pub fn write(&self, path: &str, text: &str) {
        write(&self.hooks().join(path), text);
    }

    pub fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("http://{}{path}", self.address))
    }

    pub fn get(&self, path: &str) -> Reply {
        reply(self.client.get(format!("http://{}{path}", self.address)).send())
    }

    /// What a machine gets that posts JSON as Metacontroller does. An answer is one of the protocol.
    #[track_caller]
    pub fn call(&self, path: &str, request: &Value) -> Reply {
        let post = self.post(path).header("Content-Type", "application/json");
        let reply = reply(post.body(request.to_string()).send());
        if reply.status == 200 {
            let answer = serde_json::from_str(&reply.body).expect("an answer is JSON");
            check("answer", &as_called(path, request), &answer).unwrap_or_else(|fault| panic!("{fault}"));
        }
        reply
    }

    /// What a person gets that posts with `curl --data-binary @file`.
    pub fn curl(&self, path: &str, body: impl Into<Vec<u8>>) -> Reply {
        let post = self.post(path).header("User-Agent", "curl/8.14.1").header("Accept", "*/*");
        reply(post.header("Content-Type", "application/x-www-form-urlencoded").body(body.into()).send())
    }

    /// Waits for a line of the log with this message, and returns its fields.
    #[track_caller]
    pub fn logged(&self, message: &str) -> Value {
        self.logged_where(message, |_| true)
    }

    #[track_caller]
    pub fn logged_where(&self, message: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
        wait_until(Duration::from_secs(5), &format!("`{message}` is logged"), || {
            let lines = self.lines(message);
            lines.into_iter().find(&is_meant).ok_or_else(|| format!("{:#?}", self.log.lock().unwrap()))
        })
    }

    /// The fields of the lines with this message that the log has so far.
    pub fn lines(&self, message: &str) -> Vec<Value> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|line| line["message"] == message).cloned().collect()
    }

    pub fn terminate(&self) {
        // SAFETY: a plain system call; the process is not waited for yet, so its id is still its own.
        unsafe { libc::kill(self.process.id() as i32, libc::SIGTERM) };
    }

    /// The lines with this text, whoever wrote them.
    pub fn lines_with(&self, text: &str) -> Vec<String> {
        let log = self.log.lock().unwrap();
        log.iter().map(Value::to_string).filter(|line| line.contains(text)).collect()
    }

    /// CPU time used so far, in hundredths of a second.
    pub fn cpu(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).expect("it runs");
        let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
        [11, 12].into_iter().map(|place| fields[place].parse::<u64>().expect("a number")).sum()
    }

    /// Memory in use, in KiB.
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Waits for the end of a program that was told to stop.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.process.wait().expect("the program can be waited for").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The request of a test says only what the test is about; this one says what it is called for, by the strict version.
fn as_called(path: &str, request: &Value) -> Value {
    let call = path.rsplit('/').next().unwrap_or_default();
    let mut request = request.clone();
    match call {
        "customize" => request["finalizing"] = Value::Null,
        call => request["finalizing"] = Value::Bool(call == "finalize"),
    }
    request["controller"]["spec"]["hooks"][call]["version"] = "v2".into();
    request
}

fn folder_of(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    fs::create_dir(folder.path().join("hooks")).expect("it can hold a folder");
    for (path, text) in files {
        write(&folder.path().join("hooks").join(path), text);
    }
    folder
}

pub fn reply(response: reqwest::Result<Response>) -> Reply {
    let response = response.expect("the service answers");
    let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_string());
    Reply {
        status: response.status().as_u16(),
        kind: header("content-type").unwrap_or_default(),
        body: response.text().expect("the answer is text"),
    }
}

pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Collects the log and tells the address once it is there.
fn follow(log: impl BufRead + Send + 'static, lines: Arc<Mutex<Vec<Value>>>) -> Receiver<String> {
    let (sender, listening) = channel();
    std::thread::spawn(move || {
        for line in log.lines().map_while(Result::ok) {
            let line: Value = serde_json::from_str(&line).unwrap_or(Value::String(line));
            if let Some(address) = line["address"].as_str() {
                let _ = sender.send(address.to_string());
            }
            lines.lock().unwrap().push(line);
        }
    });
    listening
}

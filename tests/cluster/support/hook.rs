//! A hook that a test scripts: a small HTTP server in this process whose answer is a function of the request.
//!
//! It records every call. One server answers all of a definition's hooks, told apart by their path.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::protocol::check;

/// One call of a hook.
#[derive(Clone, Debug)]
pub struct Call {
    /// `sync` or `finalize`: the URL's path.
    pub hook: String,
    /// By their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub request: Value,
    pub at: Instant,
}

impl Call {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The parent, or a decorator's target.
    pub fn parent(&self) -> &Value {
        if self.request["object"].is_null() { &self.request["parent"] } else { &self.request["object"] }
    }

    pub fn parent_name(&self) -> &str {
        self.parent()["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub fn spec(&self) -> &Value {
        &self.parent()["spec"]
    }

    /// The observed children of a group such as `ConfigMap.v1`, by name.
    pub fn children(&self, group: &str) -> Vec<&str> {
        let group = self.request["children"][group].as_object();
        group.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }
}

impl Call {
    /// The related objects of a group such as `ConfigMap.v1`, by name.
    pub fn related(&self, group: &str) -> Vec<&str> {
        let group = self.request["related"][group].as_object();
        group.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }
}

/// What a script does about a call.
pub enum Reply {
    /// An answer of the protocol. One that is wrong on purpose is a `Text`.
    Answer(Value),
    Text(u16, String),
    /// With header lines, each with its end.
    Headed(u16, String, String),
    /// The answer with its ETag.
    Tagged(&'static str, Value),
    /// The answer, but only after this time.
    Late(Duration, Value),
    /// Nothing, until the caller gives up.
    Never,
    /// The connection ends without a byte.
    Close,
    /// The connection ends in the middle of this answer.
    Half(Value),
    /// 429, with the seconds after which to come back.
    Busy(u32),
}

impl From<Value> for Reply {
    fn from(answer: Value) -> Self {
        Reply::Answer(answer)
    }
}

type Script = Arc<dyn Fn(&Call) -> Reply + Send + Sync>;

/// A running hook server.
#[derive(Clone)]
pub struct Hook {
    address: String,
    desk: Arc<Desk>,
    /// The last of a hook's clones sees to it that no message was against the protocol.
    _inspector: Arc<Inspector>,
}

struct Inspector(Arc<Desk>);

impl Drop for Inspector {
    fn drop(&mut self) {
        let faults = self.0.faults.lock().unwrap();
        if !std::thread::panicking() {
            assert!(faults.is_empty(), "messages against the protocol:\n{}", faults.join("\n"));
        }
    }
}

struct Desk {
    script: Mutex<Script>,
    calls: Mutex<Vec<Call>>,
    connections: AtomicUsize,
    /// What the protocol's schema has to say of the messages.
    faults: Mutex<Vec<String>>,
    /// How new connections are secured, if they are.
    tls: Mutex<Option<Arc<ServerConfig>>>,
}

impl Desk {
    fn note(&self, checked: Result<(), String>) {
        self.faults.lock().unwrap().extend(checked.err());
    }
}

impl Hook {
    pub fn new<R: Into<Reply>>(script: impl Fn(&Call) -> R + Send + Sync + 'static) -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket").to_string();
        let script: Script = Arc::new(move |call| script(call).into());
        let desk = Arc::new(Desk {
            script: Mutex::new(script),
            calls: Mutex::default(),
            connections: AtomicUsize::new(0),
            faults: Mutex::default(),
            tls: Mutex::default(),
        });
        let hook = Hook { address, desk: desk.clone(), _inspector: Arc::new(Inspector(desk.clone())) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let desk = desk.clone();
                desk.connections.fetch_add(1, Ordering::Relaxed);
                let tls = desk.tls.lock().unwrap().clone();
                thread::spawn(move || match tls {
                    None => serve(stream, &desk),
                    Some(tls) => serve(secured(stream, tls), &desk),
                });
            }
        });
        hook
    }

    /// A hook that answers what the parent's spec says: `spec.children`, `spec.status`, `spec.resyncAfterSeconds`; on
    /// finalize it wants no children and is finalized when none is left.
    pub fn from_spec() -> Hook {
        Hook::new(from_spec)
    }

    pub fn url(&self, hook: &str) -> String {
        format!("http://{}/{hook}", self.address)
    }

    /// Speaks TLS on new connections from now on, for the name `localhost`.
    pub fn secure(&self, tls: ServerConfig) {
        *self.desk.tls.lock().unwrap() = Some(Arc::new(tls));
    }

    pub fn secure_url(&self, hook: &str) -> String {
        format!("https://localhost:{}/{hook}", self.port())
    }

    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().expect("an address has a port")
    }

    /// Answers otherwise from now on.
    pub fn set<R: Into<Reply>>(&self, script: impl Fn(&Call) -> R + Send + Sync + 'static) {
        *self.desk.script.lock().unwrap() = Arc::new(move |call| script(call).into());
    }

    pub fn calls(&self) -> Vec<Call> {
        self.desk.calls.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.desk.calls.lock().unwrap().len()
    }

    /// How many connections were opened to it.
    pub fn connections(&self) -> usize {
        self.desk.connections.load(Ordering::Relaxed)
    }

    /// The calls for one parent.
    pub fn calls_for(&self, parent: &str) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.parent_name() == parent).collect()
    }

    /// How often this one hook was called.
    pub fn count_of(&self, hook: &str) -> usize {
        self.calls().iter().filter(|call| call.hook == hook).count()
    }
}

pub fn from_spec(call: &Call) -> Value {
    if call.hook == "finalize" {
        let groups = call.request["children"].as_object().expect("a request has children");
        let left: usize = groups.values().filter_map(Value::as_object).map(|group| group.len()).sum();
        return json!({"children": [], "finalized": left == 0});
    }
    let spec = call.spec();
    let mut answer = json!({"children": spec["children"], "status": spec["status"]});
    if answer["children"].is_null() {
        answer["children"] = json!([]);
    }
    if !spec["resyncAfterSeconds"].is_null() {
        answer["resyncAfterSeconds"] = spec["resyncAfterSeconds"].clone();
    }
    answer
}

fn secured(stream: TcpStream, tls: Arc<ServerConfig>) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(tls).expect("the configuration is whole"), stream)
}

/// Answers the requests of one connection, one after the other.
fn serve(stream: impl Read + Write, desk: &Desk) {
    let mut stream = BufReader::new(stream);
    while let Some((hook, headers, body)) = read_request(&mut stream) {
        let request = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let call = Call { hook, headers, request, at: Instant::now() };
        desk.note(check("request", &call.request, &call.request));
        desk.calls.lock().unwrap().push(call.clone());
        let script = desk.script.lock().unwrap().clone();
        let reply = script(&call);
        if let Reply::Answer(answer) | Reply::Tagged(_, answer) | Reply::Late(_, answer) = &reply {
            desk.note(check("answer", &call.request, answer));
        }
        let (status, more, text) = match reply {
            Reply::Answer(answer) => (200, String::new(), answer.to_string()),
            Reply::Text(status, text) => (status, String::new(), text),
            Reply::Headed(status, headers, text) => (status, headers, text),
            Reply::Tagged(tag, answer) => (200, format!("ETag: {tag}\r\n"), answer.to_string()),
            Reply::Late(delay, answer) => {
                thread::sleep(delay);
                (200, String::new(), answer.to_string())
            }
            Reply::Busy(seconds) => (429, format!("Retry-After: {seconds}\r\n"), String::new()),
            Reply::Never => {
                let _ = stream.read(&mut [0]);
                return;
            }
            Reply::Close => return,
            Reply::Half(answer) => {
                let (text, stream) = (answer.to_string(), stream.get_mut());
                let head = format!("HTTP/1.1 200 Scripted\r\nContent-Length: {}\r\n\r\n", text.len());
                let _ = stream.write_all((head + &text[..text.len() / 2]).as_bytes());
                let _ = stream.flush();
                return;
            }
        };
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\n\r\n",
            text.len()
        );
        let stream = stream.get_mut();
        let written = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes()));
        if written.and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<(String, BTreeMap<String, String>, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let hook = line.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((hook, headers, body))
}

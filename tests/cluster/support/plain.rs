//! The plainest hook server that users have: Python's `http.server`, byte for byte, without Python.
//!
//! One thread, one connection at a time, HTTP/1.0: the answer has no length, its head and its body go out in two writes,
//! and its end is that of the connection. A connection that is opened ahead and rests holds up all others. Where the
//! hook fails, the connection ends without a byte.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use crate::protocol::check;

/// Some moment in HTTP's form: nobody reads it.
const DATE: &str = "Mon, 30 Nov 2026 20:23:56 GMT";

/// What a hook makes of a path and a request. `None` is an exception.
type Script = dyn Fn(&str, &Value) -> Option<Value> + Send;

pub struct PlainServer {
    pub port: u16,
    connections: Arc<AtomicUsize>,
}

impl PlainServer {
    pub fn start(script: impl Fn(&str, &Value) -> Option<Value> + Send + 'static) -> PlainServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                // A caller that went away is no matter here.
                let _ = answer(stream, &script);
            }
        });
        PlainServer { port, connections }
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

fn answer(stream: TcpStream, script: &Script) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = None;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
    // `int(None)` raises, and so does all else that a hook trips over.
    let Some(length) = length else { return Ok(()) };
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request = serde_json::from_slice(&body).unwrap_or_default();
    let Some(answer) = script(&path, &request) else { return Ok(()) };
    // One that a test writes by hand, to see how it is parsed, has no controller.
    if !request["controller"].is_null() {
        let checked = check("request", &request, &request).and_then(|()| check("answer", &request, &answer));
        checked.unwrap_or_else(|fault| panic!("a message against the protocol: {fault}"));
    }
    let mut stream = reader.into_inner();
    let head = format!(
        "HTTP/1.0 200 OK\r\nServer: BaseHTTP/0.6 Python/3.11.7\r\nDate: {}\r\nContent-type: application/json\r\n\r\n",
        DATE
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(dumped(&answer).as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)
}

/// As `json.dumps` prints it: blanks after colons and commas, ASCII alone.
pub fn dumped(value: &Value) -> String {
    let mut text = String::new();
    dump(value, &mut text);
    text
}

fn dump(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (index, (name, value)) in fields.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                dump_text(name, text);
                text.push_str(": ");
                dump(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                dump(item, text);
            }
            text.push(']');
        }
        Value::String(string) => dump_text(string, text),
        other => text.push_str(&other.to_string()),
    }
}

fn dump_text(string: &str, text: &mut String) {
    // serde_json escapes the same characters in the same way, but for those beyond ASCII and for DEL.
    let escaped = Value::from(string).to_string();
    for character in escaped.chars() {
        if character.is_ascii() && character != '\u{7f}' {
            text.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
}

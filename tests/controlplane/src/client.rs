//! The API server over plain HTTP: `kubectl proxy` on a Unix socket in a folder that only its user can enter.
//!
//! It spares the tests a TLS client and a process for each look at an object, and it works the same for a cluster whose
//! kubeconfig logs in through a plugin.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Longer than any answer takes on a busy machine; a watch is not for this client.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The API server's answer to one request.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub body: String,
}

impl Response {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as JSON; null where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The message of a refusal: that of the API server's Status object, or the body as it is.
    pub fn message(&self) -> String {
        let status = self.json();
        let message = status["message"].as_str().unwrap_or(self.body.trim());
        format!("{}: {message}", self.status)
    }
}

pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) body: &'a str,
}

/// Sends one request to the socket `proxy.sock` in `folder`.
pub(crate) fn send(folder: &Path, request: &Request) -> io::Result<Response> {
    let mut stream = connect(folder)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let Request { method, path, content_type, body } = request;
    let length = body.len();
    // HTTP 1.0: the answer is neither chunked nor kept alive, so that it ends where the stream ends.
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(&String::from_utf8_lossy(&answer))
}

/// Whether what is at an API path passes `test`, and what was there instead.
pub(crate) fn look(folder: &Path, path: &str, test: impl Fn(&Value) -> bool) -> Result<(), String> {
    let request = Request { method: "GET", path, content_type: "application/json", body: "" };
    let answer = send(folder, &request).map_err(|error| format!("{path}: {error}"))?;
    match answer.is_success() && test(&answer.json()) {
        true => Ok(()),
        false => Err(format!("{path}: {}", answer.message())),
    }
}

/// A socket's path may have 107 bytes, and a home may be deep: the folder is named by its descriptor.
fn connect(folder: &Path) -> io::Result<UnixStream> {
    let folder = File::open(folder)?;
    UnixStream::connect(format!("/proc/self/fd/{}/proxy.sock", folder.as_raw_fd()))
}

fn parse(answer: &str) -> io::Result<Response> {
    let malformed =
        || io::Error::new(io::ErrorKind::UnexpectedEof, format!("half an HTTP answer: {answer:?}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(malformed)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(malformed)?;
    Ok(Response { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn refusal_carries_the_message_of_the_api_server() {
        let answer =
            parse("HTTP/1.0 409 Conflict\r\nContent-Type: application/json\r\n\r\n{\"message\": \"exists\"}");
        assert_eq!(answer.unwrap().message(), "409: exists");
    }

    #[test]
    fn answer_cut_short_is_an_error() {
        let error = parse("HTTP/1.0 200 OK\r\nContent-Ty").unwrap_err();
        assert_eq!(error.to_string(), "half an HTTP answer: \"HTTP/1.0 200 OK\\r\\nContent-Ty\"");
    }
}

//! Requests one after the other on some connections, and a server that does nothing but answer: the floor of any other.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// What came of a load.
pub struct Outcome {
    pub requests: usize,
    pub seconds: f64,
    /// Times from a request to the end of its answer, in order.
    times: Vec<Duration>,
}

impl Outcome {
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    pub fn milliseconds(&self, share: f64) -> f64 {
        let at = ((self.times.len() - 1) as f64 * share) as usize;
        self.times[at].as_secs_f64() * 1e3
    }
}

/// Posts the body again and again on so many connections. Any answer but 200 is an error.
pub fn post(
    address: &str,
    path: &str,
    body: &str,
    connections: usize,
    time: Duration,
) -> io::Result<Outcome> {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let began = Instant::now();
    let times = thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| post_one_by_one(address, request.as_bytes(), began + time)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"))
            .collect::<io::Result<Vec<_>>>()
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let mut times = times.concat();
    times.sort_unstable();
    Ok(Outcome { requests: times.len(), seconds, times })
}

/// The answer to one request.
pub fn ask(address: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}")?;
    let (_, body) = read_message(&mut BufReader::new(stream))?.unwrap_or_default();
    String::from_utf8(body).map_err(io::Error::other)
}

fn post_one_by_one(address: &str, request: &[u8], until: Instant) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut answers = BufReader::with_capacity(1 << 16, stream.try_clone()?);
    let mut times = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        stream.write_all(request)?;
        let (first, body) = read_message(&mut answers)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !first.starts_with("HTTP/1.1 200") {
            return Err(io::Error::other(format!("{first}: {}", String::from_utf8_lossy(&body))));
        }
        times.push(began.elapsed());
    }
    Ok(times)
}

/// A server on loopback that reads each request and answers `body`. Gives its address.
pub fn echo(body: &str) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let answer: Arc<[u8]> = answer.into_bytes().into();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // What ends a connection ends only that connection.
            thread::spawn(move || answer_all(stream, &answer));
        }
    });
    Ok(address)
}

fn answer_all(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut requests = BufReader::with_capacity(1 << 16, stream.try_clone()?);
    while read_message(&mut requests)?.is_some() {
        stream.write_all(answer)?;
    }
    Ok(())
}

/// The first line and the body of a message that says how long it is; `None` at the connection's end.
fn read_message(reader: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((first.trim_end().into(), body)))
}

//! Just enough HTTP/1.1 for servers that are to misbehave: one thread for each connection, nothing behind the scenes.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// A request as it came in.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// What becomes of a connection after a request.
pub enum Then {
    KeepAlive,
    Close,
}

/// Serves every connection until the process ends. Gives the port.
pub fn serve<F>(answer: F) -> u16
where
    F: Fn(Request, &mut TcpStream) -> io::Result<Then> + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    let port = listener.local_addr().expect("a bound port").port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // What ends a connection ends only that connection.
            thread::spawn(move || serve_connection(stream, &*answer));
        }
    });
    port
}

fn serve_connection<F>(mut stream: TcpStream, answer: &F) -> io::Result<()>
where
    F: Fn(Request, &mut TcpStream) -> io::Result<Then>,
{
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = read(&mut reader)? {
        if let Then::Close = answer(request, &mut stream)? {
            break;
        }
    }
    stream.shutdown(std::net::Shutdown::Both)
}

fn read(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default().to_string();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request { method, path: path.to_string(), query: parameters(query), body: Vec::new() };
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().expect("a length is a number");
        }
    }
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body)?;
    Ok(Some(request))
}

fn parameters(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Writes a whole answer.
pub fn answer(stream: &mut TcpStream, code: u16, headers: &str, body: &str) -> io::Result<Then> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code} Answer\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    Ok(Then::KeepAlive)
}

/// Begins an answer whose length nobody knows.
pub fn begin_chunks(stream: &mut TcpStream) -> io::Result<()> {
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
}

pub fn chunk(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

pub fn end_chunks(stream: &mut TcpStream) -> io::Result<Then> {
    stream.write_all(b"0\r\n\r\n")?;
    Ok(Then::KeepAlive)
}

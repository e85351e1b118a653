//! A collector of traces in this process: takes what OTLP says over HTTP, in protobuf, and reads it field by field.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use flate2::read::GzDecoder;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A span as it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span {
    /// `service.name` of whoever has sent it.
    pub service: String,
    /// In hexadecimal digits, as headers have them.
    pub trace: String,
    pub id: String,
    /// Empty where it is the first of its trace.
    pub parent: String,
    pub name: String,
    /// 1 is internal, 2 a server's, 3 a client's.
    pub kind: u64,
    pub start: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, String>,
    /// What has failed, where something has.
    pub error: Option<String>,
}

impl Span {
    #[track_caller]
    pub fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).unwrap_or_else(|| panic!("no `{key}`: {self:#?}"))
    }

    /// The header of a request that was sent within it.
    pub fn header(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.id)
    }
}

/// What came in.
#[derive(Default)]
struct Taken {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    packed: bool,
}

#[derive(Clone)]
pub struct Collector {
    pub port: u16,
    taken: Arc<Mutex<Taken>>,
}

impl Collector {
    pub fn start() -> Collector {
        Collector::on(TcpListener::bind("127.0.0.1:0").expect("a free port"))
    }

    /// One that speaks TLS, for the name `localhost`.
    pub fn secured(tls: ServerConfig) -> Collector {
        let tls = Arc::new(tls);
        Collector::behind(TcpListener::bind("127.0.0.1:0").expect("a free port"), move |stream, taken| {
            let session = ServerConnection::new(tls.clone()).expect("the configuration is whole");
            serve(StreamOwned::new(session, stream), taken);
        })
    }

    pub fn on(listener: TcpListener) -> Collector {
        Collector::behind(listener, serve)
    }

    fn behind(
        listener: TcpListener,
        serve: impl Fn(TcpStream, &Mutex<Taken>) + Clone + Send + 'static,
    ) -> Collector {
        let port = listener.local_addr().expect("a bound socket").port();
        let collector = Collector { port, taken: Arc::default() };
        let taken = collector.taken.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (taken, serve) = (taken.clone(), serve.clone());
                thread::spawn(move || serve(stream, &taken));
            }
        });
        collector
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn spans(&self) -> Vec<Span> {
        self.taken.lock().unwrap().spans.clone()
    }

    /// Whether anything came compressed.
    pub fn unpacked_any(&self) -> bool {
        self.taken.lock().unwrap().packed
    }

    /// Everything that was ever sent.
    pub fn bytes(&self) -> Vec<u8> {
        self.taken.lock().unwrap().bytes.clone()
    }
}

fn serve(stream: impl Read + Write, taken: &Mutex<Taken>) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut length, mut first, mut packed) = (String::new(), 0, String::new(), false);
        while stream.read_line(&mut line).is_ok_and(|read| read > 2) {
            let lower = line.to_lowercase();
            if first.is_empty() {
                first = line.clone();
            } else if let Some(text) = lower.strip_prefix("content-length:") {
                length = text.trim().parse().expect("a length is a number");
            } else if lower.starts_with("content-encoding:") {
                packed = lower.ends_with("gzip\r\n");
            } else if let Some(text) = lower.strip_prefix("content-type:") {
                assert_eq!(text.trim(), "application/x-protobuf");
            }
            line.clear();
        }
        if first.is_empty() {
            return;
        }
        assert!(first.starts_with("POST /v1/traces "), "{first}");
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body has its length");
        if packed {
            let mut plain = Vec::new();
            GzDecoder::new(&body[..]).read_to_end(&mut plain).expect("a body is what its headers say");
            body = plain;
        }
        let mut taken = taken.lock().unwrap();
        taken.packed |= packed;
        read_request(&body, &mut taken.spans);
        taken.bytes.extend(body);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let stream = stream.get_mut();
        stream.write_all(answer).and_then(|()| stream.flush()).expect("the answer is taken");
    }
}

/// One field of a protobuf message.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn bytes(&self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Number(number) => panic!("{number} is a number"),
        }
    }

    fn number(&self) -> u64 {
        match self {
            Value::Number(number) => *number,
            Value::Bytes(bytes) => panic!("{bytes:?} is no number"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("a text is UTF-8")
    }

    fn hex(&self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The fields of a message with their numbers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (byte, rest) = bytes.split_first().expect("a number ends");
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return number;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            wire @ (1 | 5) => {
                let (number, rest) = bytes.split_at(if wire == 1 { 8 } else { 4 });
                bytes = rest;
                Value::Number(number.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(content)
            }
            other => panic!("no wire type: {other}"),
        };
        found.push((tag >> 3, value));
    }
    found
}

fn of<'a>(message: &'a [u8], number: u64) -> impl Iterator<Item = Value<'a>> {
    fields(message).into_iter().filter(move |(known, _)| *known == number).map(|(_, value)| value)
}

fn read_request(body: &[u8], spans: &mut Vec<Span>) {
    for of_resource in of(body, 1) {
        let of_resource = of_resource.bytes();
        let resource: BTreeMap<String, String> =
            of(of_resource, 1).flat_map(|resource| attributes(resource.bytes(), 1)).collect();
        let service = resource.get("service.name").cloned().unwrap_or_default();
        for span in of(of_resource, 2).flat_map(|scope| of(scope.bytes(), 2)) {
            spans.push(Span { service: service.clone(), ..read_span(span.bytes()) });
        }
    }
}

fn read_span(bytes: &[u8]) -> Span {
    let mut span = Span { attributes: attributes(bytes, 9).into_iter().collect(), ..Span::default() };
    for (number, value) in fields(bytes) {
        match number {
            1 => span.trace = value.hex(),
            2 => span.id = value.hex(),
            4 => span.parent = value.hex(),
            5 => span.name = value.text(),
            6 => span.kind = value.number(),
            7 => span.start = value.number(),
            8 => span.end = value.number(),
            15 => {
                let failed = of(value.bytes(), 3).any(|code| code.number() == 2);
                let words = of(value.bytes(), 2).next().map(|words| words.text()).unwrap_or_default();
                span.error = failed.then_some(words);
            }
            _ => {}
        }
    }
    span
}

/// The keys and values in a field of a message.
fn attributes(message: &[u8], number: u64) -> Vec<(String, String)> {
    let read = |pair: Value| {
        let key = of(pair.bytes(), 1).next().expect("an attribute has a key").text();
        let value = of(pair.bytes(), 2).next().map(|value| value.bytes().to_vec()).unwrap_or_default();
        let text = fields(&value).first().map(|(_, value)| match value {
            Value::Number(number) => number.to_string(),
            text => text.text(),
        });
        (key, text.unwrap_or_default())
    };
    of(message, number).map(read).collect()
}

//! What a request to the API server is about, and the record of all that came.

use std::time::Instant;

use serde_json::Value;

use crate::apiserver::objects::Place;
use crate::http;

/// A request with its address understood.
#[derive(Clone, Debug)]
pub struct Request {
    pub http: http::Request,
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Empty where discovery is asked.
    pub plural: String,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
    pub came: Instant,
}

impl Request {
    pub fn read(http: http::Request) -> Request {
        let mut parts = http.path.trim_start_matches('/').split('/');
        let core = parts.next() == Some("api");
        let mut next = || parts.next().unwrap_or_default().to_string();
        let api_version = if core { next() } else { format!("{}/{}", next(), next()) };
        let (mut plural, mut namespace) = (next(), String::new());
        if plural == "namespaces" {
            (namespace, plural) = (next(), next());
        }
        let (name, subresource) = (next(), next());
        Request { http, api_version, plural, namespace, name, subresource, came: Instant::now() }
    }

    pub fn method(&self) -> &str {
        &self.http.method
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.http.query.get(name).map(String::as_str)
    }

    pub fn place(&self) -> Place {
        Place { plural: self.plural.clone(), namespace: self.namespace.clone(), name: self.name.clone() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.http.body).unwrap_or(Value::Null)
    }

    pub fn is_discovery(&self) -> bool {
        self.plural.is_empty()
    }

    pub fn is_watch(&self) -> bool {
        self.method() == "GET" && self.parameter("watch").is_some()
    }

    pub fn is_watch_of(&self, plural: &str) -> bool {
        self.is_watch() && self.plural == plural
    }

    /// A whole list, by pages or as the beginning of a watch.
    pub fn is_list_of(&self, plural: &str) -> bool {
        let lists = if self.is_watch() {
            self.parameter("sendInitialEvents").is_some()
        } else {
            self.method() == "GET" && self.name.is_empty()
        };
        lists && self.plural == plural
    }

    /// A GET of one object.
    pub fn is_read(&self) -> bool {
        self.method() == "GET" && !self.name.is_empty()
    }

    pub fn is_event(&self) -> bool {
        self.plural == "events"
    }

    pub fn is_write(&self) -> bool {
        self.method() != "GET" && !self.is_event()
    }

    /// A write of an object of this kind, its status left aside.
    pub fn is_write_of(&self, plural: &str) -> bool {
        self.is_write() && self.plural == plural && self.subresource.is_empty()
    }

    pub fn is_apply_of(&self, plural: &str) -> bool {
        self.is_write_of(plural) && self.method() == "PATCH"
    }

    pub fn is_status_write(&self) -> bool {
        self.is_write() && self.subresource == "status"
    }

    pub fn is_delete(&self) -> bool {
        self.method() == "DELETE"
    }
}

/// What has been asked, in the order in which it came.
#[derive(Clone, Debug, Default)]
pub struct Traffic(pub Vec<Request>);

impl Traffic {
    pub fn count(&self, which: impl Fn(&Request) -> bool) -> usize {
        self.0.iter().filter(|request| which(request)).count()
    }

    /// When requests came.
    pub fn times(&self, which: impl Fn(&Request) -> bool) -> Vec<Instant> {
        self.0.iter().filter(|request| which(request)).map(|request| request.came).collect()
    }

    /// Every write of an object, as text to compare with.
    pub fn writes(&self) -> Vec<String> {
        let writes = self.0.iter().filter(|request| request.is_write());
        writes.map(|request| format!("{} {}", request.method(), request.http.path)).collect()
    }

    pub fn deletes(&self) -> Vec<String> {
        let deletes = self.0.iter().filter(|request| request.is_delete());
        deletes.map(|request| request.http.path.clone()).collect()
    }

    pub fn reads(&self) -> Vec<String> {
        let reads = self.0.iter().filter(|request| request.is_read());
        reads.map(|request| request.http.path.clone()).collect()
    }
}

//! Writes. Every answer goes into the store before anybody else hears of it.

use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use serde_json::json;
use tracing::Span;
use tracing::field::Empty;

use super::Cluster;
use super::kind::{Kind, Origin, Resource};
use super::limit::{Asker, OTHERS};
use super::meter;
use super::object::{Object, Version};
use super::request::{self, Error};
use super::store::Event;
use super::trial::Trial;
use crate::object::name::Key;
use crate::trace;

const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
/// A request that takes longer keeps its place no more.
const BRISK: Duration = Duration::from_secs(1);

/// Who writes, and on behalf of which visit.
pub(crate) struct Writer<'a> {
    pub cluster: &'a Cluster,
    pub origin: &'a Origin,
    /// Writes are only tried, and noted here.
    pub trial: Option<&'a Trial>,
}

/// Whether a conflict with another field manager is overridden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    Yes,
    No,
}

/// What of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

impl Writer<'_> {
    /// Server-side apply of a child under the objects' manager.
    pub(crate) async fn apply(
        &self,
        kind: &Kind,
        resource: &Resource,
        key: &Key,
        body: Vec<u8>,
        force: Force,
    ) -> Result<Version, Error> {
        let force = force == Force::Yes;
        let query = format!("fieldManager={}&force={force}", self.cluster.managers.objects);
        self.patch(kind, key, &resource.path(&key.namespace, Some(&key.name)), &query, (APPLY, "apply"), body)
            .await
    }

    /// Server-side apply of a parent's status under the status manager.
    pub(crate) async fn apply_status(
        &self,
        kind: &Kind,
        resource: &Resource,
        key: &Key,
        body: Vec<u8>,
    ) -> Result<Version, Error> {
        let path = format!("{}/status", resource.path(&key.namespace, Some(&key.name)));
        let query = format!("fieldManager={}&force=true", self.cluster.managers.status);
        self.patch(kind, key, &path, &query, (APPLY, "status"), body).await
    }

    /// Replaces parts of an object's metadata, guarded by the version they were computed from.
    pub(crate) async fn patch_metadata(
        &self,
        kind: &Kind,
        resource: &Resource,
        object: &Object,
        mut metadata: Value,
    ) -> Result<(), Error> {
        metadata["resourceVersion"] = json!(object.version.to_string());
        metadata["uid"] = json!(object.uid);
        let body = json!({ "metadata": metadata }).to_string().into_bytes();
        let path = resource.path(&object.key.namespace, Some(&object.key.name));
        let query = format!("fieldManager={}", self.cluster.managers.objects);
        self.patch(kind, &object.key, &path, &query, (MERGE, "patch"), body).await.map(drop)
    }

    /// Merges fields into an object or its status, guarded by the version they were computed from.
    pub(crate) async fn merge(
        &self,
        kind: &Kind,
        resource: &Resource,
        object: &Object,
        part: Part,
        mut fields: Value,
    ) -> Result<(), Error> {
        fields["metadata"]["resourceVersion"] = json!(object.version.to_string());
        fields["metadata"]["uid"] = json!(object.uid);
        let mut path = resource.path(&object.key.namespace, Some(&object.key.name));
        if part == Part::Status {
            path.push_str("/status");
        }
        let query = format!("fieldManager={}", self.cluster.managers.objects);
        let verb = if part == Part::Status { "status" } else { "patch" };
        let body = fields.to_string().into_bytes();
        self.patch(kind, &object.key, &path, &query, (MERGE, verb), body).await.map(drop)
    }

    /// Changes an object by a JSON patch, which guards itself by the version it was made from.
    pub(crate) async fn json_patch(
        &self,
        kind: &Kind,
        resource: &Resource,
        key: &Key,
        patch: &Value,
    ) -> Result<(), Error> {
        let path = resource.path(&key.namespace, Some(&key.name));
        let query = format!("fieldManager={}", self.cluster.managers.objects);
        let body = patch.to_string().into_bytes();
        self.patch(kind, key, &path, &query, (JSON_PATCH, "patch"), body).await.map(drop)
    }

    /// Makes an object that is not there, or replaces the one that was seen: a conflict (409) where it is there, or not as
    /// it was seen.
    pub(crate) async fn put(
        &self,
        kind: &Kind,
        resource: &Resource,
        key: &Key,
        seen: Option<&Object>,
        mut object: Value,
    ) -> Result<Version, Error> {
        let query = format!("?fieldManager={}", self.cluster.managers.objects);
        let request = match seen {
            None => Request::post(resource.path(&key.namespace, None) + &query),
            Some(seen) => {
                object["metadata"]["resourceVersion"] = json!(seen.version.to_string());
                object["metadata"]["uid"] = json!(seen.uid);
                Request::put(resource.path(&key.namespace, Some(&key.name)) + &query)
            }
        };
        let request = request
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Body::from(object.to_string().into_bytes()))?;
        self.written(kind, key, request, "put").await
    }

    /// Deletes exactly the object with this uid; its dependents follow in the background.
    /// An object that is gone, or replaced by another of its name, counts as deleted.
    pub(crate) async fn delete(
        &self,
        kind: &Kind,
        resource: &Resource,
        key: &Key,
        uid: &str,
    ) -> Result<(), Error> {
        if let Some(trial) = self.trial {
            trial.delete(kind, key);
            return Ok(());
        }
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": uid}, "propagationPolicy": "Background",
        });
        let request = Request::delete(resource.path(&key.namespace, Some(&key.name)))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Body::from(options.to_string().into_bytes()))?;
        let write = kind.begin_write(key);
        let trace = trace_of("delete", kind, key);
        let answer = trace::within(&trace, self.send(request)).await;
        meter::note_write(kind, "delete", &answer);
        note_on_trace(&trace, &answer);
        let seen = answer.as_ref().ok().and_then(|bytes| still_there(kind, resource, bytes));
        let gone = match &answer {
            Ok(_) => seen.is_none(),
            Err(error) => error.is(404),
        };
        if gone {
            kind.remove_now(key, uid, Some(self.origin));
        }
        write.end(seen.map(Event::Put), Some(self.origin));
        match answer {
            Ok(_) => Ok(()),
            Err(error) if error.is(404) || error.is(409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The object as the API server has it now, past every cache. `None` when it is gone.
    pub(crate) async fn read(
        &self,
        kind: &Kind,
        resource: &Resource,
        key: &Key,
    ) -> Result<Option<Object>, Error> {
        let text = self.read_text(resource, key).await?;
        Ok(text.map(|text| kind.read_whole(&text)).transpose()?)
    }

    /// The same as the API server's own JSON, `managedFields` included.
    pub(crate) async fn read_text(&self, resource: &Resource, key: &Key) -> Result<Option<String>, Error> {
        let request = Request::get(resource.path(&key.namespace, Some(&key.name))).body(Body::empty())?;
        match self.cluster.read(self.origin.controller, request).await {
            Ok(bytes) => Ok(Some(std::str::from_utf8(&bytes)?.to_string())),
            Err(error) if error.is(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the API server would make of applying `body`, as JSON text. Nothing is written.
    pub(crate) async fn dry_run(
        &self,
        resource: &Resource,
        key: &Key,
        body: Vec<u8>,
    ) -> Result<String, Error> {
        let path = resource.path(&key.namespace, Some(&key.name));
        let query = format!("fieldManager={}&force=true&dryRun=All", self.cluster.managers.objects);
        let request = Request::patch(format!("{path}?{query}"))
            .header(http::header::CONTENT_TYPE, APPLY)
            .header(http::header::ACCEPT, "application/json")
            .body(Body::from(as_yaml(body)))?;
        let bytes = match self.trial {
            Some(_) => self.cluster.read(self.origin.controller, request).await?,
            None => self.send(request).await?,
        };
        let text = std::str::from_utf8(&bytes)?;
        about(key, Object::read(text, ("", ""), &self.cluster.managers)?)?;
        Ok(text.to_string())
    }

    /// Sends a write, if this process may write.
    async fn send(&self, request: Request<Body>) -> Result<bytes::Bytes, Error> {
        self.cluster.in_place(&self.cluster.writes, self.origin.controller, request).await
    }

    async fn patch(
        &self,
        kind: &Kind,
        key: &Key,
        path: &str,
        query: &str,
        (content_type, verb): (&str, &str),
        body: Vec<u8>,
    ) -> Result<Version, Error> {
        let body = if content_type == APPLY { as_yaml(body) } else { body };
        let tried = if self.trial.is_some() { "&dryRun=All" } else { "" };
        let request = Request::patch(format!("{path}?{query}{tried}"))
            .header(http::header::CONTENT_TYPE, content_type)
            .header(http::header::ACCEPT, "application/json")
            .body(Body::from(body))?;
        if let Some(trial) = self.trial {
            let part = if verb == "status" { Part::Status } else { Part::Main };
            return trial.patch(self, (kind, key, part), request).await;
        }
        self.written(kind, key, request, verb).await
    }

    /// Sends a write whose answer is the object.
    async fn written(
        &self,
        kind: &Kind,
        key: &Key,
        request: Request<Body>,
        verb: &str,
    ) -> Result<Version, Error> {
        let write = kind.begin_write(key);
        let trace = trace_of(verb, kind, key);
        let answer = trace::within(&trace, self.send(request))
            .await
            .and_then(|bytes| about(key, kind.read_whole(std::str::from_utf8(&bytes)?)?));
        let (seen, outcome) = match answer {
            Ok(object) => {
                let version = object.version.clone();
                (Some(Event::Put(object)), Ok(version))
            }
            Err(error) => (None, Err(error)),
        };
        write.end(seen, Some(self.origin));
        meter::note_write(kind, verb, &outcome);
        note_on_trace(&trace, &outcome);
        outcome
    }
}

/// A write as a span.
fn trace_of(verb: &str, kind: &Kind, key: &Key) -> Span {
    trace::span!(
        "write",
        otel.name = verb,
        otel.kind = "client",
        verb,
        kind = format_args!("{} {}", kind.api_version, kind.plural),
        namespace = (!key.namespace.is_empty()).then_some(&*key.namespace),
        name = key.name,
        outcome = Empty,
        http.response.status_code = Empty,
        error = Empty
    )
}

/// The API server's words may quote values: its reason says enough.
fn note_on_trace<T>(trace: &Span, answer: &Result<T, Error>) {
    trace.record("outcome", meter::outcome(answer));
    let Err(error) = answer else { return };
    trace.record("http.response.status_code", error.status().map(|status| status.as_u16()));
    match error {
        Error::Refused(status) => trace.record("error", &status.reason),
        Error::Unanswered(_) | Error::Silent(_) => trace.record("error", "unanswered"),
        Error::NotLeading => trace.record("error", "not leading"),
    };
}

/// JSON that reads the same as YAML, which is what the API server takes an apply for: it refuses control characters, and
/// takes some others for the ends of lines. They stand in texts alone, where each can be escaped.
fn as_yaml(json: Vec<u8>) -> Vec<u8> {
    let apart = |c: &char| {
        matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    match std::str::from_utf8(&json) {
        Ok(text) if text.chars().any(|c| apart(&c)) => {
            let mut escaped = String::with_capacity(json.len() + 16);
            for c in text.chars() {
                match apart(&c) {
                    true => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
                    false => escaped.push(c),
                }
            }
            escaped.into_bytes()
        }
        _ => json,
    }
}

/// An answer that is not about the object written is none.
pub(super) fn about(key: &Key, object: Object) -> Result<Object, Error> {
    let same = object.key == *key && !object.uid.is_empty();
    same.then_some(object).ok_or_else(|| Error::Unanswered("answer is not about the object written".into()))
}

/// A delete answers with the object while finalizers or a grace period keep it, else with a Status.
fn still_there(kind: &Kind, resource: &Resource, bytes: &[u8]) -> Option<Object> {
    let object = kind.read(std::str::from_utf8(bytes).ok()?, &resource.gvk.kind).ok()?;
    (!object.uid.is_empty() && object.deleting && !object.key.name.is_empty()).then_some(object)
}

/// Requests that need an answer within the client's limits.
impl Cluster {
    /// Sends a write of no controller's, if this process may write.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<bytes::Bytes, Error> {
        self.in_place(&self.writes, OTHERS, request).await
    }

    /// Sends what changes nothing, whoever leads.
    pub(super) async fn read(&self, asker: Asker, request: Request<Body>) -> Result<bytes::Bytes, Error> {
        self.in_place(&self.client, asker, request).await
    }

    /// A request that hangs gives its place to others: what a few objects wait for must not hold up all.
    async fn in_place(
        &self,
        client: &Client,
        asker: Asker,
        request: Request<Body>,
    ) -> Result<bytes::Bytes, Error> {
        self.limiter.pass(asker).await;
        let place = self.places.acquire().await.map_err(|_| Error::Unanswered("shutting down".into()))?;
        if std::ptr::eq(client, &self.writes) && !self.gate.is_open() {
            return Err(Error::NotLeading);
        }
        let mut answer = std::pin::pin!(request::answer(client, request));
        if let Ok(answer) = tokio::time::timeout(BRISK, &mut answer).await {
            return answer;
        }
        drop(place);
        answer.await
    }
}

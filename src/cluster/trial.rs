//! Writes that are only tried: the API server says what would come of them (`dryRun=All`), and nothing is kept, here or there.

use std::sync::{Arc, Mutex, PoisonError};

use http::Request;
use kube::client::Body;

use super::kind::{Kind, Resource};
use super::object::{Object, Version};
use super::request::Error;
use super::write::{Part, Writer, about};
use crate::object::name::{Gvk, Key};

/// What was tried, in order.
#[derive(Default)]
pub(crate) struct Trial(Mutex<Vec<Tried>>);

/// One write that was not made.
#[derive(Debug)]
pub(crate) struct Tried {
    pub resource: Arc<Resource>,
    pub key: Key,
    pub write: Write,
}

#[derive(Debug)]
pub(crate) enum Write {
    /// With the object as it would be, or why it would be refused.
    Patch { part: Part, outcome: Result<String, Error> },
    /// The API server is not asked: it refuses no delete that the plan makes, but for a missing right.
    Delete,
}

impl Trial {
    pub(crate) fn into_tried(self) -> Vec<Tried> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects that would have been changed so far, but for their status, as they would be.
    pub(crate) fn patched(&self) -> Vec<(Gvk, String)> {
        let tried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let patched = tried.iter().filter_map(|tried| match &tried.write {
            Write::Patch { part: Part::Main, outcome: Ok(text) } => {
                Some((tried.resource.gvk.clone(), text.clone()))
            }
            _ => None,
        });
        patched.collect()
    }

    /// Whether anything would have been written so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Sends a patch that says that it is a dry run.
    pub(super) async fn patch(
        &self,
        writer: &Writer<'_>,
        (kind, key, part): (&Kind, &Key, Part),
        request: Request<Body>,
    ) -> Result<Version, Error> {
        let cluster = writer.cluster;
        let answer = cluster.read(writer.origin.controller, request).await.and_then(|bytes| {
            let text = std::str::from_utf8(&bytes)?.to_string();
            let object = about(key, Object::read(&text, ("", ""), &cluster.managers)?)?;
            Ok((text, object.version))
        });
        let (outcome, result) = match answer {
            Ok((text, version)) => (Ok(text), Ok(version)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        self.note(kind, key, Write::Patch { part, outcome });
        result
    }

    pub(super) fn delete(&self, kind: &Kind, key: &Key) {
        self.note(kind, key, Write::Delete);
    }

    fn note(&self, kind: &Kind, key: &Key, write: Write) {
        // A kind that is gone has no objects to be written.
        let Some(resource) = kind.live() else { return };
        let mut tried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tried.push(Tried { resource, key: key.clone(), write });
    }
}

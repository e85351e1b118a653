//! The beginning of a watch, which is where an API server hides its troubles.
//!
//! It answers a watch from a cache of that version of the kind. Where the objects cannot be read, since nobody converts them to
//! that version, the cache is never filled: the answer is none at all, or that a version is too large. A list by pages says at
//! once what is wrong.

use std::time::Duration;

use http::Request;
use kube::client::Body;

use super::kind::Resource;
use super::limit::READS;
use super::request::{self, Error};
use super::watch::{PAGE, Source};

/// A watch that begins is answered within this time, or a list is asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// A watch that is to begin in a namespace, or (empty) in all.
pub(super) struct Opening<'a> {
    pub source: &'a Source,
    pub resource: &'a Resource,
    pub namespace: &'a str,
}

impl Opening<'_> {
    /// Sends the watch's request. What holds it up is its failure, where a list tells.
    pub(super) async fn send(&self, watch: Request<Body>) -> Result<Body, Error> {
        tokio::select! {
            answer = request::open(&self.source.client, watch) => answer,
            reason = self.reason_after_a_while() => Err(reason),
        }
    }

    /// What is behind a watch's failure.
    pub(super) async fn explained(&self, error: Error) -> Error {
        // A server that was put back to a backup says so, too; then the list works.
        if error.is(504) { self.reason().await.unwrap_or(error) } else { error }
    }

    /// Never done where a list works: the server may be slow.
    async fn reason_after_a_while(&self) -> Error {
        tokio::time::sleep(PATIENCE).await;
        match self.reason().await {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }

    /// Why a list fails, if it does.
    async fn reason(&self) -> Option<Error> {
        let uri =
            self.source.kind.upgrade()?.list_uri(self.resource, self.namespace, &format!("limit={PAGE}"));
        let list = Request::get(uri).body(Body::empty()).ok()?;
        self.source.limiter.pass(READS).await;
        request::answer(&self.source.client, list).await.err()
    }
}

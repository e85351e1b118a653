//! Reads a request's body within bounds: of one body, of all bodies together, of the time one may take.

use std::time::Duration;

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::{HttpRequest, web};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// A caller that sends more slowly than this holds memory for nothing.
const SLOWEST: Duration = Duration::from_secs(20);
/// Bodies of the largest size that may be held at once.
const LARGEST_AT_ONCE: usize = 4;
const KIB: usize = 1024;

/// The memory for bodies.
pub(super) struct Room {
    body_bytes: usize,
    kibs: Semaphore,
}

/// A body, and its part of the memory.
pub(super) struct Held<'a> {
    pub bytes: Bytes,
    _room: SemaphorePermit<'a>,
}

/// Why a body is not read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    TooLarge { limit: usize },
    NoRoom,
    TooSlow,
    Encoded(String),
    Broken(String),
}

impl Room {
    pub(super) fn new(body_bytes: usize) -> Room {
        Room { body_bytes, kibs: Semaphore::new(LARGEST_AT_ONCE * body_bytes.div_ceil(KIB)) }
    }

    pub(super) async fn read(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
    ) -> Result<Held<'_>, Unread> {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(encoding) = header(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
            return Err(Unread::Encoded(encoding.to_string()));
        }
        let announced = header(CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let bytes = announced.unwrap_or(self.body_bytes);
        if bytes > self.body_bytes {
            return Err(Unread::TooLarge { limit: self.body_bytes });
        }
        let kibs = u32::try_from(bytes.div_ceil(KIB)).unwrap_or(u32::MAX);
        let room = self.kibs.try_acquire_many(kibs).map_err(|_| Unread::NoRoom)?;
        let whole = self.collect(payload, announced.unwrap_or(0));
        let bytes = timeout(SLOWEST, whole).await.map_err(|_| Unread::TooSlow)??;
        Ok(Held { bytes, _room: room })
    }

    async fn collect(&self, mut payload: web::Payload, expected: usize) -> Result<Bytes, Unread> {
        let mut body = BytesMut::with_capacity(expected);
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|error| Unread::Broken(error.to_string()))?;
            if body.len() + chunk.len() > self.body_bytes {
                return Err(Unread::TooLarge { limit: self.body_bytes });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

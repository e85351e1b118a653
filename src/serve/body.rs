//! Reads a request's body within bounds: of one body, of all bodies together, of the time one may take.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::{HttpRequest, web};
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::serve::connections::Connection;

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
    _room: Option<SemaphorePermit<'a>>,
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
        let at_most = announced.unwrap_or(self.body_bytes);
        if at_most > self.body_bytes {
            return Err(Unread::TooLarge { limit: self.body_bytes });
        }
        let connection = request.conn_data::<Rc<Connection>>();
        connection.iter().for_each(|connection| connection.waits());
        let held = timeout(SLOWEST, self.collect(payload, at_most)).await.map_err(|_| Unread::TooSlow)?;
        connection.iter().for_each(|connection| connection.works());
        held
    }

    /// Takes memory as the body comes, and not as it is announced: words cost a caller nothing.
    async fn collect(&self, mut payload: web::Payload, at_most: usize) -> Result<Held<'_>, Unread> {
        let mut body = Vec::new();
        let mut room: Option<SemaphorePermit<'_>> = None;
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|error| Unread::Broken(error.to_string()))?;
            let length = body.len() + chunk.len();
            if length > self.body_bytes {
                return Err(Unread::TooLarge { limit: self.body_bytes });
            }
            if length > body.capacity() {
                let capacity = length.max((2 * body.capacity()).min(at_most));
                let more = self.take(capacity.div_ceil(KIB) - body.capacity().div_ceil(KIB))?;
                match &mut room {
                    Some(room) => room.merge(more),
                    None => room = Some(more),
                }
                body.reserve_exact(capacity - body.len());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Held { bytes: body.into(), _room: room })
    }

    fn take(&self, kibs: usize) -> Result<SemaphorePermit<'_>, Unread> {
        let kibs = u32::try_from(kibs).unwrap_or(u32::MAX);
        self.kibs.try_acquire_many(kibs).map_err(|_| Unread::NoRoom)
    }
}

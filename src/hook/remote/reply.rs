//! What an HTTP reply means: an answer, a refusal, or a request for patience.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_ENCODING, ETAG, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use jiff::Timestamp;
use serde_json::Value;

use crate::hook::wire::Failure;
use crate::problem::{Place, Problem};

/// Longest part of a refusing body that is shown to anyone.
const EXCERPT: usize = 1024;
/// Longest delay that a server can ask for; a change of the parent ends it earlier.
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 3600);

/// A whole HTTP reply.
pub(super) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    /// Where it sends us, if it does.
    pub(super) fn redirect(&self) -> Option<&str> {
        matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308)
            .then(|| self.headers.get(LOCATION)?.to_str().ok())
            .flatten()
    }

    /// Whether it says that the answer is still the one whose ETag was sent. To a POST, 412 is the right way to.
    pub(super) fn says_unchanged(&self) -> bool {
        matches!(self.status, StatusCode::NOT_MODIFIED | StatusCode::PRECONDITION_FAILED)
    }

    pub(super) fn tag(&self) -> Option<HeaderValue> {
        self.headers.get(ETAG).cloned()
    }

    /// The body of a success. Only 200 is one.
    pub(super) fn into_body(self, limit: usize) -> Result<Bytes, Failure> {
        let body = self.decompressed(limit)?;
        match self.status {
            StatusCode::OK => Ok(body),
            StatusCode::TOO_MANY_REQUESTS => Err(Failure::Busy { after: self.retry_after(Timestamp::now()) }),
            status if status.is_server_error() || matches!(status.as_u16(), 408 | 425) => {
                Err(Failure::Unavailable {
                    message: refusal(status, &body).message,
                    retry_after: self.retry_after(Timestamp::now()),
                })
            }
            status => Err(Failure::Refused(refusal(status, &body))),
        }
    }

    fn decompressed(&self, limit: usize) -> Result<Bytes, Failure> {
        if self
            .headers
            .get(CONTENT_ENCODING)
            .is_none_or(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"gzip"))
        {
            return Ok(self.body.clone());
        }
        let mut body = Vec::new();
        let mut plain = flate2::read::MultiGzDecoder::new(&self.body[..]).take(limit as u64 + 1);
        plain
            .read_to_end(&mut body)
            .map_err(|error| super::broken("the answer is no complete gzip", &error))?;
        if body.len() > limit { Err(super::too_long(limit)) } else { Ok(body.into()) }
    }

    /// The delay the server asks for, in seconds or as a date. `None` when there is none, or it is over.
    fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let delay = match text.parse::<u64>() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => {
                let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
                Duration::try_from(date.duration_since(now)).ok()?
            }
        };
        (delay > Duration::ZERO).then_some(delay.min(LONGEST_DELAY))
    }
}

/// What a refusing body says: the problem that a hook service of ours sends, or an excerpt.
fn refusal(status: StatusCode, body: &[u8]) -> Problem {
    let code = status.as_u16();
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let text = |key: &str| json.as_ref()?.get(key)?.as_str();
    let Some(message) = text("message").or_else(|| text("error")) else {
        let excerpt = excerpt(body);
        let reason =
            if excerpt.is_empty() { status.canonical_reason().unwrap_or_default() } else { &excerpt };
        return Problem::new(format!("{code}: {reason}"));
    };
    let mut problem = Problem::new(format!("{code}: {}", excerpt(message.as_bytes())));
    problem.place = json.as_ref().and_then(place);
    problem.hint = text("hint").map(|hint| excerpt(hint.as_bytes()));
    problem
}

fn place(problem: &Value) -> Option<Place> {
    let place = problem.get("place")?;
    let number = |key: &str| usize::try_from(place.get(key)?.as_u64()?).ok();
    Some(Place {
        file: excerpt(place.get("file")?.as_str()?.as_bytes()),
        line: number("line")?,
        column: number("column")?,
    })
}

/// The beginning of a text from outside, on one line.
fn excerpt(text: &[u8]) -> String {
    let head = String::from_utf8_lossy(&text[..text.len().min(EXCERPT)]);
    let mut line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    line.retain(|c| !c.is_control());
    if text.len() > EXCERPT {
        line.push('…');
    }
    line
}

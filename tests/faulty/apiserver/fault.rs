//! Ways in which the API server misbehaves, each for the requests that a test picks.

use std::time::Duration;

use serde_json::Value;

use crate::apiserver::request::Request;

/// What happens to a request instead of the right thing.
#[derive(Clone, Debug)]
pub enum Effect {
    /// This answer, and nothing is done.
    Answer { code: u16, reason: &'static str, message: String, retry_after: Option<u32> },
    /// The connection is closed, and nothing is done.
    Drop,
    /// Nothing until the fault is lifted; then the right thing.
    Wait,
    /// It is done at once, but answered only when the fault is lifted.
    DoThenWait,
    /// It is done, and the connection is closed without an answer.
    DoThenDrop,
    /// It is done, and answered 200 with this text.
    DoThenSay(String),
    /// It is done, and answered with the object as it was before.
    DoThenAnswerOlder,
    /// A watch that sends these lines and then ends.
    Lines(Vec<Value>, WatchEnd),
}

/// How a scripted watch ends.
#[derive(Clone, Copy, Debug)]
pub enum WatchEnd {
    /// In good order.
    Closes,
    /// With half a line, and the connection is gone.
    MidLine,
}

impl Effect {
    pub fn answer(code: u16, reason: &'static str, message: &str) -> Effect {
        Effect::Answer { code, reason, message: message.into(), retry_after: None }
    }

    pub fn overloaded(code: u16, retry_after: u32) -> Effect {
        let message = "the server is currently unable to handle the request".into();
        let reason = if code == 429 { "TooManyRequests" } else { "ServiceUnavailable" };
        Effect::Answer { code, reason, message, retry_after: Some(retry_after) }
    }

    pub fn expired() -> Effect {
        Effect::answer(410, "Expired", "The resourceVersion for the provided watch is too old.")
    }
}

pub struct Rule {
    pub id: u64,
    pub when: Box<dyn Fn(&Request) -> bool + Send>,
    pub effect: Effect,
    /// How often it still applies.
    pub left: Option<usize>,
    /// How often it has applied.
    pub met: usize,
}

/// How the server behaves in general.
#[derive(Clone, Debug)]
pub struct Manners {
    /// Whether watches can begin with the list.
    pub streaming_lists: bool,
    /// Whether items of a paged list carry their apiVersion and kind.
    pub typed_items: bool,
    /// How often a silent watch gets a bookmark.
    pub bookmarks: Duration,
    /// A page never has more items than this.
    pub page: usize,
}

impl Default for Manners {
    fn default() -> Manners {
        Manners {
            streaming_lists: true,
            typed_items: false,
            bookmarks: Duration::from_millis(500),
            page: 500,
        }
    }
}

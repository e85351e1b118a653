//! What is remembered of one parent between visits. All of it may be lost: it saves work, it decides nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::object::name::Key;

/// After this time a refused write is tried once more, in case what refused it has changed unseen.
const REFUSAL_LASTS: Duration = Duration::from_secs(300);
/// So often in a row may a visit end with work left before it is slowed down.
const BRISK: u32 = 8;

/// A child by the index of its rule and its name.
pub(crate) type ChildId = (usize, Key);

#[derive(Debug)]
pub(crate) struct Memory {
    pub uid: Box<str>,
    /// Writes whose result still differs from what was wanted, by the digest of what was wanted.
    pub written: HashMap<ChildId, Written>,
    /// Children that the API server refused for good.
    pub refused: HashMap<ChildId, Refused>,
    /// The status that was written and the difference that the server left in it.
    pub status: Option<Written>,
    /// Visits in a row that ended with writes nobody has looked at.
    pub unsettled: u32,
    /// Since when the finalize hook gives no usable answer.
    pub finalize_fails_since: Option<Instant>,
}

/// The server answered a write with content that is not what was asked for: it normalises something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub wanted: u64,
    pub left: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub wanted: u64,
    pub at: Instant,
    pub message: String,
}

impl Memory {
    pub(crate) fn new(uid: &str) -> Self {
        Memory {
            uid: uid.into(),
            written: HashMap::new(),
            refused: HashMap::new(),
            status: None,
            unsettled: 0,
            finalize_fails_since: None,
        }
    }

    /// Most parents are at rest, and of them nothing needs to be kept.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        !self.written.is_empty()
            || !self.refused.is_empty()
            || self.status.is_some()
            || self.unsettled > 0
            || self.finalize_fails_since.is_some()
    }

    /// The standing refusal of exactly this wish.
    pub(crate) fn refusal(&self, child: &ChildId, wanted: u64) -> Option<&Refused> {
        self.refused
            .get(child)
            .filter(|refused| refused.wanted == wanted && refused.at.elapsed() < REFUSAL_LASTS)
    }

    /// The child is as it should be, or gone.
    pub(crate) fn forget_child(&mut self, child: &ChildId) {
        self.written.remove(child);
        self.refused.remove(child);
    }

    /// How long to wait before looking at what an unsettled visit has written.
    pub(crate) fn slow_down(&mut self) -> Option<Duration> {
        self.unsettled += 1;
        let over = self.unsettled.checked_sub(BRISK)?;
        Some(Duration::from_secs(1 << over.min(6)))
    }
}

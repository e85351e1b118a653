//! Answers that a hook has marked with an ETag, for when it says that nothing is new.
//!
//! What is kept saves a hook's work and decides nothing: any of it may go at any time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderValue;

use crate::hook::wire::Call;

/// What the answers kept for one hook may take up.
const MOST_BYTES: usize = 32 << 20;
/// What an entry takes up beside its texts, roughly.
const ENTRY_BYTES: usize = 200;

/// Which call, and about whom.
type Topic = (Call, String);

/// The answers of one hook.
pub(super) struct Answers {
    /// For how long an answer is kept; `None` is for ever, where there is room.
    lifetime: Option<Duration>,
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Topic, Entry>,
    bytes: usize,
    /// Counts uses, so that the longest unused is known.
    uses: u64,
    swept: Option<Instant>,
}

struct Entry {
    answer: Tagged,
    since: Instant,
    used: u64,
}

/// A body with its ETag, to be sent back as it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tagged {
    pub tag: HeaderValue,
    pub body: Bytes,
}

impl Tagged {
    /// Takes copies: what was read from a connection holds on to its whole buffer.
    pub(super) fn new(tag: &HeaderValue, body: &[u8]) -> Tagged {
        let tag = HeaderValue::from_bytes(tag.as_bytes()).expect("it is a header's value");
        Tagged { tag, body: Bytes::copy_from_slice(body) }
    }
}

impl Answers {
    pub(super) fn new(lifetime: Option<Duration>) -> Answers {
        Answers { lifetime, most_bytes: MOST_BYTES, kept: Mutex::default() }
    }

    /// The answer that is kept. Whoever holds it may use it, even when it has gone from here meanwhile.
    pub(super) fn find(&self, call: Call, subject: &str, now: Instant) -> Option<Tagged> {
        let mut kept = self.lock();
        let topic = (call, subject.to_string());
        kept.uses += 1;
        let uses = kept.uses;
        let entry = kept.entries.get_mut(&topic)?;
        if self.is_over(entry, now) {
            kept.remove(&topic);
            return None;
        }
        entry.used = uses;
        Some(entry.answer.clone())
    }

    /// Keeps an answer in the place of an earlier one; one without an ETag only ends that.
    pub(super) fn put(&self, call: Call, subject: &str, answer: Option<Tagged>, now: Instant) {
        let mut kept = self.lock();
        let topic = (call, subject.to_string());
        kept.remove(&topic);
        let Some(answer) = answer else { return };
        kept.uses += 1;
        let entry = Entry { answer, since: now, used: kept.uses };
        kept.bytes += entry.bytes(&topic);
        kept.entries.insert(topic, entry);
        self.make_room(&mut kept, now);
    }

    /// Drops what is over from time to time, and what was not used for longest when there is too much.
    fn make_room(&self, kept: &mut Kept, now: Instant) {
        let due = self
            .lifetime
            .is_some_and(|lifetime| now.duration_since(*kept.swept.get_or_insert(now)) >= lifetime);
        if due || kept.bytes > self.most_bytes {
            kept.swept = Some(now);
            kept.retain(|entry| !self.is_over(entry, now));
        }
        if kept.bytes > self.most_bytes {
            let mut by_use: Vec<(u64, usize)> =
                kept.entries.iter().map(|(topic, entry)| (entry.used, entry.bytes(topic))).collect();
            by_use.sort_unstable();
            // More goes than must, so that this is seldom.
            let mut bytes = kept.bytes;
            let last = by_use.iter().find(|(_, size)| {
                bytes -= size;
                bytes <= self.most_bytes / 4 * 3
            });
            let last = last.map_or(u64::MAX, |(used, _)| *used);
            kept.retain(|entry| entry.used > last);
        }
    }

    fn is_over(&self, entry: &Entry, now: Instant) -> bool {
        self.lifetime.is_some_and(|lifetime| now.duration_since(entry.since) >= lifetime)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, topic: &Topic) {
        if let Some(entry) = self.entries.remove(topic) {
            self.bytes -= entry.bytes(topic);
        }
    }

    fn retain(&mut self, stays: impl Fn(&Entry) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|topic, entry| {
            let stays = stays(entry);
            if !stays {
                *bytes -= entry.bytes(topic);
            }
            stays
        });
    }
}

impl Entry {
    fn bytes(&self, (_, subject): &Topic) -> usize {
        ENTRY_BYTES + subject.len() + self.answer.tag.len() + self.answer.body.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Duration = Duration::from_secs(10);

    fn tagged(body: impl Into<Bytes>) -> Option<Tagged> {
        Some(Tagged { tag: HeaderValue::from_static("\"1\""), body: body.into() })
    }

    #[test]
    fn answer_is_kept_for_its_call_and_subject_alone() {
        let (answers, now) = (Answers::new(None), Instant::now());
        answers.put(Call::Sync, "a", tagged("one"), now);
        let later = now + Duration::from_secs(1 << 30);
        assert_eq!(answers.find(Call::Sync, "a", later), tagged("one"));
        assert_eq!(answers.find(Call::Sync, "b", later), None);
        assert_eq!(answers.find(Call::Finalize, "a", later), None);
        answers.put(Call::Sync, "a", tagged("two"), now);
        assert_eq!(answers.find(Call::Sync, "a", later), tagged("two"));
        answers.put(Call::Sync, "a", None, now);
        assert_eq!(answers.find(Call::Sync, "a", later), None);
        assert_eq!(answers.lock().bytes, 0);
    }

    #[test]
    fn answer_ends_with_its_lifetime_however_often_it_is_used() {
        let (answers, now) = (Answers::new(Some(KEPT)), Instant::now());
        answers.put(Call::Sync, "a", tagged("one"), now);
        for seconds in 0..10 {
            assert_eq!(answers.find(Call::Sync, "a", now + Duration::from_secs(seconds)), tagged("one"));
        }
        assert_eq!(answers.find(Call::Sync, "a", now + KEPT), None);
        assert_eq!(answers.lock().bytes, 0);
    }

    #[test]
    fn answers_that_nobody_asks_for_again_go_all_the_same() {
        let (answers, now) = (Answers::new(Some(KEPT)), Instant::now());
        for number in 0..100 {
            answers.put(Call::Sync, &number.to_string(), tagged("one"), now);
        }
        answers.put(Call::Sync, "late", tagged("one"), now + KEPT);
        assert_eq!(answers.lock().entries.len(), 1);
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let now = Instant::now();
        let answers = Answers { most_bytes: 4096, ..Answers::new(None) };
        let body = Bytes::from(vec![b' '; 300]);
        for number in 0..1000 {
            answers.put(Call::Sync, &number.to_string(), tagged(body.clone()), now);
            assert!(answers.lock().bytes <= 4096);
            assert!(answers.find(Call::Sync, "0", now).is_some(), "used all the time: {number}");
            assert!(answers.find(Call::Sync, &number.to_string(), now).is_some(), "just put: {number}");
        }
        assert!(answers.lock().entries.len() >= 5);
        answers.put(Call::Sync, "huge", tagged(vec![b' '; 5000]), now);
        assert!(answers.lock().bytes <= 4096);
    }
}

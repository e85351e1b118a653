//! Which parent is to be visited next, and when.
//!
//! A key is queued once and visited by one worker at a time; what comes in during its visit makes one more
//! visit afterwards. Delayed entries keep the earliest time asked for. Failures back off per key.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::object::name::Key;

/// The first retry comes after this; each further one takes twice as long.
const FIRST_RETRY: Duration = Duration::from_millis(5);
/// The longest wait between retries, unless the definition of the queue says otherwise.
pub(crate) const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// Longer delays are cut: a timer for the year 30,000 is none.
const LONGEST_DELAY: Duration = Duration::from_secs(366 * 24 * 3600);

/// How a visit ended, as far as the queue cares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing more until something changes.
    Rest,
    /// The same again, now: the visit has made progress that it has not seen the end of.
    Again,
    /// Once more after this time, without counting as a failure.
    After(Duration),
    /// Once more after a growing time, which is at least this.
    Backoff(Duration),
}

pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Notify,
    longest_retry: Duration,
}

#[derive(Default)]
struct State {
    due: BTreeMap<(Instant, u64), Key>,
    entries: HashMap<Key, Entry>,
    sequence: u64,
    closed: bool,
}

#[derive(Default)]
struct Entry {
    due: Option<(Instant, u64)>,
    /// The earliest time asked for by a delay; a visit before it does not cancel it.
    asked: Option<Instant>,
    visiting: bool,
    again: bool,
    failures: u32,
    /// When the last failure is to be tried again. One that comes sooner says nothing new, so it does not count.
    retry_at: Option<Instant>,
}

impl Queue {
    pub(crate) fn new(longest_retry: Duration) -> Self {
        Queue { state: Mutex::default(), wake: Notify::new(), longest_retry }
    }

    /// Asks for a visit now.
    pub(crate) fn add(&self, key: Key) {
        let mut state = self.lock();
        let entry = state.entries.entry(key.clone()).or_default();
        if entry.visiting {
            entry.again = true;
            return;
        }
        state.schedule(key, Instant::now());
        drop(state);
        self.wake.notify_one();
    }

    /// Asks for a visit after `delay`, unless an earlier one is already due.
    pub(crate) fn add_after(&self, key: Key, delay: Duration) {
        self.lock().ask(key, Instant::now() + delay.min(LONGEST_DELAY));
        self.wake.notify_one();
    }

    /// Makes the retries of failed visits due now, since what they failed for may be mended.
    pub(crate) fn hurry(&self) {
        let mut state = self.lock();
        let failed = state.entries.iter().filter(|(_, entry)| entry.failures > 0 && !entry.visiting);
        let failed: Vec<Key> = failed.map(|(key, _)| key.clone()).collect();
        let now = Instant::now();
        for key in failed {
            state.schedule(key, now);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// The next key that is due; `None` once the queue is closed. `done` must follow.
    pub(crate) async fn next(&self) -> Option<Key> {
        loop {
            let wait = {
                let mut state = self.lock();
                if state.closed {
                    self.wake.notify_one();
                    return None;
                }
                match state.take_due(Instant::now()) {
                    Ok(key) => {
                        if !state.due.is_empty() {
                            self.wake.notify_one();
                        }
                        return Some(key);
                    }
                    Err(wait) => wait,
                }
            };
            match wait {
                Some(until) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(until) => {}
                        () = self.wake.notified() => {}
                    }
                }
                None => self.wake.notified().await,
            }
        }
    }

    /// Ends the visit of a key.
    pub(crate) fn done(&self, key: &Key, next: Next) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(key) else { return };
        entry.visiting = false;
        let again = std::mem::take(&mut entry.again);
        let now = Instant::now();
        if !matches!(next, Next::Backoff(_)) {
            (entry.failures, entry.retry_at) = (0, None);
        } else if entry.retry_at.is_none_or(|at| at <= now) {
            entry.failures += 1;
        }
        let failures = entry.failures;
        match next {
            Next::Again => state.schedule(key.clone(), now),
            Next::After(delay) => state.ask(key.clone(), now + delay.min(LONGEST_DELAY)),
            Next::Backoff(least) => {
                let retry_at = now + self.retry_delay(failures).max(least.min(LONGEST_DELAY));
                entry.retry_at = Some(retry_at);
                state.schedule(key.clone(), retry_at);
            }
            Next::Rest => {}
        }
        let asked = state.entries.get(key).and_then(|entry| entry.asked);
        for at in again.then_some(now).into_iter().chain(asked) {
            state.schedule(key.clone(), at);
        }
        state.forget_if_idle(key);
        drop(state);
        self.wake.notify_one();
    }

    fn retry_delay(&self, failures: u32) -> Duration {
        FIRST_RETRY.saturating_mul(1 << (failures - 1).min(24)).min(self.longest_retry)
    }

    /// Ends `next` for all workers; keys under visit are still to be ended by `done`.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_waiters();
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn ask(&mut self, key: Key, at: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        entry.asked = Some(entry.asked.map_or(at, |known| known.min(at)));
        if !entry.visiting {
            self.schedule(key, at);
        }
    }

    fn schedule(&mut self, key: Key, at: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        if let Some(known) = entry.due {
            if known.0 <= at {
                return;
            }
            self.due.remove(&known);
        }
        self.sequence += 1;
        let id = (at, self.sequence);
        entry.due = Some(id);
        self.due.insert(id, key);
    }

    /// The first due key that nobody is visiting, else when to look again.
    fn take_due(&mut self, now: Instant) -> Result<Key, Option<Instant>> {
        while let Some((&id, _)) = self.due.first_key_value() {
            if id.0 > now {
                return Err(Some(id.0));
            }
            let key = self.due.remove(&id).expect("the first key is there");
            let entry = self.entries.entry(key.clone()).or_default();
            entry.due = None;
            entry.asked = entry.asked.filter(|asked| *asked > now);
            if entry.visiting {
                entry.again = true;
                continue;
            }
            entry.visiting = true;
            return Ok(key);
        }
        Err(None)
    }

    fn forget_if_idle(&mut self, key: &Key) {
        let idle = |entry: &Entry| entry.due.is_none() && entry.failures == 0 && !entry.visiting;
        if self.entries.get(key).is_some_and(idle) {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("n", name)
    }

    async fn ready(queue: &Queue) -> Option<String> {
        tokio::time::timeout(Duration::ZERO, queue.next()).await.ok().flatten().map(|key| key.name)
    }

    #[tokio::test(start_paused = true)]
    async fn key_added_twice_is_visited_once() {
        let queue = Queue::new(LONGEST_RETRY);
        queue.add(key("a"));
        queue.add(key("a"));
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        queue.done(&key("a"), Next::Rest);
        assert_eq!(ready(&queue).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn trigger_during_a_visit_makes_exactly_one_more() {
        let queue = Queue::new(LONGEST_RETRY);
        queue.add(key("a"));
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        queue.add(key("a"));
        queue.add(key("a"));
        assert_eq!(ready(&queue).await, None, "never twice at once");
        queue.done(&key("a"), Next::Rest);
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        queue.done(&key("a"), Next::Rest);
        assert_eq!(ready(&queue).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn earliest_delay_wins() {
        let queue = Queue::new(LONGEST_RETRY);
        queue.add_after(key("a"), Duration::from_secs(10));
        queue.add_after(key("a"), Duration::from_secs(60));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(ready(&queue).await, None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn visit_in_between_does_not_cancel_a_delay() {
        let queue = Queue::new(LONGEST_RETRY);
        queue.add_after(key("a"), Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(2)).await;
        queue.add(key("a"));
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        queue.done(&key("a"), Next::After(Duration::from_secs(60)));
        tokio::time::advance(Duration::from_secs(8)).await;
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_and_never_end() {
        let queue = Queue::new(Duration::from_secs(1));
        queue.add(key("a"));
        let mut waits = Vec::new();
        for _ in 0..30 {
            let before = Instant::now();
            assert!(queue.next().await.is_some());
            waits.push(before.elapsed().as_millis());
            queue.done(&key("a"), Next::Backoff(Duration::ZERO));
        }
        assert_eq!(waits[..5], [0, 5, 10, 20, 40]);
        assert_eq!(waits[29], 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn triggers_between_retries_do_not_put_them_off() {
        let queue = Queue::new(LONGEST_RETRY);
        for _ in 0..30 {
            queue.add(key("a"));
            assert_eq!(ready(&queue).await.as_deref(), Some("a"));
            queue.done(&key("a"), Next::Backoff(Duration::ZERO));
        }
        tokio::time::advance(FIRST_RETRY).await;
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_keeps_the_delay_that_is_asked_for() {
        let queue = Queue::new(LONGEST_RETRY);
        queue.add(key("a"));
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        let before = Instant::now();
        queue.done(&key("a"), Next::Backoff(Duration::from_secs(2)));
        assert!(queue.next().await.is_some());
        assert_eq!(before.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_does_not_put_off_an_earlier_wish() {
        let queue = Queue::new(LONGEST_RETRY);
        queue.add(key("a"));
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        let before = Instant::now();
        queue.add_after(key("a"), Duration::from_secs(1));
        queue.done(&key("a"), Next::Backoff(Duration::from_secs(60)));
        assert!(queue.next().await.is_some());
        assert_eq!(before.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn retries_can_be_hurried_and_nothing_else() {
        let queue = Queue::new(LONGEST_RETRY);
        for name in ["failed", "asked"] {
            queue.add(key(name));
        }
        assert_eq!(ready(&queue).await.as_deref(), Some("failed"));
        assert_eq!(ready(&queue).await.as_deref(), Some("asked"));
        queue.done(&key("failed"), Next::Backoff(Duration::from_secs(60)));
        queue.done(&key("asked"), Next::After(Duration::from_secs(60)));
        assert_eq!(ready(&queue).await, None);
        queue.hurry();
        assert_eq!(ready(&queue).await.as_deref(), Some("failed"));
        assert_eq!(ready(&queue).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn delay_beyond_every_calendar_is_cut() {
        let queue = Queue::new(LONGEST_RETRY);
        queue.add_after(key("a"), Duration::from_secs(u64::MAX));
        assert_eq!(ready(&queue).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn closed_queue_lets_every_worker_go() {
        let queue = std::sync::Arc::new(Queue::new(LONGEST_RETRY));
        let workers: Vec<_> = (0..3)
            .map(|_| {
                tokio::spawn({
                    let queue = queue.clone();
                    async move { queue.next().await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close();
        for worker in workers {
            assert_eq!(worker.await.expect("worker ends"), None);
        }
    }
}

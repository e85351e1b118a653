//! Which parent is to be visited next, and when.
//!
//! A key is queued once and visited by one worker at a time; what comes in during its visit makes one more
//! visit afterwards. Delayed entries keep the earliest time asked for. Failures back off per key.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::metric::count::{Counter, Histogram};
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
    /// The same, and nothing that was asked for later either: there is nobody to visit.
    Never,
    /// The same again, now: the visit has made progress that it has not seen the end of.
    Again,
    /// Once more after this time, without counting as a failure.
    After(Duration),
    /// Once more after a growing time, which is at least this.
    Backoff(Duration),
}

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Notify,
    longest_retry: Duration,
    traffic: Arc<Traffic>,
}

/// client-go's bounds for its queues.
const BOUNDS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

/// What has gone through a queue.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub adds: Counter,
    pub retries: Counter,
    /// From when a visit is due to its start.
    pub waited: Histogram,
    pub worked: Histogram,
}

impl Default for Traffic {
    fn default() -> Self {
        let (adds, retries) = Default::default();
        Traffic { adds, retries, waited: Histogram::new(&BOUNDS), worked: Histogram::new(&BOUNDS) }
    }
}

/// What is in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// Keys that wait for a worker.
    pub due: usize,
    /// For how long the first of them has waited.
    pub oldest: Duration,
    /// The ages of all visits under way, in sum.
    pub unfinished: Duration,
    /// The age of the oldest of them.
    pub longest: Duration,
}

impl Load {
    /// Both together.
    pub(crate) fn and(self, other: Load) -> Load {
        Load {
            due: self.due + other.due,
            oldest: self.oldest.max(other.oldest),
            unfinished: self.unfinished + other.unfinished,
            longest: self.longest.max(other.longest),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    due: BTreeMap<(Instant, u64), Key>,
    entries: HashMap<Key, Entry>,
    sequence: u64,
    closed: bool,
}

#[derive(Debug, Default)]
struct Entry {
    due: Option<(Instant, u64)>,
    /// The earliest time asked for by a delay; a visit before it does not cancel it.
    asked: Option<Instant>,
    /// Since when it is visited.
    visited_since: Option<Instant>,
    again: bool,
    /// When it was woken first during its visit.
    woken_again: Option<Instant>,
    /// When the visit was asked for that is under way, or has just been.
    woken: Option<Instant>,
    failures: u32,
    /// When the last failure is to be tried again. One that comes sooner says nothing new, so it does not count.
    retry_at: Option<Instant>,
}

impl Queue {
    pub(crate) fn new(longest_retry: Duration, traffic: Arc<Traffic>) -> Self {
        Queue { state: Mutex::default(), wake: Notify::new(), longest_retry, traffic }
    }

    /// What it holds at this moment.
    pub(crate) fn load(&self) -> Load {
        let state = self.lock();
        let now = Instant::now();
        let ages = state.entries.values().filter_map(|entry| Some(now - entry.visited_since?));
        let (unfinished, longest) =
            ages.fold(Default::default(), |(sum, longest), age: Duration| (sum + age, age.max(longest)));
        let oldest = state.due.first_key_value().map_or(Duration::ZERO, |((at, _), _)| now - *at);
        Load { due: state.due.range(..=(now, u64::MAX)).count(), oldest, unfinished, longest }
    }

    /// Asks for a visit now.
    pub(crate) fn add(&self, key: Key) {
        let mut state = self.lock();
        let entry = state.entries.entry(key.clone()).or_default();
        let now = Instant::now();
        if entry.visited_since.is_some() {
            entry.again = true;
            entry.woken_again.get_or_insert(now);
            return;
        }
        state.schedule(key, now);
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
        let failed =
            state.entries.iter().filter(|(_, entry)| entry.failures > 0 && entry.visited_since.is_none());
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
                let now = Instant::now();
                match state.take_due(now) {
                    Ok((key, due)) => {
                        self.traffic.adds.one();
                        self.traffic.waited.note(now - due);
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

    /// For how long what has woken the visit of a key waits by now. The visit before it counts as well.
    pub(crate) fn waited(&self, key: &Key) -> Duration {
        let woken = self.lock().entries.get(key).and_then(|entry| entry.woken);
        woken.map_or(Duration::ZERO, |woken| woken.elapsed())
    }

    /// Ends the visit of a key.
    pub(crate) fn done(&self, key: &Key, next: Next) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(key) else { return };
        let now = Instant::now();
        self.traffic.worked.note(entry.visited_since.take().map_or(Duration::ZERO, |since| now - since));
        let again = std::mem::take(&mut entry.again);
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
                self.traffic.retries.one();
                let retry_at = now + self.retry_delay(failures).max(least.min(LONGEST_DELAY));
                entry.retry_at = Some(retry_at);
                state.schedule(key.clone(), retry_at);
            }
            Next::Rest => {}
            Next::Never => entry.asked = None,
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
        if entry.visited_since.is_none() {
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

    /// The first due key that nobody is visiting and when it was due, else when to look again.
    fn take_due(&mut self, now: Instant) -> Result<(Key, Instant), Option<Instant>> {
        while let Some((&id, _)) = self.due.first_key_value() {
            if id.0 > now {
                return Err(Some(id.0));
            }
            let key = self.due.remove(&id).expect("the first key is there");
            let entry = self.entries.entry(key.clone()).or_default();
            entry.due = None;
            entry.asked = entry.asked.filter(|asked| *asked > now);
            if entry.visited_since.is_some() {
                entry.again = true;
                continue;
            }
            entry.visited_since = Some(now);
            entry.woken = Some(entry.woken_again.take().map_or(id.0, |woken| woken.min(id.0)));
            return Ok((key, id.0));
        }
        Err(None)
    }

    fn forget_if_idle(&mut self, key: &Key) {
        let idle =
            |entry: &Entry| entry.due.is_none() && entry.failures == 0 && entry.visited_since.is_none();
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

    fn queue() -> Queue {
        Queue::new(LONGEST_RETRY, Arc::default())
    }

    async fn ready(queue: &Queue) -> Option<String> {
        tokio::time::timeout(Duration::ZERO, queue.next()).await.ok().flatten().map(|key| key.name)
    }

    #[tokio::test(start_paused = true)]
    async fn key_added_twice_is_visited_once() {
        let queue = queue();
        queue.add(key("a"));
        queue.add(key("a"));
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        queue.done(&key("a"), Next::Rest);
        assert_eq!(ready(&queue).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_of_a_key_that_nobody_is_behind() {
        let queue = queue();
        queue.add_after(key("a"), Duration::from_secs(24 * 3600));
        queue.add(key("a"));
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        queue.done(&key("a"), Next::Never);
        assert!(queue.lock().entries.is_empty() && queue.lock().due.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn trigger_during_a_visit_makes_exactly_one_more() {
        let queue = queue();
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
        let queue = queue();
        queue.add_after(key("a"), Duration::from_secs(10));
        queue.add_after(key("a"), Duration::from_secs(60));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(ready(&queue).await, None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn visit_in_between_does_not_cancel_a_delay() {
        let queue = queue();
        queue.add_after(key("a"), Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(2)).await;
        queue.add(key("a"));
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        queue.done(&key("a"), Next::After(Duration::from_secs(60)));
        tokio::time::advance(Duration::from_secs(8)).await;
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
    }

    // B16
    #[tokio::test(start_paused = true)]
    async fn failures_back_off_and_never_end() {
        let queue = Queue::new(Duration::from_secs(1), Arc::default());
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
        let queue = queue();
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
        let queue = queue();
        queue.add(key("a"));
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        let before = Instant::now();
        queue.done(&key("a"), Next::Backoff(Duration::from_secs(2)));
        assert!(queue.next().await.is_some());
        assert_eq!(before.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_does_not_put_off_an_earlier_wish() {
        let queue = queue();
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
        let queue = queue();
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
    async fn load_is_what_waits_and_what_is_visited() {
        let queue = queue();
        for name in ["a", "b"] {
            queue.add(key(name));
        }
        queue.add_after(key("c"), Duration::from_secs(60));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ready(&queue).await.as_deref(), Some("a"));
        tokio::time::advance(Duration::from_secs(2)).await;
        let (oldest, worked) = (Duration::from_secs(3), Duration::from_secs(2));
        let expected = Load { due: 1, oldest, unfinished: worked, longest: worked };
        assert_eq!(queue.load(), expected);
        queue.done(&key("a"), Next::Backoff(Duration::ZERO));
        let traffic = &queue.traffic;
        assert_eq!((traffic.adds.value(), traffic.retries.value()), (1, 1));
        assert_eq!((traffic.waited.snapshot().seconds, traffic.worked.snapshot().seconds), (1.0, 2.0));
    }

    // B20
    #[tokio::test(start_paused = true)]
    async fn delay_beyond_every_calendar_is_cut() {
        let queue = queue();
        queue.add_after(key("a"), Duration::from_secs(u64::MAX));
        assert_eq!(ready(&queue).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn closed_queue_lets_every_worker_go() {
        let queue = std::sync::Arc::new(queue());
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

//! The connections of a port: how many there may be, and how long one may wait for its caller.
//!
//! The server below us gives a caller a time for the head of its first request. It knows none for the heads that follow,
//! nor for the reading of an answer, and a port that is full it leaves full. So a connection that has waited for its caller
//! too long is closed here, and where all places are taken a further connection gets the place of the one that has waited
//! the longest: who holds connections open takes nothing from those who use theirs.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use futures::task::AtomicWaker;

/// Memory that the head of one request can take: what the server below us reads before it refuses a head.
const HEAD_BYTES: u64 = 128 << 10;
/// The part of the memory that heads of one port may take.
const PART_OF_MEMORY: u64 = 8;
/// More than can wait for a render have no use of a connection.
const CALLS: u64 = 512;
/// One Prometheus, one kubelet and somebody who looks.
const PAGES: u64 = 64;
/// A port is of use even on a machine that has next to nothing.
const LEAST: u64 = 8;
/// Longer than the minute after which controllers and proxies let go of an idle connection, so that they do it first.
const CALLER_WAITS: Duration = Duration::from_secs(75);
/// A probe takes a connection of its own each time, and a scraper connects again.
const PROBE_WAITS: Duration = Duration::from_secs(10);
/// That a port is full is said once in this time.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// What a process may take of its machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Means {
    /// In bytes; `None` where there is no limit.
    pub memory: Option<u64>,
    /// Open files and sockets.
    pub files: Option<u64>,
}

/// What the callers of one port may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Connections, of which those that wait for their callers make room for others.
    pub connections: usize,
    /// How long a connection may be without a request that is being answered.
    pub wait: Duration,
}

impl Limits {
    /// Of a port that answers hook calls or the API server. Two such ports take a quarter of the files together.
    pub(crate) fn of_calls(means: Means) -> Limits {
        let heads = means.memory.map_or(CALLS, |bytes| bytes / PART_OF_MEMORY / HEAD_BYTES);
        let files = means.files.map_or(CALLS, |files| files / 8);
        Limits { connections: CALLS.min(heads).min(files).max(LEAST) as usize, wait: CALLER_WAITS }
    }

    /// Of a port with pages for probes and scrapers. Two such ports take an eighth of the files together.
    pub(crate) fn of_pages(means: Means) -> Limits {
        let files = means.files.map_or(PAGES, |files| files / 16);
        Limits { connections: PAGES.min(files).max(LEAST) as usize, wait: PROBE_WAITS }
    }

    /// How many the server below us may hold: those that are being closed, too.
    pub(super) fn with_those_that_come_and_go(&self) -> usize {
        self.connections + self.connections.div_ceil(4)
    }
}

/// The connections of one port.
#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    held: BTreeMap<u64, Held>,
    /// When it was last said that all places are taken.
    said: Option<Instant>,
}

#[derive(Debug)]
struct Held {
    line: Arc<Line>,
    /// Since when it waits for its caller, unless an answer is being made.
    waits_since: Option<Instant>,
}

/// By this a connection is told that it is over, on whatever thread it is.
#[derive(Debug, Default)]
struct Line {
    is_closed: AtomicBool,
    waker: AtomicWaker,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Arc<Connections> {
        Arc::new(Connections { limits, open: Mutex::default() })
    }

    /// Gives a place to a new connection.
    pub(super) fn admit(self: &Arc<Self>, now: Instant) -> Connection {
        let mut open = self.open();
        if open.held.len() >= self.limits.connections {
            open.make_room(now);
        }
        let id = open.next;
        open.next += 1;
        let line = Arc::<Line>::default();
        open.held.insert(id, Held { line: line.clone(), waits_since: Some(now) });
        let (may_be_read, read_was_refused) = (Cell::new(true), Cell::new(false));
        Connection { id, of: self.clone(), line, may_be_read, read_was_refused }
    }

    /// Closes what waits too long, for as long as it is polled.
    pub(super) async fn watch(&self) {
        loop {
            tokio::time::sleep(self.limits.wait / 8).await;
            self.open().close_where(Instant::now(), self.limits.wait);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Where every connection is at work there is no room to be made: they end by themselves.
    fn make_room(&mut self, now: Instant) {
        if self.said.is_none_or(|said| now.saturating_duration_since(said) > SAID_AGAIN) {
            tracing::warn!(
                connections = self.held.len(),
                "port is full, new callers take the places of those that send nothing"
            );
            self.said = Some(now);
        }
        let waiting = self.held.iter().filter_map(|(id, held)| Some((held.waits_since?, *id)));
        if let Some((_, id)) = waiting.min() {
            self.close(id);
        }
    }

    fn close_where(&mut self, now: Instant, wait: Duration) {
        let over = |since: Instant| now.saturating_duration_since(since) > wait;
        let ids: Vec<u64> = self
            .held
            .iter()
            .filter(|(_, held)| held.waits_since.is_some_and(over))
            .map(|(id, _)| *id)
            .collect();
        ids.into_iter().for_each(|id| self.close(id));
    }

    fn close(&mut self, id: u64) {
        if let Some(Held { line, .. }) = self.held.remove(&id) {
            line.is_closed.store(true, Ordering::Release);
            line.waker.wake();
        }
    }
}

/// One connection, kept with it for as long as it is open.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    of: Arc<Connections>,
    line: Arc<Line>,
    may_be_read: Cell<bool>,
    read_was_refused: Cell<bool>,
}

impl Connection {
    /// Something is still to come from the caller.
    pub(super) fn waits(&self) {
        self.set(Some(Instant::now()));
        self.may_be_read.set(true);
        self.read_again();
    }

    /// All is there that an answer is made from. What comes meanwhile is left where it is.
    pub(super) fn works(&self) {
        self.set(None);
        self.may_be_read.set(false);
    }

    pub(super) fn may_be_read(&self) -> bool {
        self.may_be_read.get()
    }

    /// Whoever wanted to read is to be woken for it.
    pub(super) fn refuse_read(&self) {
        self.read_was_refused.set(true);
    }

    pub(super) fn read_again(&self) {
        if self.read_was_refused.replace(false) {
            self.line.waker.wake();
        }
    }

    /// Whether its place was given to somebody else. Where it is not, the task is woken when it is.
    pub(super) fn is_closed(&self, cx: &Context<'_>) -> bool {
        self.line.waker.register(cx.waker());
        self.line.is_closed.load(Ordering::Acquire)
    }

    /// Done when its place was given to somebody else.
    pub(super) async fn closed(&self) {
        poll_fn(|cx| if self.is_closed(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    fn set(&self, waits_since: Option<Instant>) {
        if let Some(held) = self.of.open().held.get_mut(&self.id) {
            held.waits_since = waits_since;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.of.open().held.remove(&self.id);
    }
}

/// Tells of a request from its head to its answer. Whoever reads a body tells of that.
pub(super) async fn follow<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let connection = request.conn_data::<Rc<Connection>>().cloned();
    connection.iter().for_each(|connection| connection.works());
    let response = next.call(request).await;
    connection.iter().for_each(|connection| connection.waits());
    response
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    struct Port {
        connections: Arc<Connections>,
        began: Instant,
    }

    impl Port {
        fn new(connections: usize) -> Port {
            let limits = Limits { connections, wait: Duration::from_secs(10) };
            Port { connections: Connections::new(limits), began: Instant::now() }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.began + Duration::from_secs(seconds)
        }

        fn call(&self, seconds: u64) -> Connection {
            self.connections.admit(self.at(seconds))
        }
    }

    fn is_open(connection: &Connection) -> bool {
        !connection.is_closed(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_further_caller_takes_the_place_of_the_one_that_has_waited_the_longest() {
        let port = Port::new(3);
        let callers = [port.call(0), port.call(1), port.call(2)];
        callers[0].works();
        let fourth = port.call(3);
        assert_eq!(callers.each_ref().map(is_open), [true, false, true]);
        let fifth = port.call(4);
        assert_eq!(callers.each_ref().map(is_open), [true, false, false]);
        assert!(is_open(&fourth) && is_open(&fifth));
    }

    #[test]
    fn nobody_who_is_being_answered_makes_room() {
        let port = Port::new(2);
        let callers = [port.call(0), port.call(0)];
        callers.iter().for_each(|caller| caller.works());
        let further = port.call(1);
        assert!(callers.iter().chain([&further]).all(is_open));
    }

    #[test]
    fn whoever_waits_too_long_is_let_go() {
        let port = Port::new(9);
        let (first, second, third) = (port.call(0), port.call(1), port.call(0));
        third.works();
        port.connections.open().close_where(port.at(11), port.connections.limits.wait);
        assert_eq!([&first, &second, &third].map(is_open), [false, true, true]);
    }

    #[test]
    fn a_connection_that_has_ended_leaves_nothing_behind() {
        let port = Port::new(2);
        drop(port.call(0));
        let callers = [port.call(1), port.call(2)];
        assert!(callers.iter().all(is_open));
        drop(callers);
        assert!(port.connections.open().held.is_empty());
    }

    #[test]
    fn limits_follow_memory_and_files() {
        let calls = |memory: Option<u64>, files| Limits::of_calls(Means { memory, files }).connections;
        let pages = |files| Limits::of_pages(Means { memory: None, files }).connections;
        assert_eq!(calls(None, None), 512);
        assert_eq!(calls(Some(128 << 20), Some(1 << 20)), 128);
        assert_eq!(calls(Some(1 << 30), Some(1024)), 128);
        assert_eq!((calls(Some(1), Some(1)), pages(Some(1))), (8, 8));
        assert_eq!((pages(None), pages(Some(256))), (64, 16));
        // All four ports with all that comes and goes leave half of the files to the controller.
        let taken = |limits: Limits| 2 * limits.with_those_that_come_and_go();
        for files in [256, 1024, 4096, 1 << 20] {
            let means = Means { memory: None, files: Some(files) };
            let all = taken(Limits::of_calls(means)) + taken(Limits::of_pages(means));
            assert!(all as u64 <= files / 2, "{all} of {files}");
        }
    }
}

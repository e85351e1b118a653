//! Renders on threads of their own, as many at once as the container has cores, so that a slow template holds up no socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::hook::BuiltIn;
use crate::hook::local::answer::Response;
use crate::hook::local::{Given, Reason, Refusal, Shelf};
use crate::hook::wire::Failure;
use crate::hook::wire::answer::Answer;
use crate::problem::Problem;
use crate::trace;

/// Calls that may wait for a core. At 50 µs each, the last one waits for some 30 ms.
const WAITING: usize = 512;

/// A shelf and the threads that render from it.
pub(crate) struct Renders {
    shelf: Arc<Shelf>,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Too many calls wait already.
#[derive(Debug)]
pub(crate) struct Overload;

impl Renders {
    pub(crate) fn new(shelf: Arc<Shelf>) -> Renders {
        // This honours a container's CPU limit, not only the host's count.
        let cores = available_parallelism().map_or(1, usize::from);
        Renders { shelf, turns: Arc::new(Semaphore::new(cores)), waiting: AtomicUsize::new(0) }
    }

    pub(crate) fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    /// Waits for a core, renders, and hands the answer to `finish` on that same core.
    pub(crate) async fn answer<T: Send + 'static>(
        &self,
        hook: &str,
        call: &str,
        body: Bytes,
        finish: impl FnOnce(Result<Response, Refusal>) -> T + Send + 'static,
    ) -> Result<T, Overload> {
        let _place = Place::take(&self.waiting)?;
        let turn = self.turns.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (shelf, hook, call) = (self.shelf.clone(), hook.to_string(), call.to_string());
        let trace = trace::current();
        let render = move || {
            let _within = trace.enter();
            // Held by the render itself: a caller that goes away ends the wait, not the work.
            let _turn = turn;
            finish(shelf.answer(&hook, &call, &body, given_now()))
        };
        Ok(spawn_blocking(render).await.expect("a panic of a render is caught"))
    }
}

/// A place among those who wait or are rendered.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Result<Place<'a>, Overload> {
        let place = Place(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) >= WAITING { Err(Overload) } else { Ok(place) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl BuiltIn for Renders {
    fn answer<'a>(
        &'a self,
        hook: &'a str,
        call: &'a str,
        body: Bytes,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let answer = |result: Result<Response, Refusal>| {
                result.map_err(failure).and_then(|response| response.into_answer().map_err(Failure::Refused))
            };
            let overload = |Overload| Failure::Busy { after: Some(Duration::from_millis(100)) };
            Renders::answer(self, hook, call, body, answer).await.map_err(overload)?
        })
    }

    fn problem(&self, hook: &str, call: &str) -> Option<Problem> {
        self.shelf.problem(hook, call)
    }
}

fn failure(refusal: Refusal) -> Failure {
    match refusal.reason {
        Reason::Panicked => Failure::Unavailable { message: refusal.problem.to_string(), retry_after: None },
        // A template that does not compile is mended by its author, as one that fails is.
        Reason::Malformed | Reason::Unknown | Reason::Fault | Reason::NotReady => {
            Failure::Refused(refusal.problem)
        }
    }
}

/// The present, and randomness that no other render has.
pub(crate) fn given_now() -> Given {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).expect("the system has randomness");
    Given { now: Timestamp::now(), entropy }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Instant;

    use futures::future::join_all;

    use super::*;

    const PARENT: &[u8] =
        br#"{"apiVersion": "a.b/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"n": 1}}"#;

    fn renders(hooks: &[(&str, &str)]) -> Renders {
        let folder = tempfile::tempdir().expect("a folder");
        for (hook, text) in hooks {
            std::fs::create_dir(folder.path().join(hook)).expect("a folder");
            std::fs::write(folder.path().join(hook).join("sync.yaml"), text).expect("a file");
        }
        Renders::new(Shelf::open(folder.path()))
    }

    // B127: whoever renders waits for the others to be there too, which one at a time would never be.
    #[tokio::test(flavor = "multi_thread")]
    async fn as_many_are_rendered_at_once_as_there_are_cores_and_the_others_wait() {
        let renders = renders(&[("good", "status: {a: 1}")]);
        let cores = available_parallelism().map_or(1, usize::from);
        let deadline = Instant::now() + Duration::from_secs(20);
        let within = Arc::new(Mutex::new((0, 0)));
        let calls = (0..4 * cores).map(|_| {
            let within = within.clone();
            let meet = move |answer: Result<Response, Refusal>| {
                {
                    let mut within = within.lock().expect("nobody panics with it");
                    within.0 += 1;
                    within.1 = within.1.max(within.0);
                }
                while within.lock().expect("nobody panics with it").1 < cores && Instant::now() < deadline {
                    std::thread::yield_now();
                }
                within.lock().expect("nobody panics with it").0 -= 1;
                answer.is_ok()
            };
            renders.answer("good", "sync", Bytes::from_static(PARENT), meet)
        });
        for answer in join_all(calls).await {
            assert!(answer.expect("there is a place for it"));
        }
        assert_eq!(within.lock().expect("nobody panics with it").1, cores);
    }

    // B117
    #[tokio::test]
    async fn render_that_panics_is_tried_again_and_the_others_are_answered() {
        let renders = renders(&[("bad", "status: {{ parent.spec | panic }}"), ("good", "status: {a: 1}")]);
        for _ in 0..3 {
            let failure = BuiltIn::answer(&renders, "bad", "sync", Bytes::from_static(PARENT)).await.err();
            let Some(Failure::Unavailable { message, .. }) = failure else { panic!("{failure:?}") };
            assert_eq!(message, "internal error; the log says more");
            assert!(BuiltIn::answer(&renders, "good", "sync", Bytes::from_static(PARENT)).await.is_ok());
        }
        let mut text = crate::metric::text::Text::default();
        renders.shelf().write_metrics(&mut text);
        let counted = "syncwright_renders_total{hook=\"bad\",call=\"sync\",outcome=\"panicked\"} 3";
        let page = text.into_string();
        assert!(page.contains(counted), "{page}");
    }
}

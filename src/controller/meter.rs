//! What is measured of visits, parents and hook calls, by definition. A visit costs some twenty atomic additions.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::config::Definition;
use crate::controller::queue::{Load, Next, Queue, Traffic};
use crate::controller::visit::{Ended, INTERNAL_ERROR};
use crate::hook::remote;
use crate::hook::wire::{Call, Failure};
use crate::metric::count::{Counter, Gauge, Histogram};
use crate::metric::series::Series;

/// 15 bounds, each twice the one before: 10 ms to 164 s.
const VISIT_BOUNDS: [f64; 15] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84];
/// controller-runtime's for the time of a reconcile.
const RUNTIME_BOUNDS: [f64; 35] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 30.0, 60.0,
];
/// A call of a template takes some 50 µs, one over the network some milliseconds.
const HOOK_BOUNDS: [f64; 12] = [0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0];

/// How a visit ended, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Waiting,
    Retry,
    Stuck,
    /// The parent has changed meanwhile.
    Changed,
    /// A bug of ours.
    Panicked,
}

/// The outcomes and their names.
pub(super) const OUTCOMES: [(Outcome, &str); 6] = [
    (Outcome::Done, "done"),
    (Outcome::Waiting, "waiting"),
    (Outcome::Retry, "retry"),
    (Outcome::Stuck, "stuck"),
    (Outcome::Changed, "changed"),
    (Outcome::Panicked, "panicked"),
];

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        OUTCOMES.iter().find(|(outcome, _)| *outcome == self).expect("every outcome has a name").1
    }

    pub(crate) fn of(ended: &Ended) -> Outcome {
        match ended {
            Ended::Done => Outcome::Done,
            Ended::Waiting(_) => Outcome::Waiting,
            Ended::Retry(note) if note.reason == INTERNAL_ERROR => Outcome::Panicked,
            Ended::Retry(_) => Outcome::Retry,
            Ended::Stuck(_) => Outcome::Stuck,
            Ended::Changed => Outcome::Changed,
        }
    }
}

/// What follows a visit, in controller-runtime's words.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub error: Counter,
    pub requeue: Counter,
    pub requeue_after: Counter,
    pub success: Counter,
}

impl Followed {
    fn by(&self, next: Next) -> &Counter {
        match next {
            Next::Backoff(_) => &self.error,
            Next::Again => &self.requeue,
            Next::After(_) => &self.requeue_after,
            Next::Rest | Next::Never => &self.success,
        }
    }
}

/// What is measured of all definitions.
#[derive(Debug)]
pub(crate) struct Meters {
    /// By the kind and the name of each.
    definitions: Series<2, Meter>,
    /// Of their hooks that are called over HTTP.
    pub remote: remote::meter::Meters,
}

impl Default for Meters {
    fn default() -> Self {
        Meters { definitions: Series::new(Meter::new), remote: remote::meter::Meters::default() }
    }
}

impl Meters {
    pub(crate) fn of(&self, definition: &Definition) -> Arc<Meter> {
        self.definitions.of([definition.spec.role.kind(), &definition.name])
    }

    /// What waits in all queues.
    pub(crate) fn load(&self) -> Load {
        self.all().iter().fold(Load::default(), |load, (_, meter)| load.and(meter.load().0))
    }

    pub(super) fn all(&self) -> Vec<([String; 2], Arc<Meter>)> {
        self.definitions.all()
    }
}

/// What is measured of one definition. It outlives the definition, as counters must.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(super) outcomes: [Counter; OUTCOMES.len()],
    pub(super) followed: Followed,
    pub(super) took: Histogram,
    pub(super) took_by_runtime: Histogram,
    pub(super) under_way: Gauge,
    pub(super) traffic: Arc<Traffic>,
    pub(super) parents: Arc<Standings>,
    /// By call and outcome.
    pub(super) hook_calls: Series<2, Counter>,
    /// By call.
    pub(super) hook_took: Series<1, Histogram>,
    /// The queues of this definition, each with the number of its workers: a DecoratorController has one for each of its
    /// resources.
    queues: Mutex<Vec<(usize, Weak<Queue>)>>,
}

impl Meter {
    fn new() -> Meter {
        Meter {
            outcomes: Default::default(),
            followed: Followed::default(),
            took: Histogram::new(&VISIT_BOUNDS),
            took_by_runtime: Histogram::new(&RUNTIME_BOUNDS),
            under_way: Gauge::default(),
            traffic: Arc::default(),
            parents: Arc::default(),
            hook_calls: Series::default(),
            hook_took: Series::new(|| Histogram::new(&HOOK_BOUNDS)),
            queues: Mutex::default(),
        }
    }

    /// Looks at this queue too, for as long as it is there.
    pub(crate) fn follow(&self, queue: &Arc<Queue>, workers: usize) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|(_, queue)| queue.strong_count() > 0);
        queues.push((workers, Arc::downgrade(queue)));
    }

    /// Notes that a visit begins; it ends when what this gives is dropped.
    pub(crate) fn visit_begins(&self) -> UnderWay<'_> {
        self.under_way.add(1);
        UnderWay(&self.under_way)
    }

    pub(crate) fn visit_ended(&self, outcome: Outcome, next: Next, took: Duration) {
        self.outcomes[outcome as usize].one();
        self.followed.by(next).one();
        self.took.note(took);
        self.took_by_runtime.note(took);
    }

    /// Waits for the answer of a hook.
    pub(crate) async fn hook<T>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let began = Instant::now();
        let answer = answer.await;
        let outcome = answer.as_ref().err().map_or("answered", Failure::name);
        self.hook_calls.of([call.name(), outcome]).one();
        self.hook_took.of([call.name()]).note(began.elapsed());
        answer
    }

    /// What all its queues hold, and how many parents may be visited at once.
    pub(super) fn load(&self) -> (Load, usize) {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let living = queues.iter().filter_map(|(workers, queue)| Some((*workers, queue.upgrade()?)));
        living.fold(Default::default(), |(load, all): (Load, usize), (workers, queue)| {
            (load.and(queue.load()), all + workers)
        })
    }
}

/// A visit under way.
pub(crate) struct UnderWay<'a>(&'a Gauge);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

/// How many parents stand where.
#[derive(Debug, Default)]
pub(crate) struct Standings([Gauge; 4]);

impl Standings {
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, i64)> {
        ["done", "waiting", "retry", "stuck"].into_iter().zip(self.0.iter().map(Gauge::value))
    }
}

/// Where one parent stands since its last visit. Counted until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Standing(Option<(Arc<Standings>, usize)>);

impl Standing {
    pub(crate) fn set(&mut self, standings: &Arc<Standings>, outcome: Outcome) {
        let at = match outcome {
            Outcome::Done => 0,
            Outcome::Waiting => 1,
            Outcome::Retry | Outcome::Panicked => 2,
            Outcome::Stuck => 3,
            // It is visited once more, at once.
            Outcome::Changed => return,
        };
        standings.0[at].add(1);
        // The earlier one leaves when it is dropped.
        *self = Standing(Some((standings.clone(), at)));
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        if let Some((standings, at)) = &self.0 {
            standings.0[*at].add(-1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_under_their_names() {
        for (at, (outcome, _)) in OUTCOMES.iter().enumerate() {
            assert_eq!(at, *outcome as usize);
        }
    }

    #[test]
    fn a_parent_stands_in_one_place_until_it_is_forgotten() {
        let standings = Arc::<Standings>::default();
        let count = || standings.named().map(|(_, count)| count).collect::<Vec<_>>();
        let mut standing = Standing::default();
        standing.set(&standings, Outcome::Retry);
        assert_eq!(count(), [0, 0, 1, 0]);
        standing.set(&standings, Outcome::Changed);
        assert_eq!(count(), [0, 0, 1, 0], "nothing new is known");
        standing.set(&standings, Outcome::Done);
        assert_eq!(count(), [1, 0, 0, 0]);
        drop(standing);
        assert_eq!(count(), [0; 4]);
    }
}

//! Runs cases, as many at once as there are cores, and tells what became of each.

pub(crate) mod coverage;
mod report;

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::author::case::{Accept, Case, Verdict};
use crate::author::test::coverage::Coverage;
use crate::hook::local::Shelf;
use crate::problem::Problem;

/// What became of one case.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub hook: String,
    /// The case without its hook: `waits-for-replicas/sync`.
    pub case: String,
    pub verdict: Verdict,
    pub took: Duration,
}

/// What became of all of them.
#[derive(Debug)]
pub(crate) struct Results {
    /// In name order.
    pub outcomes: Vec<Outcome>,
    /// Why hooks do not compile, or the folder cannot be read.
    pub problems: Vec<Problem>,
    /// The branches that were taken, where the shelf watches them.
    pub coverage: Option<Coverage>,
    pub took: Duration,
}

/// A case whose own files cannot be read or written.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub case: String,
    pub cause: io::Error,
}

/// Runs the cases against what the shelf holds.
pub(crate) fn run(cases: &[Case], shelf: &Shelf, accept: Accept) -> Result<Results, Unreadable> {
    let began = Instant::now();
    let outcomes = in_parallel(cases, |case| outcome(case, shelf, accept))?;
    let took = began.elapsed();
    let coverage = shelf.is_watched().then(|| Coverage::of(shelf, &outcomes));
    Ok(Results { outcomes, problems: broken(shelf), coverage, took })
}

impl Results {
    /// Whether every case got what it expects, from hooks that all compile.
    pub(crate) fn are_good(&self) -> bool {
        self.problems.is_empty() && self.count(|verdict| matches!(verdict, Verdict::Failed(_))) == 0
    }

    /// How many cases ended so.
    pub(crate) fn count(&self, so: impl Fn(&Verdict) -> bool) -> usize {
        self.outcomes.iter().filter(|outcome| so(&outcome.verdict)).count()
    }
}

fn outcome(case: &Case, shelf: &Shelf, accept: Accept) -> Result<Outcome, Unreadable> {
    let began = Instant::now();
    let verdict = case.run(shelf, accept).map_err(|cause| Unreadable { case: case.name.clone(), cause })?;
    let (hook, rest) = case.name.split_once('/').expect("a case is named after its hook");
    Ok(Outcome { hook: hook.into(), case: rest.into(), verdict, took: began.elapsed() })
}

/// Does the work for each item on as many threads as there are cores; the results are in the items' order.
fn in_parallel<T: Sync, R: Send, E: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, item)) = take(items, &next) {
                    let result = work(item);
                    done.lock().expect("no thread panics with the lock").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics with the lock");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn take<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, items.get(index)?))
}

/// Why hooks do not compile; their cases say only that they don't. A broken file that several hooks include is told once.
pub(crate) fn broken(shelf: &Shelf) -> Vec<Problem> {
    let state = shelf.state();
    let rejected = state.hooks.into_iter().filter_map(|hook| hook.rejected);
    let mut problems: Vec<Problem> = Vec::new();
    for problem in rejected.flat_map(|rejected| rejected.problems).chain(state.unreadable) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..500).collect();
        let doubled = in_parallel(&items, |item| Ok::<_, ()>(item * 2)).unwrap();
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_failure_is_told() {
        let items: Vec<usize> = (0..500).collect();
        let work = |item: &usize| if item % 100 == 99 { Err(*item) } else { Ok(*item) };
        assert_eq!(in_parallel(&items, work), Err(99));
    }
}

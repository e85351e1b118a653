//! Whether the process lives, and whether it has seen what it needs to do its work.
//!
//! It lives while its threads get round to their tasks and none holds a lock for good. An API server that is away is no
//! reason to end it: that would mend nothing, and lose what is known.
//!
//! It is ready once the API server has answered and every kind under watch was looked at: listed, or known to be missing
//! or forbidden, since one definition's trouble must not take the others out of service. That is said once: a definition
//! that comes later does not make it less ready.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::cli::admin::Subjects;
use crate::cluster::kind::State;
use crate::hook::local::Shelf;
use crate::serve::admin::{Check, Found, Look, Pages};
use crate::serve::certificate::Standing;

/// How often it is looked whether the process lives.
const BEAT: Duration = Duration::from_secs(1);
/// How often it is looked whether it is ready, until it is.
const LOOK: Duration = Duration::from_millis(100);
/// Without a beat for so long it is stuck: no task takes a thread for as long as a second.
const STUCK: Duration = Duration::from_secs(60);

/// What is known of the process's health.
pub(super) struct Health {
    subjects: Arc<Subjects>,
    last_beat: Mutex<Instant>,
    ready: AtomicBool,
    stopping: AtomicBool,
}

impl Health {
    /// Looks from now on, until `stop` is done.
    pub(super) fn watch(
        subjects: Arc<Subjects>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<Health> {
        let health = Arc::new(Health {
            subjects,
            last_beat: Mutex::new(Instant::now()),
            ready: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        });
        tokio::spawn(health.clone().beat());
        let told = health.clone();
        tokio::spawn(async move {
            stop.await;
            told.stopping.store(true, Ordering::Relaxed);
        });
        health
    }

    pub(super) fn pages(self: &Arc<Self>) -> Pages {
        let (health, readiness) = (self.clone(), self.clone());
        let health: Look = Arc::new(move || health.alive(Instant::now()));
        Pages::Probes { health, readiness: Arc::new(move || readiness.readiness()) }
    }

    /// Takes the locks that everybody takes, and tells that it got them.
    async fn beat(self: Arc<Self>) {
        let began = Instant::now();
        let mut looked_at = None;
        loop {
            self.subjects.meters.load();
            let kinds = self.subjects.cluster.progress();
            *self.last_beat.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            if self.ready.load(Ordering::Relaxed) {
                tokio::time::sleep(BEAT).await;
                continue;
            }
            // Kinds lead to kinds: a definition that was just listed names others, which come under watch in a moment.
            let all = self.subjects.cluster.has_answered()
                && kinds.iter().all(|kind| kind.state != State::Starting);
            if all && looked_at == Some(kinds.len()) {
                self.ready.store(true, Ordering::Relaxed);
                let milliseconds = began.elapsed().as_millis() as u64;
                tracing::info!(kinds = kinds.len(), milliseconds, "ready");
                continue;
            }
            looked_at = all.then_some(kinds.len());
            tokio::time::sleep(LOOK).await;
        }
    }

    fn alive(&self, now: Instant) -> Vec<Check> {
        let last = *self.last_beat.lock().unwrap_or_else(PoisonError::into_inner);
        vec![Check::new("pulse", pulse(now.saturating_duration_since(last)))]
    }

    fn readiness(&self) -> Vec<Check> {
        let ready = self.ready.load(Ordering::Relaxed);
        let mut checks = vec![self.ending(), self.leader(), self.api_server()];
        checks.extend(self.kinds(ready));
        if !ready && checks.iter().all(|check| !matches!(check.found, Found::Missing(_))) {
            checks.push(Check::new("definitions", Found::Missing("being started".into())));
        }
        checks.extend(self.subjects.shelf.iter().flat_map(|shelf| hooks(shelf)));
        checks.extend(self.subjects.certificate.iter().map(|certificate| {
            let leads = self.subjects.cluster.gate.is_open();
            Check::new("webhooks", webhooks(&certificate.standing(), leads, Timestamp::now()))
        }));
        checks
    }

    fn ending(&self) -> Check {
        let found = if self.stopping.load(Ordering::Relaxed) {
            Found::Missing("visits under way are ended, and no more are begun".into())
        } else {
            Found::Well(String::new())
        };
        Check::new("running", found)
    }

    /// One that stands by is ready to take over.
    fn leader(&self) -> Check {
        let leads = self.subjects.cluster.gate.is_open();
        let words = match (&self.subjects.lease, leads) {
            (None, _) => String::new(),
            (Some(lease), true) => format!("this process holds the lease `{lease}`"),
            (Some(lease), false) => format!("another process holds the lease `{lease}`, this one stands by"),
        };
        Check::new("leader", Found::Well(words))
    }

    fn api_server(&self) -> Check {
        let found = if self.subjects.cluster.has_answered() {
            Found::Well(String::new())
        } else {
            Found::Missing("it has not answered yet".into())
        };
        Check::new("api-server", found)
    }

    fn kinds(&self, ready: bool) -> impl Iterator<Item = Check> {
        let kinds = self.subjects.cluster.progress();
        kinds.into_iter().map(move |kind| {
            let found = match kind.state {
                State::Live(_) => Found::Well(format!("{} objects", kind.objects)),
                State::Starting if ready => Found::Noted("not listed yet".into()),
                State::Starting => Found::Missing("not listed yet".into()),
                State::Absent(why) | State::Failing(why) => Found::Noted(why),
            };
            Check::new(format!("kind {}", kind.name), found)
        })
    }
}

fn pulse(age: Duration) -> Found {
    if age < STUCK {
        return Found::Well(String::new());
    }
    Found::Missing(format!("no task has come to its turn for {} s: the process is stuck", age.as_secs()))
}

/// Without a certificate that is good the API server's questions are not answered. Where there has never been one it is the
/// leader's to make, who may be an older release that makes none: one that stands by and were not ready for that would keep
/// the older one in its place.
fn webhooks(standing: &Standing, leads: bool, now: Timestamp) -> Found {
    let trouble = standing.trouble.clone();
    let Some(until) = standing.until.and_then(|until| Timestamp::from_second(until).ok()) else {
        let trouble = trouble.unwrap_or_default();
        return if leads { Found::Missing(trouble) } else { Found::Noted(trouble) };
    };
    let shown = format!("the certificate is good until {until}");
    match trouble {
        _ if until <= now => Found::Missing(format!("the certificate was good until {until}")),
        Some(trouble) => Found::Noted(format!("{shown}; {trouble}")),
        None => Found::Well(shown),
    }
}

/// A hook that does not compile is no reason to fail: its last good revision answers, and all others do.
fn hooks(shelf: &Shelf) -> Vec<Check> {
    let state = shelf.state();
    let folder = state.unreadable.map(|problem| Check::new("hooks", Found::Noted(problem.to_string())));
    let hooks = state.hooks.into_iter().map(|hook| {
        let answers = hook.revision.map_or("no revision".into(), |revision| format!("revision {revision}"));
        let found = match hook.rejected {
            None => Found::Well(answers),
            Some(rejected) => {
                let problems: Vec<String> = rejected.problems.iter().map(ToString::to_string).collect();
                let newer = rejected.revision;
                Found::Noted(format!("{answers} answers, {newer} does not compile: {}", problems.join("; ")))
            }
        };
        Check::new(format!("hook {}", hook.hook), found)
    });
    folder.into_iter().chain(hooks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_has_ended_or_is_missing_serves_nobody() {
        let now: Timestamp = "2026-12-01T00:00:00Z".parse().expect("a time");
        let standing = |until: Option<i64>, trouble: Option<&str>| Standing {
            until,
            authority: None,
            trouble: trouble.map(Into::into),
        };
        let good = Some(now.as_second() + 60);
        let text = "the certificate is good until 2026-12-01T00:01:00Z";
        let leader = |standing: Standing| webhooks(&standing, true, now);
        assert_eq!(leader(standing(good, None)), Found::Well(text.into()));
        assert_eq!(leader(standing(good, Some("why"))), Found::Noted(format!("{text}; why")));
        assert_eq!(leader(standing(None, Some("why"))), Found::Missing("why".into()));
        assert_eq!(webhooks(&standing(None, Some("why")), false, now), Found::Noted("why".into()));
        let ended = "the certificate was good until 2026-12-01T00:00:00Z";
        assert_eq!(leader(standing(Some(now.as_second()), None)), Found::Missing(ended.into()));
    }

    #[test]
    fn a_process_without_a_beat_is_stuck() {
        assert_eq!(pulse(Duration::from_secs(59)), Found::Well(String::new()));
        let Found::Missing(words) = pulse(Duration::from_secs(61)) else { panic!("it is alive") };
        assert_eq!(words, "no task has come to its turn for 61 s: the process is stuck");
    }
}

//! Leader election on a Lease: of several processes one writes, the others are ready to.
//!
//! The holder renews the lease and, with each renewal, opens the gate for the renew deadline, which is shorter than the
//! lease: others may take it when it has not changed for the whole lease. So the gate is closed some time before anybody
//! else's opens, whatever happens to this process meanwhile.
//!
//! What others of Kubernetes' elections read and write is the same, so that one of them can hand over to this one.

mod record;
mod view;

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::client::Body;
use serde_json::Value;
use tracing::{info, warn};

use self::record::{Record, Terms};
use self::view::View;
use super::Cluster;
use super::event::{About, Recorder, Severity};
use super::gate::Moment;
use super::request::{self, Error};
use crate::object::name::{Gvk, Key};

/// What this process runs for.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub namespace: String,
    pub name: String,
    /// Who this process is. No other process ever has the same.
    pub identity: String,
    /// For how long a lease that is not renewed is its holder's.
    pub lease: Duration,
    /// For how long after a renewal the holder writes. Shorter than the lease.
    pub renew: Duration,
    /// The time between two tries.
    pub retry: Duration,
}

/// One process's part in an election.
pub(crate) struct Election {
    cluster: Arc<Cluster>,
    claim: Claim,
    view: View,
    /// What this process has written last.
    own: Option<Terms>,
}

/// What came of a try to write the Lease.
enum Written {
    /// It says what we want it to.
    Done,
    /// Somebody else was quicker.
    Changed,
}

impl Election {
    /// Nobody leads yet, as far as this process knows. The cluster's gate must be a closed one.
    pub(crate) fn new(cluster: Arc<Cluster>, claim: Claim) -> Self {
        let view = View::new(claim.lease, Moment::now());
        Election { cluster, claim, view, own: None }
    }

    /// Takes part until the lease was ours and is lost. Gives the reason.
    pub(crate) async fn run(&mut self) -> String {
        self.acquire().await;
        self.announce();
        self.hold().await
    }

    /// Gives the lease back, so that nobody has to wait for its end. From now on nothing is written here.
    pub(crate) async fn resign(mut self) {
        let led = self.cluster.gate.is_open();
        self.cluster.gate.close();
        if !led {
            return;
        }
        match self.give_back().await {
            Ok(true) => info!(lease = %self.place(), "lease given back"),
            Ok(false) => info!(lease = %self.place(), "lease is another's already"),
            Err(error) => warn!(lease = %self.place(), %error, "lease not given back: it runs out by itself"),
        }
    }

    /// Looks first, since a renewal may have been cut short. Once more if that one still came.
    async fn give_back(&mut self) -> Result<bool, Error> {
        for _ in 0..2 {
            self.look().await?;
            let ours =
                self.view.record().filter(|record| record.terms.holder == self.claim.identity).cloned();
            let Some(record) = ours else { break };
            if matches!(self.put(&record.terms.given_up(&now()), Some(&record)).await?, Written::Done) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn place(&self) -> Key {
        Key::new(&*self.claim.namespace, &*self.claim.name)
    }

    /// Waits until the lease is ours.
    async fn acquire(&mut self) {
        info!(lease = %self.place(), identity = self.claim.identity, "Attempting to acquire leader lease...");
        let began = Moment::now();
        let mut told: Option<String> = None;
        loop {
            let outcome = self.try_to_take().await;
            let trouble = match outcome {
                Ok(true) => break,
                Ok(false) => self.view.record().map(|record| holder(&record.terms)),
                Err(error) => Some(error.to_string()),
            };
            if trouble.is_some() && trouble != told {
                let reason = trouble.as_deref().unwrap_or_default();
                info!(lease = %self.place(), why = reason, "standing by");
                told = trouble;
            }
            tokio::time::sleep(jittered(self.claim.retry)).await;
        }
        let seconds = Moment::now().since(began).as_secs_f64();
        info!(lease = %self.place(), identity = self.claim.identity, seconds, "Successfully acquired lease");
    }

    /// Looks at the Lease, and takes it if nobody holds it.
    async fn try_to_take(&mut self) -> Result<bool, Error> {
        self.look().await?;
        // An answer to our own write may have been lost.
        let ours = self.view.record().is_some_and(|record| Some(&record.terms) == self.own.as_ref());
        if !ours && Moment::now() < self.view.free_at() {
            return Ok(false);
        }
        Ok(matches!(self.renew().await?, Written::Done))
    }

    /// Renews the lease until it is lost. Gives the reason.
    async fn hold(&mut self) -> String {
        loop {
            tokio::time::sleep(self.claim.retry).await;
            let trouble = match self.renew_or_look().await {
                Ok(None) => continue,
                Ok(Some(lost)) => {
                    self.cluster.gate.close();
                    return lost;
                }
                Err(error) => error.to_string(),
            };
            let left = self.cluster.gate.remaining();
            if left.is_zero() {
                self.cluster.gate.close();
                let deadline = self.claim.renew.as_secs_f64();
                return format!("not renewed within {deadline} s: {trouble}");
            }
            warn!(lease = %self.place(), error = trouble, seconds_left = left.as_secs(), "lease not renewed, will retry");
        }
    }

    /// Renews the lease. Gives the reason why it is not ours any more, if so.
    async fn renew_or_look(&mut self) -> Result<Option<String>, Error> {
        // Whoever deletes the Lease or edits it has not necessarily taken it: one more look, and one more try.
        for _ in 0..2 {
            if matches!(self.renew().await?, Written::Done) {
                return Ok(None);
            }
            self.look().await?;
            match self.view.record() {
                Some(record) if record.terms.holder == self.claim.identity => {}
                Some(record) => return Ok(Some(format!("it is held by `{}` now", record.terms.holder))),
                None => warn!(lease = %self.place(), "lease was deleted: made anew"),
            }
        }
        Err(Error::Unanswered("it changes faster than it can be renewed".into()))
    }

    /// Writes the Lease as ours, where it still is as it was seen. The gate is open from then on.
    async fn renew(&mut self) -> Result<Written, Error> {
        // The time before the request is sent: whatever it takes is not ours.
        let began = Moment::now();
        let before = self.view.record().cloned();
        let terms = Terms::taken(before.as_ref().map(|record| &record.terms), &self.claim, &now());
        self.own = Some(terms.clone());
        let written = self.put(&terms, before.as_ref()).await?;
        if matches!(written, Written::Done) {
            self.cluster.gate.open_until(began + self.claim.renew);
        }
        Ok(written)
    }

    async fn look(&mut self) -> Result<(), Error> {
        let request = Request::get(self.path()).body(Body::empty())?;
        let record = match self.ask(request).await {
            Ok(lease) => Some(Record::read(&lease)),
            Err(error) if error.is(404) => None,
            Err(error) => return Err(error),
        };
        self.view.look(record, Moment::now());
        Ok(())
    }

    async fn put(&mut self, terms: &Terms, before: Option<&Record>) -> Result<Written, Error> {
        let body = terms.object(&self.claim, before).to_string();
        let request = match before {
            Some(_) => Request::put(self.path()),
            None => Request::post(self.collection()),
        };
        let request = request
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.into_bytes()))?;
        match self.ask(request).await {
            Ok(lease) => {
                self.view.look(Some(Record::read(&lease)), Moment::now());
                Ok(Written::Done)
            }
            Err(error) if error.is(409) || (error.is(404) && before.is_some()) => Ok(Written::Changed),
            Err(error) => Err(error),
        }
    }

    /// A request that leaves time for another one before the deadline.
    async fn ask(&self, request: Request<Body>) -> Result<Value, Error> {
        let limit = self.claim.renew / 2;
        let answer = tokio::time::timeout(limit, request::answer(&self.cluster.client, request)).await;
        let late = || Error::Unanswered(format!("no answer within {} s", limit.as_secs_f64()));
        Ok(serde_json::from_slice(&answer.map_err(|_| late())??)?)
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.claim.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.claim.name)
    }

    fn announce(&self) {
        let about = About {
            gvk: Gvk::new("coordination.k8s.io/v1", "Lease"),
            key: self.place(),
            uid: self.view.record().map(|record| record.uid.clone()).unwrap_or_default(),
        };
        let message = format!("{} became leader", self.claim.identity);
        let recorder = Recorder::new(self.cluster.clone());
        recorder.publish(&about, Severity::Normal, "LeaderElection", &message);
    }
}

/// Why a Lease is not free. One that lasts very long was most likely edited, and whoever reads this can edit it again.
fn holder(terms: &Terms) -> String {
    let lasts = match terms.seconds {
        0 => String::new(),
        seconds => format!(", which lasts {seconds} s without a renewal"),
    };
    match terms.holder.as_str() {
        "" => format!("its holder's name was taken out of it{lasts}"),
        holder => format!("it is held by `{holder}`{lasts}"),
    }
}

/// As a MicroTime, which is what a Lease has.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// A little longer, and not the same for all: candidates that began together do not stay together.
fn jittered(time: Duration) -> Duration {
    let chance = f64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs() % 1000) / 1000.0;
    time.mul_f64(1.0 + 0.2 * chance)
}

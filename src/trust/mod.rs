//! The certificate by which the API server trusts the webhooks: made here, kept in a Secret that all replicas share,
//! renewed long before it ends, and told to the API server.
//!
//! The process that leads makes and renews it, and writes the bundle of its authorities as `caBundle` into every object
//! that asks for it by a label. The others show what the Secret holds. A Secret that is not ours is never touched.

mod inject;
mod issue;
mod read;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::{info, warn};

pub(crate) use self::inject::asking_for;
pub(crate) use self::issue::{Kept, Terms};

use self::inject::Targets;
use self::issue::{Part, State};
use self::read::Seconds;
use crate::cluster::Cluster;
use crate::cluster::kind::{self, Origin, Resource, Use};
use crate::cluster::object::Object;
use crate::cluster::write::Writer;
use crate::object::name::Key;
use crate::object::selector::{Labels, Selector};

/// By this label a Secret is ours, and nobody else's.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "syncwright");
/// What failed is tried again after this time, if nothing changes before.
const AGAIN: Duration = Duration::from_secs(5);
/// API servers see a change of what they are told within this time.
const HEARD: Duration = Duration::from_secs(5);
/// The certificate is looked at this often, whatever the clock did meanwhile.
const LOOK: Duration = Duration::from_secs(3600);

/// The keys of the Secret. The first two are those of every Secret of the type `kubernetes.io/tls`.
const KEYS: [&str; 4] = ["tls.crt", "tls.key", "ca.crt", "ca.key"];

/// What a process has to show, or why it has nothing (newer) to show.
pub(crate) type Tell = Box<dyn Fn(Result<&Kept, &str>) + Send + Sync>;

/// Keeps the certificate for as long as it is polled, and its authorities in what `asking` picks.
pub(crate) async fn keep(cluster: Arc<Cluster>, secret: Key, asking: Selector, terms: Terms, tell: Tell) {
    let changed = Arc::new(Notify::new());
    let hold = {
        let changed = changed.clone();
        cluster.watch_one("v1", "secrets", &secret, move |_, _| changed.notify_one())
    };
    let targets = Targets::watch(&cluster, &asking, &changed);
    let origin = Origin { controller: 0, parent: secret.clone() };
    let writer = Writer { cluster: &cluster, origin: &origin, trial: None };
    let mut keeper =
        Keeper { writer, secret, terms, hold, targets, tell, shown: None, heard: None, told: None };
    let mut leads = cluster.gate.leads();
    let mut states = keeper.hold.kind.states();
    loop {
        let pause = match keeper.look().await {
            Ok(pause) => pause,
            Err(trouble) => {
                keeper.complain(&trouble);
                AGAIN
            }
        };
        tokio::select! {
            () = changed.notified() => {}
            // What is held here does not end.
            _ = leads.changed() => {}
            _ = states.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

struct Keeper<'a> {
    writer: Writer<'a>,
    secret: Key,
    terms: Terms,
    hold: Use,
    targets: Targets,
    tell: Tell,
    shown: Option<Kept>,
    /// The bundle that the API server was told of last, and when this process was sure of that.
    heard: Option<(String, Instant)>,
    /// The trouble that was told last.
    told: Option<String>,
}

impl Keeper<'_> {
    /// Shows what there is, makes what is due, and tells the API server. Gives the time until the next look.
    async fn look(&mut self) -> Result<Duration, String> {
        let resource = match self.hold.kind.state() {
            kind::State::Starting => return Ok(LOOK),
            kind::State::Absent(why) | kind::State::Failing(why) => {
                return Err(format!("Secret `{}` cannot be read: {why}", self.secret));
            }
            kind::State::Live(resource) => resource,
        };
        let seen = self.hold.kind.get(&self.secret);
        let kept = seen.as_deref().map(kept_in).transpose().map_err(|why| self.not_ours(why))?;
        let now = Timestamp::now().as_second();
        let state = match &kept {
            Some(kept) => kept.state(&self.terms, now),
            None => State::Due { part: Part::All, why: "it is not there".into() },
        };
        // What is to be renewed can be shown until then, unless nobody would trust it.
        if let Some(kept) = kept.as_ref().filter(|_| !matches!(state, State::Due { part: Part::All, .. })) {
            self.show(kept);
        }
        match state {
            State::Due { part, why } => {
                if !self.writer.cluster.gate.is_open() {
                    let nothing = self.shown.is_none();
                    return if nothing {
                        Err(format!("the leader is to make Secret `{}`: {why}", self.secret))
                    } else {
                        Ok(AGAIN)
                    };
                }
                if let (Part::Server, Some(kept)) = (part, &kept)
                    && kept.changes_hands(now)
                    && let Some(pause) = self.hold_back(&kept.bundle).await?
                {
                    return Ok(pause);
                }
                self.make(&resource, seen.as_deref(), kept, (part, &why), now).await
            }
            State::Good { until } => {
                if let Some(kept) = &kept
                    && self.writer.cluster.gate.is_open()
                {
                    self.inform(&kept.bundle).await?;
                }
                self.told = None;
                Ok(Duration::from_secs(u64::try_from(until - now).unwrap_or_default())
                    .clamp(Duration::from_millis(200), LOOK))
            }
        }
    }

    /// How long an authority that has not signed anything is to wait with it. Whoever made it may have ended before the API
    /// server was told of it, or may not be let tell it.
    async fn hold_back(&mut self, bundle: &str) -> Result<Option<Duration>, String> {
        let since = self.inform(bundle).await.map_err(|trouble| {
            format!("no certificate is signed by a new authority of which the API server was not told yet: {trouble}")
        })?;
        Ok(HEARD.checked_sub(since.elapsed()).filter(|pause| !pause.is_zero()))
    }

    /// Tells the API server of the authorities. Gives the time since when it knows them, as far as this process does.
    async fn inform(&mut self, bundle: &str) -> Result<Instant, String> {
        self.targets.inject(&self.writer, bundle).await?;
        match &self.heard {
            Some((heard, since)) if heard == bundle => Ok(*since),
            _ => {
                let now = Instant::now();
                self.heard = Some((bundle.to_string(), now));
                Ok(now)
            }
        }
    }

    async fn make(
        &mut self,
        resource: &Resource,
        seen: Option<&Object>,
        kept: Option<Kept>,
        (part, why): (Part, &str),
        now: Seconds,
    ) -> Result<Duration, String> {
        let made = match &kept {
            Some(kept) => kept.renewed(part, &self.terms, now),
            None => Kept::made(&self.terms, "", now),
        };
        let made = made
            .map_err(|error| format!("no certificate can be made: {error}; hint: look at the host names"))?;
        let object = secret(&self.secret, &made);
        match self.writer.put(&self.hold.kind, resource, &self.secret, seen, object).await {
            Ok(_) => {
                let what = match part {
                    Part::All => "certificate and authority",
                    Part::Authority => "authority",
                    Part::Server => "certificate",
                };
                info!(secret = %self.secret, why, "{what} made");
                Ok(Duration::ZERO)
            }
            // Another process was quicker: the watch tells what it has made.
            Err(error) if error.is(409) => Ok(AGAIN),
            Err(error) => Err(format!("Secret `{}` cannot be written: {error}", self.secret)),
        }
    }

    fn show(&mut self, kept: &Kept) {
        if self.shown.as_ref() == Some(kept) {
            return;
        }
        (self.tell)(Ok(kept));
        self.shown = Some(kept.clone());
    }

    fn not_ours(&self, why: String) -> String {
        format!("Secret `{}` is not ours, and is left alone: {why}", self.secret)
    }

    /// Once for each trouble.
    fn complain(&mut self, trouble: &str) {
        (self.tell)(Err(trouble));
        if self.told.as_deref() != Some(trouble) {
            warn!(error = trouble, "webhook certificate");
            self.told = Some(trouble.to_string());
        }
    }
}

/// What a Secret of ours keeps. An error where it is not ours.
fn kept_in(secret: &Object) -> Result<Kept, String> {
    let (label, value) = MANAGED_BY;
    if secret.labels.label(label) != Some(value) {
        return Err(format!(
            "it has no label `{label}: {value}`; hint: delete it, or name another with --webhook-secret"
        ));
    }
    let body = secret.parsed();
    let text = |key: &&str| {
        let bytes = STANDARD.decode(body["data"][*key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    // What does not read is as good as empty: it is judged with the rest.
    let [certificate, key, bundle, authority_key] = KEYS.each_ref().map(|key| text(key).unwrap_or_default());
    Ok(Kept { certificate, key, bundle, authority_key })
}

fn secret(key: &Key, kept: &Kept) -> Value {
    let texts = [&kept.certificate, &kept.key, &kept.bundle, &kept.authority_key];
    let data: BTreeMap<&str, String> =
        KEYS.into_iter().zip(texts.map(|text| STANDARD.encode(text))).collect();
    let (label, value) = MANAGED_BY;
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": key.name, "namespace": key.namespace, "labels": {label: value}},
        "data": data,
    })
}

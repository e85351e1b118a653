//! What a Lease says, as far as an election cares.

use std::time::Duration;

use serde_json::{Value, json};

use super::Claim;

/// A Lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The version that a change of it is guarded by.
    pub version: String,
    pub uid: String,
    pub terms: Terms,
}

/// What of a Lease changes when its holder renews it. Anything else may change without meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Empty when nobody holds it.
    pub holder: String,
    pub seconds: u64,
    pub acquired: String,
    pub renewed: String,
    pub transitions: u64,
}

/// The API server takes no greater number, and somebody may have written this one.
const MOST_TRANSITIONS: u64 = i32::MAX as u64;

/// A holder that gives its lease back leaves this, as others' elections do.
const GIVEN_BACK_SECONDS: u64 = 1;

impl Record {
    /// Reads the API server's JSON. A field that is missing or of another type counts as empty.
    pub(super) fn read(lease: &Value) -> Record {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let (metadata, spec) = (&lease["metadata"], &lease["spec"]);
        Record {
            version: text(&metadata["resourceVersion"]),
            uid: text(&metadata["uid"]),
            terms: Terms {
                holder: text(&spec["holderIdentity"]),
                seconds: spec["leaseDurationSeconds"].as_u64().unwrap_or_default(),
                acquired: text(&spec["acquireTime"]),
                renewed: text(&spec["renewTime"]),
                transitions: spec["leaseTransitions"].as_u64().unwrap_or_default(),
            },
        }
    }
}

impl Terms {
    /// Whether the holder itself has given it back. A person who only takes the holder's name out leaves its duration, and
    /// the holder may not have noticed.
    pub(super) fn given_back(&self) -> bool {
        self.holder.is_empty() && self.seconds == GIVEN_BACK_SECONDS
    }

    /// For how long after a renewal the holder may count on it; `usual` where the Lease does not say.
    pub(super) fn duration(&self, usual: Duration) -> Duration {
        if self.seconds == 0 { usual } else { Duration::from_secs(self.seconds) }
    }

    /// The terms under which `claim` holds the lease from `now`, an RFC 3339 time, after these.
    pub(super) fn taken(before: Option<&Terms>, claim: &Claim, now: &str) -> Terms {
        let own = before.filter(|before| before.holder == claim.identity);
        let transitions = before.map_or(0, |before| before.transitions + u64::from(own.is_none()));
        // Whoever edits the Lease may have taken it out, and the API server takes no empty time.
        let acquired = own.map(|own| &own.acquired).filter(|acquired| !acquired.is_empty());
        Terms {
            holder: claim.identity.clone(),
            seconds: claim.lease.as_secs_f64().ceil() as u64,
            acquired: acquired.map_or_else(|| now.to_string(), String::clone),
            renewed: now.to_string(),
            transitions: transitions.min(MOST_TRANSITIONS),
        }
    }

    /// The terms that its holder leaves.
    pub(super) fn given_up(&self, now: &str) -> Terms {
        Terms {
            holder: String::new(),
            seconds: GIVEN_BACK_SECONDS,
            acquired: now.to_string(),
            renewed: now.to_string(),
            transitions: self.transitions,
        }
    }

    /// The whole object to write. It replaces exactly the one `before`: an API server makes a Lease that is gone anew when
    /// it is told to replace it, unless it is told which one.
    pub(super) fn object(&self, claim: &Claim, before: Option<&Record>) -> Value {
        let mut metadata = json!({"name": claim.name, "namespace": claim.namespace});
        if let Some(before) = before {
            metadata["resourceVersion"] = json!(before.version);
            metadata["uid"] = json!(before.uid);
        }
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
            "spec": {
                "holderIdentity": self.holder, "leaseDurationSeconds": self.seconds,
                "acquireTime": self.acquired, "renewTime": self.renewed, "leaseTransitions": self.transitions,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim {
        Claim {
            namespace: "ops".into(),
            name: "metacontroller".into(),
            identity: "me".into(),
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }

    fn read(spec: Value) -> Terms {
        Record::read(&json!({"metadata": {"resourceVersion": "1", "uid": "u"}, "spec": spec})).terms
    }

    /// What anybody may have written into a Lease, which the API server has taken.
    #[test]
    fn whatever_a_lease_says_it_can_be_taken_and_kept() {
        let specs = [
            json!(null),
            json!({}),
            json!({"holderIdentity": "me"}),
            json!({"holderIdentity": "me", "leaseTransitions": 2147483647, "acquireTime": null}),
            json!({"holderIdentity": "other", "leaseTransitions": 2147483647, "leaseDurationSeconds": 2147483647}),
            json!({"holderIdentity": "other", "renewTime": "0001-01-01T00:00:00.000000Z", "acquireTime": "9999-12-31T23:59:59.999999Z"}),
        ];
        for spec in specs {
            let taken = Terms::taken(Some(&read(spec.clone())), &claim(), "now");
            assert_eq!(taken.holder, "me", "{spec}");
            assert!(taken.transitions <= 2147483647, "{spec}: {taken:?}");
            assert!(!taken.acquired.is_empty() && taken.renewed == "now", "{spec}: {taken:?}");
            assert_eq!(taken.seconds, 15, "{spec}");
        }
    }

    #[test]
    fn holder_keeps_the_time_at_which_it_took_the_lease() {
        let first = Terms::taken(None, &claim(), "now");
        let second = Terms::taken(Some(&first), &claim(), "later");
        assert_eq!((second.acquired.as_str(), second.renewed.as_str()), ("now", "later"));
        assert_eq!(second.transitions, 0);
    }
}

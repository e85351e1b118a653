//! Whether a controller still runs, as its Lease tells.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Whoever holds a Lease just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// `namespace/name`.
    pub lease: String,
    pub identity: String,
    /// How long ago it said so.
    pub seconds: i64,
}

/// A lease lasts so long where it does not say.
const USUAL: i64 = 15;

/// The holder, where the Lease is held at this time.
pub(super) fn holder(lease: &Value, now: Timestamp) -> Option<Holder> {
    let spec = &lease["spec"];
    let identity = spec["holderIdentity"].as_str().filter(|identity| !identity.is_empty())?;
    let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
    let lasts = SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or(USUAL));
    let since = now.duration_since(renewed);
    let text = |field: &str| lease["metadata"][field].as_str().unwrap_or_default();
    (since < lasts).then(|| Holder {
        lease: format!("{}/{}", text("namespace"), text("name")),
        identity: identity.into(),
        seconds: since.as_secs().max(0),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lease_is_held_until_it_is_over_or_given_back() {
        let lease = |holder: &str, renewed: &str| {
            json!({
                "metadata": {"namespace": "ops", "name": "metacontroller"},
                "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15},
            })
        };
        let held = |holder_name: &str, renewed: &str| {
            holder(&lease(holder_name, renewed), "2026-01-01T00:01:00Z".parse().expect("a time"))
        };
        let expected = Holder { lease: "ops/metacontroller".into(), identity: "pod-1".into(), seconds: 14 };
        assert_eq!(held("pod-1", "2026-01-01T00:00:46.000000Z"), Some(expected));
        assert_eq!(held("pod-1", "2026-01-01T00:00:45.000000Z"), None);
        assert_eq!(held("", "2026-01-01T00:00:59.000000Z"), None);
        assert!(held("pod-1", "2026-01-01T00:05:00Z").is_some(), "clocks differ");
        assert_eq!(holder(&json!({"spec": {}}), Timestamp::now()), None);
    }
}

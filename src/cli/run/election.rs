//! The flags of leader election, and what is run for.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::{ArgAction, Args};

use crate::cli::value::{boolean, duration, name, namespace};
use crate::cluster::lease::Claim;

/// Where a pod finds the name of its namespace.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

#[derive(Args)]
#[command(next_help_heading = "Leader election")]
#[group(skip)]
pub(super) struct Flags {
    /// Writes only while holding a Lease: of several processes one works and the others stand by with their caches filled.
    /// One that loses the lease ends with exit code 1
    #[arg(long, visible_alias = "leader-election", value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true", hide_possible_values = true,
        hide_default_value = true, value_parser = boolean)]
    leader_elect: bool,
    /// The Lease's name, which is Metacontroller's own: a rolling replacement hands over
    #[arg(
        long,
        visible_alias = "leader-election-id",
        alias = "leader-elect-resource-name",
        value_name = "NAME",
        default_value = "metacontroller",
        value_parser = name
    )]
    leader_elect_id: String,
    /// The Lease's namespace [default: the pod's own]
    #[arg(
        long,
        visible_alias = "leader-election-namespace",
        alias = "leader-elect-resource-namespace",
        value_name = "NAMESPACE",
        default_value = "",
        hide_default_value = true,
        value_parser = lease_namespace
    )]
    leader_elect_namespace: String,
    /// How long others wait before they take a lease that is not renewed
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    leader_elect_lease_duration: Duration,
    /// How long the leader writes without a renewal; shorter than the lease
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    leader_elect_renew_deadline: Duration,
    /// The time between two tries
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    leader_elect_retry_period: Duration,
    /// The only sort of lock that there still is
    #[arg(long = "leader-election-resource-lock", hide = true, value_name = "KIND", default_value = "leases", value_parser = ["leases"])]
    _resource_lock: String,
}

impl Flags {
    /// The Lease that is run for, if any.
    pub(super) fn lease(&self) -> Option<String> {
        self.leader_elect.then(|| self.leader_elect_id.clone())
    }

    /// What to run for; `None` without leader election.
    pub(super) fn claim(&self) -> Result<Option<Claim>> {
        if !self.leader_elect {
            return Ok(None);
        }
        let (lease, renew) = (self.leader_elect_lease_duration, self.leader_elect_renew_deadline);
        let retry = self.leader_elect_retry_period;
        if lease < Duration::from_secs(1) || lease <= renew {
            bail!(
                "--leader-elect-lease-duration is {lease:?}; expected 1s or more, and more than the renew deadline ({renew:?})"
            );
        }
        // A fifth more, by which the tries of several processes are spread.
        if retry.is_zero() || renew <= retry.mul_f64(1.2) {
            bail!(
                "--leader-elect-renew-deadline is {renew:?}; expected more than 1.2 times the retry period ({retry:?})"
            );
        }
        let namespace = match self.leader_elect_namespace.as_str() {
            "" => own_namespace()?,
            named => named.to_string(),
        };
        Ok(Some(Claim {
            namespace,
            name: self.leader_elect_id.clone(),
            identity: identity()?,
            lease,
            renew,
            retry,
        }))
    }
}

/// None stands for the pod's own.
fn lease_namespace(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { namespace(text) }
}

fn own_namespace() -> Result<String> {
    let text = fs::read_to_string(OWN_NAMESPACE);
    let text = text.with_context(|| {
        "leader election needs a namespace for its Lease, and this is no pod; hint: name one with --leader-elect-namespace"
    })?;
    Ok(text.trim().to_string())
}

/// `<hostname>_<uuid>`, as Metacontroller names itself.
fn identity() -> Result<String> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("the system gives no randomness: {error}"))?;
    // RFC 9562: version 4, variant 10.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(format!("{}_{}", host.trim(), parts.join("-")))
}

#[cfg(test)]
mod tests {
    use super::identity;

    #[test]
    fn identity_is_a_host_and_a_uuid() {
        let first = identity().expect("there is randomness");
        let (_, uuid) = first.rsplit_once('_').expect("two parts");
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&uuid[14..15], "4");
        assert_ne!(first, identity().expect("there is randomness"));
    }
}

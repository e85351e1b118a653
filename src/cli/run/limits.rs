//! How much of the cluster and of its own machine a process takes.

use clap::Args;
use tracing::info;

use crate::cli::machine::{cpus, memory_limit};
use crate::cli::value::whole;
use crate::cluster::limit::Rate;

#[derive(Args)]
#[command(next_help_heading = "Limits")]
#[group(skip)]
pub(super) struct Flags {
    /// Requests a second in the long run, watches and lease apart; below 0 for any number
    #[arg(long, value_name = "N", default_value = "50", value_parser = number, allow_hyphen_values = true)]
    client_go_qps: f64,
    /// Requests at once
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole::<u32>(1..=u32::MAX.into(), 100))]
    client_go_burst: u32,
    /// Events a second about one object in the long run
    #[arg(long, value_name = "N", default_value = "0.0033333333", value_parser = positive)]
    events_qps: f64,
    /// Events at once about one object
    #[arg(long, value_name = "N", default_value = "25", value_parser = whole::<u32>(1..=u32::MAX.into(), 25))]
    events_burst: u32,
    /// Visits of each controller at once
    #[arg(long, value_name = "N", default_value = "8", value_parser = whole::<u16>(1..=1024, 8))]
    workers: u16,
    /// Visits of all controllers at once; each may always make one [default: by the container's limits of CPU and memory]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=4096, 64))]
    max_visits: Option<u16>,
}

/// What a process that is given nothing by its flags goes by.
const VISITS_PER_CPU: usize = 32;
/// A visit's request, its answer and what comes of them, where they are large.
const BYTES_PER_VISIT: u64 = 4 << 20;

impl Flags {
    pub(super) fn request_rate(&self) -> Option<Rate> {
        // Go's clients take 0 for the usual rate.
        let usual = if self.client_go_qps == 0.0 { 50.0 } else { self.client_go_qps };
        (usual > 0.0).then_some(Rate { per_second: usual, burst: self.client_go_burst })
    }

    pub(super) fn event_rate(&self) -> Rate {
        Rate { per_second: self.events_qps, burst: self.events_burst }
    }

    pub(super) fn workers(&self) -> usize {
        self.workers.into()
    }

    /// Says what holds, since part of it is not in the flags.
    pub(super) fn tell(&self) {
        let rate = self.request_rate();
        info!(
            cpus = cpus(),
            memory = memory_limit().map_or_else(|| "no limit".into(), |bytes| format!("{} MiB", bytes >> 20)),
            workers = self.workers,
            visits = self.visits(),
            requests = rate.map_or_else(
                || "any number".into(),
                |rate| format!("{}/s, {} at once", rate.per_second, rate.burst)
            ),
            "limits"
        );
    }

    pub(super) fn visits(&self) -> usize {
        self.max_visits.map_or_else(|| visits(cpus(), memory_limit()), usize::from)
    }
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| "expected a number, such as `50`".into())
}

fn positive(text: &str) -> Result<f64, String> {
    number(text)
        .ok()
        .filter(|number| *number > 0.0)
        .ok_or_else(|| "expected a number above zero, such as `0.5`".into())
}

fn visits(cpus: usize, memory: Option<u64>) -> usize {
    let by_memory = memory.map_or(usize::MAX, |bytes| (bytes / BYTES_PER_VISIT) as usize);
    (cpus * VISITS_PER_CPU).min(by_memory).clamp(4, 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    // B111
    #[test]
    fn visits_follow_the_containers_limits() {
        assert_eq!(visits(1, Some(128 << 20)), 32);
        assert_eq!(visits(1, Some(64 << 20)), 16);
        assert_eq!(visits(2, None), 64);
        assert_eq!(visits(128, None), 256);
        assert_eq!(visits(1, Some(1 << 20)), 4);
    }
}

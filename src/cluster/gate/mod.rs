//! The one gate that every write goes through: open while this process may write.
//!
//! Without leader election it is always open. With it, it opens for a time with each renewal of the lease and closes by
//! itself when that time is over, so that a process which was stopped or cut off needs nobody to tell it.

mod client;
mod clock;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

pub(super) use client::gated;
pub(super) use clock::Moment;

/// Whether this process may write, and until when.
pub(crate) struct Gate {
    /// The first moment at which it is closed.
    closes: AtomicU64,
    leads: watch::Sender<bool>,
}

impl Gate {
    /// A gate that never closes: nobody else writes.
    pub(crate) fn open() -> Arc<Self> {
        Arc::new(Gate { closes: AtomicU64::new(u64::MAX), leads: watch::Sender::new(true) })
    }

    /// A gate that the lease opens.
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Gate { closes: AtomicU64::new(0), leads: watch::Sender::new(false) })
    }

    pub(crate) fn is_open(&self) -> bool {
        let closes = self.closes.load(Ordering::Acquire);
        closes == u64::MAX || Moment::now().nanoseconds() < closes
    }

    /// Tells whether this process leads. It may lead and find the gate closed for a moment, just before it learns that the
    /// lease is lost.
    pub(crate) fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Waits until this process leads.
    pub(crate) async fn led(&self) {
        // The sender is here, so it does not end.
        let _ = self.leads().wait_for(|leads| *leads).await;
    }

    pub(super) fn open_until(&self, moment: Moment) {
        self.closes.store(moment.nanoseconds(), Ordering::Release);
        self.leads.send_if_modified(|leads| !std::mem::replace(leads, true));
    }

    pub(super) fn close(&self) {
        self.closes.store(0, Ordering::Release);
        self.leads.send_if_modified(|leads| std::mem::replace(leads, false));
    }

    /// How long it is still open.
    pub(super) fn remaining(&self) -> Duration {
        let closes = self.closes.load(Ordering::Acquire);
        Duration::from_nanos(closes.saturating_sub(Moment::now().nanoseconds()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gate_closes_by_itself() {
        let gate = Gate::closed();
        assert!(!gate.is_open());
        gate.open_until(Moment::now() + Duration::from_secs(3600));
        assert!(gate.is_open() && *gate.leads().borrow());
        gate.open_until(Moment::now());
        assert!(!gate.is_open());
        assert!(*gate.leads().borrow(), "nobody has told it yet");
        gate.close();
        assert!(!*gate.leads().borrow());
    }

    #[test]
    fn gate_without_a_lease_is_always_open() {
        assert!(Gate::open().is_open());
    }
}

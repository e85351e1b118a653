//! The clock that leases are judged by: it never goes back, and it counts the time in which the machine sleeps.

use std::ops::Add;
use std::time::Duration;

/// A time since the machine's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cluster) struct Moment(u64);

impl Moment {
    /// `CLOCK_BOOTTIME`. `Instant` is `CLOCK_MONOTONIC`, which stands still while the machine is suspended: a leader that
    /// wakes would believe that its lease has just been renewed.
    pub(in crate::cluster) fn now() -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a plain system call that fills the record it is given.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
        assert_eq!(failed, 0, "Linux has had CLOCK_BOOTTIME since 2.6.39");
        Moment(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
    }

    pub(in crate::cluster) fn nanoseconds(self) -> u64 {
        self.0
    }

    /// The time from now until then; none when it is past.
    pub(in crate::cluster) fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    #[cfg(test)]
    pub(in crate::cluster) fn at(seconds: u64) -> Self {
        Moment(seconds * 1_000_000_000)
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, time: Duration) -> Moment {
        Moment(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

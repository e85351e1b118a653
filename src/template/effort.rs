//! What a render has cost: the time in which its thread was at work. On a busy machine the clock on the wall runs ahead of
//! it, and where a process is stopped for a while, or its container has used up its share of the CPU.

use std::time::Duration;

/// How long this thread has been at work since its start.
pub(in crate::template) fn spent() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a plain system call that fills the record it is given.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "every system that has threads has this clock");
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

//! Waiting for a state, with a deadline, and saying what was there instead when it does not come.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);

/// Looks again and again until `look` answers `Ok`; panics with what was last seen when `within` has passed.
#[track_caller]
pub fn wait_until<T, S: Display>(within: Duration, what: &str, look: impl FnMut() -> Result<T, S>) -> T {
    match try_until(within, look) {
        Ok(found) => found,
        Err(seen) => panic!("waited {} s in vain until {what}; last seen: {seen}", within.as_secs_f32()),
    }
}

/// The same without the panic: what was last seen comes back as the error.
pub(crate) fn try_until<T, S>(within: Duration, mut look: impl FnMut() -> Result<T, S>) -> Result<T, S> {
    let deadline = Instant::now() + within;
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(seen) if Instant::now() >= deadline => return Err(seen),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

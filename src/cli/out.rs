//! Data on stdout.

use std::io::{self, ErrorKind, Write};

/// Prints text as it is. A reader that has seen enough, as `head` has, is no error.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

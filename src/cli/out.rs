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

/// Tells of what is done. A reader that has gone away does not end what was begun.
pub(super) fn say(line: impl AsRef<str>) {
    let _ = print(&format!("{}\n", line.as_ref()));
}

/// `1 object`, `2 objects`.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

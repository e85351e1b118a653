//! Colour, where a person reads it: on a terminal, unless `NO_COLOR` says no.

use std::io::IsTerminal;

/// A few colours that carry no meaning of their own: everything is also said in words.
#[derive(Clone, Copy, Debug)]
pub(super) enum Colour {
    Good,
    Bad,
    Place,
}

/// The text, in this colour where stdout shows colours.
pub(super) fn on_stdout(colour: Colour, text: &str) -> String {
    painted(colour, text, std::io::stdout().is_terminal() && !no_color())
}

/// The text, in this colour where stderr shows colours.
pub(super) fn on_stderr(colour: Colour, text: &str) -> String {
    painted(colour, text, std::io::stderr().is_terminal() && !no_color())
}

/// <https://no-color.org>: set to anything but the empty text.
pub(super) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn painted(colour: Colour, text: &str, on: bool) -> String {
    let code = match colour {
        Colour::Good => 32,
        Colour::Bad => 31,
        Colour::Place => 1,
    };
    if on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_painted_only_where_it_shows() {
        assert_eq!(painted(Colour::Bad, "no", true), "\x1b[31mno\x1b[0m");
        assert_eq!(painted(Colour::Bad, "no", false), "no");
    }
}

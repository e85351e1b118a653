//! The command line as others spell it, put into our own words before it is read.
//!
//! Go programs take `-flag` for `--flag`. Metacontroller has no verbs: its flags alone mean `run`, and so does its name.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, ArgAction, Command};

/// Whose image runs its binary by name, with flags and no verb.
const PEER: &str = "metacontroller";

/// The arguments, the program's name included, with a verb and with two dashes.
pub(super) fn ours(arguments: impl IntoIterator<Item = OsString>, command: &Command) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let run = command.find_subcommand("run").expect("there is a verb to run");
    let flags: Vec<&Arg> = command.get_arguments().chain(run.get_arguments()).collect();
    match verb(&arguments, &flags) {
        Some(verb) if verb != "run" => return arguments,
        Some(_) => {}
        None if is_for_run(&arguments) => arguments.insert(1, "run".into()),
        None => return arguments,
    }
    let in_full = |argument: OsString| match argument.to_str().and_then(|text| with_two_dashes(text, &flags))
    {
        Some(text) => text.into(),
        None => argument,
    };
    arguments.into_iter().map(in_full).collect()
}

/// The first argument that is neither a flag nor a flag's value.
fn verb<'a>(arguments: &'a [OsString], flags: &[&Arg]) -> Option<&'a str> {
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        let Some(text) = argument.to_str() else { continue };
        let Some(name) = text.strip_prefix("--").or_else(|| text.strip_prefix('-')) else {
            return Some(text);
        };
        if takes_the_next(name, flags) {
            rest.next();
        }
    }
    None
}

fn takes_the_next(name: &str, flags: &[&Arg]) -> bool {
    let flag = flags.iter().find(|flag| is_named(flag, name));
    flag.is_some_and(|flag| {
        matches!(flag.get_action(), ArgAction::Set | ArgAction::Append) && !flag.is_require_equals_set()
    })
}

fn is_named(flag: &Arg, name: &str) -> bool {
    flag.get_long() == Some(name) || flag.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
}

fn is_for_run(arguments: &[OsString]) -> bool {
    let mut arguments = arguments.iter();
    let program = arguments.next().and_then(|program| Path::new(program).file_name());
    let asks = |argument: &OsString| ["-h", "--help", "-V", "--version"].iter().any(|flag| argument == flag);
    program.is_some_and(|program| program == PEER) || (arguments.len() > 0 && !arguments.any(asks))
}

/// `-flag=value` as `--flag=value`, where there is such a flag, or none at all: the complaint then names all of it.
fn with_two_dashes(text: &str, flags: &[&Arg]) -> Option<String> {
    let name = text.strip_prefix('-').filter(|name| !name.starts_with('-'))?;
    let (long, _) = name.split_once('=').unwrap_or((name, ""));
    let first = long.chars().next().filter(char::is_ascii_alphabetic)?;
    let is_short = "hV".contains(first) || flags.iter().any(|flag| flag.get_short() == Some(first));
    // One letter is a short flag, which has one dash anyway.
    (long.len() > 1 && (!is_short || flags.iter().any(|flag| is_named(flag, long))))
        .then(|| format!("-{text}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Line;

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        let words = typed.split(' ').map(OsString::from);
        let ours = ours(words, &Line::command());
        let ours: Vec<&str> = ours.iter().map(|word| word.to_str().expect("text")).collect();
        assert_eq!(ours.join(" "), expected);
    }

    #[test]
    fn flags_alone_mean_run() {
        check(
            "syncwright --zap-log-level=4 --discovery-interval=20s",
            "syncwright run --zap-log-level=4 --discovery-interval=20s",
        );
        check("syncwright --controllers run", "syncwright run --controllers run");
        check("syncwright --leader-election run", "syncwright --leader-election run");
        check("/usr/bin/metacontroller", "/usr/bin/metacontroller run");
        check("/usr/bin/metacontroller --help", "/usr/bin/metacontroller run --help");
    }

    #[test]
    fn one_dash_is_as_good_as_two() {
        check(
            "syncwright -zap-log-level 4 -v=6 -zap-devel",
            "syncwright run --zap-log-level 4 -v=6 --zap-devel",
        );
        check("syncwright run -leader-election=true", "syncwright run --leader-election=true");
        check("syncwright run --workers -1 -nonsense -v4", "syncwright run --workers -1 --nonsense -v4");
    }

    #[test]
    fn lines_with_another_verb_stay_as_they_are() {
        for line in [
            "syncwright",
            "syncwright --help",
            "syncwright -V",
            "syncwright --log-level debug serve -listen a",
            "syncwright nonsense",
        ] {
            check(line, line);
        }
    }
}

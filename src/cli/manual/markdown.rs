//! The reference of all commands, as Markdown.

use std::fmt::Write;

use clap::{Arg, Command};

/// Every command with its arguments and examples.
pub(super) fn reference(command: &Command) -> String {
    let mut text = String::from("# Commands\n\n");
    let _ = writeln!(text, "{}.", said(command.get_about()));
    let _ =
        writeln!(text, "This page is made of what `syncwright --help` says: `syncwright manual --markdown`.");
    text.push_str("\n| command | what it does |\n|---|---|\n");
    let verbs: Vec<&Command> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    for verb in &verbs {
        let name = verb.get_name();
        let _ = writeln!(text, "| [`syncwright {name}`](#syncwright-{name}) | {} |", said(verb.get_about()));
    }
    write_block(&mut text, command);
    for verb in &verbs {
        write_verb(&mut text, verb);
    }
    text.push_str("\n## For every command\n\n");
    write_options(&mut text, command.get_arguments().filter(|argument| argument.is_global_set()));
    text
}

fn write_verb(text: &mut String, verb: &Command) {
    let _ = writeln!(text, "\n## syncwright {}\n\n{}.", verb.get_name(), said(verb.get_about()));
    let usage = verb.clone().render_usage().to_string();
    let _ = writeln!(text, "\n```\n{}\n```\n", usage.trim_start_matches("Usage: ").trim_end());
    write_options(text, verb.get_arguments().filter(|argument| !argument.is_global_set()));
    write_block(text, verb);
}

fn said(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().trim_end_matches('.').to_string()
}

/// What stands after the options in the help text.
fn write_block(text: &mut String, command: &Command) {
    if let Some(block) = command.get_after_help() {
        let _ = writeln!(text, "\n```\n{}\n```", block.to_string().trim_end());
    }
}

fn write_options<'a>(text: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let shown: Vec<&Arg> = arguments
        .filter(|argument| {
            !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
        })
        .collect();
    if shown.is_empty() {
        return;
    }
    text.push_str("| | |\n|---|---|\n");
    for argument in shown {
        let _ = writeln!(text, "| `{}` | {} |", in_cell(&form(argument)), in_cell(&meaning(argument)));
    }
}

/// `--hooks <DIR>`, `-o, --output <FORM>`, `<HOOK>`.
fn form(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
    let takes_value = argument.get_num_args().is_none_or(|count| count.takes_values());
    let value = if takes_value { value.join(" ") } else { String::new() };
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    if argument.is_require_equals_set()
        && argument.get_num_args().is_some_and(|count| count.min_values() == 0)
    {
        return format!("{}[={value}]", names.join(", "));
    }
    format!("{} {value}", names.join(", ")).trim().to_string()
}

fn meaning(argument: &Arg) -> String {
    let mut text = said(argument.get_help());
    let takes_value = argument.get_num_args().is_none_or(|count| count.takes_values());
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| takes_value)
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        let _ = write!(text, ": {}", values.join(", "));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .filter(|value| takes_value && !value.is_empty())
        .collect();
    if !defaults.is_empty() {
        let _ = write!(text, "; default `{}`", defaults.join(" "));
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, "; or `${}`", variable.to_string_lossy());
    }
    text
}

/// A bar would end the cell.
fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

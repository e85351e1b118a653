//! What a command line that cannot be read was most likely meant as.
//!
//! clap says what is wrong with it; this adds the way on, where others' habits tell what was wanted.

use std::path::Path;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Other programs' verbs for what ours do.
const VERBS: [(&str, &str); 15] = [
    ("help", "syncwright --help"),
    ("version", "syncwright --version"),
    ("lint", "syncwright check"),
    ("validate", "syncwright check"),
    ("verify", "syncwright check"),
    ("init", "syncwright new NAME"),
    ("create", "syncwright new NAME"),
    ("scaffold", "syncwright new NAME"),
    ("template", "syncwright render HOOK CALL FILE"),
    ("start", "syncwright run"),
    ("apply", "syncwright run"),
    ("install", "syncwright run"),
    ("deploy", "syncwright run"),
    ("delete", "syncwright uninstall"),
    ("completion", "syncwright completions SHELL"),
];

/// Prints the error with a hint, where there is one, and ends the process as clap does.
pub(super) fn end(error: &Error, typed: &[String]) -> ! {
    let _ = error.print();
    if error.use_stderr()
        && let Some(hint) = hint(error, typed)
    {
        eprintln!("\nhint: {hint}");
    }
    std::process::exit(error.exit_code())
}

fn hint(error: &Error, typed: &[String]) -> Option<String> {
    let about = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => of_verb(about(ContextKind::InvalidSubcommand)?, typed),
        ErrorKind::UnknownArgument => of_argument(about(ContextKind::InvalidArg)?, typed),
        ErrorKind::MissingRequiredArgument if verb(typed) == Some("render") => of_render(typed),
        _ => None,
    }
}

fn of_verb(verb: &str, typed: &[String]) -> Option<String> {
    let (_, ours) = VERBS.iter().find(|(theirs, _)| *theirs == verb)?;
    let after = typed.iter().skip_while(|word| *word != verb).nth(1);
    Some(match (verb, after) {
        ("help", Some(about)) => format!("`syncwright {about} --help`"),
        _ => format!("`{ours}`"),
    })
}

/// The first word that is no flag: as good as always the verb.
fn verb(typed: &[String]) -> Option<&str> {
    typed.iter().skip(1).map(String::as_str).find(|word| !word.starts_with('-'))
}

fn of_argument(argument: &str, typed: &[String]) -> Option<String> {
    let verb = verb(typed)?;
    let before = typed.iter().position(|word| word == argument).and_then(|at| typed.get(at.checked_sub(1)?));
    if matches!(argument, "true" | "false")
        && let Some(flag) = before.filter(|word| word.starts_with("--") && !word.contains('='))
    {
        return Some(format!("write `{flag}={argument}`"));
    }
    if matches!((verb, argument), ("check", "--only") | ("test" | "check", "--hook")) {
        return Some(format!("a hook is named as it is: `syncwright {verb} HOOK`"));
    }
    if argument.starts_with('-') {
        return None;
    }
    let file = argument.ends_with(".yaml") || argument.ends_with(".yml");
    match verb {
        "run" | "rbac" | "uninstall" | "record" if file => {
            Some(format!("definitions are named with `--controllers {argument}`"))
        }
        "run" | "serve" | "new" if Path::new(argument).is_dir() => {
            Some(format!("the hooks folder is named with `--hooks {argument}`"))
        }
        "run" | "serve" | "rbac" | "uninstall" => {
            Some(format!("`{verb}` is about all definitions or hooks, and takes no names"))
        }
        "diff" => Some(format!("one parent is `RESOURCE/NAME`, such as `{}/{argument}`", named(typed)?)),
        "record" => Some(format!("the parent is `RESOURCE/NAME`, such as `{}/{argument}`", named(typed)?)),
        _ => None,
    }
}

/// The word after the verb.
fn named(typed: &[String]) -> Option<&str> {
    let at = typed.iter().position(|word| Some(word.as_str()) == verb(typed))?;
    typed.get(at + 1).map(String::as_str).filter(|word| !word.starts_with('-') && !word.contains('/'))
}

/// `render hooks/mysql/example.yaml` has all that is needed but for the call.
fn of_render(typed: &[String]) -> Option<String> {
    let file = typed.iter().find(|word| word.ends_with(".yaml"))?;
    let mut way = Path::new(file).iter().map(|step| step.to_string_lossy());
    let hook = way.nth(1).filter(|_| file.starts_with("hooks/"));
    Some(format!("`syncwright render {} sync {file}`", hook.as_deref().unwrap_or("HOOK")))
}

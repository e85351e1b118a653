//! `syncwright manual` and `syncwright completions`: what the command line says of itself, for man, for a shell, for the web.

mod markdown;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::{Ended, Line, out};

/// Write man pages into a folder, or print the reference of all commands as Markdown
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// Folder for the man pages; it is made where it is missing
    #[arg(value_name = "DIR", required_unless_present = "markdown")]
    folder: Option<PathBuf>,
    /// Print the reference as Markdown
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
}

const AFTER_HELP: &str = "\
Examples:
  syncwright manual ~/.local/share/man/man1 && man syncwright-test
  syncwright manual --markdown > COMMANDS.md

Exit codes: 0 written, 2 a file could not be written";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    match flags.folder {
        Some(folder) => write_pages(&folder)?,
        None => out::print(&markdown::reference(&command()))?,
    }
    Ok(Ended::Well)
}

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = COMPLETIONS_AFTER_HELP)]
pub(super) struct CompletionsFlags {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const COMPLETIONS_AFTER_HELP: &str = "\
Examples:
  source <(syncwright completions bash)           in ~/.bashrc
  source <(syncwright completions zsh)            in ~/.zshrc, after compinit
  syncwright completions fish > ~/.config/fish/completions/syncwright.fish

Exit codes: 0 printed, 2 there is no such shell";

pub(super) fn complete(flags: CompletionsFlags) -> Result<Ended> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Line::command(), "syncwright", &mut script);
    out::print(&String::from_utf8(script).context("the script is no text")?)?;
    Ok(Ended::Well)
}

/// The whole command line, with what clap adds to each command.
fn command() -> Command {
    let mut command = Line::command().version(env!("CARGO_PKG_VERSION"));
    command.build();
    command
}

/// `syncwright.1`, and a page for each command.
fn write_pages(folder: &Path) -> Result<()> {
    let unwritable = || format!("`{}` cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(unwritable)?;
    clap_mangen::generate_to(Line::command().version(env!("CARGO_PKG_VERSION")), folder)
        .with_context(unwritable)
}

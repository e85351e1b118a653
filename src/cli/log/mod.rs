//! Log flags, and the log that they describe: on stderr, one event a line.

mod lines;

use std::io::{IsTerminal, stderr};

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::cli::log::lines::{Form, Lines};
use crate::cli::paint;
use crate::cli::trace::Traces;

/// kube logs whole responses, Secrets included, whatever level is asked for. The spans of traces are not the log's.
const UNHEARD: [&str; 2] = ["kube_client", "syncwright::trace"];

#[derive(Args)]
#[command(next_help_heading = "Log")]
pub(super) struct Flags {
    /// Form of the log on stderr
    /// [default: text]
    #[arg(long, global = true, value_enum, env = "SYNCWRIGHT_LOG_FORMAT")]
    log_format: Option<Format>,
    /// Least level that is logged: error, warn, info, debug, trace, or a filter such as `info,syncwright::hook=debug`
    /// [default: info for what keeps running, else off]
    #[arg(long, global = true, env = "SYNCWRIGHT_LOG_LEVEL", value_parser = filter)]
    log_level: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
}

/// What a verb asks of the log where the log's own flags say nothing.
pub(super) struct Wish {
    pub level: Option<&'static str>,
    pub format: Option<Format>,
}

impl Wish {
    pub(super) fn at(level: &'static str) -> Wish {
        Wish { level: Some(level), format: None }
    }
}

impl Flags {
    /// Starts the log, and hands what is a trace's to whoever collects that.
    pub(super) fn start(&self, wish: Wish, traces: &Traces) {
        let level = self.log_level.as_deref().or(wish.level).unwrap_or("info");
        let filter = EnvFilter::new(with_quiet_crates(level));
        let form = match self.log_format.or(wish.format).unwrap_or(Format::Text) {
            Format::Json => Form::Json,
            Format::Text if stderr().is_terminal() && !paint::no_color() => Form::Coloured,
            Format::Text => Form::Text,
        };
        let heard = filter_fn(|metadata| !UNHEARD.iter().any(|target| metadata.target().starts_with(target)));
        match traces.layer() {
            // Filters for all are cheaper than some for each.
            None => tracing_subscriber::registry().with(filter).with(heard).with(Lines(form)).init(),
            Some(spans) => {
                let lines = Lines(form).with_filter(filter.and(heard));
                tracing_subscriber::registry().with(spans).with(lines).init();
            }
        }
    }
}

/// What the crates below us say is theirs: hyper tells of each use of a connection, and actix of an error for each client
/// that speaks no HTTP. Who wants to read it names them.
fn with_quiet_crates(level: &str) -> String {
    let quiet = "actix_server=warn,actix_http=off,hyper_util=warn,tower=warn,rustls=warn,hyper=warn";
    format!("{quiet},{level}")
}

fn filter(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_level = |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    // A word alone would be the name of a crate that is heard in full.
    let odd =
        text.split(',').find(|word| !word.is_empty() && !word.contains(['=', ':', '[']) && !is_level(word));
    if let Some(odd) = odd.filter(|odd| odd.parse::<u8>().is_err()) {
        return Err(format!(
            "`{odd}` is no level; expected one of {}, or a filter such as `info,syncwright::hook=debug`",
            LEVELS.join(", ")
        ));
    }
    let whole = with_quiet_crates(text);
    EnvFilter::try_new(&whole).map(|_| text.to_string()).map_err(|error| error.to_string())
}

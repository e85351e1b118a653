//! The log flags of Metacontroller: zap's, and klog's `-v`.

use clap::{ArgAction, Args};

use super::value::boolean;
use crate::cli::log::{Format, Wish};

#[derive(Args)]
#[group(skip)]
pub(super) struct Flags {
    /// debug, info, error, or a verbosity
    #[arg(long, hide = true, value_name = "LEVEL", value_parser = level)]
    zap_log_level: Option<&'static str>,
    #[arg(long, hide = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true", value_parser = boolean)]
    zap_devel: bool,
    #[arg(long, hide = true, value_name = "FORM", value_parser = encoder)]
    zap_encoder: Option<Format>,
    /// klog's verbosity
    #[arg(short, long = "v", hide = true, value_name = "N", value_parser = level)]
    verbosity: Option<&'static str>,
}

impl Flags {
    /// What they ask of the log.
    pub(super) fn wish(&self) -> Wish {
        let devel = self.zap_devel.then_some(("debug", Format::Text));
        Wish {
            level: self.zap_log_level.or(self.verbosity).or(devel.map(|(level, _)| level)),
            format: self.zap_encoder.or(devel.map(|(_, format)| format)),
        }
    }
}

/// Metacontroller tells at 4 why it visits a parent, at 6 whole requests of hooks.
fn level(text: &str) -> Result<&'static str, String> {
    match (text, text.parse::<u32>()) {
        ("debug", _) => Ok("debug"),
        ("info", _) | (_, Ok(0..=3)) => Ok("info"),
        ("warn", _) => Ok("warn"),
        ("error" | "panic" | "dpanic" | "fatal", _) => Ok("error"),
        (_, Ok(4 | 5)) => Ok("debug"),
        (_, Ok(_)) => Ok("trace"),
        _ => Err("expected `debug`, `info`, `error`, or a number".into()),
    }
}

fn encoder(text: &str) -> Result<Format, String> {
    match text {
        "json" => Ok(Format::Json),
        "console" => Ok(Format::Text),
        _ => Err("expected `json` or `console`".into()),
    }
}

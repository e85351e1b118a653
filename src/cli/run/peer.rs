//! The flags of Metacontroller, and of the libraries it is made of, that have no meaning here: taken, and said to be ignored.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// Whether a flag has a value.
#[derive(Clone, Copy)]
enum Takes {
    Value,
    /// None, or `=true` or `=false`.
    Switch,
}

/// Name, value, and why it means nothing here.
const IGNORED: [(&str, Takes, &str); 17] = [
    (
        "discovery-interval",
        Takes::Value,
        "a kind is looked up when it is needed, and every few seconds while it is missing",
    ),
    ("pprof-address", Takes::Value, PROFILES),
    ("zap-stacktrace-level", Takes::Value, STACKS),
    ("zap-time-encoding", Takes::Value, "times are RFC 3339"),
    ("vmodule", Takes::Value, "see --log-level"),
    ("logtostderr", Takes::Switch, STDERR),
    ("alsologtostderr", Takes::Switch, STDERR),
    ("stderrthreshold", Takes::Value, STDERR),
    ("log_dir", Takes::Value, STDERR),
    ("log_file", Takes::Value, STDERR),
    ("log_file_max_size", Takes::Value, STDERR),
    ("log-flush-frequency", Takes::Value, STDERR),
    ("skip_headers", Takes::Switch, HEADERS),
    ("skip_log_headers", Takes::Switch, HEADERS),
    ("add_dir_header", Takes::Switch, HEADERS),
    ("one_output", Takes::Switch, STDERR),
    ("log_backtrace_at", Takes::Value, STACKS),
];

const PROFILES: &str = "profiles are Go's";
const STACKS: &str = "the log has no stack traces";
const STDERR: &str = "the log is on stderr alone";
const HEADERS: &str = "see --log-format";

/// Those that were given, with the reasons.
pub(super) struct Ignored(Vec<(&'static str, &'static str)>);

impl Ignored {
    /// Says so, once for each.
    pub(super) fn tell(&self) {
        for (flag, reason) in &self.0 {
            tracing::info!(flag = format!("--{flag}"), why = reason, "flag has no meaning here, ignored");
        }
    }
}

impl FromArgMatches for Ignored {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
        let given = IGNORED.into_iter().filter(|(name, ..)| given(name));
        Ok(Ignored(given.map(|(name, _, reason)| (name, reason)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Ignored {
    fn augment_args(command: Command) -> Command {
        IGNORED.into_iter().fold(command, |command, (name, takes, _)| command.arg(flag(name, takes)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(name: &'static str, takes: Takes) -> Arg {
    let flag = Arg::new(name).long(name).hide(true).action(ArgAction::Set);
    match takes {
        Takes::Value => flag.allow_hyphen_values(true),
        Takes::Switch => flag.num_args(0..=1).require_equals(true).default_missing_value("true"),
    }
}

/// Metacontroller 4.17's flags, for the long help.
pub(super) const TABLE: &str = "\
Metacontroller's flags, with one dash or two; flags without a verb mean `run`:
  --discovery-interval                ignored: kinds are looked up when they are needed
  --cache-flush-interval              as there: every parent is visited this often
  --metrics-address, --health-probe-bind-address
                                      as there
  --client-go-qps, --client-go-burst  as there; 50 and 100 unless said otherwise
  --events-qps, --events-burst        as there
  --workers                           as there; 8 unless said otherwise
  --leader-election, --leader-election-id, --leader-election-namespace
                                      as there
  --leader-election-resource-lock     `leases`
  --target-label-selector             as there
  --apply-strategy                    children are always written by server-side apply
  --apply-strategy-ssa-field-manager  --field-manager
  --kubeconfig                        as there
  --zap-log-level, --zap-devel, --zap-encoder, -v
                                      --log-level and --log-format (4 and more is debug, 6 and more is trace)
  --zap-stacktrace-level, --zap-time-encoding, --pprof-address
                                      ignored, and so are klog's other flags";

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory};

    use super::TABLE;
    use crate::cli::Line;

    #[test]
    fn table_tells_of_flags_that_are_there() {
        let line = Line::command();
        let run = line.find_subcommand("run").expect("a verb");
        let known = |name: &str| {
            run.get_arguments().any(|flag| {
                flag.get_long() == Some(name)
                    || flag.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
            })
        };
        let words = TABLE.split([' ', ',', '\n', '(']).filter_map(|word| word.strip_prefix("--"));
        let of_all_verbs = ["log-level", "log-format"];
        let unknown: Vec<&str> = words.filter(|name| !known(name) && !of_all_verbs.contains(name)).collect();
        assert_eq!(unknown, [""; 0]);
    }

    /// The default as clap knows it, or as the help tells it where the environment or another flag may say otherwise.
    fn default(flag: &Arg) -> String {
        let known = flag.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let told = help.split("[default: ").nth(1).and_then(|rest| rest.split(']').next());
        known.or(told.map(str::to_owned)).unwrap_or_default()
    }

    #[test]
    fn defaults_that_differ_are_those_of_the_comparison() {
        let page = include_str!("../../../METACONTROLLER.md");
        let section = page.split("\n## ").find(|section| section.starts_with("Other defaults"));
        let mut line = Line::command();
        line.build();
        let run = line.find_subcommand("run").expect("a verb");
        let rows = section.expect("a section").lines().filter(|row| row.starts_with("| `--"));
        let mut told = Vec::new();
        for row in rows {
            let words: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
            let name = words[0].trim_start_matches("--");
            let flag = run.get_arguments().find(|flag| flag.get_long() == Some(name)).expect(name);
            let here = row.split(" | ").nth(2).expect("a cell").trim_matches('`');
            assert_eq!(default(flag), here, "{row}");
            told.push(name);
        }
        assert_eq!(told, ["metrics-address", "client-go-qps", "client-go-burst", "workers", "log-format"]);
        // The others are as they are there.
        for (name, there) in [
            ("health-probe-bind-address", ":8081"),
            ("cache-flush-interval", "30m"),
            ("events-burst", "25"),
            ("leader-elect-id", "metacontroller"),
            ("field-manager", "metacontroller"),
        ] {
            let flag = run.get_arguments().find(|flag| flag.get_long() == Some(name)).expect(name);
            assert_eq!(default(flag), there, "{name}");
        }
    }
}

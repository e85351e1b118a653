//! Values as Go's flags write them.

use std::time::Duration;

use crate::schedule::duration::parse_duration;

/// `20s`, `1h30m`; never below zero.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    Duration::try_from(duration).map_err(|_| format!("expected a duration of zero or more, found `{text}`"))
}

/// `true`, `false`, and Go's other words for them.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected `true` or `false`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_below_zero_is_refused() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert!(duration("-1s").is_err());
        assert!(duration("5").is_err_and(|error| error.contains("a unit is missing")));
    }

    #[test]
    fn booleans_are_gos() {
        assert_eq!([boolean("T"), boolean("0")], [Ok(true), Ok(false)]);
        assert!(boolean("yes").is_err());
    }
}

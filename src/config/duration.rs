//! Durations as Go writes them, which is how Kubernetes' objects hold them: `1m30s`, `500ms`, `1.5h`.

use std::time::Duration;

/// Nanoseconds of each unit; `ms` comes before `m` and `s`, so that the longest name is found first.
const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Reads a duration. One below zero is zero; the reason of a refusal says what is wrong.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err("it is empty".into());
    }
    let mut nanoseconds = 0.0;
    while !rest.is_empty() {
        let (part, after) = component(rest)?;
        nanoseconds += part;
        rest = after;
    }
    // Go counts nanoseconds in 64 bits: 292 years.
    if nanoseconds > i64::MAX as f64 {
        return Err("it is longer than 292 years".into());
    }
    Ok(if negative { Duration::ZERO } else { Duration::from_nanos(nanoseconds.round() as u64) })
}

/// One number with its unit, in nanoseconds, and what follows.
fn component(text: &str) -> Result<(f64, &str), String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| format!("`{text}` begins with no number"))?;
    let named = UNITS.iter().filter(|(unit, _)| rest.starts_with(unit)).max_by_key(|(unit, _)| unit.len());
    match named {
        Some((unit, length)) => Ok((number * length, &rest[unit.len()..])),
        None if rest.is_empty() => Err(format!("`{number}` has no unit")),
        None => {
            let unit: String = rest.chars().take_while(|c| !c.is_ascii_digit()).collect();
            Err(format!("there is no unit `{unit}`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases = [
            ("10s", 10_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("500ms", 500_000_000),
            ("3µs", 3_000),
            ("7us", 7_000),
            ("9ns", 9),
            ("0", 0),
            ("+2s", 2_000_000_000),
            ("-5s", 0),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_reason() {
        let cases = [
            ("", "it is empty"),
            ("-", "it is empty"),
            ("10", "`10` has no unit"),
            ("10 s", "there is no unit ` s`"),
            ("1d", "there is no unit `d`"),
            ("ten", "`ten` begins with no number"),
            ("1.2.3s", "`1.2.3s` begins with no number"),
            ("3000000h", "it is longer than 292 years"),
        ];
        for (text, reason) in cases {
            assert_eq!(parse(text), Err(reason.to_string()), "{text}");
        }
    }
}

//! Durations as Go writes them and Kubernetes objects carry them: `1h30m`, `90s`, `1.5h`, `-250ms`.

use jiff::SignedDuration;

use crate::schedule::error::ScheduleError;

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads one duration, exact to the nanosecond and within Go's range of about 292 years.
pub(crate) fn parse_duration(text: &str) -> Result<SignedDuration, ScheduleError> {
    let refuse =
        || ScheduleError::new("duration", format!("`{text}`"), "a duration such as `90s`, `1h30m` or `1.5h`");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if digits.is_empty() {
        return Err(refuse());
    }
    let mut rest = digits;
    let mut nanoseconds = 0i128;
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !c.is_ascii_digit() && c != '.');
        let (unit, after) = split_where(after, |c| c.is_ascii_digit() || c == '.');
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let factor = factor.ok_or_else(|| refuse().hint(unit_hint(unit)))?;
        let part = scaled(number, factor).ok_or_else(refuse)?;
        nanoseconds = nanoseconds.checked_add(part).ok_or_else(refuse)?;
        rest = after;
    }
    let signed = if negative { -nanoseconds } else { nanoseconds };
    let signed =
        i64::try_from(signed).map_err(|_| refuse().hint("the longest duration is about 292 years"))?;
    Ok(SignedDuration::from_nanos(signed))
}

fn split_where(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

fn unit_hint(unit: &str) -> &'static str {
    match unit {
        "" => "a unit is missing: `h`, `m`, `s`, `ms`, `us` or `ns`",
        "d" | "w" => "there is no unit above the hour: a day is `24h`",
        _ => "units are `h`, `m`, `s`, `ms`, `us` and `ns`",
    }
}

/// `number` is digits with at most one point; digits beyond the 18th of a fraction are below any nanosecond.
fn scaled(number: &str, factor: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(18)];
    let tenth = 10i128.pow(fraction.len() as u32);
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    let below = digits(fraction)?.checked_mul(factor)? / tenth;
    digits(whole)?.checked_mul(factor)?.checked_add(below)
}

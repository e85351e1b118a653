//! Times as Kubernetes writes them (RFC 3339), seconds and durations.

use jiff::{SignedDuration, Timestamp};
use minijinja::value::Value;
use minijinja::{Error, State};

use crate::template::fault::Fault;
use crate::template::functions::arguments::{Arguments, Builtin, Shape};
use crate::template::render::inputs;

pub(super) const BUILTINS: [Builtin; 6] = [
    Builtin { name: "timestamp", parameters: &["time"], shape: Shape::Fixed, call: timestamp },
    Builtin { name: "rfc3339", parameters: &["seconds"], shape: Shape::Fixed, call: rfc3339 },
    Builtin { name: "duration", parameters: &["text"], shape: Shape::Fixed, call: duration },
    Builtin { name: "seconds_until", parameters: &["time"], shape: Shape::Fixed, call: seconds_until },
    Builtin {
        name: "seconds_between",
        parameters: &["from", "to"],
        shape: Shape::Fixed,
        call: seconds_between,
    },
    Builtin { name: "time_add", parameters: &["time", "duration"], shape: Shape::Fixed, call: time_add },
];

fn timestamp(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    Ok(whole_seconds(arguments.time("time")?).into())
}

fn rfc3339(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    Ok(in_calendar(arguments, Timestamp::from_duration(arguments.seconds("seconds")?).ok())?)
}

fn duration(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    arguments.text("text", "a duration such as `90s`, `1h30m` or `1.5h`")?;
    Ok(seconds(arguments.duration("text")?))
}

fn seconds_until(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    Ok(seconds(arguments.time("time")?.duration_since(inputs(state)?.now)))
}

fn seconds_between(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let (from, to) = (arguments.time("from")?, arguments.time("to")?);
    Ok(seconds(to.duration_since(from)))
}

fn time_add(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let (time, length) = (arguments.time("time")?, arguments.duration("duration")?);
    Ok(in_calendar(arguments, time.checked_add(length).ok())?)
}

/// RFC 3339 has years of four digits only.
fn in_calendar(arguments: &Arguments, time: Option<Timestamp>) -> Result<Value, Fault> {
    let year_zero = |time: &Timestamp| time.as_second() >= -62_167_219_200;
    let time = time
        .filter(year_zero)
        .ok_or_else(|| arguments.cannot(&format!("write a time before the year 0 or after {}", last())))?;
    Ok(written(time))
}

/// A day before the year 9999 ends, so that every time has a local one in every zone.
fn last() -> String {
    Timestamp::from_second(Timestamp::MAX.as_second())
        .expect("a time without its fraction is one")
        .to_string()
}

/// A time as templates see it: UTC, with a fraction only where there is one.
pub(super) fn written(time: Timestamp) -> Value {
    time.to_string().into()
}

/// An exact number of seconds: an integer unless there is a fraction.
pub(super) fn seconds(length: SignedDuration) -> Value {
    match length.subsec_nanos() {
        0 => length.as_secs().into(),
        _ => length.as_secs_f64().into(),
    }
}

fn whole_seconds(time: Timestamp) -> i64 {
    time.as_second() - i64::from(time.subsec_nanosecond() < 0)
}

/// Reads RFC 3339 as Go does; the error may carry a hint.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, Option<&'static str>> {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let sign = |index: usize, byte: u8| bytes.get(index) == Some(&byte);
    let date = digits(0..4) && sign(4, b'-') && digits(5..7) && sign(7, b'-') && digits(8..10);
    let clock = digits(11..13) && sign(13, b':') && digits(14..16) && sign(16, b':') && digits(17..19);
    if date && bytes.len() == 10 {
        return Err(Some("a date alone is no time; add one, such as `T00:00:00Z`"));
    }
    if !date || !clock || !sign(10, b'T') {
        return Err(None);
    }
    let rest = &bytes[19..];
    let fraction = match rest {
        [b'.', rest @ ..] => 1 + rest.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        _ => 0,
    };
    match &rest[fraction..] {
        [b'Z'] | [b'+' | b'-', _, _, b':', _, _] if fraction != 1 => text.parse().map_err(|_| too_late(text)),
        [] => Err(Some("add `Z` for UTC or an offset such as `+02:00`")),
        _ => Err(None),
    }
}

fn too_late(text: &str) -> Option<&'static str> {
    let late = text.starts_with("9999-12-3");
    late.then_some("the last time is `9999-12-30T22:00:00Z`; for `never`, take `9999-01-01T00:00:00Z`")
}

//! The arguments of one call, bound to the parameters' names and read strictly.
//!
//! Knows no function: each says what it wants, and a refusal names function, argument, what was found and what is
//! expected. Values are shown only where they are formats (times, schedules, quantities), which hold no secrets.

use std::ops::RangeInclusive;

use jiff::{SignedDuration, Timestamp};
use minijinja::value::{Kwargs, Value};
use minijinja::{Error, State};
use serde_json::Value as Json;

use crate::problem::nearest;
use crate::schedule::Schedule;
use crate::schedule::duration::parse_duration;
use crate::schedule::error::ScheduleError;
use crate::schedule::zone::Zone;
use crate::template::fault::Fault;
use crate::template::functions::time::parse_time;
use crate::template::render::inputs;
use crate::template::value::{kind, to_json, to_text};

/// A function that templates call as `name(value, …)` or `value | name(…)`.
#[derive(Clone, Copy)]
pub(super) struct Builtin {
    pub name: &'static str,
    /// A call gives them by position or by name. The first of `Shape::Many` takes every positional argument.
    pub parameters: &'static [&'static str],
    pub shape: Shape,
    pub call: fn(&mut State, &Arguments) -> Result<Value, Error>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Fixed,
    Many,
}

impl Builtin {
    pub(super) fn invoke(
        &self,
        state: &mut State,
        given: Vec<Value>,
        named: &Kwargs,
    ) -> Result<Value, Error> {
        let arguments = Arguments::bind(self, given, named)?;
        (self.call)(state, &arguments)
    }
}

/// What a call gave, by parameter.
pub(super) struct Arguments {
    function: &'static str,
    values: Vec<(&'static str, Value)>,
    many: Vec<Value>,
}

impl Arguments {
    fn bind(builtin: &Builtin, given: Vec<Value>, named: &Kwargs) -> Result<Arguments, Error> {
        let mut arguments = Arguments { function: builtin.name, values: Vec::new(), many: Vec::new() };
        match builtin.shape {
            Shape::Many => arguments.many = given,
            Shape::Fixed => arguments.bind_positions(builtin, given)?,
        }
        for name in named.args() {
            arguments.bind_name(builtin, name, named.get(name)?)?;
        }
        Ok(arguments)
    }

    fn bind_positions(&mut self, builtin: &Builtin, given: Vec<Value>) -> Result<(), Fault> {
        let allowed = builtin.parameters.len();
        if given.len() > allowed {
            return Err(Fault::new(format!("`{}` is given too many arguments", self.function))
                .found(given.len().to_string())
                .expected(format!("at most {allowed}: {}", listed(builtin.parameters))));
        }
        self.values = builtin.parameters.iter().copied().zip(given).collect();
        Ok(())
    }

    fn bind_name(&mut self, builtin: &Builtin, name: &str, value: Value) -> Result<(), Fault> {
        let nameable = &builtin.parameters[usize::from(builtin.shape == Shape::Many)..];
        let Some(parameter) = nameable.iter().find(|parameter| **parameter == name) else {
            let fault = Fault::new(format!("`{}` has no argument `{name}`", self.function))
                .expected(listed(nameable));
            return Err(match nearest(name, nameable.iter().copied()) {
                Some(near) => fault.hint(format!("did you mean `{near}`?")),
                None => fault,
            });
        };
        if self.values.iter().any(|(bound, _)| bound == parameter) {
            return Err(Fault::new(format!("`{}` is given its argument `{name}` twice", self.function)));
        }
        self.values.push((parameter, value));
        Ok(())
    }

    /// A refusal of one argument, to which the caller adds found, expected and hint.
    pub(super) fn refuse(&self, name: &str) -> Fault {
        Fault::new(format!("`{}` cannot read its argument `{name}`", self.function))
    }

    /// A refusal of what a function was asked to do.
    pub(super) fn cannot(&self, what: &str) -> Fault {
        Fault::new(format!("`{}` cannot {what}", self.function))
    }

    /// The argument if it is given and not null.
    pub(super) fn optional(&self, name: &str) -> Option<&Value> {
        let given = self.values.iter().find(|(parameter, _)| *parameter == name);
        given.map(|(_, value)| value).filter(|value| !value.is_none())
    }

    /// The argument, null included.
    pub(super) fn any(&self, name: &str) -> Result<&Value, Fault> {
        let given = self.values.iter().find(|(parameter, _)| *parameter == name);
        given.map(|(_, value)| value).ok_or_else(|| self.missing(name))
    }

    pub(super) fn required(&self, name: &str, expected: &str) -> Result<&Value, Fault> {
        match self.any(name) {
            Ok(value) if value.is_none() => Err(self.refuse(name).found("null").expected(expected)),
            Ok(value) => Ok(value),
            Err(fault) => Err(fault.expected(expected)),
        }
    }

    fn missing(&self, name: &str) -> Fault {
        Fault::new(format!("`{}` needs its argument `{name}`", self.function)).found("nothing")
    }

    /// All positional arguments of a function that takes many.
    pub(super) fn many(&self) -> &[Value] {
        &self.many
    }

    pub(super) fn text(&self, name: &str, expected: &str) -> Result<&str, Fault> {
        let value = self.required(name, expected)?;
        value.as_str().ok_or_else(|| self.refuse(name).found(kind(value)).expected(expected))
    }

    pub(super) fn optional_text(&self, name: &str, expected: &str) -> Result<Option<&str>, Fault> {
        self.optional(name).map(|_| self.text(name, expected)).transpose()
    }

    pub(super) fn whole(
        &self,
        name: &str,
        range: RangeInclusive<i64>,
        default: Option<i64>,
    ) -> Result<i64, Fault> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        if let (None, Some(default)) = (self.optional(name), default) {
            return Ok(default);
        }
        let value = self.required(name, &expected)?;
        let number = value.is_number().then(|| i64::try_from(value.clone()).ok()).flatten();
        match number {
            Some(number) if range.contains(&number) => Ok(number),
            Some(number) => Err(self.refuse(name).found(number.to_string()).expected(expected)),
            None => Err(self.refuse(name).found(kind(value)).expected(expected)),
        }
    }

    pub(super) fn time(&self, name: &str) -> Result<Timestamp, Fault> {
        let text = self.text(name, A_TIME)?;
        parse_time(text).map_err(|hint| {
            let fault = self.refuse(name).found(quoted(text)).expected(A_TIME);
            hint.iter().fold(fault, |fault, hint| fault.hint(*hint))
        })
    }

    /// The time an optional argument gives, or the render's `now`.
    pub(super) fn time_or_now(&self, name: &str, state: &State) -> Result<Timestamp, Error> {
        match self.optional(name) {
            Some(_) => Ok(self.time(name)?),
            None => Ok(inputs(state)?.now),
        }
    }

    pub(super) fn schedule(&self, name: &str) -> Result<Schedule, Fault> {
        let text = self.text(name, A_SCHEDULE)?;
        Schedule::parse(text).map_err(|error| self.refuse_schedule(name, error))
    }

    pub(super) fn zone(&self, name: &str) -> Result<Zone, Fault> {
        match self.optional_text(name, A_ZONE)? {
            Some(text) => Zone::parse(text).map_err(|error| self.refuse_schedule(name, error)),
            None => Ok(Zone::utc()),
        }
    }

    fn refuse_schedule(&self, name: &str, error: ScheduleError) -> Fault {
        let mut fault = self.refuse(name).found(error.found).expected(error.expected);
        if !["schedule", "time zone", "duration"].contains(&error.subject.as_str()) {
            fault.message = format!("{}: {}", fault.message, error.subject);
        }
        error.hint.into_iter().fold(fault, Fault::hint)
    }

    /// A duration as text, or a number of seconds.
    pub(super) fn duration(&self, name: &str) -> Result<SignedDuration, Fault> {
        let value = self.required(name, A_DURATION)?;
        if value.is_number() {
            return self.seconds(name);
        }
        let text = self.text(name, A_DURATION)?;
        parse_duration(text).map_err(|error| self.refuse_schedule(name, error))
    }

    /// A number of seconds, which may have a fraction.
    pub(super) fn seconds(&self, name: &str) -> Result<SignedDuration, Fault> {
        let value = self.required(name, "a number of seconds")?;
        let refuse = |found: String| self.refuse(name).found(found).expected("a number of seconds");
        if !value.is_number() {
            return Err(refuse(kind(value).to_string()));
        }
        if let Ok(whole) = i64::try_from(value.clone()) {
            return Ok(SignedDuration::from_secs(whole));
        }
        let seconds = f64::try_from(value.clone()).map_err(|_| refuse(value.to_string()))?;
        SignedDuration::try_from_secs_f64(seconds).map_err(|_| refuse(value.to_string()))
    }

    /// The text of a scalar, or the bytes of a byte string; what has no plain text is refused.
    pub(super) fn scalar(&self, name: &str, hint: &str) -> Result<Vec<u8>, Fault> {
        const EXPECTED: &str = "text, a number, true or false";
        let value = self.required(name, EXPECTED)?;
        if let Some(bytes) = value.as_bytes() {
            return Ok(bytes.to_vec());
        }
        let refuse = || self.refuse(name).found(kind(value)).expected(EXPECTED).hint(hint);
        to_text(value).map(String::into_bytes).map_err(|_| refuse())
    }

    /// Any value as JSON of so many bytes at most.
    pub(super) fn json(&self, name: &str, bytes: usize) -> Result<Json, Error> {
        to_json(self.any(name)?, bytes)
    }
}

const A_TIME: &str = "a time such as `2026-11-30T17:00:00Z`";
const A_SCHEDULE: &str = "a schedule such as `0 7 * * *` or `@daily`";
const A_ZONE: &str = "a time zone such as `Europe/Berlin`";
const A_DURATION: &str = "a duration such as `90s`, `1h30m` or `1.5h`";

/// A format's text as the author may have mistyped it, shortened where it is long.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

fn listed(parameters: &[&str]) -> String {
    if parameters.is_empty() {
        return "none".to_string();
    }
    parameters.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

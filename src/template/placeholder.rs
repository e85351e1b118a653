//! How a value gets from an expression into the YAML tree without ever being YAML text.
//!
//! `{{ expression }}` puts its value aside and writes a placeholder; the text is read as YAML; then placeholders are
//! replaced in what was read. What macros, includes, blocks and captures produce is the author's YAML text: it is a
//! "safe" string to the engine, may hold placeholders, and is written as it is.
//! A safe string with placeholders must not be taken for a string by a filter or an operator: `settle` makes one of it.

use minijinja::value::{Kwargs, ObjectRepr, Value};
use minijinja::{Error, Output, State};
use serde_json::Value as Json;

use crate::template::data::Data;
use crate::template::fault::Fault;
use crate::template::render::Run;
use crate::template::value::{self, Sink};
use crate::template::yaml::{Fill, Misfit, Want};

/// A placeholder is OPEN, the value's index, CLOSE. Sources that hold OPEN are refused, values never enter the text.
pub(in crate::template) const OPEN: char = '\u{e000}';
const CLOSE: char = '\u{e001}';

/// Writes the value of an expression: author's text as it is, anything else as a placeholder.
pub(in crate::template) fn write(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let run = Run::of(state)?;
    run.glance_at_the_clock()?;
    if value.is_safe() {
        return Ok(out.write_str(value.as_str().unwrap_or_default())?);
    }
    survey(state, value)?;
    value::writable(value, 0)?;
    let mut values = Run::of(state)?.values();
    write!(out, "{OPEN}{}{CLOSE}", values.len())?;
    values.push(value.clone());
    Ok(())
}

/// Captured text as a plain string, also inside lists and maps; `None` where the value holds none.
pub(in crate::template) fn settle(state: &mut State, value: &Value) -> Result<Option<Value>, Error> {
    if !survey(state, value)? {
        return Ok(None);
    }
    let run = Run::of(state)?;
    let mut bytes = run.output_bytes;
    let text = settled(value, &run.values(), &mut bytes)?;
    let made = (run.output_bytes - bytes) as u64;
    state.consume_fuel(made / BYTES_PER_FUEL)?;
    Ok(Some(text))
}

/// What the engine itself takes for text that it makes.
const BYTES_PER_FUEL: u64 = 64;

/// Bytes of the output for each value inside one: half a million of them are more than any template needs.
const BYTES_PER_VALUE: usize = 16;
/// So many values inside one cost as much fuel as a step.
const VALUES_PER_FUEL: u64 = 64;

/// Looks through a value before anything else does: refuses one that is nested too deep to be dropped or written safely, and one
/// that holds more than can be written. A list that holds another one twice is small and has twice as much to go through.
/// Says whether it holds captured text.
pub(in crate::template) fn survey(state: &mut State, value: &Value) -> Result<bool, Error> {
    let most = Run::of(state)?.output_bytes / BYTES_PER_VALUE;
    let mut survey = Survey { left: most };
    let captures = survey.holds_captures(value, 0)?;
    state.consume_fuel((most - survey.left) as u64 / VALUES_PER_FUEL)?;
    Ok(captures)
}

struct Survey {
    /// How many more values may come.
    left: usize,
}

impl Survey {
    /// Captured text can be in what a template made itself; not in data, nor in what a filter returned.
    fn holds_captures(&mut self, value: &Value, depth: usize) -> Result<bool, Fault> {
        self.left = self.left.checked_sub(1).ok_or_else(value::too_large)?;
        if value.is_safe() {
            return Ok(true);
        }
        let Some(object) = value.as_object() else { return Ok(false) };
        if depth > value::DEEPEST {
            return Err(value::too_deep());
        }
        if object.downcast_ref::<Data>().is_some() {
            return Ok(false);
        }
        let pairs = || object.try_iter_pairs().into_iter().flatten();
        match object.repr() {
            ObjectRepr::Seq => self.any(object.try_iter().into_iter().flatten(), depth),
            ObjectRepr::Map => self.any(pairs().map(|(_, inner)| inner), depth),
            _ => Ok(false),
        }
    }

    fn any(&mut self, mut values: impl Iterator<Item = Value>, depth: usize) -> Result<bool, Fault> {
        values.try_fold(false, |found, value| Ok(self.holds_captures(&value, depth + 1)? || found))
    }
}

fn settled(value: &Value, values: &[Value], bytes: &mut usize) -> Result<Value, Fault> {
    if value.is_safe() {
        let text = in_text(value.as_str().unwrap_or_default(), values, bytes);
        return Ok(Value::from(text.map_err(|misfit| misfit.fault)?));
    }
    let Some(object) = value.as_object().filter(|object| object.downcast_ref::<Data>().is_none()) else {
        return Ok(value.clone());
    };
    let pairs = || object.try_iter_pairs().into_iter().flatten();
    match object.repr() {
        ObjectRepr::Seq => object
            .try_iter()
            .into_iter()
            .flatten()
            .map(|item| settled(&item, values, bytes))
            .collect::<Result<_, _>>(),
        ObjectRepr::Map if value.is_kwargs() => {
            let mut named =
                |(key, inner): (Value, Value)| Ok((key.to_string(), settled(&inner, values, bytes)?));
            Ok(Value::from(pairs().map(&mut named).collect::<Result<Kwargs, Fault>>()?))
        }
        ObjectRepr::Map if !value::is_macro(value) => {
            let mut entry = |(key, inner): (Value, Value)| Ok((key, settled(&inner, values, bytes)?));
            Ok(Value::from_pairs(pairs().map(&mut entry).collect::<Result<Vec<_>, Fault>>()?))
        }
        _ => Ok(value.clone()),
    }
}

/// The values that a text's placeholders stand for.
pub(in crate::template) struct Values<'v>(pub &'v [Value]);

impl Fill for Values<'_> {
    fn fill(&self, text: &str, want: Want, bytes: &mut usize) -> Option<Result<Json, Misfit>> {
        if !text.contains(OPEN) {
            return None;
        }
        let filled = match (want, alone(text).and_then(|index| self.0.get(index))) {
            (Want::Typed, Some(value)) => self.typed(value, bytes).map_err(|fault| misfit(fault, text)),
            (Want::Key, Some(value)) if value::to_text(value).is_err() => {
                Err(misfit(value::no_key(value), text))
            }
            _ => in_text(text, self.0, bytes).map(Json::String),
        };
        Some(filled)
    }
}

impl Values<'_> {
    fn typed(&self, value: &Value, bytes: &mut usize) -> Result<Json, Fault> {
        let texts = |value: &Value| {
            let text = value.as_str().filter(|_| value.is_safe())?;
            Some(in_text(text, self.0, &mut usize::MAX.clone()).map_err(|misfit| misfit.fault))
        };
        let mut sink = Sink { bytes: *bytes, texts: &texts };
        let json = sink.json(value, 0).map_err(|error| Fault::of(&error));
        *bytes = sink.bytes;
        json
    }
}

fn misfit(fault: Fault, placeholder: &str) -> Misfit {
    Misfit { fault, at: placeholder.to_string() }
}

/// The index of a text that is one placeholder and nothing else.
fn alone(text: &str) -> Option<usize> {
    text.strip_prefix(OPEN)?.strip_suffix(CLOSE)?.parse().ok()
}

/// A text with each placeholder replaced by its value as text.
fn in_text(text: &str, values: &[Value], bytes: &mut usize) -> Result<String, Misfit> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        let end = rest[at..].find(CLOSE).map_or(rest.len(), |length| at + length + CLOSE.len_utf8());
        let placeholder = &rest[at..end];
        filled.push_str(&rest[..at]);
        match alone(placeholder).and_then(|index| values.get(index)) {
            Some(value) => {
                filled.push_str(&value::to_text(value).map_err(|fault| misfit(fault, placeholder))?);
            }
            None => filled.push_str(placeholder),
        }
        if filled.len() > *bytes {
            return Err(misfit(value::too_large(), placeholder));
        }
        rest = &rest[end..];
    }
    filled.push_str(rest);
    *bytes = bytes.saturating_sub(filled.len());
    Ok(filled)
}

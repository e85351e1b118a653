//! The guards that `source` puts around operands.
//!
//! The engine lets absent values pass through comparisons, loops and text; it takes captured text for a string, and
//! writes booleans as Python does. A guard is a filter that an author cannot name, around the operand of an operator.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

use crate::template::data::Data;
use crate::template::fault::Fault;
use crate::template::jinja;
use crate::template::placeholder::{settle, survey};
use crate::template::registry::settled;
use crate::template::render::Run;
use crate::template::value::{self, kind, present, to_text};

/// Adds the guards.
pub(in crate::template) fn install(environment: &mut Environment<'static>) {
    environment.add_filter(Guard::Operand.filter(), |state: &mut State, value: Value| operand(state, value));
    environment.add_filter(Guard::Left.filter(), left);
    environment.add_filter(Guard::Right.filter(), right);
    environment.add_filter(Guard::Text.filter(), text);
    environment.add_filter(Guard::Container.filter(), |state: &mut State, value: Value| {
        let container = jinja::container(&operand(state, value)?)?;
        state.consume_fuel(container.len().unwrap_or(0) as u64 / 16)?;
        Ok::<_, Error>(container)
    });
    environment.add_filter(Guard::Items.filter(), items);
    environment.add_filter(Guard::Settled.filter(), |state: &mut State, value: Value| {
        Ok::<_, Error>(settle(state, &value)?.unwrap_or(value))
    });
    environment.add_filter(Guard::Kept.filter(), kept);
    environment.add_filter(Guard::Stored.filter(), stored);
    environment.add_filter(Guard::Callee.filter(), |value: Value| callee(value));
}

/// What an operand must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) enum Guard {
    /// There; captured text as a string.
    Operand,
    /// The same, and of a kind that the other operand can be put in order with: the engine would put numbers before text.
    Left,
    Right,
    /// Something that can be written in a longer text, as text.
    Text,
    /// Something to look into with `in`.
    Container,
    /// Something to loop over.
    Items,
    /// Captured text as a string; may be absent.
    Settled,
    /// Something that a variable may keep: not endless, not too deep.
    Kept,
    /// The same for an attribute of a namespace, which outlives a loop's turn: no namespace, or it would never be freed.
    Stored,
    /// Something to call, whose call is remembered when an error passes by.
    Callee,
}

impl Guard {
    pub(in crate::template) fn filter(self) -> &'static str {
        match self {
            Guard::Operand => "__operand",
            Guard::Left => "__left",
            Guard::Right => "__right",
            Guard::Text => "__text",
            Guard::Container => "__container",
            Guard::Items => "__items",
            Guard::Settled => "__settled",
            Guard::Kept => "__kept",
            Guard::Stored => "__stored",
            Guard::Callee => "__callee",
        }
    }
}

fn operand(state: &mut State, value: Value) -> Result<Value, Error> {
    Run::of(state)?.glance_at_the_clock()?;
    present(&value)?;
    Ok(settle(state, &value)?.unwrap_or(value))
}

/// The kinds of left operands whose right ones are being computed.
#[derive(Default)]
struct Lefts(Vec<ValueKind>);

fn left(state: &mut State, value: Value) -> Result<Value, Error> {
    let value = operand(state, value)?;
    state.get_or_insert_extension_with(Lefts::default).0.push(order_of(&value));
    Ok(value)
}

fn right(state: &mut State, value: Value) -> Result<Value, Error> {
    let value = operand(state, value)?;
    let left = state.get_or_insert_extension_with(Lefts::default).0.pop();
    match left {
        Some(left) if left != order_of(&value) => Err(Fault::new("values of two kinds have no order")
            .found(format!("{} and {}", value::name_of(left), kind(&value)))
            .hint("make one kind of them: `| int`, `| float` or `| string`")
            .into()),
        _ => Ok(value),
    }
}

/// Lists of all makes can be compared; booleans count as numbers.
fn order_of(value: &Value) -> ValueKind {
    match value.kind() {
        ValueKind::Bool => ValueKind::Number,
        ValueKind::Iterable => ValueKind::Seq,
        kind => kind,
    }
}

fn text(state: &mut State, value: Value) -> Result<Value, Error> {
    let value = operand(state, value)?;
    if value.kind() == ValueKind::String { Ok(value) } else { Ok(Value::from(to_text(&value)?)) }
}

fn items(state: &mut State, value: Value) -> Result<Value, Error> {
    let value = operand(state, value)?;
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => Ok(value),
        ValueKind::Map if !crate::template::value::is_macro(&value) => Ok(value),
        ValueKind::None => Err(Fault::new("null cannot be looped over")
            .expected("a list or a map")
            .hint("where it may be null, write `| default([], true)`")
            .into()),
        _ => Err(Fault::new(format!("{} cannot be looped over", kind(&value)))
            .expected("a list or a map")
            .into()),
    }
}

/// A list that is made item by item becomes a list, so that it is made once and its depth is known.
fn kept(state: &mut State, value: Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Iterable {
        survey(state, &value)?;
        return Ok(value);
    }
    let mut items = Vec::new();
    for item in value.try_iter()?.checked() {
        state.consume_fuel(1)?;
        items.push(item?);
    }
    let value = Value::from(items);
    survey(state, &value)?;
    Ok(value)
}

fn stored(state: &mut State, value: Value) -> Result<Value, Error> {
    let value = kept(state, value)?;
    if holds_namespace(&value) {
        return Err(Fault::new("a namespace cannot be kept in a namespace").into());
    }
    Ok(value)
}

/// Its depth is checked already.
fn holds_namespace(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    if object.type_name().ends_with("::Namespace") {
        return true;
    }
    match object.repr() {
        _ if object.downcast_ref::<Data>().is_some() => false,
        ObjectRepr::Seq => object.try_iter().into_iter().flatten().any(|item| holds_namespace(&item)),
        ObjectRepr::Map => {
            object.try_iter_pairs().into_iter().flatten().any(|(_, inner)| holds_namespace(&inner))
        }
        _ => false,
    }
}

fn callee(value: Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(Fault::new("there is no macro of this name").into());
    }
    present(&value)?;
    Ok(Value::from_object(Call(value)))
}

/// A macro about to be called. The error of a failed call gets the place of the call, with the cause behind it.
struct Call(Value);

impl Object for Call {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State, args: &[Value]) -> Result<Value, Error> {
        if !crate::template::value::is_macro(&self.0) {
            return self.call_other(state, args);
        }
        self.0.call(state, args).map_err(|error| match error.line() {
            Some(_) => Error::new(ErrorKind::EvalBlock, "in a macro").with_source(error),
            None => error,
        })
    }
}

impl Call {
    fn call_other(&self, state: &mut State, args: &[Value]) -> Result<Value, Error> {
        match self.0.kind() {
            ValueKind::Plain => {
                let args = settled(state, args)?;
                self.0.call(state, &args)
            }
            _ => Err(Fault::new(format!("{} cannot be called", kind(&self.0)))
                .hint("it is a value: leave the parentheses out")
                .into()),
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<call>")
    }
}

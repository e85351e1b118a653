//! How filters, tests and functions are added to a library's environment: all go through the same gate.
//!
//! The gate refuses absent arguments, makes strings of captured text, and looks at the clock.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use minijinja::functions::Function;
use minijinja::value::{FunctionArgs, FunctionResult, Object, ObjectRepr, Rest, Value, ValueOrKwargs};
use minijinja::{Environment, Error, State};

use crate::template::fault::{Fault, Subject};
use crate::template::placeholder::settle;
use crate::template::render::Run;
use crate::template::value::present;

/// An environment and the names that were added to it.
pub(in crate::template) struct Registry {
    pub environment: Environment<'static>,
    pub functions: BTreeSet<&'static str>,
    pub filters: BTreeSet<&'static str>,
    pub tests: BTreeSet<&'static str>,
}

impl Registry {
    pub(in crate::template) fn new(environment: Environment<'static>) -> Self {
        Registry { environment, functions: BTreeSet::new(), filters: BTreeSet::new(), tests: BTreeSet::new() }
    }

    /// Adds a function that templates call by `name`.
    pub(in crate::template) fn function<F, Rv, Args>(&mut self, name: &'static str, function: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        let gated = Gated(Value::from_function(function));
        self.functions.insert(name);
        self.environment.add_global(name, Value::from_object(gated));
    }

    /// Adds a filter that templates use as `value | name`.
    pub(in crate::template) fn filter<F, Rv, Args>(&mut self, name: &'static str, filter: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        let gated = Value::from_object(Gated(Value::from_function(filter)));
        self.ungated_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            gated.call(state, &values(args))
        });
    }

    /// Adds a filter that looks after its arguments itself.
    pub(in crate::template) fn ungated_filter<F, Rv, Args>(&mut self, name: &'static str, filter: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.filters.insert(name);
        self.environment.add_filter(name, filter);
    }

    /// Adds a test that templates use as `value is name`.
    pub(in crate::template) fn test<F, Rv, Args>(&mut self, name: &'static str, test: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        let gated = Value::from_object(Gated(Value::from_function(test)));
        self.ungated_test(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            gated.call(state, &values(args))
        });
    }

    /// Adds a test that looks after its arguments itself.
    pub(in crate::template) fn ungated_test<F, Rv, Args>(&mut self, name: &'static str, test: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.tests.insert(name);
        self.environment.add_test(name, test);
    }
}

pub(in crate::template) fn values(args: Rest<ValueOrKwargs>) -> Vec<Value> {
    args.0.into_iter().map(ValueOrKwargs::into_value).collect()
}

/// Something to call, behind the gate.
struct Gated(Value);

impl Object for Gated {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State, args: &[Value]) -> Result<Value, Error> {
        let args = settled(state, args)?;
        self.0.call(state, &args)
    }
}

impl fmt::Debug for Gated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<function>")
    }
}

/// The arguments of a call as values that are all there, with captured text as strings.
pub(in crate::template) fn settled<'a>(
    state: &mut State,
    args: &'a [Value],
) -> Result<Cow<'a, [Value]>, Error> {
    Run::of(state)?.glance_at_the_clock()?;
    let mut settled = Cow::Borrowed(args);
    for (index, argument) in args.iter().enumerate() {
        given(argument, index)?;
        let text = settle(state, argument).map_err(|error| Fault::about(error, Subject::Argument(index)))?;
        if let Some(text) = text {
            settled.to_mut()[index] = text;
        }
    }
    Ok(settled)
}

/// Refuses an absent argument, by its position or name.
fn given(argument: &Value, index: usize) -> Result<(), Error> {
    if !argument.is_kwargs() {
        return present(argument).map_err(|error| Fault::about(error, Subject::Argument(index)));
    }
    let pairs = argument.as_object().and_then(|named| named.try_iter_pairs());
    pairs.into_iter().flatten().try_for_each(|(name, value)| {
        present(&value).map_err(|error| Fault::about(error, Subject::Named(name.to_string())))
    })
}

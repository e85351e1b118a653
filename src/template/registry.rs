//! How filters, tests and functions are added to a library's environment.

use minijinja::Environment;
use minijinja::functions::Function;
use minijinja::value::{FunctionArgs, FunctionResult};

/// Adds a function that templates call by `name`.
pub(in crate::template) fn function<F, Rv, Args>(
    environment: &mut Environment<'static>,
    name: &'static str,
    function: F,
) where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    environment.add_function(name, function);
}

/// Adds a filter that templates use as `value | name`.
pub(in crate::template) fn filter<F, Rv, Args>(
    environment: &mut Environment<'static>,
    name: &'static str,
    filter: F,
) where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    environment.add_filter(name, filter);
}

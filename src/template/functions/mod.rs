//! Functions and filters that operators need, beyond those of Jinja.
//!
//! How to write one:
//! - Register it with `Registry::function` or `Registry::filter`, never on the environment itself: the registry
//!   refuses an absent argument by its path, turns captured text into a string, and keeps the render's time budget.
//!   So a function never sees an absent value; a missing optional argument is a plain `Option` or `Kwargs`.
//! - What the render was given: `render::inputs(state)` is a copy of `Inputs { now, entropy }`; the parent and the rest
//!   of the context are `state.lookup("parent")`. The clock and the environment are out of reach on purpose.
//! - A refusal is a `fault::Fault`: `Err(Fault::new("what is wrong").found(…).expected(…).hint(…).into())`. Place, caret
//!   and include trail are added by the engine. Name types in it, not values, unless the author wrote the value.
//! - JSON in and out: `value::to_json(&value, bytes)` (exact integers, whole floats as integers) and `value::from_json(json, "name")`,
//!   which remembers its path for messages about absent fields.
//! - Work that grows with an argument pays for it: `state.consume_fuel(n)?`.

mod arguments;
mod condition;
mod encode;
mod fail;
mod name;
mod quantity;
mod random;
mod schedule;
mod time;
mod version;

#[cfg(test)]
mod guide;
#[cfg(test)]
mod tests;

use minijinja::State;
use minijinja::value::{Kwargs, Rest, Value};

use crate::template::functions::arguments::Builtin;
use crate::template::registry::Registry;

/// Adds every function to a library's registry, each also as a filter whose value is the first argument.
pub(super) fn install(registry: &mut Registry) {
    for builtin in builtins() {
        let call = move |state: &mut State, given: Rest<Value>, named: Kwargs| {
            builtin.invoke(state, given.0, &named)
        };
        registry.function(builtin.name, call);
        registry.filter(builtin.name, call);
    }
    // None of the functions above is known to panic; the program must outlive one that does.
    #[cfg(test)]
    registry.filter("panic", |_: &Value| -> Value { panic!("meant to") });
    // And a thread may wait for a core at any time.
    #[cfg(test)]
    registry.filter("wait_for_a_core", |milliseconds: u64| {
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
    });
}

fn builtins() -> impl Iterator<Item = Builtin> {
    schedule::BUILTINS
        .into_iter()
        .chain(time::BUILTINS)
        .chain(condition::BUILTINS)
        .chain(name::BUILTINS)
        .chain(quantity::BUILTINS)
        .chain(version::BUILTINS)
        .chain(encode::BUILTINS)
        .chain(random::BUILTINS)
        .chain(fail::BUILTINS)
}

//! Functions and filters that operators need, beyond those of Jinja.
//!
//! How to write one:
//! - Register it with `registry::function` or `registry::filter`, never on the environment itself: the registry
//!   refuses an absent argument by its path, turns captured text into a string, and keeps the render's time budget.
//!   So a function never sees an absent value; a missing optional argument is a plain `Option` or `Kwargs`.
//! - What the render was given: `render::inputs(state)` is a copy of `Inputs { now, entropy }`; the parent and the rest
//!   of the context are `state.lookup("parent")`. The clock and the environment are out of reach on purpose.
//! - A refusal is a `fault::Fault`: `Err(Fault::new("what is wrong").found(…).expected(…).hint(…).into())`. Place, caret
//!   and include trail are added by the engine. Name types in it, not values, unless the author wrote the value.
//! - JSON in and out: `value::to_json(&value)` (exact integers, whole floats as integers) and `value::from_json(json, "name")`,
//!   which remembers its path for messages about absent fields.
//! - Work that grows with an argument pays for it: `state.consume_fuel(n)?`.

use minijinja::Environment;

/// Adds every function and filter of this folder to a library's environment.
pub(super) fn install(environment: &mut Environment<'static>) {
    let _ = environment;
}

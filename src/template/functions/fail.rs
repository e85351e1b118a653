//! An end with the author's own message.

use minijinja::value::Value;
use minijinja::{Error, State};

use crate::template::fault::Fault;
use crate::template::functions::arguments::{Arguments, Builtin, Shape};

pub(super) const BUILTINS: [Builtin; 1] =
    [Builtin { name: "fail", parameters: &["message"], shape: Shape::Fixed, call: fail }];

fn fail(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let message = arguments.text("message", "text that says what is wrong")?;
    Err(Fault { on_purpose: true, ..Fault::new(message) }.into())
}

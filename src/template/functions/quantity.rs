//! Amounts of memory, CPU and storage as Kubernetes writes them.

use minijinja::value::Value;
use minijinja::{Error, State};

use crate::object::quantity::Quantity;
use crate::template::fault::Fault;
use crate::template::functions::arguments::{Arguments, Builtin, Shape, quoted};
use crate::template::value::{kind, to_text};

pub(super) const BUILTINS: [Builtin; 4] = [
    Builtin {
        name: "quantity_compare",
        parameters: &["a", "b"],
        shape: Shape::Fixed,
        call: quantity_compare,
    },
    Builtin { name: "quantity_add", parameters: &["a", "b"], shape: Shape::Fixed, call: quantity_add },
    Builtin { name: "quantity_sub", parameters: &["a", "b"], shape: Shape::Fixed, call: quantity_sub },
    Builtin { name: "quantity_value", parameters: &["quantity"], shape: Shape::Fixed, call: quantity_value },
];

fn quantity_compare(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let order = read(arguments, "a")?.cmp(&read(arguments, "b")?);
    Ok((order as i8).into())
}

fn quantity_add(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let sum = read(arguments, "a")?.checked_add(read(arguments, "b")?);
    Ok(sum.ok_or_else(|| arguments.cannot("hold a sum as large as this"))?.to_string().into())
}

fn quantity_sub(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let difference = read(arguments, "a")?.checked_sub(read(arguments, "b")?);
    Ok(difference.ok_or_else(|| arguments.cannot("hold a difference as large as this"))?.to_string().into())
}

/// Whole amounts are integers as far as 64 bits reach.
fn quantity_value(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let quantity = read(arguments, "quantity")?;
    let whole = quantity.whole().and_then(|whole| i64::try_from(whole).ok());
    Ok(whole.map_or_else(|| quantity.approximate().into(), Value::from))
}

fn read(arguments: &Arguments, name: &str) -> Result<Quantity, Fault> {
    const EXPECTED: &str = "a quantity such as `500m` or `1.5Gi`";
    let value = arguments.required(name, EXPECTED)?;
    let text = match value.is_number() {
        true => to_text(value).ok(),
        false => value.as_str().map(str::to_string),
    };
    let text = text.ok_or_else(|| arguments.refuse(name).found(kind(value)).expected(EXPECTED))?;
    Quantity::parse(&text).map_err(|error| {
        let fault = arguments.refuse(name).found(quoted(&text)).expected(EXPECTED);
        fault.hint(error.to_string())
    })
}

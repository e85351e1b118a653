//! One form into another: digests, base64, JSON, YAML, shell words.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Value;
use minijinja::{Error, State};
use sha2::{Digest, Sha256};

use crate::template::functions::arguments::{Arguments, Builtin, Shape};
use crate::template::render::Run;
use crate::template::value::from_json as json_value;
use crate::template::yaml;

pub(super) const BUILTINS: [Builtin; 8] = [
    Builtin { name: "sha256", parameters: &["value"], shape: Shape::Fixed, call: sha256 },
    Builtin { name: "b64encode", parameters: &["value"], shape: Shape::Fixed, call: b64encode },
    Builtin { name: "b64decode", parameters: &["text"], shape: Shape::Fixed, call: b64decode },
    Builtin { name: "to_json", parameters: &["value"], shape: Shape::Fixed, call: to_json },
    Builtin { name: "from_json", parameters: &["text"], shape: Shape::Fixed, call: from_json },
    Builtin { name: "to_yaml", parameters: &["value"], shape: Shape::Fixed, call: to_yaml },
    Builtin { name: "from_yaml", parameters: &["text"], shape: Shape::Fixed, call: from_yaml },
    Builtin { name: "shell_quote", parameters: &["value"], shape: Shape::Fixed, call: shell_quote },
];

const MAKE_TEXT_FIRST: &str = "make text of it first: `| to_json`";

/// Work that grows with a text costs about as much fuel as the engine takes for writing it.
fn pay(state: &State, bytes: usize) -> Result<(), Error> {
    state.consume_fuel(bytes as u64 / 64)
}

/// What is read out of a text takes up to sixteen times its room: a number of one digit is a whole value.
fn pay_for_values(state: &State, bytes: usize) -> Result<(), Error> {
    state.consume_fuel(bytes as u64 / 8)
}

fn sha256(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let bytes = arguments.scalar("value", MAKE_TEXT_FIRST)?;
    pay(state, bytes.len())?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}

fn b64encode(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let bytes = arguments.scalar("value", MAKE_TEXT_FIRST)?;
    pay(state, bytes.len())?;
    Ok(STANDARD.encode(bytes).into())
}

/// Line breaks are skipped, as Kubernetes does in a Secret's `data`.
fn b64decode(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let text = arguments.text("text", "base64 text")?;
    pay(state, text.len())?;
    let packed: Vec<u8> = text.bytes().filter(|byte| *byte != b'\n' && *byte != b'\r').collect();
    let bytes = STANDARD.decode(packed).map_err(|error| {
        arguments
            .refuse("text")
            .found(error.to_string().to_lowercase())
            .expected("base64 text with its padding")
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        arguments
            .refuse("text")
            .found("bytes that are not UTF-8")
            .expected("base64 of text")
            .hint("pass such bytes on as they are, encoded")
    })?;
    Ok(text.into())
}

fn to_json(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let text = arguments.json("value", Run::of(state)?.output_bytes)?.to_string();
    pay(state, text.len())?;
    Ok(text.into())
}

fn from_json(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let text = arguments.text("text", "JSON text")?;
    pay_for_values(state, text.len())?;
    let json = serde_json::from_str(text)
        .map_err(|error| arguments.refuse("text").found(error.to_string()).expected("one JSON value"))?;
    Ok(json_value(json, "from_json(…)"))
}

fn to_yaml(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let json = arguments.json("value", Run::of(state)?.output_bytes)?;
    let text = serde_saphyr::to_string(&json).map_err(|error| {
        arguments.refuse("value").found(error.to_string()).expected("data that YAML can hold")
    })?;
    pay(state, text.len())?;
    Ok(text.into())
}

fn from_yaml(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let text = arguments.text("text", "YAML text")?;
    pay_for_values(state, text.len())?;
    let mut documents = yaml::read("text", text).map_err(|problem| {
        let at =
            problem.place.as_ref().map(|place| format!("line {}, column {}: ", place.line, place.column));
        arguments
            .refuse("text")
            .found(at.unwrap_or_default() + &problem.message)
            .expected("one YAML document")
    })?;
    match documents.len() {
        0 => Ok(Value::from(())),
        1 => Ok(json_value(documents.remove(0).value, "from_yaml(…)")),
        count => Err(arguments
            .refuse("text")
            .found(format!("{count} documents"))
            .expected("one YAML document")
            .into()),
    }
}

/// One word for a POSIX shell, whatever is in it. A word that no shell reads any meaning into stays as it is.
fn shell_quote(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let bytes = arguments.scalar("value", "quote each word by itself")?;
    pay(state, bytes.len())?;
    let refuse =
        |found: &str| arguments.refuse("value").found(found).expected("text that a shell word can hold");
    let text = String::from_utf8(bytes).map_err(|_| refuse("bytes that are not UTF-8"))?;
    if text.contains('\0') {
        return Err(refuse("a NUL character").into());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+:,./_-".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => Ok(text.into()),
        false => Ok(format!("'{}'", text.replace('\'', r"'\''")).into()),
    }
}

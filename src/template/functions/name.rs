//! Names that Kubernetes takes, made of whatever there is.

use minijinja::value::Value;
use minijinja::{Error, State};
use sha2::{Digest, Sha256};

use crate::template::functions::arguments::{Arguments, Builtin, Shape};
use crate::template::value::{kind, to_text};

pub(super) const BUILTINS: [Builtin; 1] =
    [Builtin { name: "dns_name", parameters: &["parts", "max"], shape: Shape::Many, call: dns_name }];

/// `-` and eight hexadecimal digits.
const MARK: usize = 9;

fn dns_name(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let max = arguments.whole("max", 10..=253, Some(63))?;
    // Each text is copied a few times on its way.
    let bytes: usize = arguments.many().iter().map(|part| part.as_str().map_or(0, str::len)).sum();
    state.consume_fuel(bytes as u64 / 16)?;
    let parts =
        arguments.many().iter().map(|part| part_text(arguments, part)).collect::<Result<Vec<_>, _>>()?;
    if parts.iter().all(String::is_empty) {
        return Err(arguments
            .cannot("make a name of nothing")
            .expected("at least one part that is not empty")
            .into());
    }
    Ok(fitted(&parts.join("-"), max as usize).into())
}

fn part_text(arguments: &Arguments, part: &Value) -> Result<String, Error> {
    let refuse = || arguments.refuse("parts").found(kind(part)).expected("text or a whole number");
    match (part.as_str(), part.is_integer()) {
        (Some(text), _) => Ok(text.to_string()),
        (None, true) => Ok(to_text(part).map_err(|_| refuse())?),
        _ => Err(refuse().into()),
    }
}

/// A DNS-1123 label of at most `max` characters. A text that already is one stays; any other is made one and marked with
/// a hash of the whole, so that two texts never share a name by being cut or cleaned.
pub(super) fn fitted(text: &str, max: usize) -> String {
    let clean: String = text.to_lowercase().chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let clean = clean.trim_matches('-');
    if clean == text && text.len() <= max {
        return text.to_string();
    }
    let mark: String = Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let head = clean[..clean.len().min(max - MARK)].trim_end_matches('-');
    if head.is_empty() { mark } else { format!("{head}-{mark}") }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

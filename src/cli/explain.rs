//! How it is printed where each field of an answer comes from.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::cli::paint::{self, Colour};
use crate::hook::local::explain::Explained;

/// The widest first column: longer fields push their own line only.
const WIDEST: usize = 56;

/// As many inputs of a field are printed; JSON has all.
const MOST: usize = 3;

/// A block for each object, a line for each field.
pub(super) fn as_text(explained: &[Explained]) -> String {
    let mut text = String::new();
    for block in explained.chunk_by(|one, other| one.object == other.object) {
        let title = block[0].object.as_deref().unwrap_or("Answer");
        let _ = writeln!(text, "{}", paint::on_stdout(Colour::Place, title));
        let fields: Vec<String> =
            block.iter().map(|one| format!("{}: {}", one.path, shown(&one.value))).collect();
        let widest = |texts: &mut dyn Iterator<Item = usize>| texts.filter(|width| *width <= WIDEST).max();
        let width = widest(&mut fields.iter().map(|field| field.chars().count())).unwrap_or(0);
        let places: Vec<String> = block
            .iter()
            .map(|one| format!("{}:{}", one.written.place.file, one.written.place.line))
            .collect();
        let place_width = places.iter().map(|place| place.chars().count()).max().unwrap_or(0);
        for ((one, field), place) in block.iter().zip(fields).zip(places) {
            let line = format!("  {field:width$}  {place:place_width$}  {}", from(one));
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// A list with an object for each field.
pub(super) fn as_json(explained: &[Explained]) -> Value {
    let one = |one: &Explained| {
        json!({
            "object": one.object, "path": one.path, "value": one.value, "place": one.written.place,
            "from": one.written.inputs, "conditions": one.written.conditions,
        })
    };
    explained.iter().map(one).collect()
}

fn from(one: &Explained) -> String {
    let mut parts = Vec::new();
    let inputs = &one.written.inputs;
    if let [first @ .., _] = inputs.as_slice()
        && first.len() >= MOST
    {
        parts.push(format!("{}, … ({} more)", inputs[..MOST].join(", "), inputs.len() - MOST));
    } else if !inputs.is_empty() {
        parts.push(inputs.join(", "));
    }
    if !one.written.conditions.is_empty() {
        parts.push(format!("({})", one.written.conditions.join(", ")));
    }
    parts.join("  ")
}

/// A value on one line, cut where it is long.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 40;
    let text = match value {
        Value::String(text) if !text.is_empty() && !text.contains(['\n', '\t']) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

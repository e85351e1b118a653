//! Text that nobody can guess, made of the entropy that one request is given.
//!
//! Draws nothing itself: the same entropy gives the same text, so a render stays a pure function of its inputs.

use minijinja::value::Value;
use minijinja::{Error, State};
use sha2::{Digest, Sha256};

use crate::template::fault::Fault;
use crate::template::functions::arguments::{Arguments, Builtin, Shape};
use crate::template::render::inputs;

pub(super) const BUILTINS: [Builtin; 1] = [Builtin {
    name: "random_string",
    parameters: &["length", "alphabet", "label"],
    shape: Shape::Fixed,
    call: random_string,
}];

const LETTERS_AND_DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn random_string(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let length = arguments.whole("length", 1..=512, None)? as usize;
    let alphabet = alphabet(arguments)?;
    let label = arguments.optional_text("label", "text that tells this call from others")?.unwrap_or("");
    state.consume_fuel(length as u64)?;
    let entropy = inputs(state)?.entropy;
    Ok(drawn(&entropy, label, &alphabet).take(length).collect::<String>().into())
}

fn alphabet(arguments: &Arguments) -> Result<Vec<char>, Fault> {
    const EXPECTED: &str = "text of 2 to 256 different characters";
    let text = arguments.optional_text("alphabet", EXPECTED)?.unwrap_or(LETTERS_AND_DIGITS);
    let characters: Vec<char> = text.chars().collect();
    let refuse = |found: String| Err(arguments.refuse("alphabet").found(found).expected(EXPECTED));
    if let Some((_, twice)) =
        characters.iter().enumerate().find(|(index, c)| characters[..*index].contains(c))
    {
        return refuse(format!("`{twice}` twice"));
    }
    match characters.len() {
        2..=256 => Ok(characters),
        1 => refuse("1 character".to_string()),
        count => refuse(format!("{count} characters")),
    }
}

/// An endless draw. Bytes that would favour the alphabet's beginning are passed over.
fn drawn<'a>(entropy: &'a [u8; 32], label: &'a str, alphabet: &'a [char]) -> impl Iterator<Item = char> + 'a {
    let fair = 256 - 256 % alphabet.len();
    let blocks = (0u64..).flat_map(move |block| hmac(entropy, &[label.as_bytes(), &block.to_be_bytes()]));
    blocks.map(usize::from).filter(move |byte| *byte < fair).map(move |byte| alphabet[byte % alphabet.len()])
}

/// HMAC-SHA256 (RFC 2104) with a key shorter than the hash's block.
pub(super) fn hmac(key: &[u8], message: &[&[u8]]) -> [u8; 32] {
    let padded = |pad: u8| {
        let mut block = [pad; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        Sha256::new().chain_update(block)
    };
    let inner = message.iter().fold(padded(0x36), |hash, part| hash.chain_update(part)).finalize();
    padded(0x5c).chain_update(inner).finalize().into()
}

//! What becomes of a value on its way into a text: quoted, escaped, encoded, digested.
//!
//! Base64 is not here: a text that holds it is decoded, since a value may stand anywhere in what was encoded.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// One form of a value. The form of the word in its place is made the same way, so that what was derived stays derived.
pub(super) type Form = fn(&str) -> String;

/// A text itself, and its forms in other notations.
pub(super) const TEXTS: [Form; 14] = [
    str::to_string,
    in_json,
    in_go_json,
    |text| text.escape_debug().to_string(),
    |text| text.replace('\'', "''"),
    |text| text.replace('\'', r"'\''"),
    for_double_quotes,
    |text| percent(text, "-._~"),
    |text| percent(text, "-._~/"),
    |text| percent(text, "-._~!*'()"),
    |text| percent(text, "-._~ ").replace(' ', "+"),
    str::to_lowercase,
    str::to_uppercase,
    |text| text.split_whitespace().collect::<Vec<_>>().join(" "),
];

/// Digests and plain codes of bytes.
pub(super) const DIGESTS: [fn(&[u8]) -> String; 5] = [
    |bytes| hex(&Sha256::digest(bytes)),
    |bytes| hex(&Sha256::digest(bytes)).to_uppercase(),
    |bytes| STANDARD.encode(Sha256::digest(bytes)),
    |bytes| hex(&Sha1::digest(bytes)),
    |bytes| STANDARD.encode(Sha1::digest(bytes)),
];

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].into()
}

/// Go's encoder escapes what HTML would read a meaning into.
fn in_go_json(text: &str) -> String {
    in_json(text).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn for_double_quotes(text: &str) -> String {
    text.chars().fold(String::new(), |mut quoted, c| {
        if "\"\\$`".contains(c) {
            quoted.push('\\');
        }
        quoted.push(c);
        quoted
    })
}

fn percent(text: &str, plain: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || plain.contains(c) {
            encoded.push(c);
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

//! What a plain scalar means: the rules of kubectl's YAML library, which are those of YAML 1.1 with a few of 1.2.

use std::borrow::Cow;

use serde_json::{Number, Value as Json};

/// The meaning of a plain scalar; `Err` where it has no JSON form.
pub(super) fn resolve(text: &str) -> Result<Json, NotJson> {
    let Some(first) = text.as_bytes().first() else { return Ok(Json::Null) };
    Ok(match first {
        b'~' | b'n' | b'N' | b'y' | b'Y' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' => word(text),
        b'+' | b'-' | b'.' | b'0'..=b'9' => return numeric(text),
        _ => Json::String(text.into()),
    })
}

/// Whether a plain scalar means something else than it says: YAML 1.2 reads it in another way, as `yes`, `0755` and `1_000`, or
/// it has more digits than are kept.
pub(super) fn is_trap(text: &str, meaning: &Json) -> bool {
    match meaning {
        Json::Bool(_) => !matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE"),
        Json::Number(_) => {
            let digits = text.trim_start_matches(['+', '-']).as_bytes();
            let octal = matches!(digits, [b'0', b'0'..=b'9', ..]) && !text.contains(['.', 'e', 'E']);
            let cut = meaning.is_f64() && digits.iter().all(u8::is_ascii_digit);
            cut || octal || text.contains('_') || matches!(digits, [b'0', b'b' | b'B' | b'O' | b'X', ..])
        }
        _ => false,
    }
}

/// An infinite or undefined number.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotJson;

fn word(text: &str) -> Json {
    match text {
        "~" | "null" | "Null" | "NULL" => Json::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Json::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Json::Bool(false)
        }
        _ => Json::String(text.into()),
    }
}

fn numeric(text: &str) -> Result<Json, NotJson> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(NotJson);
    }
    let digits: Cow<str> = if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    Ok(integer(&digits).or_else(|| float(&digits)).unwrap_or_else(|| Json::String(text.into())))
}

/// Sign, then decimal, `0x`, `0o`, `0b`, or octal by a leading zero; `None` beyond 64 bits.
fn integer(text: &str) -> Option<Json> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        [b'0'..=b'9', ..] => (10, digits),
        _ => return None,
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    let signed = text.starts_with('+');
    match negative {
        true => 0i64.checked_sub_unsigned(magnitude).map(Json::from),
        false if signed && magnitude > i64::MAX as u64 => None,
        false => Some(Json::from(magnitude)),
    }
}

fn float(text: &str) -> Option<Json> {
    if !looks_like_a_float(text) {
        return None;
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite()).map(number)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn looks_like_a_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && all_digits(fraction),
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    mantissa_fits && exponent_fits
}

/// A finite float as Go prints it: whole numbers as integers where 64 bits hold them.
pub(in crate::template) fn number(value: f64) -> Json {
    const I64_END: f64 = 9_223_372_036_854_775_808.0;
    const U64_END: f64 = 18_446_744_073_709_551_616.0;
    match value {
        whole if whole.fract() == 0.0 && (-I64_END..I64_END).contains(&whole) => Json::from(whole as i64),
        whole if whole.fract() == 0.0 && (0.0..U64_END).contains(&whole) => Json::from(whole as u64),
        other => Number::from_f64(other).map_or(Json::Null, Json::Number),
    }
}

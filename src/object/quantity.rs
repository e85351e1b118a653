//! Amounts as Kubernetes writes them: `500m`, `1.5Gi`, `12e6`.
//!
//! Two quantities are equal when their amounts are: `1000m` is `1`, `0.5Gi` is `512Mi`.
//! Amounts are whole billionths in 128 bits, which holds everything below 10²⁹; Kubernetes rounds what is finer
//! than a billionth up, away from zero, and so does this.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::Value;

const NANO: i128 = 1_000_000_000;
/// Kubernetes cuts an amount with a binary suffix at the largest 64-bit integer.
const BINARY_LIMIT: i128 = i64::MAX as i128 * NANO;

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// An exact amount, and the family of suffixes it was written with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    nanos: i128,
    notation: Notation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// `m`, `k`, `M`
    Decimal,
    /// `Ki`, `Mi`
    Binary,
    /// `e3`
    Exponent,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuantityError {
    /// There is no number at the start.
    NoNumber { text: String },
    /// What follows the number is no suffix.
    Suffix { text: String, suffix: String, hint: Option<&'static str> },
    /// More than 128 bits of billionths.
    TooLarge { text: String },
}

impl Quantity {
    /// Reads every form the Kubernetes API server reads. It also reads a lone `+`, `-` or `.` as nothing; this doesn't.
    pub(crate) fn parse(text: &str) -> Result<Quantity, QuantityError> {
        let written = Written::split(text)?;
        let (notation, scale) = scale_of(written.suffix).ok_or_else(|| QuantityError::Suffix {
            text: text.into(),
            suffix: written.suffix.into(),
            hint: meant_suffix(written.suffix),
        })?;
        let magnitude = match scale {
            Scale::Two(power) => {
                Some(written.times(NANO << power).map_or(BINARY_LIMIT, |nanos| nanos.min(BINARY_LIMIT)))
            }
            Scale::Ten(power) => written.times_power_of_ten(power.saturating_add(9)),
        };
        let magnitude = magnitude.ok_or_else(|| QuantityError::TooLarge { text: text.into() })?;
        let below_one = magnitude > 0 && magnitude < NANO;
        let notation = if notation == Notation::Binary && below_one { Notation::Decimal } else { notation };
        Ok(Quantity { nanos: if written.negative { -magnitude } else { magnitude }, notation })
    }

    /// Reads a JSON value as the API server does: a string, or a number by its digits.
    pub(crate) fn from_json(value: &Value) -> Option<Quantity> {
        match value {
            Value::String(text) => Quantity::parse(text.trim()).ok(),
            Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
            _ => None,
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// The sum, or `None` when it does not fit. Keeps the left side's suffixes, as Kubernetes does, unless it is zero.
    pub(crate) fn checked_add(self, other: Quantity) -> Option<Quantity> {
        let notation = if self.is_zero() { other.notation } else { self.notation };
        Some(Quantity { nanos: self.nanos.checked_add(other.nanos)?, notation })
    }

    /// The difference, or `None` when it does not fit. Keeps suffixes as `checked_add` does.
    pub(crate) fn checked_sub(self, other: Quantity) -> Option<Quantity> {
        self.checked_add(Quantity { nanos: other.nanos.checked_neg()?, ..other })
    }

    /// The amount as a whole number, if it is one.
    pub(crate) fn whole(&self) -> Option<i128> {
        (self.nanos % NANO == 0).then_some(self.nanos / NANO)
    }

    /// The amount as the nearest floating point number.
    pub(crate) fn approximate(&self) -> f64 {
        match self.whole() {
            Some(whole) => whole as f64,
            None => self.nanos as f64 / NANO as f64,
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The canonical form: the largest suffix that leaves no fraction.
///
/// Kubernetes has no suffix beyond `E` and prints such an amount without any, which changes it: `1000E` comes out
/// as `1`. Here it is `1e21`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let small = self.nanos.abs() < 1024 * NANO;
        match (self.notation, self.whole()) {
            (_, Some(0)) => f.write_str("0"),
            (Notation::Binary, Some(whole)) if !small => write_binary(f, whole),
            (notation, _) => write_decimal(f, self.nanos, notation),
        }
    }
}

fn write_binary(f: &mut fmt::Formatter<'_>, whole: i128) -> fmt::Result {
    let (mut amount, mut step) = (whole, 0);
    while amount % 1024 == 0 {
        amount /= 1024;
        step += 1;
    }
    let suffix = if step == 0 { "" } else { BINARY_SUFFIXES[step - 1].0 };
    write!(f, "{amount}{suffix}")
}

fn write_decimal(f: &mut fmt::Formatter<'_>, nanos: i128, notation: Notation) -> fmt::Result {
    let (mut amount, mut power) = (nanos, -9);
    while amount % 1000 == 0 {
        amount /= 1000;
        power += 3;
    }
    let suffix = DECIMAL_SUFFIXES.iter().find(|(_, known)| *known == power);
    match suffix {
        Some((suffix, _)) if notation != Notation::Exponent || power == 0 => write!(f, "{amount}{suffix}"),
        _ => write!(f, "{amount}e{power}"),
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuantityError::NoNumber { text } => {
                write!(
                    f,
                    "`{text}` is not a quantity: expected a number with an optional suffix, such as `500m` or `1Gi`"
                )
            }
            QuantityError::Suffix { text, suffix, hint } => {
                write!(f, "`{text}` is not a quantity: unknown suffix `{suffix}`")?;
                match hint {
                    Some(hint) => write!(f, "; hint: did you mean `{hint}`?"),
                    None => write!(
                        f,
                        "; expected one of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as `e3`"
                    ),
                }
            }
            QuantityError::TooLarge { text } => write!(f, "`{text}` is too large for a quantity"),
        }
    }
}

impl std::error::Error for QuantityError {}

/// A quantity's text, taken apart and not yet understood.
struct Written<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

enum Scale {
    Two(u32),
    Ten(i32),
}

impl<'a> Written<'a> {
    fn split(text: &'a str) -> Result<Written<'a>, QuantityError> {
        let negative = text.starts_with('-');
        let (whole, rest) = digits(text.strip_prefix(['+', '-']).unwrap_or(text));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityError::NoNumber { text: text.into() });
        }
        Ok(Written { negative, whole, fraction, suffix })
    }

    /// The number times `factor`, rounded up. `None` when it overflows.
    fn times(&self, factor: i128) -> Option<i128> {
        let (floor, exact) = self.floor_times(factor)?;
        if exact { Some(floor) } else { floor.checked_add(1) }
    }

    /// The number times ten to `power`, rounded up. `None` when it overflows.
    fn times_power_of_ten(&self, power: i32) -> Option<i128> {
        if self.whole.bytes().chain(self.fraction.bytes()).all(|digit| digit == b'0') {
            return Some(0);
        }
        if power >= 0 {
            return self.times(10i128.checked_pow(power.unsigned_abs())?);
        }
        let (floor, exact) = self.floor_times(1)?;
        let divisor = 10i128.checked_pow(power.unsigned_abs()).unwrap_or(i128::MAX);
        let rounds_up = !exact || floor % divisor != 0;
        Some(floor / divisor + i128::from(rounds_up))
    }

    /// The whole part of the number times `factor`, and whether nothing was left over.
    ///
    /// The fraction is folded from its last digit. Flooring at each step floors the result exactly once, because
    /// only whole numbers are added between divisions.
    fn floor_times(&self, factor: i128) -> Option<(i128, bool)> {
        let mut exact = true;
        let mut part: i128 = 0;
        for digit in self.fraction.bytes().rev() {
            let sum = i128::from(digit - b'0').checked_mul(factor)?.checked_add(part)?;
            exact &= sum % 10 == 0;
            part = sum / 10;
        }
        let mut whole: i128 = 0;
        for digit in self.whole.bytes() {
            whole = whole.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        Some((whole.checked_mul(factor)?.checked_add(part)?, exact))
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn scale_of(suffix: &str) -> Option<(Notation, Scale)> {
    if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(known, _)| *known == suffix) {
        return Some((Notation::Decimal, Scale::Ten(*power)));
    }
    if let Some((_, power)) = BINARY_SUFFIXES.iter().find(|(known, _)| *known == suffix) {
        return Some((Notation::Binary, Scale::Two(*power)));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let (sign, magnitude) =
        (exponent.starts_with('-'), exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    if magnitude.is_empty() || !magnitude.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let power = magnitude.parse().unwrap_or(i32::MAX - 9);
    Some((Notation::Exponent, Scale::Ten(if sign { -power } else { power })))
}

/// The suffix meant by one in the wrong case, or with a `B` for bytes.
fn meant_suffix(suffix: &str) -> Option<&'static str> {
    let bare = suffix.trim().trim_end_matches(['b', 'B']);
    BINARY_SUFFIXES
        .iter()
        .map(|(known, _)| *known)
        .chain(DECIMAL_SUFFIXES.iter().map(|(known, _)| *known))
        .find(|known| !known.is_empty() && known.eq_ignore_ascii_case(bare))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Text, canonical text and amount, as k8s.io/apimachinery v0.36.3 reads and prints them; empty where it refuses.
    #[test]
    fn every_form_reads_and_prints_as_apimachinery_does() {
        for line in include_str!("quantities.tsv").lines() {
            let [text, canonical, amount] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            match Quantity::parse(text) {
                Err(error) => assert!(canonical.is_empty(), "{text}: {error}"),
                Ok(parsed) => {
                    assert_eq!(parsed.to_string(), canonical, "{text}");
                    assert_eq!(parsed, quantity(amount), "{text}");
                    assert_eq!(parsed, quantity(canonical), "{text}");
                }
            }
        }
    }

    #[test]
    fn different_texts_of_one_amount_are_equal() {
        for (left, right) in
            [("1000m", "1"), ("0.5Gi", "512Mi"), ("1024Mi", "1Gi"), ("1e3", "1k"), ("0", "0Gi")]
        {
            assert_eq!(quantity(left), quantity(right));
        }
        assert!(quantity("1G") < quantity("1Gi"));
        assert!(quantity("-1") < quantity("1n"));
    }

    #[test]
    fn sum_keeps_the_left_sides_suffixes() {
        assert_eq!(quantity("1Gi").checked_add(quantity("1024")).unwrap().to_string(), "1048577Ki");
        assert_eq!(quantity("0").checked_add(quantity("512Mi")).unwrap().to_string(), "512Mi");
        assert_eq!(quantity("1").checked_sub(quantity("1500m")).unwrap().to_string(), "-500m");
        assert_eq!(quantity("1Gi").checked_sub(quantity("1Gi")).unwrap().to_string(), "0");
    }

    #[test]
    fn number_in_json_reads_like_its_text() {
        assert_eq!(Quantity::from_json(&serde_json::json!(1)), Some(quantity("1000m")));
        assert_eq!(Quantity::from_json(&serde_json::json!(0.5)), Some(quantity("500m")));
        assert_eq!(Quantity::from_json(&serde_json::json!(true)), None);
    }

    #[test]
    fn amount_beyond_the_largest_suffix_keeps_its_size() {
        assert_eq!(quantity("1000E").to_string(), "1e21");
        assert_eq!(quantity(&quantity("1000E").to_string()), quantity("1000E"));
    }

    #[test]
    fn refusal_says_what_is_wrong_with_the_text() {
        for (text, message) in [
            ("", "`` is not a quantity: expected a number with an optional suffix, such as `500m` or `1Gi`"),
            (
                "lots",
                "`lots` is not a quantity: expected a number with an optional suffix, such as `500m` or `1Gi`",
            ),
            ("1K", "`1K` is not a quantity: unknown suffix `K`; hint: did you mean `k`?"),
            ("10GB", "`10GB` is not a quantity: unknown suffix `GB`; hint: did you mean `G`?"),
            ("1 Gi", "`1 Gi` is not a quantity: unknown suffix ` Gi`; hint: did you mean `Gi`?"),
            (
                "1 apple",
                "`1 apple` is not a quantity: unknown suffix ` apple`; expected one of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as `e3`",
            ),
            ("1e40", "`1e40` is too large for a quantity"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn canonical_text_reads_back_as_the_same_amount(
            whole in 0u64..=u64::MAX, fraction in "[0-9]{0,14}", negative: bool,
            suffix in prop::sample::select(vec!["n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3", "E-2"]),
        ) {
            let text = format!("{}{whole}.{fraction}{suffix}", if negative { "-" } else { "" });
            let first = quantity(&text);
            prop_assert_eq!(quantity(&first.to_string()), first);
            prop_assert_eq!(quantity(&first.to_string()).to_string(), first.to_string());
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = Quantity::parse(&text);
        }

        #[test]
        fn no_number_panics(text in "[-+]?[0-9.]{0,60}[eE]?[-+]?[0-9]{0,12}[A-Za-z]{0,2}") {
            let _ = Quantity::parse(&text);
        }
    }
}

//! Which names and labels Kubernetes accepts, and what to say of one it doesn't.
//!
//! Each function answers `Err` with the rest of a sentence that begins with the name: "must not be empty".

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;

/// A DNS-1123 subdomain: the names of most other kinds.
pub(crate) fn dns_subdomain(name: &str) -> Result<(), String> {
    at_most(name, SUBDOMAIN_LENGTH)?;
    name.split('.').try_for_each(|part| lower_case_word(part, "-` and `."))
}

/// A label's or annotation's key: an optional DNS subdomain and `/`, then a name.
pub(crate) fn label_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if let Some(prefix) = prefix {
        dns_subdomain(prefix).map_err(|why| format!("has a prefix `{prefix}` that {why}"))?;
    }
    at_most(name, LABEL_LENGTH)?;
    if name.is_empty() {
        return Err("must not be empty".into());
    }
    qualified_name(name)
}

/// A label's value: empty, or as the name part of a key.
pub(crate) fn label_value(value: &str) -> Result<(), String> {
    at_most(value, LABEL_LENGTH)?;
    if value.is_empty() { Ok(()) } else { qualified_name(value) }
}

/// What every kind's name must keep to, since it becomes a part of a URL. Kinds have narrower rules of their own,
/// which the API server tells.
pub(crate) fn object_name(name: &str) -> Result<(), String> {
    at_most(name, SUBDOMAIN_LENGTH)?;
    let unusable = name.chars().find(|c| !c.is_ascii_graphic() || matches!(c, '/' | '%' | '?' | '#'));
    match (name, unusable) {
        ("", _) => Err("must not be empty".into()),
        ("." | "..", _) => Err("must not be `.` or `..`".into()),
        (_, Some(c)) => Err(format!("must not contain `{}`", c.escape_default())),
        _ => Ok(()),
    }
}

fn at_most(text: &str, length: usize) -> Result<(), String> {
    if text.len() <= length {
        return Ok(());
    }
    Err(format!("has {} characters, at most {length} are allowed", text.len()))
}

fn lower_case_word(word: &str, between: &str) -> Result<(), String> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if word.is_empty() || !word.bytes().all(|byte| inner(byte) || byte == b'-') {
        return Err(format!("must consist of lower-case letters, digits, `{between}`"));
    }
    ends_in(word, inner, "lower-case letter or digit")
}

fn qualified_name(name: &str) -> Result<(), String> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
        return Err("must consist of letters, digits, `-`, `_` and `.`".into());
    }
    ends_in(name, |byte| byte.is_ascii_alphanumeric(), "letter or digit")
}

fn ends_in(word: &str, accepted: impl Fn(u8) -> bool, what: &str) -> Result<(), String> {
    let (first, last) = (word.bytes().next(), word.bytes().next_back());
    if first.is_some_and(&accepted) && last.is_some_and(&accepted) {
        return Ok(());
    }
    Err(format!("must begin and end with a {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_accepts_is_accepted() {
        for name in ["db.example.com", "a.b-c.0"] {
            assert_eq!(dns_subdomain(name), Ok(()), "{name}");
        }
        for key in ["app", "app.kubernetes.io/name", "A_b.C", "controller-uid"] {
            assert_eq!(label_key(key), Ok(()), "{key}");
        }
        for value in ["", "v1.2_3", "MyApp"] {
            assert_eq!(label_value(value), Ok(()), "{value}");
        }
        for name in ["system:node", "a@b", "db-0"] {
            assert_eq!(object_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn refusal_names_the_rule() {
        type Check = fn(&str) -> Result<(), String>;
        let cases: [(Check, &str, &str); 10] = [
            (dns_subdomain, "a..b", "must consist of lower-case letters, digits, `-` and `.`"),
            (dns_subdomain, "a_b", "must consist of lower-case letters, digits, `-` and `.`"),
            (label_key, "", "must not be empty"),
            (label_key, "a/", "must not be empty"),
            (
                label_key,
                "A/b",
                "has a prefix `A` that must consist of lower-case letters, digits, `-` and `.`",
            ),
            (label_value, "a b", "must consist of letters, digits, `-`, `_` and `.`"),
            (label_value, "a-", "must begin and end with a letter or digit"),
            (object_name, "", "must not be empty"),
            (object_name, "a/b", "must not contain `/`"),
            (object_name, "..", "must not be `.` or `..`"),
        ];
        for (check, text, message) in cases {
            assert_eq!(check(text), Err(message.into()), "{text}");
        }
    }
}

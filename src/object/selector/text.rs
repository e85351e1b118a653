//! Reads the text form of a selector, as flags and the API's `labelSelector` parameter have it:
//! `app=db,tier in (a,b),zone!=x,!old,size>3`.

use std::collections::BTreeSet;

use super::{Requirement, Selector, Test};
use crate::object::validity;

/// Reads a selector as kubectl reads the one behind `-l`. The empty text picks everything.
pub(super) fn parse(text: &str) -> Result<Selector, String> {
    let mut reader = Reader { rest: text };
    let mut requirements = BTreeSet::new();
    if reader.peek() == Token::End {
        return Ok(Selector { requirements });
    }
    loop {
        requirements.insert(reader.requirement()?);
        match reader.take() {
            Token::End => return Ok(Selector { requirements }),
            Token::Comma => {}
            other => return Err(format!("found {other}, expected `,` or the end")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Not,
    Equals,
    Differs,
    Above,
    Below,
    Open,
    Close,
    Comma,
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Token::Word(word) => word,
            Token::Not => "!",
            Token::Equals => "=",
            Token::Differs => "!=",
            Token::Above => ">",
            Token::Below => "<",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::End => return f.write_str("the end"),
        };
        write!(f, "`{text}`")
    }
}

#[derive(Clone, Copy)]
struct Reader<'t> {
    rest: &'t str,
}

const SYMBOLS: [(&str, Token); 9] = [
    ("==", Token::Equals),
    ("!=", Token::Differs),
    ("=", Token::Equals),
    ("!", Token::Not),
    (">", Token::Above),
    ("<", Token::Below),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
];

impl<'t> Reader<'t> {
    fn take(&mut self) -> Token<'t> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return Token::End;
        }
        for (symbol, token) in SYMBOLS {
            if let Some(rest) = self.rest.strip_prefix(symbol) {
                self.rest = rest;
                return token;
            }
        }
        let ends = |letter: char| letter.is_whitespace() || "=!><(),".contains(letter);
        let (word, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        Token::Word(word)
    }

    fn peek(&self) -> Token<'t> {
        { *self }.take()
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == Token::Not;
        if absent {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other => return Err(format!("found {other}, expected a label's key")),
        };
        validity::label_key(key).map_err(|why| format!("key `{key}` {why}"))?;
        let test = if absent { Test::DoesNotExist } else { self.test(key)? };
        Ok(Requirement { key: key.into(), test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        if matches!(self.peek(), Token::Comma | Token::End) {
            return Ok(Test::Exists);
        }
        match self.take() {
            Token::Equals => Ok(Test::In(BTreeSet::from([self.value()?]))),
            Token::Differs => Ok(Test::NotIn(BTreeSet::from([self.value()?]))),
            Token::Above => Ok(Test::Above(self.number()?)),
            Token::Below => Ok(Test::Below(self.number()?)),
            Token::Word("in") => Ok(Test::In(self.values()?)),
            Token::Word("notin") => Ok(Test::NotIn(self.values()?)),
            other => Err(format!(
                "found {other} after `{key}`, expected `=`, `==`, `!=`, `in`, `notin`, `>`, `<`, `,` or the end"
            )),
        }
    }

    /// One value, which may be left out: `key=` is a label without text.
    fn value(&mut self) -> Result<String, String> {
        let value = match self.peek() {
            Token::Comma | Token::Close | Token::End => "",
            _ => match self.take() {
                Token::Word(value) => value,
                other => return Err(format!("found {other}, expected a value")),
            },
        };
        validity::label_value(value).map_err(|why| format!("value `{value}` {why}"))?;
        Ok(value.into())
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        match self.take() {
            Token::Open => {}
            other => return Err(format!("found {other}, expected `(` before values")),
        }
        let mut values = BTreeSet::new();
        loop {
            values.insert(self.value()?);
            match self.take() {
                Token::Close => return Ok(values),
                Token::Comma => {}
                other => return Err(format!("found {other}, expected `,` or `)` after a value")),
            }
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        match self.take() {
            Token::Word(word) => word.parse().map_err(|_| format!("found `{word}`, expected an integer")),
            other => Err(format!("found {other}, expected an integer")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn selector(text: &str) -> Selector {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn text_reads_as_kubectl_reads_it() {
        let labels =
            BTreeMap::from([("app", "db"), ("tier", "a"), ("size", "5"), ("empty", ""), ("in", "x")]);
        for text in [
            "",
            " ",
            "app=db",
            "app==db",
            " app = db , tier in ( a , b ) ",
            "tier in (a,b),tier notin (c)",
            "app!=web",
            "other!=web",
            "other notin (x)",
            "app",
            "!other",
            "! other",
            "size>4,size<6",
            "empty=",
            "empty in ()",
            "empty=,app=db",
            "empty in (,x)",
            "in=x",
            "in in (x)",
        ] {
            assert!(selector(text).matches(&labels), "{text}");
        }
        for text in
            ["app=web", "!app", "tier notin (a)", "size>5", "size<5", "other>1", "app>1", "empty=x", "other"]
        {
            assert!(!selector(text).matches(&labels), "{text}");
        }
    }

    #[test]
    fn text_printed_reads_the_same() {
        for text in ["app=db,!old,size>3,tier in (a,b),zone notin (x)", "app,size<-3", ""] {
            assert_eq!(selector(text).to_string(), text);
        }
    }

    #[test]
    fn fault_in_a_text_says_what_was_found_and_expected() {
        for (text, message) in [
            ("app=db,", "found the end, expected a label's key"),
            (",app", "found `,`, expected a label's key"),
            (
                "app db",
                "found `db` after `app`, expected `=`, `==`, `!=`, `in`, `notin`, `>`, `<`, `,` or the end",
            ),
            ("!app=x", "found `=`, expected `,` or the end"),
            ("app in a", "found `a`, expected `(` before values"),
            ("app in (a b)", "found `b`, expected `,` or `)` after a value"),
            ("app in (a", "found the end, expected `,` or `)` after a value"),
            ("app=a=b", "found `=`, expected `,` or the end"),
            ("app==(a)", "found `(`, expected a value"),
            ("size>big", "found `big`, expected an integer"),
            ("size>", "found the end, expected an integer"),
            ("a/b/c", "key `a/b/c` must consist of letters, digits, `-`, `_` and `.`"),
        ] {
            assert_eq!(parse(text).unwrap_err(), message, "{text}");
        }
    }
}

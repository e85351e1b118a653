//! A secret that is easy to find again, in whatever form it is said.
#![allow(dead_code, reason = "each suite calls what it needs")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// What a Secret holds in a test.
pub struct Canary {
    pub value: String,
    sought: Vec<String>,
}

impl Canary {
    /// `token` are ten letters and digits of the value that nothing else holds.
    pub fn new(value: &str, token: &str) -> Canary {
        assert!(value.contains(token) && token.len() == 10, "a token of ten characters in the value");
        let encoded = STANDARD.encode(value);
        let once: Vec<String> = insides(token);
        let twice: Vec<String> = once.iter().flat_map(|inside| insides(inside)).collect();
        let digests = [value.trim(), value, &encoded].map(|text| digest(text.as_bytes())[..8].to_string());
        let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mut sought = vec![token.to_string(), token.to_uppercase(), token[..7].into(), hex];
        sought.extend(once.into_iter().chain(twice).chain(digests));
        Canary { value: value.into(), sought }
    }

    pub fn encoded(&self) -> String {
        STANDARD.encode(&self.value)
    }

    pub fn twice(&self) -> String {
        STANDARD.encode(self.encoded())
    }

    /// Its SHA-256.
    pub fn digest(&self) -> String {
        digest(self.value.as_bytes())
    }

    /// The first form of it that a text shows.
    pub fn found_in(&self, text: &str) -> Option<&str> {
        self.sought.iter().map(String::as_str).find(|form| text.contains(form))
    }
}

/// Looks for canaries in everything that was said.
#[track_caller]
pub fn expect_hidden(canaries: &[&Canary], said: &[(&str, String)]) {
    let mut leaks = Vec::new();
    for (what, text) in said {
        for line in text.lines() {
            let found = canaries.iter().filter_map(|canary| Some((canary.found_in(line)?, &canary.value)));
            leaks.extend(found.map(|(form, value)| format!("{what} shows `{value}` as `{form}`:\n  {line}")));
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is the same in base64 of every text that holds this one: that depends on what stands before it, by three.
fn insides(text: &str) -> Vec<String> {
    let inside = |skipped: usize| {
        let rest = &text.as_bytes()[skipped..];
        STANDARD.encode(&rest[..rest.len() / 3 * 3])
    };
    (0..3).map(inside).collect()
}

#[test]
fn canary_is_found_in_every_form() {
    let canary = Canary::new("sing-7f3a9cd041!", "7f3a9cd041");
    let twice = STANDARD.encode(STANDARD.encode(format!("db://{}", canary.value)));
    for text in [&canary.value, &twice, &digest(canary.value.as_bytes()), &canary.value.to_uppercase()] {
        assert!(canary.found_in(text).is_some(), "{text}");
    }
    assert_eq!(canary.found_in(&STANDARD.encode("nothing of it")), None);
}

//! What is hidden in which form, and what is not.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;

const SECRET: &str = "hunter2's \"<new>\" $word/42";

fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

fn secret(values: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<String, Value> =
        values.iter().map(|(key, text)| (key.to_string(), encoded(text).into())).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data})
}

fn veil(values: &[&str]) -> Veil {
    let values: Vec<(&str, &str)> = ["a", "b", "c"].into_iter().zip(values.iter().copied()).collect();
    Veil::new(&Secrets::of(&secret(&values)), Words::Told)
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn check(values: &[&str], text: &str, expected: &str) {
    assert_eq!(veil(values).text(text), expected, "{text}");
}

#[test]
fn value_is_hidden_in_every_form() {
    let whole = format!("db://root:{SECRET}@host");
    let forms = [
        SECRET.to_string(),
        encoded(SECRET),
        encoded(&encoded(SECRET)),
        encoded(&encoded(&encoded(SECRET))),
        URL_SAFE_NO_PAD.encode(SECRET),
        encoded(&whole),
        encoded(&format!("x{whole}")),
        encoded(&format!("xy{whole}")),
        Value::from(SECRET).to_string(),
        Value::from(SECRET).to_string().replace('<', "\\u003c").replace('>', "\\u003e"),
        format!("{SECRET:?}"),
        format!("'{}'", SECRET.replace('\'', "''")),
        format!("'{}'", SECRET.replace('\'', r"'\''")),
        "\"hunter2's \\\"<new>\\\" \\$word/42\"".into(),
        "hunter2%27s%20%22%3Cnew%3E%22%20%24word%2F42".into(),
        "hunter2%27s%20%22%3Cnew%3E%22%20%24word/42".into(),
        "hunter2's%20%22%3Cnew%3E%22%20%24word%2F42".into(),
        "hunter2%27s+%22%3Cnew%3E%22+%24word%2F42".into(),
        SECRET.to_uppercase(),
        forms::hex(SECRET.as_bytes()),
        sha256(SECRET),
        sha256(&encoded(SECRET)),
        sha256(SECRET)[..10].into(),
        STANDARD.encode(Sha256::digest(SECRET)),
    ];
    let veil = veil(&[SECRET]);
    for form in forms {
        let text = format!("value `{form}` is none; not-{form}, {form}");
        let said = veil.text(&text);
        assert_eq!(said.matches("(masked)").count(), 3, "{form}: {said}");
        for part in ["unter2", "UNTER2", "new", "NEW", &encoded("ter2's")[..6], &sha256(SECRET)[..8]] {
            assert!(!said.replace("is none", "").contains(part), "{part} of {form} in {said}");
        }
    }
}

#[test]
fn what_is_shortened_shows_no_beginning() {
    let value = "correct-horse-battery-staple";
    check(&[value], "want `correct-horse-batt…`", "want `(masked)…`");
    check(&[value], "want `db://correct-ho...", "want `db://(masked)...");
    check(&[value], &format!("`{}…`", &encoded(value)[..20]), "`(masked)…`");
    check(&[value], &format!("sum {}…", &sha256(value)[..12]), "sum (masked)…");
    check(&[value], "correct…", "correct…".replace("correct", "(masked)").as_str());
    check(&[value], "corre…", "corre…");
}

#[test]
fn short_and_common_values_spoil_no_text() {
    let text = "port 5432 of postgres is true; aaa 123456, secret, s3cretly";
    check(&["a", "5432", "true"], text, text);
    check(&["123456", "secret", "s3cret"], text, text);
    check(&["s3cret"], "`s3cret` and s3cret@host", "`(masked)` and (masked)@host");
    check(&["12345678"], "port-12345678x", "port-(masked)x");
    check(&["postgres"], "image postgres:17", "image (masked):17");
    // Their digests stand for nothing else.
    check(&["5432"], &sha256("5432"), "(masked)");
}

#[test]
fn names_of_keys_and_of_the_parent_are_to_be_read() {
    let request = json!({
        "parent": {"kind": "MySQL", "metadata": {"name": "shop-database", "namespace": "production"}},
        "related": {"Secret.v1": {"s": {"data": {
            "database-name": encoded("shop-database"), "where": encoded("production"), "x": encoded("database-name"),
            "password": encoded("hunter-42"),
        }}}},
    });
    let text = "production/shop-database: `database-name` and `hunter-42`";
    let veil = Veil::new(&Secrets::of(&request), Words::Told);
    assert_eq!(veil.text(text), "production/shop-database: `database-name` and `(masked)`");
}

#[test]
fn parts_of_a_value_are_hidden_too() {
    let file = "[client]\nuser = root\npassword = \"hunter-42\"\n";
    check(&[file], "no `hunter-42`, and user = root", "no `(masked)`, and (masked)");
    check(&["mysql://root:hunter-42@db:3306/app"], "`hunter-42` at db:3306", "`(masked)` at db:3306");
    check(&[r#"{"auths":{"a":{"auth":"hunter-42"}}}"#], "`hunter-42` of auths", "`(masked)` of auths");
    check(&[&encoded("hunter-42")], "`hunter-42`", "`(masked)`");
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n";
    check(&[key], "-----BEGIN KEY----- hkiG9w0BAQEFAASC", "-----BEGIN KEY----- (masked)");
    check(&["hunter-42\n"], "`hunter-42`", "`(masked)`");
}

#[test]
fn clients_records_of_a_secret_are_read_as_well() {
    let mut object = secret(&[]);
    let record = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"p": "hunter-42"}}).to_string();
    object["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": record});
    assert_eq!(Veil::new(&Secrets::of(&object), Words::Told).text("`hunter-42`"), "`(masked)`");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "hunter-42"}});
    assert!(Secrets::of(&config).is_empty());
}

#[test]
fn equal_values_stay_equal_and_what_was_derived_stays_derived() {
    let value = "hunter-22";
    let mut request = json!({
        "parent": {"spec": {"password": value, "hint": encoded(value), "replicas": 3}},
        "children": {
            "Secret.v1": {
                "a": secret(&[("p", value), ("short", "no")]),
                "b": secret(&[("q", value), ("r", "other-one")]),
            },
            "ConfigMap.v1": {"hunter-22": {"metadata": {"name": value, "annotations": {"sum": sha256(value)}}}},
        },
        "related": {"ConfigMap.v1": {"c": {"data": {
            "url": format!("mysql://root:{value}@db"), "answer": "no", "twice": encoded(&encoded(value)),
            "inner": encoded(&format!("a={value}")),
        }}}},
    });
    Veil::new(&Secrets::of(&request), Words::Kept).hide(&mut request);
    let word = "masked-1";
    let expected = json!({
        "parent": {"spec": {"password": word, "hint": encoded(word), "replicas": 3}},
        "children": {
            "Secret.v1": {
                "a": secret(&[("p", word), ("short", "masked-2")]),
                "b": secret(&[("q", word), ("r", "masked-3")]),
            },
            "ConfigMap.v1": {word: {"metadata": {"name": word, "annotations": {"sum": sha256(word)}}}},
        },
        "related": {"ConfigMap.v1": {"c": {"data": {
            "url": format!("mysql://root:{word}@db"), "answer": "no", "twice": encoded(&encoded(word)),
            "inner": encoded(&format!("a={word}")),
        }}}},
    });
    assert_eq!(request, expected);
}

#[tokio::test]
async fn what_is_said_is_said_without_what_is_known_there() {
    assert_eq!(scope::spoken("hunter-42"), "hunter-42");
    scope::within(async {
        assert_eq!(scope::spoken("hunter-42"), "hunter-42");
        scope::know(|| secret(&[("a", "hunter-42")]));
        scope::leave("shop-database");
        assert_eq!(scope::spoken("hunter-42 and other-one"), "(masked) and other-one");
        scope::know(|| secret(&[("a", "other-one"), ("b", "shop-database")]));
        assert_eq!(scope::spoken("hunter-42 and other-one"), "(masked) and (masked)");
        assert_eq!(scope::spoken("shop-database"), "shop-database");
        let veil = Veil::new(&scope::take(), Words::Compared);
        assert_eq!(veil.text("hunter-42 and other-one"), "(masked 1) and (masked 2)");
    })
    .await;
    assert_eq!(scope::spoken("hunter-42"), "hunter-42");
}

#[test]
fn blindness_ends_with_its_work_whatever_becomes_of_it() {
    assert!(!scope::is_blind());
    let caught = std::panic::catch_unwind(|| scope::blindly(|| assert!(!scope::is_blind(), "it is")));
    assert!(caught.is_err() && !scope::is_blind());
}

#[test]
fn secret_of_another_time_is_hidden_beside_that_of_today() {
    let today = secret(&[("p", "hunter-42"), ("q", "other-word")]);
    let veil = Veil::new(&Secrets::of(&today), Words::Compared);
    let config = |url: &str, size: u32| json!({"kind": "ConfigMap", "data": {"url": url, "list": [url, "a"], "n": size}});
    let (mut before, mut after) = (config("db://hunter-41@x", 1), config("db://hunter-42@x", 2));
    pair::hide(&veil, &mut before, &mut after);
    assert_eq!(before, config("(masked)", 1));
    assert_eq!(after, config("db://(masked 1)@x", 2));
    let (mut before, mut after) = (config("db://other-word@x", 1), config("db://hunter-42@x", 1));
    pair::hide(&veil, &mut before, &mut after);
    assert_eq!((before, after), (config("db://(masked 2)@x", 1), config("db://(masked 1)@x", 1)));
    let (mut before, mut after) = (json!({"gone": "hunter-42"}), json!({"hunter-42": "hunter-42"}));
    pair::hide(&veil, &mut before, &mut after);
    assert_eq!((before, after), (json!({"gone": "(masked 1)"}), json!({"(masked 1)": "(masked 1)"})));
}

#[test]
fn texts_are_compared_line_by_line() {
    let veil = Veil::new(&Secrets::of(&secret(&[("p", "hunter-42")])), Words::Compared);
    let (mut one, mut other) = (json!("a\np=old\nsame"), json!("A\np=hunter-42\nsame"));
    pair::hide_written(&veil, &mut one, &mut other);
    assert_eq!((one, other), (json!("a\n(masked)\nsame"), json!("A\np=(masked 1)\nsame")));
    let sums = format!("{} {}", sha256("hunter-42"), encoded(&encoded("x=hunter-42")));
    assert_eq!(veil.text(&sums), "(digest of (masked 1)) (base64 of (base64 of x=(masked 1)))");
}

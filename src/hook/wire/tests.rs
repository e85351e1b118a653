use serde_json::{Value, json};

use super::answer::Answer;
use super::*;
use crate::config::spec::{Decoding, Role};

fn strict(body: &str) -> Result<Answer, String> {
    Answer::decode(Role::Composite, Call::Sync, Decoding::Strict, body.as_bytes())
        .map_err(|problem| problem.to_string())
}

fn loose(body: &str) -> Result<Answer, String> {
    Answer::decode(Role::Composite, Call::Sync, Decoding::Loose, body.as_bytes())
        .map_err(|problem| problem.to_string())
}

fn finalize(body: &str) -> Result<Answer, String> {
    Answer::decode(Role::Composite, Call::Finalize, Decoding::Loose, body.as_bytes())
        .map_err(|problem| problem.to_string())
}

/// Both decodings refuse the body with this text.
fn assert_refused(body: &str, told: &str) {
    assert_eq!(strict(body), Err(told.to_string()), "strict: {body}");
    assert_eq!(loose(body), Err(told.to_string()), "loose: {body}");
}

fn raw(value: Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(&value).expect("JSON has a text")
}

#[test]
fn a_request_has_every_field_and_the_objects_as_they_are_kept() {
    let (controller, parent) = (raw(json!({"kind": "CompositeController"})), raw(json!({"b": 1, "a": 1.50})));
    let pod = RawValue::from_string(r#"{"n":1.50, "u":"\u00e9"}"#.into()).unwrap();
    let pods = BTreeMap::from([("web-0".to_string(), &*pod), ("web-1".to_string(), &*pod)]);
    let children: Groups =
        BTreeMap::from([("Pod.v1".to_string(), pods), ("Secret.v1".into(), BTreeMap::new())]);
    let related = Groups::new();
    let request = Request {
        role: Role::Composite,
        controller: &controller,
        parent: &parent,
        children: &children,
        related: &related,
        finalizing: true,
    };
    let wanted = concat!(
        r#"{"controller":{"kind":"CompositeController"},"parent":{"b":1,"a":1.5},"#,
        r#""children":{"Pod.v1":{"web-0":{"n":1.50, "u":"\u00e9"},"web-1":{"n":1.50, "u":"\u00e9"}},"Secret.v1":{}},"#,
        r#""related":{},"finalizing":true}"#
    );
    assert_eq!(request.body(), wanted);
    assert!(request.length() >= wanted.len(), "the body is allocated once");
    let decorator = Request { role: Role::Decorator, finalizing: false, children: &related, ..request };
    let wanted = concat!(
        r#"{"controller":{"kind":"CompositeController"},"object":{"b":1,"a":1.5},"#,
        r#""attachments":{},"related":{},"finalizing":false}"#
    );
    assert_eq!(decorator.body(), wanted);
}

#[test]
fn a_customize_request_has_the_parent_alone() {
    let request = CustomizeRequest { controller: &raw(json!({})), parent: &raw(json!({"kind": "Shelf"})) };
    assert_eq!(request.body(), r#"{"controller":{},"parent":{"kind":"Shelf"}}"#);
}

#[test]
fn inner_keys_depend_on_the_version_and_on_the_parents_scope() {
    let (namespaced, cluster) = (Key::new("lib", "parent"), Key::new("", "parent"));
    let (same, other, global) = (Key::new("lib", "a"), Key::new("far", "a"), Key::new("", "a"));
    let key = |version, parent, object| inner_key(version, parent, object).map(Cow::into_owned);
    let rows = [
        (&namespaced, &same, Some("a"), Some("lib/a")),
        (&namespaced, &other, None, Some("far/a")),
        (&namespaced, &global, None, Some("a")),
        (&cluster, &same, Some("lib/a"), Some("lib/a")),
        (&cluster, &global, Some("a"), Some("a")),
    ];
    for (parent, object, v1, v2) in rows {
        assert_eq!(key(HookVersion::V1, parent, object), v1.map(String::from), "v1 of {object} for {parent}");
        assert_eq!(key(HookVersion::V2, parent, object), v2.map(String::from), "v2 of {object} for {parent}");
    }
}

#[test]
fn a_whole_answer_is_read() {
    let body = r#"{"status":{"books":1},"children":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"t":"x"}}],"resyncAfterSeconds":2.5,"finalized":false}"#;
    let answer = strict(body).expect("a valid answer");
    assert_eq!(Value::from(answer.status.unwrap()), json!({"books": 1}));
    assert_eq!(answer.children[0].object["data"], json!({"t": "x"}));
    assert_eq!(answer.resync_after, Some(Duration::from_millis(2500)));
    assert!(!answer.finalized);
}

#[test]
fn fields_that_are_absent_or_null_have_their_defaults() {
    let empty = Answer::default();
    for body in
        [r#"{"children":[]}"#, r#"{"children":[],"status":null,"resyncAfterSeconds":null,"finalized":null}"#]
    {
        assert_eq!(strict(body).as_ref(), Ok(&empty), "{body}");
    }
    assert_eq!(strict(r#"{"status":{}}"#).unwrap().status, Some(Default::default()));
}

#[test]
fn an_answer_without_children_wants_none_if_it_says_anything_else() {
    for body in
        [r#"{"status":{}}"#, r#"{"status":null}"#, r#"{"finalized":true}"#, r#"{"resyncAfterSeconds":5}"#]
    {
        assert_eq!(loose(body).map(|answer| answer.children), Ok(vec![]), "{body}");
    }
}

// B26
#[test]
fn an_answer_that_says_nothing_is_refused_so_that_nothing_is_deleted() {
    let told = "the answer has no `children`; expected: an object with `children`, `status`, `resyncAfterSeconds`, \
                `finalized`; hint: answer `\"children\": []` when none is wanted";
    for body in ["{}", "null", " null\n"] {
        assert_refused(body, told);
    }
    assert_eq!(loose(r#"{"error":"x"}"#), Err(told.into()));
}

#[test]
fn an_answer_of_another_shape_is_refused() {
    assert_refused("[]", "the answer is a list; expected: a JSON object");
    assert_refused(r#""s""#, "the answer is the text `s`; expected: a JSON object");
    assert_refused("5", "the answer is `5`; expected: a JSON object");
    assert_refused("true", "the answer is `true`; expected: a JSON object");
    assert_refused("", "the answer is empty; expected: a JSON object");
    assert_refused(" \n", "the answer is empty; expected: a JSON object");
}

#[test]
fn what_is_no_json_is_refused_with_the_place() {
    assert_refused("{\n\"children\":[}", "the answer is not JSON: expected value at line 2 column 13");
    assert_refused(
        r#"{"children":[]} {}"#,
        "the answer is not JSON: trailing characters at line 1 column 17",
    );
    assert_refused("<html>", "the answer is not JSON: expected value at line 1 column 1");
    assert_refused(
        r#"{"children":["#,
        "the answer is not JSON: EOF while parsing a list at line 1 column 13",
    );
    assert_refused(
        "{\"children\":\"\u{1}\"}",
        "the answer is not JSON: control character (\\u0000-\\u001F) found while parsing a string at line 1 column 14",
    );
    assert_refused(
        r#"{"resyncAfterSeconds":NaN}"#,
        "the answer is not JSON: expected value at line 1 column 23",
    );
    assert_refused(
        r#"{"resyncAfterSeconds":1e999}"#,
        "the answer is not JSON: number out of range at line 1 column 27",
    );
}

#[test]
fn an_answer_nested_too_deeply_is_refused() {
    let nested = |depth: usize| {
        format!(r#"{{"children":[],"status":{{"a":{}{}}}}}"#, "[".repeat(depth), "]".repeat(depth))
    };
    strict(&nested(120)).expect("within 128 levels");
    for body in [nested(128), nested(1_000_000)] {
        let told = strict(&body).unwrap_err();
        assert!(told.starts_with("the answer is not JSON: recursion limit exceeded at line 1"), "{told}");
    }
}

#[test]
fn children_that_are_null_are_refused_except_on_finalize() {
    let told = "`children` is null; expected: a list; hint: answer `[]` when no child is wanted";
    assert_refused(r#"{"status":{},"children":null}"#, told);
    assert_eq!(finalize(r#"{"children":null,"finalized":true}"#).map(|answer| answer.finalized), Ok(true));
}

fn decorate(decoding: Decoding, body: &str) -> Result<Answer, String> {
    let answer = Answer::decode(Role::Decorator, Call::Sync, decoding, body.as_bytes());
    answer.map_err(|problem| problem.to_string())
}

#[test]
fn a_decorators_answer_is_read() {
    let body = r#"{"labels":{"tier":"gold","old":null},"annotations":null,"status":null,
        "attachments":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}],"resyncAfterSeconds":1}"#;
    let answer = decorate(Decoding::Strict, body).expect("a valid answer");
    assert_eq!(answer.labels, [("tier".into(), Some("gold".into())), ("old".into(), None)].into());
    assert!(answer.annotations.is_empty() && answer.status.is_none());
    assert_eq!(answer.children.len(), 1);
    let rows = [
        (
            r#"{"attachments":[],"labels":{"a":1}}"#,
            "`labels.a` is `1`; expected: a text, or null to remove it",
        ),
        (r#"{"attachments":[],"labels":[]}"#, "`labels` is a list; expected: an object"),
        (
            r#"{"labels":{},"attachments":null}"#,
            "`attachments` is null; expected: a list; hint: answer `[]` when no child is wanted",
        ),
        (r#"{"attachments":[],"lables":{}}"#, "unknown field `lables`; hint: did you mean `labels`?"),
        (
            r#"{"children":[]}"#,
            "unknown field `children`; expected: `attachments`, `labels`, `annotations`, `status`, \
             `resyncAfterSeconds`, `finalized`",
        ),
    ];
    for (body, told) in rows {
        assert_eq!(decorate(Decoding::Strict, body), Err(told.to_string()));
    }
    assert!(
        decorate(Decoding::Loose, r#"{"children":[]}"#).is_err(),
        "nothing is deleted by a composite's answer"
    );
}

// B27
#[test]
fn a_wrong_child_is_named_by_its_index() {
    let child = |child: &str| {
        format!(r#"{{"children":[{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a"}}}},{child}]}}"#)
    };
    let rows = [
        ("null", "`children[1]` is null; expected: an object"),
        ("7", "`children[1]` is `7`; expected: an object"),
        ("[]", "`children[1]` is a list; expected: an object"),
        ("{}", "`children[1]` has no `apiVersion`"),
        (r#"{"apiVersion":"v1","metadata":{"name":"a"}}"#, "`children[1]` has no `kind`"),
        (
            r#"{"apiVersion":"v1","kind":"","metadata":{}}"#,
            "`children[1].kind` is the text ``; expected: a text that is not empty",
        ),
        (
            r#"{"apiVersion":1,"kind":"Pod"}"#,
            "`children[1].apiVersion` is `1`; expected: a text that is not empty",
        ),
        (r#"{"apiVersion":"v1","kind":"Pod"}"#, "`children[1]` (Pod) has no `metadata`"),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":[]}"#,
            "`children[1].metadata` is a list; expected: an object",
        ),
        (r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#, "`children[1].metadata` has no `name`"),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":7}}"#,
            "`children[1].metadata.name` is `7`; expected: a text that is not empty",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":{}}}"#,
            "`children[1].metadata.namespace` is an object; expected: a text",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"a-"}}"#,
            "`children[1]` (Pod) has `metadata.generateName` and no `metadata.name`; hint: name it: under a generated name it would be made anew at every sync",
        ),
    ];
    for (wrong, told) in rows {
        assert_refused(&child(wrong), told);
    }
    assert_refused(
        r#"{"children":{"a":1}}"#,
        "`children` is an object; expected: a list; hint: answer `[]` when no child is wanted",
    );
}

#[test]
fn other_fields_of_a_wrong_type_are_refused() {
    assert_refused(r#"{"children":[],"status":"ok"}"#, "`status` is the text `ok`; expected: an object");
    assert_refused(r#"{"children":[],"status":[]}"#, "`status` is a list; expected: an object");
    assert_refused(
        r#"{"children":[],"finalized":"true"}"#,
        "`finalized` is the text `true`; expected: `true` or `false`",
    );
    assert_refused(r#"{"children":[],"finalized":1}"#, "`finalized` is `1`; expected: `true` or `false`");
    assert_refused(
        r#"{"children":[],"resyncAfterSeconds":"10"}"#,
        "`resyncAfterSeconds` is the text `10`; expected: a number",
    );
    assert_refused(
        r#"{"children":[],"resyncAfterSeconds":true}"#,
        "`resyncAfterSeconds` is `true`; expected: a number",
    );
}

// B20
#[test]
fn delays_are_kept_within_what_clocks_can_hold() {
    let delay = |seconds: &str| {
        strict(&format!(r#"{{"children":[],"resyncAfterSeconds":{seconds}}}"#)).unwrap().resync_after
    };
    for none in ["0", "-0.0", "-1", "-1e300", "1e-10"] {
        assert_eq!(delay(none), None, "{none}");
    }
    assert_eq!(delay("1"), Some(Duration::from_secs(1)));
    assert_eq!(delay("0.001"), Some(Duration::from_millis(1)));
    for long in ["1e12", "1e300", "18446744073709551615"] {
        let kept = delay(long).expect("a delay");
        assert!(kept > Duration::from_secs(90 * 365 * 24 * 3600), "{long}: {kept:?}");
        assert!(std::time::Instant::now().checked_add(kept).is_some());
        assert!(jiff::Timestamp::now().checked_add(kept).is_ok());
    }
}

// B29
#[test]
fn a_misspelt_field_is_refused_where_it_is_strict_and_where_it_hides_the_children() {
    let told = "unknown field `chidlren`; hint: did you mean `children`?";
    assert_refused(r#"{"status":{},"chidlren":[]}"#, told);
    assert_refused(
        r#"{"status":{},"Children":[]}"#,
        "unknown field `Children`; hint: did you mean `children`?",
    );
    assert_eq!(strict(r#"{"children":[],"chidlren":[]}"#), Err(told.into()));
    assert_eq!(loose(r#"{"children":[],"chidlren":[]}"#), Ok(Answer::default()));
    assert_eq!(loose(r#"{"children":[],"STATUS":{}}"#), Ok(Answer::default()));
}

#[test]
fn repeated_keys_are_refused_where_it_is_strict() {
    let children = r#"{"children":[],"children":[]}"#;
    let status = r#"{"children":[],"status":{"conditions":[{"type":"A","type":"B"}]}}"#;
    assert_eq!(strict(children), Err("`children` is there twice".into()));
    assert_eq!(strict(status), Err("`status.conditions[0].type` is there twice".into()));
    assert_eq!(loose(children), Ok(Answer::default()));
    assert_eq!(loose(status).unwrap().status.unwrap()["conditions"][0]["type"], "B");
    let inside = r#"{"children":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"}}]}"#;
    assert_eq!(strict(inside).unwrap().children[0].object["metadata"]["name"], "b");
}

// B40
#[test]
fn numbers_and_the_order_of_keys_stay_as_they_are() {
    let body = r#"{"status":{"z":18446744073709551615,"a":-9223372036854775808,"m":0.1,"b":[true,null,"\ud83d\ude00"]},"children":[]}"#;
    let status = Value::from(strict(body).unwrap().status.unwrap());
    assert_eq!(
        status.to_string(),
        r#"{"z":18446744073709551615,"a":-9223372036854775808,"m":0.1,"b":[true,null,"😀"]}"#
    );
}

fn customize(decoding: Decoding, body: &str) -> Result<Answer, String> {
    Answer::decode(Role::Composite, Call::Customize, decoding, body.as_bytes())
        .map_err(|problem| problem.to_string())
}

#[test]
fn related_rules_are_read() {
    let body = r#"{"relatedResources":[
        {"apiVersion":"v1","resource":"secrets","namespace":"vault","names":["root"],"labelSelector":null},
        {"apiVersion":"v1","resource":"namespaces","labelSelector":{"matchLabels":{"team":"a"}},"names":null},
        {"apiVersion":"v1","resource":"configmaps","namespaceSelector":{"matchLabels":{"team":"a"}},"labelSelector":{}}]}"#;
    let rules = customize(Decoding::Strict, body).expect("valid rules").related;
    assert_eq!(
        (rules[0].resource.resource.as_str(), rules[0].namespace.as_deref()),
        ("secrets", Some("vault"))
    );
    assert_eq!((&rules[0].names[..], &rules[0].label_selector), (&["root".to_string()][..], &None));
    assert_eq!(rules[1].label_selector, Some(crate::object::selector::Selector::label("team", "a")));
    assert!(rules[2].namespace_selector.is_some() && rules[2].label_selector.is_some());
}

#[test]
fn wrong_related_rules_are_named_by_their_index() {
    let rule =
        |fields: &str| format!(r#"{{"relatedResources":[{{"apiVersion":"v1","resource":"pods"{fields}}}]}}"#);
    let rows = [
        (
            rule(r#","names":["a"],"labelSelector":{}"#),
            "`relatedResources[0]` has `names` and a selector; expected: objects by name or by selector",
        ),
        (
            rule(r#","namespace":"a","namespaceSelector":{}"#),
            "`relatedResources[0]` has `namespace` and `namespaceSelector`; expected: one of the two",
        ),
        (rule(r#","names":[7]"#), "`relatedResources[0].names[0]` is `7`; expected: a name"),
        (
            rule(r#","labelSelector":"a=b""#),
            "`relatedResources[0].labelSelector`: expected an object, found a string",
        ),
        (r#"{"relatedResources":[null]}"#.into(), "`relatedResources[0]` is null; expected: an object"),
        (r#"{"relatedResources":[{"apiVersion":"v1"}]}"#.into(), "`relatedResources[0]` has no `resource`"),
        (
            "{}".into(),
            "the answer has no `relatedResources`; expected: an object with `relatedResources`; hint: answer `\"relatedResources\": []` when none is wanted",
        ),
    ];
    for (body, told) in rows {
        assert_eq!(customize(Decoding::Loose, &body), Err(told.to_string()));
    }
    let unknown = rule(r#","name":["a"]"#);
    assert_eq!(
        customize(Decoding::Strict, &unknown),
        Err("unknown field `relatedResources[0].name`; hint: did you mean `names`?".into())
    );
    customize(Decoding::Loose, &unknown).expect("unknown fields are let pass");
}

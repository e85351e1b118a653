//! Calls about one object: `validate`, `default`, `convert`, by `syncwright render` and `syncwright test`.

use serde_json::{Value, json};

use crate::{folder, says, syncwright};

const VALIDATE: &str = "\
errors:
{% if old and object.spec.size < old.spec.size %}
  - {field: spec.size, message: cannot shrink from {{ old.spec.size }}}
{% endif %}
warnings:
{% if operation == 'CREATE' and not dry_run %}
  - made by {{ user.name or 'nobody' }}
{% endif %}
";
const CONVERT: &str = "\
{% if to == 'v1' %}
spec: {size: {value: {{ object.spec.size }}}}
metadata: {annotations: {old: null, new: '1'}}
{% else %}
spec: {size: {{ object.spec.size.value }}}
status: null
{% endif %}
";
const OBJECT: &str = "{apiVersion: a.b/v1beta1, kind: A, metadata: {name: x, uid: u, annotations: {old: o, kept: k}}, spec: {size: 5}, status: {a: 1}}";

#[track_caller]
fn rendered(call: &str, template: &str, request: &str) -> Result<Value, String> {
    let file = format!("hooks/a/{call}.yaml");
    let folder = folder(&[(&file, template), ("request.yaml", request)]);
    let said = syncwright(folder.path(), &["render", "a", call, "request.yaml", "-o", "json"]);
    match said.code {
        0 => Ok(serde_json::from_str(&said.out).expect("an answer is JSON")),
        1 => Err(said.err),
        _ => panic!("{said:?}"),
    }
}

#[track_caller]
fn refused(call: &str, template: &str, request: &str, page: &str) {
    let got = rendered(call, template, request).expect_err("it is refused");
    let first =
        |text: &str| text.lines().filter(|line| !line.starts_with(' ')).collect::<Vec<_>>().join("\n");
    assert_eq!(first(&got), page);
}

#[test]
fn what_is_wrong_with_an_object_names_the_field() {
    let request = format!("object: {OBJECT}\nold: {}", OBJECT.replace("size: 5", "size: 7"));
    let answer =
        json!({"errors": [{"field": "spec.size", "message": "cannot shrink from 7"}], "warnings": []});
    assert_eq!(rendered("validate", VALIDATE, &request), Ok(answer));
    let answer = json!({"errors": [], "warnings": ["made by nobody"]});
    assert_eq!(rendered("validate", VALIDATE, OBJECT), Ok(answer));
    let request = format!("object: {OBJECT}\nuser: {{name: jane}}\ndry_run: true");
    assert_eq!(rendered("validate", VALIDATE, &request), Ok(json!({"errors": [], "warnings": []})));
}

#[test]
fn a_conversion_keeps_what_it_does_not_name() {
    let request = format!("object: {OBJECT}\nto: v1");
    let v1 = json!({
        "apiVersion": "a.b/v1", "kind": "A",
        "metadata": {"name": "x", "uid": "u", "annotations": {"kept": "k", "new": "1"}},
        "spec": {"size": {"value": 5}}, "status": {"a": 1},
    });
    assert_eq!(rendered("convert", CONVERT, &request), Ok(v1.clone()));
    let back = json!({"object": v1, "from": "v1", "to": "v1beta1"}).to_string();
    let beta = json!({
        "apiVersion": "a.b/v1beta1", "kind": "A",
        "metadata": {"name": "x", "uid": "u", "annotations": {"kept": "k", "new": "1"}},
        "spec": {"size": 5},
    });
    assert_eq!(rendered("convert", CONVERT, &back), Ok(beta));
}

#[test]
fn an_answer_that_is_none_says_where() {
    let page = "hooks/a/validate.yaml:1:1: unknown response field `error`\nhint: did you mean `errors`?";
    refused("validate", "error: []\n", OBJECT, page);
    let page = "hooks/a/validate.yaml:1:10: an error has no `message`\nhint: write `{field: spec.replicas, message: \"…\"}`";
    refused("validate", "errors: [{field: spec}]\n", OBJECT, page);
    let page =
        "hooks/a/validate.yaml:1:1: unknown response field `apiVersion`\nexpected: `errors`, `warnings`";
    refused("validate", "apiVersion: v1\nkind: ConfigMap\n", OBJECT, page);
    let page = "hooks/a/default.yaml:1:1: unknown response field `spec`\nhint: put what is to be filled in below `defaults:`";
    refused("default", "spec: {replicas: 2}\n", OBJECT, page);
    let page = "hooks/a/default.yaml:1:1: the document is of the wrong type\nfound: a list\nexpected: a map of fields";
    refused("default", "- {op: add}\n", OBJECT, page);
    let page = "hooks/a/finalize.yaml:1:1: rendered nothing: not a single document\nexpected: a child that is still needed, or a field of the answer\nhint: write `finalized: true` where nothing is left to be done, or the parent stays for ever";
    refused("finalize", "# none\n", OBJECT, page);
    let page = "hooks/a/customize.yaml:1:1: rendered nothing: not a single document\nexpected: `relatedResources`\nhint: write `relatedResources: []` to say that none is wanted";
    refused("customize", "# none\n", OBJECT, page);
    let page = "hooks/a/default.yaml:1:12: `status` has no defaults\nexpected: fields such as `spec`, labels or annotations";
    refused("default", "defaults: {status: {a: 1}}\n", OBJECT, page);
    let request = format!("object: {OBJECT}\nto: v1");
    let page =
        "hooks/a/convert.yaml:1:12: `metadata.name` cannot be changed\nexpected: `labels` or `annotations`";
    refused("convert", "metadata: {name: other}\n", &request, page);
    let page = "hooks/a/convert.yaml:1:1: rendered nothing: not a single document\nexpected: fields of the object in its other version, such as `spec`";
    refused("convert", "# none\n", &request, page);
    let page = "`to` is no version\nfound: null\nexpected: a version such as `v1beta1`\nhint: a conversion is asked for as `{object: …, to: v1beta1}`";
    refused("convert", CONVERT, OBJECT, page);
}

#[test]
fn reviews_have_cases_and_checks_like_other_calls() {
    let folder = folder(&[
        ("hooks/a/convert.yaml", CONVERT),
        ("hooks/a/default.yaml", "defaults: {spec: {replicas: 3}}\n"),
        ("hooks/a/validate.yaml", VALIDATE),
        ("hooks/a/cases/one/convert.request.yaml", &format!("object: {OBJECT}\nto: v1\n")),
        ("hooks/a/cases/one/default.request.yaml", OBJECT),
        ("hooks/a/cases/one/validate.request.yaml", OBJECT),
        ("controllers.yaml", ""),
    ]);
    let accepted = syncwright(folder.path(), &["test", "--accept"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    says(&syncwright(folder.path(), &["test"]), 0, "3 passed\n", "");
    let checked = syncwright(folder.path(), &["check"]);
    assert_eq!((checked.code, checked.err.as_str()), (0, ""), "{checked:?}");
}

//! Values of Secrets in cases are in nothing that the author's commands say of them: it goes into the logs of CI.

use std::fs;

use crate::canary::{Canary, expect_hidden};
use crate::{folder, syncwright};

const SYNC: &str = r#"
{% set word = related.find("Secret", "source").data.word | b64decode %}
{% set mode = parent.spec.mode %}
{% if mode == "fail" %}
{{ fail("no: " ~ word ~ (word | b64encode) ~ (word | sha256)) }}
{% elif mode == "number" %}
status: {size: {{ word | quantity_value }}}
{% elif mode == "pod" %}
apiVersion: v1
kind: Pod
metadata: {name: {{ word }}, labels: {word: {{ word }}}}
spec:
  restartPolicy: {{ word }}
  containers: [{name: {{ word }}, image: web, ports: [{containerPort: {{ word }}, name: {{ word }}}]}]
{% elif mode == "secret" %}
apiVersion: v1
kind: Secret
metadata: {name: own}
stringData: {word: {{ word }}, size: 5}
{% else %}
apiVersion: v1
kind: ConfigMap
metadata: {name: own, annotations: {sum: {{ word | sha256 }}}}
data:
  my.cnf: |
    [client]
    password={{ word }}
  url: "db://root:{{ word }}@db"
  twice: {{ word | b64encode | b64encode }}
{% endif %}
"#;
const CONTROLLERS: &str = "\
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: a}
spec:
  parentResource: {apiVersion: v1, resource: configmaps}
  childResources:
    - {apiVersion: v1, resource: pods}
    - {apiVersion: v1, resource: secrets}
    - {apiVersion: v1, resource: configmaps}
  hooks: {sync: {webhook: {path: /a/sync}}}
";

fn request(mode: &str, word: &Canary) -> String {
    format!(
        "parent: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: x, namespace: n, uid: u}}, spec: {{mode: {mode}}}}}\n\
         related: [{{apiVersion: v1, kind: Secret, metadata: {{name: source}}, data: {{word: {}}}}}]\n",
        word.encoded()
    )
}

/// What another word would have made of the template.
fn response(word: &Canary) -> String {
    let (value, twice) = (&word.value, word.twice());
    format!(
        "children:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {{name: own, annotations: {{sum: {}}}}}\n  data:\n    \
         my.cnf: |\n      [client]\n      password={value}\n    url: 'db://root:{value}@db'\n    twice: {twice}\n",
        word.digest()
    )
}

// B115
#[test]
fn values_in_cases_are_not_told() {
    let word = Canary::new("SING 7f3a9cd041 <all>", "7f3a9cd041");
    let other = Canary::new("SING 2b6c80ae95 <all>", "2b6c80ae95");
    let page = format!("hooks/a/sync.yaml:5:4: no: {}\n", word.value);
    let secret = format!(
        "children:\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: own}}\n  stringData: {{word: '{}'}}\n",
        other.value
    );
    let folder = folder(&[
        ("controllers.yaml", CONTROLLERS),
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/fail/sync.request.yaml", &request("fail", &word)),
        ("hooks/a/cases/fail/sync.error.txt", &page),
        ("hooks/a/cases/number/sync.request.yaml", &request("number", &word)),
        ("hooks/a/cases/number/sync.response.yaml", "children: []\n"),
        ("hooks/a/cases/pod/sync.request.yaml", &request("pod", &word)),
        ("hooks/a/cases/secret/sync.request.yaml", &request("secret", &word)),
        ("hooks/a/cases/secret/sync.response.yaml", &secret),
        ("hooks/a/cases/map/sync.request.yaml", &request("map", &word)),
        ("hooks/a/cases/map/sync.response.yaml", &response(&other)),
    ]);
    let hidden = |arguments: &[&str], code: i32| {
        let said = syncwright(folder.path(), arguments);
        assert_eq!(said.code, code, "{said:?}");
        let text = said.out + &said.err;
        assert!(text.contains("(masked"), "{arguments:?}: {text}");
        expect_hidden(&[&word, &other], &[(&arguments.join(" "), text.clone())]);
        text
    };
    let text = hidden(&["test"], 1);
    for line in [
        "data.url: expected \"(masked)\", got \"db://root:(masked 1)@db\"",
        "data.twice: expected \"(masked)\", got \"(base64 of (base64 of (masked 1)))\"",
        "data[\"my.cnf\"]: line 2: expected `(masked)`, got `password=(masked 1)`",
        "annotations.sum: expected \"(masked)\", got \"(digest of (masked 1))\"",
        "stringData.word: expected \"(masked 2)\", got \"(masked 1)\"",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    hidden(&["test", "--json", "-"], 1);
    hidden(&["test", "--junit", "-"], 1);
    for format in ["text", "json", "sarif", "github"] {
        hidden(&["check", "--format", format], 1);
    }
    for mode in ["fail", "number"] {
        hidden(&["render", "a", "sync", &format!("hooks/a/cases/{mode}/sync.request.yaml")], 1);
    }
    // What the case gets from now on has no value of it either.
    assert_eq!(syncwright(folder.path(), &["test", "--only", "fail", "--accept"]).code, 0);
    let page = fs::read_to_string(folder.path().join("hooks/a/cases/fail/sync.error.txt")).unwrap();
    assert!(page.contains("no: (masked)"), "{page}");
    expect_hidden(&[&word], &[("the page", page)]);
}

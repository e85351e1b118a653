use serde_json::{Value, json};

use crate::object::name::Gvk;
use crate::schema::misfit::dotted;
use crate::schema::{Catalog, Whole};

/// What is wrong with a manifest, one line each.
fn misfits(catalog: &Catalog, manifest: &str) -> Vec<String> {
    let object: Value = serde_saphyr::from_str(manifest).expect("it is YAML");
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let kind = catalog.kind(&Gvk::new(text("apiVersion"), text("kind"))).expect("the kind is known");
    let line = |misfit: crate::schema::Misfit| {
        let parts = [misfit.expected, misfit.hint.map(|hint| format!("hint: {hint}"))];
        let rest: String = parts.into_iter().flatten().map(|part| format!("; {part}")).collect();
        format!("{:?} {}: {}{rest}", misfit.nature, dotted(&misfit.path), misfit.message)
    };
    kind.misfits(&object, Whole::Yes).into_iter().map(line).collect()
}

#[track_caller]
fn check(manifest: &str, expected: &[&str]) {
    assert_eq!(misfits(Catalog::built_in(), manifest), expected);
}

#[test]
fn manifest_that_the_api_server_takes_has_no_misfit() {
    check(
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}, annotations: {a: b}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx
        ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53}]
        livenessProbe: {httpGet: {path: /, port: http}}
        resources: {limits: {cpu: 1, memory: 1.5Gi}}
        volumeMounts: [{name: conf, mountPath: /conf}]
      volumes: [{name: conf, configMap: {name: web, defaultMode: 420}}]
",
        &[],
    );
}

#[test]
fn every_misfit_is_told_with_its_path() {
    check(
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: 1}}
spec:
  replica: 2
  minReadySeconds: \"3\"
  revisionHistoryLimit: 2.5
  paused: \"true\"
  strategy: {type: Rollingupdate}
  template:
    spec:
      nodeSelector:
      containers:
      - name: web
        env: [{name: A, value: 1}, {name: B}, {name: A}]
        ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}, {containerPort: 99999999999}]
        livenessProbe: {httpGet: {port: \"80\"}}
        resources: {limits: {cpu: lots}}
      - image: nginx
",
        &[
            "Type metadata.labels.app: `metadata.labels.app` is `1`; a text; hint: put it in quotes",
            "Unknown spec.replica: unknown field `spec.replica`; hint: did you mean `replicas`?",
            "Type spec.minReadySeconds: `spec.minReadySeconds` is the text `3`; a whole number; hint: take the quotes away, or write `| int` behind the expression",
            "Type spec.revisionHistoryLimit: `spec.revisionHistoryLimit` is `2.5`; a whole number; hint: `//` divides whole numbers, `| round | int` rounds",
            "Type spec.paused: `spec.paused` is the text `true`; `true` or `false`; hint: take the quotes away",
            "Value spec.strategy.type: `spec.strategy.type` is the text `Rollingupdate`; `Recreate`, `RollingUpdate`; hint: did you mean `RollingUpdate`?",
            "Null spec.template.spec.nodeSelector: `spec.template.spec.nodeSelector` is null, which means that it is left out; hint: write `{}`, `[]` or `\"\"` for an empty one, or leave the line out with `if`",
            "Type spec.template.spec.containers[0].env[0].value: `spec.template.spec.containers[0].env[0].value` is `1`; a text; hint: put it in quotes",
            "Repeated spec.template.spec.containers[0].env[2]: `spec.template.spec.containers[0].env[2]` repeats `spec.template.spec.containers[0].env[0]`: both have `name` `A`; hint: the API server refuses the whole object: each key once",
            "Value spec.template.spec.containers[0].ports[2].containerPort: `spec.template.spec.containers[0].ports[2].containerPort` is `99999999999`; a whole number of 32 bits",
            "Repeated spec.template.spec.containers[0].ports[1]: `spec.template.spec.containers[0].ports[1]` repeats `spec.template.spec.containers[0].ports[0]`: both have `containerPort` `80` and `protocol` `TCP`; hint: the API server refuses the whole object: each key once",
            "QuotedNumber spec.template.spec.containers[0].livenessProbe.httpGet.port: `spec.template.spec.containers[0].livenessProbe.httpGet.port` is the text `80`: digits in quotes are a name; hint: take the quotes away, or write `| int` behind the expression",
            "Value spec.template.spec.containers[0].resources.limits.cpu: `spec.template.spec.containers[0].resources.limits.cpu` is the text `lots`; an amount such as `100m`, `1.5` or `2Gi`",
            "Missing spec.template.spec.containers[1]: `spec.template.spec.containers[1]` has no `name`",
            "Missing spec: `spec` has no `selector`",
        ],
    );
}

#[test]
fn secret_data_is_base64() {
    check(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {good: YWJj, bad: \"a b\"}\n",
        &[
            "Value data.bad: `data.bad` is not base64; hint: write `| b64encode` behind the expression, or use `stringData`",
        ],
    );
}

fn with_crd(spec: Value) -> Catalog {
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {
        "phase": {"type": "string"}, "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}});
    let mut catalog = Catalog::built_in().clone();
    catalog
        .add_crd(&json!({"spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}],
        }}))
        .unwrap();
    catalog
}

#[test]
fn schema_of_a_crd_counts_with_its_bounds_and_patterns() {
    let catalog = with_crd(json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "count": {"type": "integer", "minimum": 1, "maximum": 3},
        "port": {"x-kubernetes-int-or-string": true},
        "list": {"type": "array", "minItems": 1, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "none": {"type": "string", "nullable": true},
        "fields": {"type": "object"},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
        "other": {"type": "object", "x-kubernetes-embedded-resource": true},
    }}));
    let head = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n";
    let fits = "spec: {name: abc, count: 3, port: \"80\", list: [a], none: null, pod: {apiVersion: v1, kind: Pod, metadata: {name: a}}}\n";
    assert_eq!(misfits(&catalog, &format!("{head}{fits}")), [""; 0]);
    let not = "spec: {name: toolong1, count: 4, port: 1.5, list: [a, a], fields: {a: 1}, pod: {kind: Pod, metadata: {nam: a}}, other: 1}\n";
    assert_eq!(
        misfits(&catalog, &format!("{head}{not}")),
        [
            "Value spec.name: `spec.name` has 8 characters; at most 5",
            "Value spec.name: `spec.name` is the text `toolong1`; a text that matches `^[a-z]+$`",
            "Value spec.count: `spec.count` is `4`; 3 or less",
            "Type spec.port: `spec.port` is `1.5`; a whole number or a text",
            "Repeated spec.list[1]: `spec.list[1]` repeats `spec.list[0]`: both have `a`; hint: the API server refuses the whole object: each key once",
            "Unknown spec.fields.a: unknown field `spec.fields.a`; an empty map",
            "Missing spec.pod: `spec.pod` has no `apiVersion`",
            "Unknown spec.pod.metadata.nam: unknown field `spec.pod.metadata.nam`; hint: did you mean `name`?",
            "Type spec.other: `spec.other` is `1`; a map",
        ]
    );
}

#[test]
fn status_field_that_would_be_pruned_is_unknown() {
    let catalog = with_crd(json!({"type": "object"}));
    let kind = catalog.kind(&Gvk::new("example.com/v1", "Thing")).unwrap();
    let status = json!({"phase": "x", "open": {"any": 1}, "ready": 1});
    let paths: Vec<String> = kind
        .misfits_of("status", &status, Whole::Yes)
        .unwrap()
        .iter()
        .map(|misfit| dotted(&misfit.path))
        .collect();
    assert_eq!(paths, ["status.ready"]);
    assert!(kind.has(&["status", "phase"]) && kind.has(&["status", "open", "any"]));
    assert!(!kind.has(&["status", "observedGeneration"]));
}

#[test]
fn defaults_are_filled_in_as_the_api_server_does() {
    let catalog = with_crd(json!({"type": "object", "default": {}, "properties": {
        "size": {"type": "string", "default": "1Gi"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
        "deep": {"type": "object", "properties": {"n": {"type": "integer", "default": 2}}},
    }}));
    let kind = catalog.kind(&Gvk::new("example.com/v1", "Thing")).unwrap();
    let mut object = json!({"spec": {"size": "2Gi", "list": [{}, {"n": 3}]}});
    kind.fill(&mut object);
    assert_eq!(object, json!({"spec": {"size": "2Gi", "list": [{"n": 1}, {"n": 3}]}}));
    let mut bare = json!({});
    kind.fill(&mut bare);
    assert_eq!(bare, json!({"spec": {"size": "1Gi"}}));
}

#[test]
fn schema_that_cannot_be_read_names_where_it_stands() {
    let mut catalog = Catalog::built_in().clone();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "text"}}});
    let crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
    let (path, why) = catalog.add_crd(&crd).unwrap_err();
    assert_eq!(dotted(&path), "spec.versions[0].schema.openAPIV3Schema.properties.spec");
    assert!(why.contains("unknown variant `text`"), "{why}");
}

#[test]
fn document_without_kinds_is_refused() {
    let why = Catalog::from_openapi(br#"{"paths": {}, "definitions": {}}"#).unwrap_err();
    assert!(why.contains("kubectl get --raw /openapi/v2"), "{why}");
    assert!(Catalog::from_openapi(b"[]").is_err());
}

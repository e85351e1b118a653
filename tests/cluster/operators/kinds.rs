//! What the kinds of the operators take, fill in and refuse.

use serde_json::{Value, json};

use crate::operators::operator::Operator;

/// What the API server would store of a parent with this spec, or the fields that it refuses.
fn tried(operator: &Operator, spec: Value) -> Result<Value, Vec<String>> {
    let collection = format!("{}?dryRun=All", operator.parent(""));
    let answer = operator.lab.plane.request("POST", &collection, Some(&operator.manifest("it", spec)));
    let answer = answer.expect("the API server answers");
    judged(answer.is_success(), answer.json())
}

fn judged(taken: bool, answer: Value) -> Result<Value, Vec<String>> {
    if taken {
        return Ok(answer["spec"].clone());
    }
    let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
    let mut fields: Vec<String> =
        causes.iter().map(|it| it["field"].as_str().unwrap_or_default().into()).collect();
    fields.dedup();
    // Where a value is refused, the rules on it could not be tried: that is said of the whole.
    fields.retain(|field| field != "<nil>");
    Err(fields)
}

/// The spec with a field set, or removed by null.
fn but(spec: &Value, field: &str, value: Value) -> Value {
    let mut spec = spec.clone();
    let (parent, name) = field.rsplit_once('/').expect("a pointer");
    let fields =
        spec.pointer_mut(parent).and_then(Value::as_object_mut).expect("the field's parent is there");
    match value {
        Value::Null => drop(fields.remove(name)),
        value => drop(fields.insert(name.into(), value)),
    }
    spec
}

#[track_caller]
fn refuses(operator: &Operator, spec: &Value, refused: &[(&str, Value)]) {
    for (field, value) in refused {
        let expected = vec![format!("spec{}", field.replace('/', "."))];
        let found = tried(operator, but(spec, field, value.clone()));
        assert_eq!(found, Err(expected), "{field}: {value}");
    }
}

#[track_caller]
fn takes(operator: &Operator, spec: &Value, taken: &[(&str, Value)]) {
    for (field, value) in taken {
        let stored = tried(operator, but(spec, field, value.clone()));
        let stored = stored.unwrap_or_else(|fields| panic!("{field}: {value}: {fields:?}"));
        assert_eq!(stored.pointer(field), Some(value));
    }
}

/// Refused as a change of the spec, though each is fine by itself.
#[track_caller]
fn refuses_to_shrink(operator: &Operator, spec: &Value, smaller: Value) {
    let path = operator.add("shrinks", spec.clone());
    let patch = json!({"spec": smaller}).to_string();
    let answer = operator.lab.plane.send("PATCH", &path, "application/merge-patch+json", &patch);
    let answer = answer.expect("the API server answers");
    assert!(answer.message().contains("a volume cannot shrink"), "{}", answer.message());
}

#[test]
fn backupschedule_fills_in_and_refuses() {
    let bks = Operator::new("backupschedule", "bks-kind");
    let spec = json!({
        "databaseHost": "h", "databaseName": "d", "databaseUser": "u", "s3Bucket": "b", "schedule": "@daily",
    });
    let mut whole = spec.clone();
    let defaults = json!({
        "databasePort": 3306, "s3Prefix": "", "retention": 7, "suspend": false,
        "passwordSecret": {"name": "db-secret", "key": "password"},
    });
    whole.as_object_mut().unwrap().extend(defaults.as_object().unwrap().clone());
    assert_eq!(tried(&bks, spec.clone()), Ok(whole));
    for field in ["/databaseHost", "/databaseName", "/databaseUser", "/s3Bucket", "/schedule"] {
        refuses(&bks, &spec, &[(field, json!(null)), (field, json!("")), (field, json!(1))]);
    }
    let ports = [json!(0), json!(65536), json!("3306"), json!(1.5)].map(|port| ("/databasePort", port));
    refuses(&bks, &spec, &ports);
    refuses(&bks, &spec, &[("/retention", json!(0)), ("/retention", json!(1001)), ("/suspend", json!("no"))]);
    takes(
        &bks,
        &spec,
        &[("/databasePort", json!(65535)), ("/retention", json!(1000)), ("/suspend", json!(true))],
    );
    // Whether an expression can be read is the hook's to say: a condition tells more than a refusal.
    takes(&bks, &spec, &[("/schedule", json!("0 0 0 0 0 0")), ("/timeZone", json!("Berlin"))]);
}

#[test]
fn postgresqlcluster_fills_in_and_refuses() {
    let pg = Operator::new("postgresqlcluster", "pg-kind");
    let spec =
        json!({"version": "16", "storage": {"size": "10Gi"}, "backup": {"schedule": "*/5 1-5 * * MON"}});
    let stored = tried(&pg, spec.clone()).expect("it is taken");
    assert_eq!((&stored["replicas"], &stored["backup"]["retentionDays"]), (&json!(3), &json!(7)));
    let refused = [
        ("/version", json!(null)),
        ("/version", json!("13")),
        ("/version", json!(16)),
        ("/storage", json!(null)),
        ("/storage", json!("10Gi")),
        ("/storage/size", json!(null)),
        ("/storage/size", json!("10")),
        ("/storage/size", json!("10Mi")),
        ("/storage/size", json!("0Gi")),
        ("/replicas", json!(0)),
        ("/replicas", json!(11)),
        ("/replicas", json!("3")),
        ("/backup/schedule", json!(null)),
        ("/backup/schedule", json!("")),
        ("/backup/retentionDays", json!(0)),
        ("/backup/retentionDays", json!(91)),
    ];
    refuses(&pg, &spec, &refused);
    takes(
        &pg,
        &spec,
        &[("/replicas", json!(10)), ("/backup/retentionDays", json!(90)), ("/version", json!("14"))],
    );
    refuses_to_shrink(&pg, &spec, json!({"storage": {"size": "1Gi"}}));
}

#[test]
fn mysql_fills_in_and_refuses() {
    let my = Operator::new("mysql", "my-kind");
    let spec = json!({"replicas": 1, "version": "8.0"});
    assert_eq!(tried(&my, spec.clone()), Ok(json!({"replicas": 1, "version": "8.0", "storageSize": "10Gi"})));
    let refused = [
        ("/replicas", json!(null)),
        ("/replicas", json!(0)),
        ("/replicas", json!(11)),
        ("/version", json!(null)),
        ("/version", json!("8.1")),
        ("/version", json!(8.0)),
        ("/storageSize", json!("10G")),
        ("/storageSize", json!("0Gi")),
        ("/config", json!(["a"])),
    ];
    refuses(&my, &spec, &refused);
    let broken = but(&spec, "/config", json!({"a": "1\n[client]"}));
    assert_eq!(tried(&my, broken), Err(vec!["spec.config.a".to_owned()]));
    takes(
        &my,
        &spec,
        &[("/replicas", json!(10)), ("/version", json!("5.7")), ("/config", json!({"a": "", "b": "1"}))],
    );
    refuses_to_shrink(&my, &spec, json!({"storageSize": "1Gi"}));
}

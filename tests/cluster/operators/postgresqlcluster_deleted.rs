//! The end of a PostgreSQLCluster comes whatever stands in its way.

use serde_json::{Value, json};

use crate::operators::operator::{Operator, items};
use crate::support::lab::{Lab, SOON};

fn spec() -> Value {
    json!({"replicas": 1, "version": "16", "storage": "1Gi"})
}

/// Deletes a namespace with all that is in it, and waits until it is gone.
#[track_caller]
fn delete_namespace(lab: &Lab, name: &str) {
    let path = format!("/api/v1/namespaces/{name}");
    lab.plane.delete(&path);
    lab.plane.wait_gone(&path, 3 * SOON);
}

#[test]
fn namespace_with_a_cluster_in_it_goes() {
    let pg = Operator::new("postgresqlcluster", "namespace").with_own_finalizer();
    let _controller = pg.start();
    let away = pg.lab.plane.namespace("pg-away");
    let db = pg.add_in(&away, "db", spec());
    pg.wait_phase(&db, "Running");
    delete_namespace(&pg.lab, &away);
    let refused = pg.lab.writes().iter().filter(|write| write.starts_with("patch jobs")).count();
    assert!(refused <= 2, "a Job that the namespace does not take is not tried again: {:?}", pg.lab.writes());
}

#[test]
fn broken_finalize_template_holds_up_no_deletion() {
    let pg = Operator::new("postgresqlcluster", "broken").with_own_finalizer();
    let lab = &pg.lab;
    let controller = pg.start_with(&["--finalize-patience", "1"]);
    let away = lab.plane.namespace("pg-broken");
    let (db, far) = (pg.add("db", spec()), pg.add_in(&away, "far", spec()));
    pg.wait_phase(&db, "Running");
    pg.wait_phase(&far, "Running");
    pg.edit_hook(
        &controller,
        "finalize.yaml",
        "{% import \"_cluster.yaml\" as cluster %}",
        "{{ parent.spec.nosuch }}",
    );
    lab.plane.delete(&db);
    lab.wait_gone(&db);
    let events = lab.get(&lab.path("v1", "events", ""));
    let skipped = items(&events).iter().find(|event| event["reason"] == "FinalizeSkipped");
    let message = skipped.expect("a person is told")["message"].as_str().unwrap_or_default().to_owned();
    let expected = "finalizer removed without the finalize hook: its finalize hook cannot be used: \
                    hooks/postgresqlcluster/finalize.yaml:5:";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.contains("`parent.spec.nosuch` is absent"), "{message}");
    delete_namespace(lab, &away);
}

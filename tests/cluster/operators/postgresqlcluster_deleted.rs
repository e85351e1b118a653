//! The end of a PostgreSQLCluster comes whatever stands in its way.

use serde_json::{Value, json};

use crate::operators::operator::{Operator, items};
use crate::support::lab::{Lab, SOON};

fn spec() -> Value {
    json!({"replicas": 1, "version": "16", "storage": {"size": "1Gi"}})
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

/// The clean-up Job fails, the controller is killed meanwhile, the garbage collector is there first.
#[test]
fn cluster_goes_whatever_its_clean_up_comes_to() {
    let pg = Operator::new("postgresqlcluster", "ends").with_own_finalizer();
    let lab = &pg.lab;
    let controller = pg.start();
    let paths = ["must-fail", "killed", "foreground", "orphan"].map(|name| pg.add(name, spec()));
    let [failing, killed, foreground, orphaning] = &paths;
    paths.iter().for_each(|path| drop(pg.wait_phase(path, "Running")));
    for (path, policy) in [(foreground, "Foreground"), (orphaning, "Orphan")] {
        let answer = lab.plane.request("DELETE", path, Some(&json!({"propagationPolicy": policy})));
        assert!(answer.as_ref().is_ok_and(|answer| answer.is_success()), "{answer:?}");
    }
    lab.plane.delete(failing);
    // The garbage collector learns of a new kind within half a minute.
    paths[2..].iter().for_each(|path| lab.plane.wait_gone(path, 3 * SOON));
    lab.wait_gone(failing);
    pg.kill_amid(controller, || lab.plane.delete(killed));
    let _controller = pg.start();
    lab.wait_gone(killed);

    let set = lab.get(&lab.path("apps/v1", "statefulsets", "orphan-postgresql"));
    assert_eq!(set["metadata"].get("ownerReferences"), None, "what was to be left is left");
    for name in ["must-fail", "killed", "foreground"] {
        lab.plane.wait_gone(&lab.path("apps/v1", "statefulsets", &format!("{name}-postgresql")), 3 * SOON);
    }
}

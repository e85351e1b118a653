//! A staged upgrade of a PostgreSQLCluster: seen step by step, stopped by a server that does not start, and resumed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::operators::history::History;
use crate::operators::operator::{Operator, condition};

/// The partition and the version of the servers' image.
fn step(set: &Value) -> (u64, String) {
    let partition = set["spec"]["updateStrategy"]["rollingUpdate"]["partition"].as_u64().unwrap_or_default();
    let image = set["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    (partition, image.rsplit(':').next().unwrap_or_default().to_owned())
}

fn seen(cluster: &Value) -> (String, String) {
    let text = |field: &str| cluster["status"][field].as_str().unwrap_or_default().to_owned();
    (text("phase"), text("currentVersion"))
}

fn steps(history: &History) -> Vec<String> {
    let told = history.told("db-postgresql", step);
    told.into_iter().map(|(partition, version)| format!("{version} above {partition}")).collect()
}

/// What a pod asks for that no server of this version gets: it does not become ready.
fn unstartable() -> Value {
    let none = json!({"example.com/stays-unready": "1"});
    json!({"requests": none, "limits": none})
}

#[test]
fn upgrade_goes_from_the_top_stops_where_a_server_does_not_start_and_resumes() {
    let pg = Operator::new("postgresqlcluster", "upgrade").with_own_finalizer();
    let lab = &pg.lab;
    let set = lab.path("apps/v1", "statefulsets", "db-postgresql");
    let mut controller = pg.start();
    let db = pg.add("db", json!({"replicas": 3, "version": "14", "storage": {"size": "1Gi"}}));
    pg.wait_phase(&db, "Running");
    pg.wait_settled(Duration::from_secs(1));
    let sets = History::of(lab.plane, &lab.path("apps/v1", "statefulsets", ""));
    let configs = History::of(lab.plane, &lab.path("v1", "configmaps", ""));
    let clusters = History::of(lab.plane, &pg.parent(""));
    let before = lab.writes().len();

    pg.set_spec(&db, json!({"version": "15", "resources": unstartable()}));
    lab.wait(&db, "the upgrade is held by its first server", |db| {
        condition(db, "Ready")["message"] == "Upgrading to version 15: 1/3 replicas updated, 2 ready"
    });
    assert_eq!(seen(&lab.get(&db)), ("Upgrading".into(), "14".into()));
    let writes = lab.writes().split_off(before);
    let first = writes.iter().find(|write| !write.contains("/status"));
    assert_eq!(first.map(String::as_str), Some("patch configmaps db-postgresql-config"));

    // B67: killed while it waits, it finds its place again and does not begin anew.
    pg.wait_settled(Duration::from_secs(1));
    controller.kill();
    controller = pg.restart_in_silence(&["db"]);
    assert_eq!(step(&lab.get(&set)), (2, "15".into()));

    // The servers can start: killed between two steps, and resumed.
    pg.kill_amid(controller, || pg.set_spec(&db, json!({"resources": null})));
    controller = pg.start();
    lab.wait_until("the second server may follow", || steps(&sets).contains(&"15 above 1".to_owned()));
    controller.kill();
    let _controller = pg.start();
    let done = pg.wait_phase(&db, "Running");
    assert_eq!(seen(&done), ("Running".into(), "15".into()));

    pg.wait_settled(Duration::from_secs(1));
    assert_eq!(steps(&sets), ["14 above 0", "15 above 2", "15 above 1", "15 above 0"]);
    let version = |config: &Value| config["data"]["POSTGRES_VERSION"].clone();
    assert_eq!(configs.told("db-postgresql-config", version), ["14", "15"]);
    let expected = [("Running", "14"), ("Upgrading", "14"), ("Running", "15")];
    assert_eq!(clusters.told("db", seen), expected.map(|(phase, version)| (phase.into(), version.into())));
}

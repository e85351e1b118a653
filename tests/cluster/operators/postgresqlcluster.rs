//! PostgreSQLCluster, from its creation to its deletion.

use std::time::Duration;

use serde_json::{Value, json};

use crate::operators::history::History;
use crate::operators::operator::{Operator, condition, uid};
use crate::support::lab::synced;

const QUIET: Duration = Duration::from_secs(1);

/// With quantities that the API server keeps in another form.
fn spec(replicas: u64) -> Value {
    json!({
        "replicas": replicas, "version": "14", "storage": {"size": "1Gi"},
        "backup": {"schedule": "*/5 1-5 * * 1-5", "retentionDays": 7},
        "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"cpu": "2.0", "memory": "2048Mi"}},
    })
}

#[track_caller]
fn wait_running(pg: &Operator, path: &str, replicas: u64) -> Value {
    let cluster = pg.wait_phase(path, "Running");
    assert_eq!(cluster["status"]["readyReplicas"], replicas);
    let ready = condition(&cluster, "Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("True"), &json!("AllReplicasReady")));
    assert_eq!(ready["message"], format!("All {replicas} replicas are ready"));
    cluster
}

fn pods(pg: &Operator, name: &str) -> Vec<String> {
    let selector = format!("app.kubernetes.io/instance={name},app.kubernetes.io/component=server");
    let mut uids: Vec<String> =
        pg.list("v1", "pods", &selector).iter().map(|pod| uid(pod).to_owned()).collect();
    uids.sort();
    uids
}

fn claim(pg: &Operator, cluster: &str, ordinal: u64) -> String {
    pg.lab.path("v1", "persistentvolumeclaims", &format!("data-{cluster}-postgresql-{ordinal}"))
}

#[test]
fn postgresqlcluster_lives_from_its_creation_to_its_deletion() {
    let pg = Operator::new("postgresqlcluster", "postgresql");
    let lab = &pg.lab;
    let set = lab.path("apps/v1", "statefulsets", "db-postgresql");
    let service = lab.path("v1", "services", "db-postgresql-headless");
    let config = lab.path("v1", "configmaps", "db-postgresql-config");
    let cron_job = lab.path("batch/v1", "cronjobs", "db-postgresql-backup");
    let mut controller = pg.start();

    let db = pg.add("db", spec(2));
    let live = wait_running(&pg, &db, 2);
    assert_eq!(live["metadata"]["finalizers"], json!(["db.example.com/cleanup"]));
    assert_eq!((&live["status"]["currentVersion"], synced(&live)), (&json!("14"), None));
    assert_eq!(condition(&live, "BackupComplete")["reason"], "NoBackupYet");
    assert_eq!(lab.get(&cron_job)["spec"]["schedule"], "*/5 1-5 * * 1-5");
    let since = condition(&live, "Ready")["lastTransitionTime"].clone();

    assert_eq!(pg.columns("pgcluster"), ["NAME", "PHASE", "REPLICAS", "READY", "AGE"]);

    pg.set_spec(&db, json!({"replicas": 3}));
    let live = wait_running(&pg, &db, 3);
    assert!(condition(&live, "Ready")["lastTransitionTime"].as_str() >= since.as_str());

    lab.merge(&config, json!({"data": {"POSTGRES_VERSION": "9"}}));
    lab.wait(&config, "it has its version again", |it| it["data"]["POSTGRES_VERSION"] == "14");
    lab.merge(&cron_job, json!({"spec": {"suspend": true, "schedule": "0 0 * * *"}}));
    lab.wait(&cron_job, "it has its schedule again", |it| it["spec"]["schedule"] == "*/5 1-5 * * 1-5");
    for path in [&service, &config, &cron_job] {
        let before = lab.get(path);
        lab.plane.delete(path);
        lab.wait(path, "it is there again", |now| uid(now) != uid(&before));
    }

    // An expression that cannot be read stops nothing else, and the backups go on as they were.
    pg.set_spec(&db, json!({"backup": {"schedule": "61 * * * *"}}));
    let told = pg.wait_condition(&db, "BackupComplete", "InvalidSchedule");
    assert_eq!(told["message"], "spec.backup.schedule: minute: found `61`, expected 0 to 59");
    assert_eq!(lab.get(&cron_job)["spec"]["schedule"], "*/5 1-5 * * 1-5");
    wait_running(&pg, &db, 3);

    // B76: the template of the claims stays, the claims grow, and no pod is touched.
    let before = (pods(&pg, "db"), uid(&lab.get(&set)).to_owned());
    pg.set_spec(&db, json!({"storage": {"size": "2Gi"}}));
    for ordinal in 0..3 {
        let grown = |claim: &Value| claim["status"]["capacity"]["storage"] == "2Gi";
        lab.wait(&claim(&pg, "db", ordinal), "it has grown", grown);
    }
    let told = pg.wait_condition(&db, "StorageExpanded", "ExpansionAsked");
    let asked = "Asked to grow from 1Gi to 2Gi: data-db-postgresql-0, data-db-postgresql-1, data-db-postgresql-2; \
                 their own status tells how far they are";
    assert_eq!((&told["status"], &told["message"]), (&json!("Unknown"), &json!(asked)));
    assert_eq!((pods(&pg, "db"), uid(&lab.get(&set)).to_owned()), before);

    pg.kill_amid(controller, || {
        pg.set_spec(&db, json!({"replicas": 2, "backup": null, "resources": {"requests": {"cpu": "500m"}}}));
    });
    controller = pg.start();
    wait_running(&pg, &db, 2);
    // B124
    lab.wait_gone(&cron_job);
    let requests = "/spec/template/spec/containers/0/resources/requests/cpu";
    lab.wait(&set, "it has its new resources", |set| set.pointer(requests) == Some(&json!("500m")));

    // B04, B10
    pg.wait_settled(QUIET);
    assert!(controller.terminate().success());
    let _controller = pg.restart_in_silence(&["db"]);
    lab.merge(&db, json!({"metadata": {"labels": {"team": "a"}}}));
    pg.wait_settled(QUIET);
    assert_eq!(pods(&pg, "db").len(), 2);

    let history = History::of(lab.plane, &pg.parent(""));
    lab.plane.delete(&db);
    lab.wait_gone(&db);
    assert!(lab.writes().contains(&"patch jobs db-postgresql-cleanup".to_owned()), "{:?}", lab.writes());
    let phases = history.told("db", |it| it["status"]["phase"].as_str().unwrap_or_default().to_owned());
    assert_eq!(phases, ["Running", "Terminating"]);
    let own = [
        ("apps/v1", "statefulsets"),
        ("batch/v1", "jobs"),
        ("v1", "services"),
        ("v1", "secrets"),
        ("v1", "pods"),
    ];
    pg.wait_none_left(&own);
    lab.wait_gone(&config);
    // Claims of a StatefulSet outlive it on purpose: they hold the data.
    let claims = lab.get(&lab.path("v1", "persistentvolumeclaims", ""));
    assert_eq!(claims["items"].as_array().map(Vec::len), Some(3));
}

// B76
#[test]
fn storage_whose_class_does_not_grow_is_one_condition_and_no_storm() {
    let pg = Operator::new("postgresqlcluster", "fixed").with_own_finalizer();
    let lab = &pg.lab;
    let controller = pg.start();
    let mut fixed = spec(2);
    fixed["storage"]["storageClassName"] = json!("fixed-size");
    let db = pg.add("db", fixed);
    wait_running(&pg, &db, 2);
    pg.set_spec(&db, json!({"storage": {"size": "2Gi"}}));
    let told = lab.wait_refused(&db, "ImmutableField");
    let wanted = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                  support resize";
    assert_eq!(told.matches(wanted).count(), 2, "{told}");
    assert!(told.starts_with("hooks/postgresqlcluster/sync.yaml:"), "{told}");
    assert!(told.contains("PersistentVolumeClaim"), "{told}");
    wait_running(&pg, &db, 2);

    pg.wait_settled(QUIET);
    let visits = pg.visits(&controller, "db");
    lab.merge(&db, json!({"metadata": {"labels": {"team": "a"}}}));
    lab.wait_until("it is visited again", || pg.visits(&controller, "db") > visits);
    pg.wait_settled(QUIET);
    let tried = lab.writes().iter().filter(|write| write.contains("persistentvolumeclaims")).count();
    assert_eq!(tried, 2, "each claim is tried once: {:?}", lab.writes());
}

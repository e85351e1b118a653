//! BackupSchedule, from its creation to its deletion.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::operators::operator::{Operator, condition, items};

const QUIET: Duration = Duration::from_secs(1);

/// Once a day, and the last time so many minutes ago.
pub struct Daily {
    pub expression: String,
    pub slot: Timestamp,
}

impl Daily {
    pub fn minutes_ago(minutes: i64) -> Daily {
        let slot = Timestamp::now().as_second() / 60 * 60 - 60 * minutes;
        let slot = Timestamp::from_second(slot).expect("a time of this year");
        let time = slot.to_zoned(TimeZone::UTC);
        Daily { expression: format!("{} {} * * *", time.minute(), time.hour()), slot }
    }

    pub fn job(&self, parent: &str) -> String {
        format!("backup-{parent}-{}", self.slot.as_second())
    }
}

pub fn spec(schedule: &str) -> Value {
    json!({
        "databaseHost": "orders-db", "databaseName": "orders", "databaseUser": "backup",
        "s3Bucket": "example-backups", "s3Prefix": "/mysql//orders/", "schedule": schedule,
    })
}

/// Tells the operator that its last backup was so many minutes ago.
pub fn set_last_backup(bks: &Operator, path: &str, minutes: i64) {
    let last = Daily::minutes_ago(minutes).slot.to_string();
    bks.lab.merge(&format!("{path}/status"), json!({"status": {"lastBackupTime": last}}));
}

#[track_caller]
pub fn wait_outcome(bks: &Operator, path: &str, daily: &Daily, outcome: &str) -> Value {
    bks.lab.wait(path, &format!("its backup of {} is {outcome}", daily.slot), |parent| {
        let status = &parent["status"];
        status["lastBackupTime"] == daily.slot.to_string() && status["lastBackupStatus"] == outcome
    })
}

fn jobs(bks: &Operator, parent: &str) -> Vec<String> {
    let jobs = bks.list("batch/v1", "jobs", &format!("app.kubernetes.io/instance={parent}"));
    jobs.iter().map(|job| job["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn image(job: &Value) -> &Value {
    &job["spec"]["template"]["spec"]["containers"][0]["image"]
}

#[test]
fn backupschedule_lives_from_its_creation_to_its_deletion() {
    let bks = Operator::new("backupschedule", "backup");
    let lab = &bks.lab;
    let job = |name: &str| lab.path("batch/v1", "jobs", name);
    let mut controller = bks.start();
    let every_minute = bks.add("tick", spec("* * * * *"));
    let bad = bks.add("bad", spec("61 * * * *"));

    // Nothing is due at the start, and all of it at once after three days of downtime: one Job, for the newest slot.
    let first = Daily::minutes_ago(180);
    let shop = bks.add("shop", spec(&first.expression));
    let next = first.slot + 24.hours();
    let live = bks.wait_condition(&shop, "Ready", "Scheduled");
    assert_eq!(live["message"], format!("The next backup is due at {next}"));
    assert_eq!(jobs(&bks, "shop"), [""; 0]);
    set_last_backup(&bks, &shop, 80 * 60);
    let live = wait_outcome(&bks, &shop, &first, "Succeeded");
    assert_eq!(jobs(&bks, "shop"), [first.job("shop")]);
    let status = &live["status"];
    assert_eq!(
        (&status["lastBackupJob"], &status["nextBackupTime"]),
        (&json!(first.job("shop")), &json!(next.to_string()))
    );
    assert_eq!(condition(&live, "BackupComplete")["reason"], "BackupSucceeded");
    let made = lab.get(&job(&first.job("shop")));
    assert_eq!(made["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(
        (&made["spec"]["ttlSecondsAfterFinished"], image(&made)),
        (&json!(3600), &json!("mysql-client:8.0"))
    );
    let target = format!("s3://example-backups/mysql/orders/{}.sql.gz", first.job("shop"));
    let command = &made["spec"]["template"]["spec"]["containers"][0]["command"][2];
    assert!(command.as_str().unwrap_or_default().ends_with(&target), "{command}");

    assert_eq!(bks.columns("bks"), ["NAME", "SCHEDULE", "LAST", "STATUS", "NEXT", "AGE"]);

    // Each time the schedule is changed to one that was due since.
    let second = Daily::minutes_ago(120);
    bks.set_spec(&shop, json!({"schedule": second.expression, "databaseHost": "other"}));
    wait_outcome(&bks, &shop, &second, "Succeeded");
    let third = Daily::minutes_ago(90);
    bks.set_spec(&shop, json!({"schedule": third.expression}));
    wait_outcome(&bks, &shop, &third, "Succeeded");

    // B69: what was made stays as it was made.
    lab.merge(&job(&second.job("shop")), json!({"metadata": {"labels": {"seen-by": "somebody"}}}));
    bks.edit_hook(&controller, "sync.yaml", "mysql-client:8.0", "mysql-client:8.4");
    let fourth = Daily::minutes_ago(60);
    bks.set_spec(&shop, json!({"schedule": fourth.expression}));
    wait_outcome(&bks, &shop, &fourth, "Succeeded");
    for (daily, expected) in [
        (&first, "mysql-client:8.0"),
        (&second, "mysql-client:8.0"),
        (&third, "mysql-client:8.0"),
        (&fourth, "mysql-client:8.4"),
    ] {
        assert_eq!(image(&lab.get(&job(&daily.job("shop")))), expected);
    }
    assert_eq!(lab.get(&job(&second.job("shop")))["metadata"]["labels"]["seen-by"], "somebody");

    // B65: what is gone stays gone. And the oldest goes where fewer are kept.
    lab.plane.delete(&job(&third.job("shop")));
    lab.wait_gone(&job(&third.job("shop")));
    bks.set_spec(&shop, json!({"retention": 2}));
    lab.wait_gone(&job(&first.job("shop")));
    assert_eq!(jobs(&bks, "shop"), [second.job("shop"), fourth.job("shop")]);

    // A Job that fails, and one that still runs while the status is lost (B123).
    let failing = Daily::minutes_ago(40);
    bks.set_spec(&shop, json!({"schedule": failing.expression, "s3Prefix": "must-fail"}));
    let live = wait_outcome(&bks, &shop, &failing, "Failed");
    assert_eq!(condition(&live, "BackupComplete")["reason"], "BackupFailed");
    let running = Daily::minutes_ago(20);
    bks.set_spec(&shop, json!({"schedule": running.expression, "s3Prefix": "never-ends"}));
    wait_outcome(&bks, &shop, &running, "JobCreated");
    bks.wait_condition(&shop, "BackupComplete", "BackupRunning");
    lab.merge(&format!("{shop}/status"), json!({"status": null}));
    wait_outcome(&bks, &shop, &running, "JobCreated");

    // An expression that cannot be read: said once, tried no more, and nobody else is held up by it.
    let told = bks.wait_condition(&bad, "Ready", "InvalidSchedule");
    assert_eq!(
        (&told["status"], &told["message"]),
        (&json!("False"), &json!("minute: found `61`, expected 0 to 59"))
    );
    assert_eq!((jobs(&bks, "bad"), lab.get(&bad)["status"].get("nextBackupTime")), (vec![], None));
    let visits = bks.visits(&controller, "bad");
    assert!(visits <= 4, "it is not tried again and again: {visits} visits");
    bks.set_spec(&bad, json!({"schedule": "0 0 7 * * *"}));
    lab.wait(&bad, "six fields are explained", |bad| {
        let told = condition(bad, "Ready")["message"].as_str().unwrap_or_default().to_owned();
        told.starts_with("schedule: found 6 fields") && told.ends_with("did you mean `0 7 * * *`?")
    });
    bks.set_spec(&bad, json!({"schedule": "0 7 * * *"}));
    bks.wait_condition(&bad, "Ready", "Scheduled");

    assert!(controller.terminate().success());
    controller = bks.start();
    lab.wait_until("it is visited", || bks.visits(&controller, "shop") > 0);
    bks.wait_settled(QUIET);
    let once = lab.created().iter().filter(|what| what.starts_with("jobs backup-shop-")).count();
    assert_eq!(once, 6, "one Job for each slot, whatever came after: {:?}", lab.created());

    // Time alone makes the other one's Job, at the full minute and once.
    let path = lab.path("batch/v1", "jobs", "");
    let ticked = |list: &Value| {
        items(list)
            .iter()
            .any(|job| job["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("backup-tick-")))
    };
    let list = lab.plane.wait_for(&path, Duration::from_secs(75), "a minute has passed", ticked);
    for job in items(&list) {
        let Some(slot) = job["metadata"]["name"].as_str().unwrap().strip_prefix("backup-tick-") else {
            continue;
        };
        let slot: i64 = slot.parse().expect("the slot in seconds");
        let made: Timestamp = job["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
        assert_eq!(slot % 60, 0);
        assert!((0..20).contains(&(made.as_second() - slot)), "made at {made} for {slot}");
    }
    let ticks: Vec<String> = lab.created().into_iter().filter(|what| what.contains("-tick-")).collect();
    assert_eq!(ticks.len(), ticks.iter().collect::<BTreeSet<_>>().len(), "{ticks:?}");

    for path in [&shop, &bad, &every_minute] {
        lab.plane.delete(path);
        lab.wait_gone(path);
    }
    bks.wait_none_left(&[("batch/v1", "jobs"), ("v1", "pods")]);
}

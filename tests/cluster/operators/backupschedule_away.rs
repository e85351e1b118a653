//! The API server is away for a minute, and comes back with what it had.

use std::time::{Duration, Instant};

use controlplane::wait_until;
use jiff::Timestamp;
use serde_json::json;

use crate::operators::backupschedule::{Daily, set_last_backup, spec};
use crate::operators::operator::Operator;
use crate::support::controller::Controller;

const AWAY: Duration = Duration::from_secs(60);
const SCHEDULES: usize = 6;
/// A process that stands by tries for the lease every two seconds, and its watches begin again within five.
const RESUMED: Duration = Duration::from_secs(20);
/// What a process says in a minute without an API server.
const LINES: usize = 60;
const LEADS: &str = "Successfully acquired lease";

// B64, B67, B112, B113
#[test]
fn slot_that_is_due_while_the_api_server_is_away_has_one_job() {
    let mut bks = Operator::apart("backupschedule", "away");
    bks.lab.user = bks.lab.plane.user(&bks.lab.namespace, "candidate", "cluster-admin");
    let lab = &bks.lab;
    lab.write_definitions(&[&bks.definition]);
    let names: Vec<String> = (0..SCHEDULES).map(|number| format!("shop-{number}")).collect();
    let paths: Vec<String> = names.iter().map(|name| bks.add(name, spec("0 0 1 1 *"))).collect();
    paths.iter().for_each(|path| set_last_backup(&bks, path, 60));
    let namespace = format!("--leader-elect-namespace={}", lab.namespace);
    let start = || lab.start(&["--leader-elect", &namespace]);
    let leader = start();
    lab.wait_until("it leads", || leader.log().contains(LEADS));
    let standby = start();
    lab.wait_until("it stands by", || standby.log().contains("standing by"));
    // One Job of each has been made, and the next is due within the minute.
    let before = Daily::minutes_ago(5);
    paths.iter().for_each(|path| bks.set_spec(path, json!({"schedule": before.expression})));
    let job = |name: &String, slot: &Daily| lab.path("batch/v1", "jobs", &slot.job(name));
    names.iter().for_each(|name| drop(lab.wait(&job(name, &before), "its first Job", |_| true)));
    // The slot must not be due while it is still being told.
    wait_until(Duration::from_secs(90), "the minute is young", || match Timestamp::now().as_second() % 60 {
        ..40 => Ok(()),
        second => Err(second),
    });
    let slot = Daily::minutes_ago(-1);
    for path in &paths {
        bks.set_spec(path, json!({"schedule": slot.expression}));
        let next = slot.slot.to_string();
        lab.wait(path, "the slot is seen", |parent| parent["status"]["nextBackupTime"] == next);
    }
    let said = standby.log().lines().count();

    let gone = Instant::now();
    lab.plane.kill_api_server();
    assert_eq!(leader.wait().code(), Some(1), "a leader that cannot renew ends");
    println!("the leader ended after {:.1} s", gone.elapsed().as_secs_f64());
    let restarted = start();
    std::thread::sleep(AWAY.saturating_sub(gone.elapsed()));
    let said = standby.log().lines().count() - said;
    assert!(said < LINES, "{said} lines while it was away:\n{}", standby.log());

    lab.plane.start_api_server();
    let back = Instant::now();
    names.iter().for_each(|name| drop(lab.wait(&job(name, &slot), "its second Job", |_| true)));
    let took = back.elapsed();
    println!("{said} lines meanwhile; {SCHEDULES} Jobs {:.1} s after its return", took.as_secs_f64());
    assert!(took < RESUMED, "{took:?}");
    let leads = |controller: &Controller| controller.log().contains(LEADS);
    assert!(leads(&standby) != leads(&restarted), "one alone leads");

    // It goes on as before: what changes is seen, and nothing was made twice.
    bks.set_spec(&paths[0], json!({"suspend": true}));
    bks.wait_condition(&paths[0], "Ready", "Suspended");
    let made = |slot: &Daily| names.iter().map(|name| format!("jobs {}", slot.job(name))).collect::<Vec<_>>();
    let mut expected = [made(&before), made(&slot)].concat();
    let mut created = lab.created();
    created.retain(|object| object.starts_with("jobs "));
    expected.sort();
    created.sort();
    assert_eq!(created, expected);
    drop((standby, restarted));
    lab.plane.stop();
}

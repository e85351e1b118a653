//! BackupSchedules of three processes under load, whose leader ends in every way: each slot has one Job.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::leadership::Trio;
use crate::operators::backupschedule::{Daily, set_last_backup, spec, wait_outcome};
use crate::operators::history::History;
use crate::operators::operator::Operator;

const SCHEDULES: usize = 12;
const ENDS: [(&str, i32); 4] = [
    ("SIGKILL", libc::SIGKILL),
    ("SIGSTOP", libc::SIGSTOP),
    ("SIGTERM", libc::SIGTERM),
    ("SIGKILL", libc::SIGKILL),
];

// B67, B112, B113
#[test]
fn slot_has_one_job_whichever_process_leads() {
    let bks = Operator::new("backupschedule", "handed");
    let lab = &bks.lab;
    lab.write_definitions(&[&bks.definition]);
    let names: Vec<String> = (0..SCHEDULES).map(|number| format!("shop-{number}")).collect();
    let paths: Vec<String> = names.iter().map(|name| bks.add(name, spec("0 0 1 1 *"))).collect();
    paths.iter().for_each(|path| set_last_backup(&bks, path, 60));
    let jobs = History::of(lab.plane, &lab.path("batch/v1", "jobs", ""));
    let mut trio = Trio::start(lab);
    let mut slots = Vec::new();
    for (round, (how, signal)) in ENDS.into_iter().enumerate() {
        let slot = Daily::minutes_ago(50 - round as i64);
        let leader = trio.take_leader();
        lab.wait_until("it is at work", || bks.visits(&leader.controller, "shop-0") > 0);
        // The leader ends amid the Jobs of this slot, each time a little later.
        for (number, path) in paths.iter().enumerate() {
            bks.set_spec(path, json!({"schedule": slot.expression}));
            if number == 2 + 2 * round {
                leader.controller.signal(signal);
            }
        }
        let began = Instant::now();
        for path in &paths {
            wait_outcome(&bks, path, &slot, "Succeeded");
        }
        trio.wait_taken_over(began, &format!("{SCHEDULES} schedules, {how}"));
        leader.controller.signal(libc::SIGCONT);
        leader.controller.wait();
        trio.join(&format!("next-{round}"));
        slots.extend(names.iter().map(|name| slot.job(name)));
    }
    // Whoever was stopped has had its time to do harm.
    std::thread::sleep(Duration::from_secs(1));
    slots.sort();
    let made: Vec<String> = jobs.objects().into_iter().map(|(name, _)| name).collect();
    assert_eq!(made, slots);
}

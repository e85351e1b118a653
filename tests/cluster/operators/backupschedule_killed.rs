//! A BackupSchedule whose controller is killed over and over: each slot has one Job.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::operators::backupschedule::{Daily, set_last_backup, spec, wait_outcome};
use crate::operators::history::History;
use crate::operators::operator::Operator;
use crate::support::lab::SOON;

const ROUNDS: i64 = 8;

/// The same numbers in each run: Knuth's MMIX.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

// B67, B118
#[test]
fn slot_has_one_job_wherever_the_controller_is_killed() {
    let bks = Operator::new("backupschedule", "killed");
    let lab = &bks.lab;
    let mut chance = Chance(20261130);
    let shop = bks.add("shop", spec("0 0 1 1 *"));
    set_last_backup(&bks, &shop, 60);
    let jobs = History::of(lab.plane, &lab.path("batch/v1", "jobs", ""));
    let (mut slots, mut between) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        let controller = bks.start();
        lab.wait_until("it is at work", || bks.visits(&controller, "shop") > 0);
        bks.wait_settled(Duration::from_millis(300));
        let slot = Daily::minutes_ago(50 - round);
        let before = lab.writes().len();
        bks.set_spec(&shop, json!({"schedule": slot.expression}));
        if round % 2 == 0 {
            // Right after the Job is there, or a little later.
            let deadline = Instant::now() + SOON;
            while lab.writes().len() == before {
                assert!(Instant::now() < deadline, "no Job was made");
            }
            std::thread::sleep(Duration::from_micros(chance.below(2000)));
        } else {
            std::thread::sleep(Duration::from_millis(chance.below(60)));
        }
        controller.kill();
        let made = lab.plane.get(&lab.path("batch/v1", "jobs", &slot.job("shop"))).is_some();
        between += usize::from(made && lab.get(&shop)["status"]["lastBackupTime"] != slot.slot.to_string());
        let controller = bks.start();
        wait_outcome(&bks, &shop, &slot, "Succeeded");
        bks.wait_settled(Duration::from_millis(300));
        controller.kill();
        slots.push(slot.job("shop"));
    }
    let made: Vec<String> = jobs.objects().into_iter().map(|(name, _)| name).collect();
    assert_eq!(made, slots, "killed {between} times between the Job and the status");
}

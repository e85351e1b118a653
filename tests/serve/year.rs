//! BackupSchedule through a simulated year: the shipped hook is asked as a controller would ask it, and time is an input.
//!
//! The world around it is small: Jobs that end after ten minutes and go an hour later, a status that is written or lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp, ToSpan, civil};
use serde_json::{Value, json};

use crate::server::Server;

const JOB_LASTS: i64 = 600;
const JOB_STAYS: i64 = 3600;

/// What goes wrong now and then, by numbers that are the same in each run.
struct Mishaps(Option<u64>);

impl Mishaps {
    fn none() -> Mishaps {
        Mishaps(None)
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.0.is_some() && self.below(odds) == 0
    }

    fn below(&mut self, bound: u64) -> u64 {
        let Some(state) = &mut self.0 else { return 0 };
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) % bound
    }
}

struct Job {
    object: Value,
    made: Timestamp,
}

struct World<'a> {
    server: &'a Server,
    schedule: &'a str,
    born: Timestamp,
    now: Timestamp,
    status: Value,
    jobs: BTreeMap<String, Job>,
    /// The slots that got a Job, each with the time at which it was made.
    made: BTreeMap<Timestamp, Timestamp>,
    mishaps: Mishaps,
}

impl World<'_> {
    fn new<'a>(server: &'a Server, schedule: &'a str, born: Timestamp, mishaps: Mishaps) -> World<'a> {
        let (status, jobs, made) = (Value::Null, BTreeMap::new(), BTreeMap::new());
        World { server, schedule, born, now: born, status, jobs, made, mishaps }
    }

    /// Lets time pass until then. During an outage nobody asks the hook.
    fn live_until(&mut self, end: Timestamp) {
        while self.now < end {
            let wait = self.visit();
            let wait = self.until_woken(wait);
            self.now += wait.min(SignedDuration::from_secs(seconds(self.now, end)));
        }
    }

    /// One visit: the hook is asked, again after it has made something, and the status is written. Answers when the hook
    /// wants to be asked again.
    fn visit(&mut self) -> SignedDuration {
        self.jobs.retain(|_, job| seconds(job.made, self.now) < JOB_LASTS + JOB_STAYS);
        let emptied = !self.jobs.is_empty() && self.mishaps.one_in(10);
        if emptied {
            self.status = Value::Null;
        }
        let (mut answer, mut refused) = (self.ask(), false);
        for _ in 0..2 {
            let (made, refusal) = self.act(&answer);
            refused |= refusal;
            if !made {
                break;
            }
            answer = self.ask();
        }
        if emptied || !self.mishaps.one_in(20) {
            self.write_status(answer["status"].clone());
        }
        let wait =
            answer["resyncAfterSeconds"].as_i64().expect("there is always a next slot, in whole seconds");
        SignedDuration::from_secs(if refused { wait.min(5) } else { wait })
    }

    fn ask(&self) -> Value {
        let ended = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        let observed = |job: &Job| {
            let mut object = job.object.clone();
            let is_over = seconds(job.made, self.now) >= JOB_LASTS;
            object["status"] = if is_over { ended.clone() } else { json!({"active": 1}) };
            object
        };
        let mut parent = json!({
            "apiVersion": "ops.io/v1alpha1", "kind": "BackupSchedule",
            "metadata": {"name": "y", "namespace": "n", "generation": 1, "creationTimestamp": self.born},
            "spec": {
                "databaseHost": "h", "databaseName": "d", "databaseUser": "u", "s3Bucket": "b",
                "schedule": self.schedule, "timeZone": "Europe/Berlin",
            },
        });
        if !self.status.is_null() {
            parent["status"] = self.status.clone();
        }
        let children: Vec<Value> = self.jobs.values().map(observed).collect();
        let request = json!({"parent": parent, "children": children, "now": self.now});
        let reply = self.server.call("/backupschedule/sync", &request);
        assert_eq!(reply.status, 200, "{}", reply.body);
        serde_json::from_str(&reply.body).expect("an answer is JSON")
    }

    /// Brings the Jobs to what is wanted. Tells whether one was made, and whether one was refused.
    fn act(&mut self, answer: &Value) -> (bool, bool) {
        let wanted = answer["children"].as_array().expect("an answer has children");
        let name = |job: &Value| job["metadata"]["name"].as_str().expect("a Job has a name").to_owned();
        self.jobs.retain(|known, _| wanted.iter().any(|job| name(job) == *known));
        let new: Vec<&Value> = wanted.iter().filter(|job| !self.jobs.contains_key(&name(job))).collect();
        let refused = !new.is_empty() && self.mishaps.one_in(10);
        for job in new.iter().filter(|_| !refused) {
            let slot = name(job).rsplit('-').next().and_then(|slot| slot.parse().ok()).expect("a slot");
            let slot = Timestamp::from_second(slot).expect("a time");
            let before = self.made.insert(slot, self.now);
            assert_eq!(before, None, "{slot} got its second Job at {}", self.now);
            self.jobs.insert(name(job), Job { object: (*job).clone(), made: self.now });
        }
        (!refused && !new.is_empty(), refused)
    }

    fn write_status(&mut self, status: Value) {
        let last = |status: &Value| status["lastBackupTime"].as_str().unwrap_or_default().to_owned();
        assert!(last(&status) >= last(&self.status), "{} went back to {}", self.status, status);
        self.status = status;
    }

    /// The hook's wish is kept to the second, or the parent is woken earlier: by the end of a Job, by anybody.
    fn until_woken(&mut self, wait: SignedDuration) -> SignedDuration {
        let ends =
            self.jobs.values().map(|job| JOB_LASTS - seconds(job.made, self.now)).filter(|left| *left > 0);
        let wait = ends.map(SignedDuration::from_secs).chain([wait]).min().expect("there is one");
        if self.mishaps.one_in(40) {
            return SignedDuration::from_hours(-1);
        }
        if self.mishaps.one_in(4) {
            return wait.min(SignedDuration::from_secs(1 + self.mishaps.below(4000) as i64));
        }
        wait
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    to.as_second() - from.as_second()
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// The shipped hook, served as it is.
fn serve() -> Server {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let hook = folder.path().join("hooks/backupschedule");
    fs::create_dir_all(&hook).expect("it can hold a folder");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/backupschedule/sync.yaml");
    fs::copy(shipped, hook.join("sync.yaml")).expect("the hook is shipped");
    Server::start_in(folder, &[])
}

/// Half past two in Berlin, each day of 2026, in UTC. In the night of 29 March that time is skipped, and the slot is right after
/// the gap; in the night of 25 October it comes twice, and the slot is the first.
fn nights_of_2026() -> Vec<Timestamp> {
    let days = civil::date(2026, 1, 1).series(1.day()).take(365);
    days.map(|day| match day {
        day if day == civil::date(2026, 3, 29) => at("2026-03-29T01:00:00Z"),
        day if day > civil::date(2026, 3, 29) && day <= civil::date(2026, 10, 25) => {
            at(&format!("{day}T00:30:00Z"))
        }
        day => at(&format!("{day}T01:30:00Z")),
    })
    .collect()
}

/// A year of nights with an outage of three days in July, in which three slots come of which only the newest is made up for.
fn walk(mishaps: Mishaps) -> BTreeMap<Timestamp, Timestamp> {
    let server = serve();
    let mut world = World::new(&server, "30 2 * * *", at("2026-01-01T00:00:00Z"), mishaps);
    world.live_until(at("2026-07-01T03:00:00Z"));
    world.now = at("2026-07-04T03:00:00Z");
    world.live_until(at("2027-01-01T00:00:00Z"));
    let mut expected = nights_of_2026();
    expected.retain(|slot| ![at("2026-07-02T00:30:00Z"), at("2026-07-03T00:30:00Z")].contains(slot));
    assert_eq!(world.made.keys().copied().collect::<Vec<_>>(), expected);
    world.made
}

#[test]
fn year_of_nights_has_each_slot_once_and_to_the_second() {
    let late: Vec<_> = walk(Mishaps::none()).into_iter().filter(|(slot, made)| slot != made).collect();
    assert_eq!(late, [(at("2026-07-04T00:30:00Z"), at("2026-07-04T03:00:00Z"))], "after the outage");
}

/// Status writes are lost, the status is emptied, Jobs are refused, the hook is asked early, the clock goes back an hour.
#[test]
fn year_of_mishaps_has_each_slot_once() {
    walk(Mishaps(Some(2026)));
}

#[test]
fn every_hour_of_the_nights_when_clocks_change_has_its_slot() {
    let server = serve();
    for (from, to) in
        [("2026-03-28T12:30:00Z", "2026-03-29T12:30:00Z"), ("2026-10-24T12:30:00Z", "2026-10-25T12:30:00Z")]
    {
        let mut world = World::new(&server, "0 * * * *", at(from), Mishaps::none());
        world.live_until(at(to));
        let first = at(from) + 30.minutes();
        let hours: Vec<Timestamp> = (0..24).map(|hour| first + hour.hours()).collect();
        assert_eq!(world.made.keys().copied().collect::<Vec<_>>(), hours);
    }
}

//! Three processes, of which one works: who takes over, when, and what the one before still writes.

use std::fs;
use std::time::{Duration, Instant};

use controlplane::{User, wait_until};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::controller::Controller;
use crate::support::hook::Hook;
use crate::support::lab::{Lab, SOON};
use crate::support::objects::config_map;

/// Shorter than usual, in the same order: others wait for the lease, the leader writes for the deadline.
const LEASE: Duration = Duration::from_secs(4);
const RENEW: Duration = Duration::from_millis(2500);
const RETRY: Duration = Duration::from_millis(500);

const SHORT: [&str; 4] = [
    "--leader-elect",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=2500ms",
    "--leader-elect-retry-period=500ms",
];

/// A process that takes part, with an account of its own.
pub struct Candidate {
    pub controller: Controller,
    pub user: User,
    pub identity: String,
}

pub struct Trio<'a> {
    lab: &'a Lab,
    pub candidates: Vec<Candidate>,
}

impl Trio<'_> {
    /// Starts three, and waits until one of them leads and the others stand by.
    #[track_caller]
    pub fn start(lab: &Lab) -> Trio<'_> {
        let candidates = ["first", "second", "third"].map(|name| candidate(lab, name)).into();
        let trio = Trio { lab, candidates };
        trio.lab.wait_until("two stand by", || {
            let logs = trio.candidates.iter().map(|candidate| candidate.controller.log());
            logs.filter(|log| log.contains("standing by")).count() == 2
        });
        trio
    }

    pub fn lease(&self) -> Value {
        self.lab.plane.get(&lease(self.lab)).unwrap_or_default()
    }

    /// Takes the one that leads out of the three.
    #[track_caller]
    pub fn take_leader(&mut self) -> Candidate {
        let holder = self.holder();
        let at = self.candidates.iter().position(|candidate| candidate.identity == holder);
        self.candidates.remove(at.unwrap_or_else(|| panic!("`{holder}` is none of ours")))
    }

    /// Has one more take part.
    #[track_caller]
    pub fn join(&mut self, name: &str) {
        self.candidates.push(candidate(self.lab, name));
    }

    fn holder(&self) -> String {
        self.lease()["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until one of those that are left says that it leads. Gives the time it took since `began`.
    #[track_caller]
    pub fn wait_taken_over(&self, began: Instant, how: &str) -> Duration {
        wait_until(SOON, "another has taken over", || {
            let holder = self.holder();
            let next = self.candidates.iter().find(|candidate| candidate.identity == holder);
            let leads = |next: &Candidate| next.controller.log().contains("Successfully acquired lease");
            if next.is_some_and(leads) { Ok(()) } else { Err(holder) }
        });
        let took = began.elapsed();
        println!("{how}: taken over after {:.2} s (lease {LEASE:?}, retry {RETRY:?})", took.as_secs_f64());
        took
    }
}

fn candidate(lab: &Lab, name: &str) -> Candidate {
    let user = lab.plane.user(&lab.namespace, name, "cluster-admin");
    let namespace = format!("--leader-elect-namespace={}", lab.namespace);
    let mut flags = SHORT.to_vec();
    flags.push(&namespace);
    let controller = lab.start_as(&user, &flags);
    let identity = wait_until(SOON, "it takes part", || {
        let log = controller.log();
        let line = log.lines().find(|line| line.contains("Attempting to acquire leader lease..."));
        let identity = line.and_then(|line| line.split("identity=").nth(1)?.split(' ').next());
        identity.map(|identity| identity.trim_matches('"').to_owned()).ok_or(log)
    });
    Candidate { controller, user, identity }
}

fn lease(lab: &Lab) -> String {
    lab.path("coordination.k8s.io/v1", "leases", "metacontroller")
}

/// A write that the API server has taken, and when.
#[derive(Debug)]
struct Write {
    what: String,
    at: Timestamp,
}

/// The writes of one account so far, those of its Lease apart.
fn writes(lab: &Lab, user: &User) -> Vec<Write> {
    let log = lab.plane.audit_log().expect("the tests' own cluster has an audit log");
    let log = fs::read_to_string(log).expect("the audit log is text");
    let events = log.lines().filter(|line| line.contains(&user.name));
    let events = events.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let write = |event: Value| {
        let about = &event["objectRef"];
        let reads = matches!(event["verb"].as_str(), Some("get" | "list" | "watch"));
        let at = text(&event["stageTimestamp"]).parse().expect("a time");
        let what = format!("{} {} {}", text(&event["verb"]), text(&about["resource"]), text(&about["name"]));
        (!reads && about["resource"] != "leases").then_some(Write { what, at })
    };
    events.filter_map(write).collect()
}

/// A lab with a definition whose Things have a ConfigMap each.
fn lab(subject: &str) -> (Lab, Hook) {
    let (lab, hook) = (Lab::new(subject), Hook::from_spec());
    lab.write_definitions(&[&lab.definition().config_maps().sync(&hook)]);
    (lab, hook)
}

#[track_caller]
fn works(lab: &Lab, name: &str) {
    lab.add_thing(name, json!({"children": [config_map(name, "a")]}));
    lab.wait(&lab.config_map(name), "the leader makes it", |_| true);
}

#[test]
fn one_of_three_works_and_the_others_watch() {
    let (lab, hook) = lab("leads");
    let mut trio = Trio::start(&lab);
    works(&lab, "a");
    let lease = trio.lease();
    let spec = &lease["spec"];
    assert_eq!((&spec["leaseDurationSeconds"], &spec["leaseTransitions"]), (&json!(4), &json!(0)));
    let leader = trio.take_leader();
    let events = lab.path("v1", "events", "");
    let message = format!("{} became leader", leader.identity);
    lab.wait(&events, "the Lease has its event", |events| {
        let events = events["items"].as_array().into_iter().flatten();
        events.into_iter().any(|event| {
            event["reason"] == "LeaderElection"
                && event["involvedObject"]["kind"] == "Lease"
                && event["message"] == message.as_str()
        })
    });
    lab.wait_quiet(&hook, Duration::from_secs(1));
    for standby in &trio.candidates {
        assert!(writes(&lab, &standby.user).is_empty(), "{:?}", writes(&lab, &standby.user));
        assert!(!standby.controller.log().contains("hook called"), "only the leader asks hooks");
    }
    assert!(!writes(&lab, &leader.user).is_empty());
}

#[test]
fn leader_that_ends_gives_the_lease_back() {
    let (lab, _hook) = lab("resigns");
    let mut trio = Trio::start(&lab);
    works(&lab, "a");
    let leader = trio.take_leader();
    let began = Instant::now();
    assert_eq!(leader.controller.terminate().code(), Some(0));
    let took = trio.wait_taken_over(began, "SIGTERM");
    assert!(took < LEASE, "nobody waits for the end of a lease that was given back: {took:?}");
    works(&lab, "b");
    let standby = trio.candidates.iter().find(|candidate| candidate.identity != trio.holder());
    let place = trio
        .candidates
        .iter()
        .position(|candidate| Some(&candidate.identity) == standby.map(|it| &it.identity));
    let standby = trio.candidates.remove(place.expect("one stands by"));
    assert_eq!(standby.controller.terminate().code(), Some(0));
    assert_ne!(trio.holder(), "", "one that stands by gives nothing back");
}

// B113
#[test]
fn killed_leader_is_followed_within_the_lease_and_a_retry() {
    let (lab, _hook) = lab("killed");
    let mut trio = Trio::start(&lab);
    works(&lab, "a");
    let leader = trio.take_leader();
    let began = Instant::now();
    leader.controller.kill();
    let took = trio.wait_taken_over(began, "SIGKILL");
    // A retry until its last renewal is seen, one until the next try, and what a busy machine needs.
    assert!(took < LEASE + 2 * RETRY + Duration::from_secs(4), "{took:?}");
    assert_eq!(trio.lease()["spec"]["leaseTransitions"], 1);
    works(&lab, "b");
}

// B112
#[test]
fn leader_that_was_stopped_writes_nothing_when_it_wakes() {
    let (lab, hook) = lab("stopped");
    // Always something to write: each answer differs from the one before.
    hook.set(|call| {
        let name = call.parent_name();
        let now = Timestamp::now().to_string();
        json!({"children": [config_map(name, &now)], "status": {"at": now}, "resyncAfterSeconds": 0.05})
    });
    for number in 0..12 {
        lab.add_thing(&format!("busy-{number}"), json!({}));
    }
    let mut trio = Trio::start(&lab);
    lab.wait(&lab.config_map("busy-0"), "it is at work", |_| true);
    let mut leader = trio.take_leader();
    for round in 0..3 {
        leader.controller.signal(libc::SIGSTOP);
        let began = Instant::now();
        trio.wait_taken_over(began, "SIGSTOP");
        let taken: Timestamp =
            trio.lease()["spec"]["acquireTime"].as_str().expect("a time").parse().expect("a time");
        leader.controller.signal(libc::SIGCONT);
        let user = leader.user.clone();
        assert!(leader.controller.log().contains("Successfully acquired lease"));
        assert_eq!(leader.controller.wait().code(), Some(1), "it has lost the lease");
        let late: Vec<Write> = writes(&lab, &user).into_iter().filter(|write| write.at >= taken).collect();
        assert!(late.is_empty(), "round {round}: written after {taken}: {late:?}");
        trio.join(&format!("more-{round}"));
        leader = trio.take_leader();
        let writing = || writes(&lab, &leader.user).iter().any(|write| write.what.starts_with("patch"));
        lab.wait_until("the next one writes", writing);
    }
}

// B112
#[test]
fn lease_given_to_another_by_hand_stops_the_leader_before_anybody_takes_it() {
    let (lab, _hook) = lab("edited");
    let mut trio = Trio::start(&lab);
    works(&lab, "a");
    for holder in ["somebody", ""] {
        let leader = trio.take_leader();
        let began = Instant::now();
        lab.merge(&lease(&lab), json!({"spec": {"holderIdentity": holder}}));
        assert_eq!(leader.controller.wait().code(), Some(1));
        let stopped = began.elapsed();
        assert!(stopped < RENEW + Duration::from_secs(2), "it looks each {RETRY:?}: {stopped:?}");
        let took = trio.wait_taken_over(began, &format!("holder set to `{holder}`"));
        assert!(took >= LEASE, "the old leader has its time: {took:?}");
        works(&lab, if holder.is_empty() { "c" } else { "b" });
        trio.join(if holder.is_empty() { "fifth" } else { "fourth" });
    }
}

#[test]
fn lease_deleted_by_hand_stays_the_leaders() {
    let (lab, _hook) = lab("deleted");
    let mut trio = Trio::start(&lab);
    works(&lab, "a");
    let holder = trio.holder();
    let before = trio.lease()["metadata"]["uid"].clone();
    lab.plane.delete(&lease(&lab));
    lab.wait(&lease(&lab), "it is made anew", |lease| lease["metadata"]["uid"] != before);
    std::thread::sleep(LEASE + RETRY);
    assert_eq!(trio.holder(), holder);
    works(&lab, "b");
    let leader = trio.take_leader();
    assert!(leader.controller.log().contains("lease was deleted: made anew"));
    for standby in &trio.candidates {
        assert!(writes(&lab, &standby.user).is_empty());
    }
}

#[test]
fn whatever_a_lease_is_edited_to_it_can_be_kept_and_taken() {
    let (lab, _hook) = lab("oddlease");
    let mut trio = Trio::start(&lab);
    works(&lab, "a");
    let holder = trio.holder();
    for odd in [
        json!({"acquireTime": null, "renewTime": null}),
        json!({"renewTime": "0001-01-01T00:00:00.000000Z", "leaseDurationSeconds": null}),
        json!({"renewTime": "9999-12-31T23:59:59.999999Z", "leaseDurationSeconds": 2147483647}),
        json!({"leaseTransitions": 2147483647, "acquireTime": null}),
    ] {
        lab.merge(&lease(&lab), json!({"spec": odd}));
        let times = ["acquireTime", "renewTime"];
        lab.wait(&lease(&lab), "it is renewed", |lease| {
            let spec = &lease["spec"];
            let renewed =
                times.iter().all(|time| spec[time].as_str().is_some_and(|time| time.starts_with('2')));
            renewed && spec["leaseDurationSeconds"] == LEASE.as_secs()
        });
    }
    assert_eq!(trio.holder(), holder);
    works(&lab, "b");
    let began = Instant::now();
    let leader = trio.take_leader();
    leader.controller.kill();
    trio.wait_taken_over(began, "killed after the greatest number of transitions");
    works(&lab, "c");
}

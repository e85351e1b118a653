//! Leader election against an API server that cannot be reached, or only in part.

use std::time::{Duration, Instant};

use controlplane::wait_until;
use serde_json::json;

use crate::apiserver::fault::Effect;
use crate::apiserver::request::Request;
use crate::controller::Controller;
use crate::stage::{MAPS, SOON, Stage, THINGS};

const LEASES: (&str, &str, &str, bool) = ("coordination.k8s.io/v1", "Lease", "leases", false);
const LEASE: Duration = Duration::from_secs(3);
const RENEW: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(400);

const SHORT: [&str; 5] = [
    "--leader-elect",
    "--leader-elect-namespace=shop",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=400ms",
];

/// A leader and one that stands by.
fn two(stage: &Stage) -> (Controller, Controller) {
    let leader = stage.run(&SHORT);
    stage.until_true("it leads", || leader.log().contains("Successfully acquired lease"));
    let standby = stage.run(&SHORT);
    stage.until_true("it stands by", || standby.log().contains("standing by"));
    (leader, standby)
}

fn is_renewal(request: &Request) -> bool {
    request.plural == "leases" && request.is_write()
}

/// When writes other than of the Lease came.
fn writes(stage: &Stage) -> Vec<Instant> {
    stage.server.traffic().times(|request| request.is_write() && !is_renewal(request))
}

/// Has something to write all the time.
fn keep_busy<'scope>(stage: &'scope Stage, scope: &'scope std::thread::Scope<'scope, '_>, until: Instant) {
    scope.spawn(move || {
        for number in 0.. {
            if Instant::now() > until {
                return;
            }
            stage.set_value("a", &format!("v{number}"));
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

// B112
#[test]
fn leader_that_cannot_renew_stops_writing_before_the_lease_runs_out() {
    let stage = Stage::new(&[THINGS, MAPS, LEASES]);
    stage.thing("a", 2, "x");
    let (leader, standby) = two(&stage);
    stage.settles("a");
    std::thread::scope(|scope| {
        let began = Instant::now();
        keep_busy(&stage, scope, began + LEASE);
        let fault = stage.server.fault(is_renewal, Effect::Drop);
        assert_eq!(leader.wait().code(), Some(1));
        let last = *writes(&stage).last().expect("it was at work");
        assert!(last > began, "it went on for a while");
        let renewed = stage.server.traffic().times(is_renewal);
        let renewed = *renewed.iter().rfind(|came| **came < began).expect("it has renewed before");
        // The request is on its way for some milliseconds.
        assert!(
            last - renewed < RENEW + Duration::from_millis(300),
            "{:?} after its last renewal",
            last - renewed
        );
        drop(fault);
        stage.until_true("the other leads", || standby.log().contains("Successfully acquired lease"));
        println!("renewals blocked: taken over after {:.2} s", began.elapsed().as_secs_f64());
    });
    stage.settles("a");
}

#[test]
fn renewals_that_fail_for_a_moment_change_nothing() {
    let stage = Stage::new(&[THINGS, MAPS, LEASES]);
    let (leader, standby) = two(&stage);
    for effect in [Effect::Drop, Effect::DoThenDrop, Effect::overloaded(503, 1)] {
        let fault = stage.server.fault(is_renewal, effect);
        stage.until_true("two have failed", || fault.met() >= 2);
        drop(fault);
        let renewals = || stage.server.traffic().count(is_renewal);
        let before = renewals();
        stage.until_true("it renews again", || renewals() >= before + 2);
    }
    stage.thing("a", 1, "x");
    stage.settles("a");
    assert!(!leader.log().contains("lease lost"));
    assert!(!standby.log().contains("Successfully"));
}

// B112, B113
#[test]
fn api_server_that_was_away_finds_one_leader_again() {
    let stage = Stage::new(&[THINGS, MAPS, LEASES]);
    stage.thing("a", 2, "x");
    let (leader, standby) = two(&stage);
    stage.settles("a");
    let away = stage.server.fault(|_| true, Effect::Drop);
    stage.server.cut_watches();
    assert_eq!(leader.wait().code(), Some(1), "as Metacontroller ends");
    let restarted = stage.run(&SHORT);
    std::thread::sleep(2 * LEASE);
    stage.set_value("a", "changed meanwhile");
    stage.server.forget_traffic();
    drop(away);
    let back = Instant::now();
    let leads = |controller: &Controller| controller.log().contains("Successfully acquired lease");
    wait_until(SOON, "one of the two leads", || {
        if leads(&standby) || leads(&restarted) { Ok(()) } else { Err(standby.log()) }
    });
    println!("API server away: one leads {:.2} s after its return", back.elapsed().as_secs_f64());
    stage.settles("a");
    std::thread::sleep(LEASE + RETRY);
    assert!(leads(&standby) != leads(&restarted), "one alone");
    let lease = stage.server.get("leases", "metacontroller").expect("it is there");
    assert_eq!(lease["spec"]["leaseTransitions"], json!(1));
}

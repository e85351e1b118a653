//! The API server away for a whole minute: it is asked now and then, and all goes on within seconds of its return.

use std::time::{Duration, Instant};

use crate::apiserver::fault::Effect;
use crate::apiserver::request::Request;
use crate::stage::{Stage, side_by_side};

const AWAY: Duration = Duration::from_secs(60);
const THINGS: usize = 20;
/// What waits longest is a watch, for four to five seconds; then it lists, and the visits follow.
const RESUMED: Duration = Duration::from_secs(8);
/// Four kinds are under watch and looked up, each at most every four seconds after the first few tries.
const LOOKS: usize = 200;
/// Each thing's visit is tried again after 5 ms, 10 ms, 20 ms, …: two maps, a status and an event.
const TRIES: usize = 15 * 4;
/// What is in the way of each thing, and of its status, is told once; of a watch when it lasts.
const LINES: usize = 3 * THINGS + 20;

// B103, B110
#[test]
fn api_server_away_for_a_minute_is_not_stormed_and_found_again_in_seconds() {
    let ways =
        [("refuses", Effect::Drop), ("hangs", Effect::Wait), ("overloaded", Effect::overloaded(503, 1))];
    side_by_side(ways, |(how, effect)| {
        let stage = Stage::usual();
        let names: Vec<String> = (0..THINGS).map(|number| format!("t{number}")).collect();
        for name in &names {
            stage.thing(name, 2, "x");
        }
        let controller = stage.run(&[]);
        names.iter().for_each(|name| stage.settles(name));
        stage.becomes_quiet();
        let lines = controller.log().lines().count();
        stage.server.forget_traffic();
        // These are seen just before the server is away, and are to be written when it is.
        let writes = stage.server.fault(Request::is_write, effect.clone());
        for name in &names {
            stage.set_value(name, "y");
        }
        stage.until_true("somebody writes", || writes.met() > 0);
        let reads = stage.server.fault(|_| true, effect);
        stage.server.cut_watches();
        std::thread::sleep(AWAY);
        for name in &names {
            stage.set_value(name, "z");
        }
        let asked = stage.server.traffic().count(|_| true);
        let told = controller.log().lines().count() - lines;
        stage.server.forget_traffic();
        drop((writes, reads));
        let back = Instant::now();
        names.iter().for_each(|name| stage.settles(name));
        let took = back.elapsed();
        println!(
            "{how}: {asked} requests and {told} lines in {AWAY:?}, all right {:.1} s later",
            took.as_secs_f64()
        );
        assert!(took < RESUMED, "{how}: {took:?}");
        assert!(asked < LOOKS + THINGS * TRIES, "{how}: {asked} requests while nothing answered");
        assert!(told < LINES, "{how}: {told} lines:\n{}", controller.log());
        stage.becomes_quiet();
        // Two maps and a status of each, and what hung was done late: nothing over and over.
        let writes = stage.server.traffic().count(|request| request.is_write());
        assert!(writes <= 6 * THINGS, "{how}: {writes} writes:\n{:#?}", stage.server.traffic().writes());
    });
}

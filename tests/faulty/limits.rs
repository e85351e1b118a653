//! How much a controller asks of the API server and of its hooks at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::apiserver::request::Request;
use crate::stage::{MAPS, Stage, THINGS};

const CALM: [&str; 2] = ["--client-go-qps=40", "--client-go-burst=20"];

fn is_limited(request: &Request) -> bool {
    !request.is_watch() && request.plural != "leases"
}

/// The most requests within any second.
fn busiest_second(times: &[Instant]) -> usize {
    let within = |from: &Instant| {
        times.iter().filter(|at| *at >= from && **at - *from <= Duration::from_secs(1)).count()
    };
    times.iter().map(within).max().unwrap_or_default()
}

#[test]
fn requests_keep_to_the_rate_and_the_burst() {
    let stage = Stage::usual();
    let names: Vec<String> = (0..40).map(|number| format!("p{number}")).collect();
    for name in &names {
        stage.thing(name, 2, "x");
    }
    let began = Instant::now();
    let _controller = stage.run(&CALM);
    stage.until("all are as they should be", || names.iter().try_for_each(|name| stage.check(name)));
    let times = stage.server.traffic().times(is_limited);
    assert!(times.len() >= 120, "{}", times.len());
    // A token may come just before the second begins and be used in it, and the way to the server is not always as long.
    let busiest = busiest_second(&times);
    assert!(busiest <= 20 + 40 + 5, "{busiest} in one second");
    let least = Duration::from_secs_f64((times.len() - 20) as f64 / 40.0);
    assert!(began.elapsed() >= least, "{:?} for {}", began.elapsed(), times.len());
}

#[test]
fn controller_with_much_to_write_leaves_others_their_turns() {
    let kinds = [THINGS, ("demo.io/v1", "Widget", "widgets", true), MAPS];
    let stage = Stage::new(&kinds);
    let maps = ["v1/configmaps"];
    let many = stage.definition("things", "demo.io/v1/things", &maps);
    stage.define(&[many, stage.definition("widgets", "demo.io/v1/widgets", &maps)]);
    for number in 0..150 {
        stage.thing(&format!("p{number}"), 2, "x");
    }
    let _controller = stage.run(&["--client-go-qps=40", "--client-go-burst=20", "--workers=32"]);
    stage.until_true("the many are under way", || {
        stage.server.traffic().count(|it| it.is_apply_of("configmaps")) > 30
    });
    let widget = json!({"metadata": {"namespace": "shop", "name": "w"}, "spec": {"size": 2, "value": "y"}});
    stage.server.create("widgets", widget);
    let done = || stage.server.get("widgets", "w").is_some_and(|widget| widget["status"]["maps"] == 2);
    stage.until_true("the one is done", done);
    let left = (0..150).filter(|number| stage.check(&format!("p{number}")).is_err()).count();
    assert!(left > 50, "the one did not wait for the many: {left} of them are left");
}

#[test]
fn visits_of_all_controllers_are_limited_and_each_makes_one() {
    let kinds = [THINGS, ("demo.io/v1", "Widget", "widgets", true), MAPS];
    let stage = Stage::new(&kinds);
    let maps = ["v1/configmaps"];
    let many = stage.definition("things", "demo.io/v1/things", &maps);
    stage.define(&[many, stage.definition("widgets", "demo.io/v1/widgets", &maps)]);
    static WITHIN: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    stage.hook.answers(|request| {
        let within = WITHIN.fetch_add(1, Ordering::SeqCst) + 1;
        MOST.fetch_max(within, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(300));
        WITHIN.fetch_sub(1, Ordering::SeqCst);
        crate::hook::maps(request)
    });
    for number in 0..12 {
        stage.thing(&format!("p{number}"), 1, "x");
    }
    let _controller = stage.run(&["--max-visits=3", "--workers=16"]);
    stage.until_true("as many as may are within", || WITHIN.load(Ordering::SeqCst) == 3);
    let widget = json!({"metadata": {"namespace": "shop", "name": "w"}, "spec": {"size": 1, "value": "y"}});
    stage.server.create("widgets", widget);
    stage.until_true("the other controller makes its visit", || WITHIN.load(Ordering::SeqCst) == 4);
    (0..12).for_each(|number| stage.settles(&format!("p{number}")));
    assert_eq!(MOST.load(Ordering::SeqCst), 4);
}

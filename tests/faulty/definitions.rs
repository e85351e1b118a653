//! Definitions that come, go, hang, or get in each other's way.

use serde_json::{Value, json};

use crate::apiserver::fault::Effect;
use crate::apiserver::request::Request;
use crate::hook;
use crate::stage::{MAPS, Stage, THINGS};

const CONTROLLERS: (&str, &str, &str, bool) =
    ("metacontroller.k8s.io/v1alpha1", "CompositeController", "compositecontrollers", true);
const GADGETS: (&str, &str, &str, bool) = ("toys.io/v1", "Gadget", "gadgets", true);

#[test]
fn definition_whose_visit_hangs_can_be_replaced_by_another() {
    let stage = Stage::new(&[THINGS, MAPS, GADGETS]);
    stage.thing("a", 1, "x");
    stage.server.create(
        "gadgets",
        json!({"metadata": {"namespace": "shop", "name": "g"}, "spec": {"size": 2, "value": "x"}}),
    );
    let _controller = stage.run(&[]);
    let hanging = stage.server.fault(|request| request.name == "a-0", Effect::Wait);
    stage.until_true("the visit hangs", || hanging.met() > 0);
    stage.define(&[stage.definition("gadgets", "toys.io/v1/gadgets", &["v1/configmaps"])]);
    stage.until_true("the other definition is at work", || stage.server.get("configmaps", "g-1").is_some());
    drop(hanging);
    stage.becomes_quiet();
    let calls = stage.hook.calls("a").len();
    stage.set_value("a", "y");
    stage.becomes_quiet();
    assert_eq!(stage.hook.calls("a").len(), calls, "the first definition is no more");
}

#[test]
fn definitions_of_the_cluster_stay_while_their_kind_is_not_served() {
    let stage = Stage::new(&[THINGS, MAPS, CONTROLLERS]);
    let things = stage.definition("things", "demo.io/v1/things", &["v1/configmaps"]);
    stage.define(&[]);
    stage.server.create("compositecontrollers", things);
    stage.thing("a", 1, "x");
    let controller = stage.run(&[]);
    stage.settles("a");
    let gone = stage.server.fault(
        |request| request.api_version == CONTROLLERS.0,
        Effect::answer(404, "NotFound", "the server could not find the requested resource"),
    );
    stage.server.cut_watches();
    stage.until_true("the kind is looked up", || gone.met() >= 3);
    stage.set_value("a", "y");
    stage.settles("a");
    drop(gone);
    assert!(!controller.log().contains("controller stopping"), "{}", controller.log());
}

// B03
#[test]
fn two_definitions_that_write_one_status_make_no_storm() {
    let stage = Stage::usual();
    let definition = |name: &str| {
        let mut definition = stage.definition(name, "demo.io/v1/things", &[]);
        definition["spec"]["hooks"]["sync"]["webhook"]["url"] = json!(format!("{}/{name}", stage.hook.url()));
        definition
    };
    stage.define(&[definition("one"), definition("two")]);
    stage.hook.answers(|call| (200, json!({"status": {"by": call["controller"]["metadata"]["name"]}})));
    stage.thing("a", 0, "x");
    let _controller = stage.run(&[]);
    stage.until_true("both have written", || stage.server.traffic().count(Request::is_status_write) >= 2);
    stage.server.forget_traffic();
    std::thread::sleep(std::time::Duration::from_secs(4));
    let writes = stage.server.traffic().count(Request::is_status_write);
    assert!(writes < 60, "{writes} status writes in 4 s");
}

// B107
#[test]
fn thousand_parents_with_related_objects_and_many_workers_all_get_there() {
    let stage = Stage::new(&[THINGS, MAPS, ("v1", "Secret", "secrets", false)]);
    let mut definition = stage.definition("things", "demo.io/v1/things", &["v1/configmaps"]);
    definition["spec"]["hooks"]["customize"] = definition["spec"]["hooks"]["sync"].clone();
    stage.define(&[definition]);
    stage.hook.answers(|call| {
        if call.get("children").is_none() {
            let rule = json!({"apiVersion": "v1", "resource": "secrets", "names": [call["parent"]["metadata"]["name"]]});
            return (200, json!({"relatedResources": [rule]}));
        }
        let related = call["related"]["Secret.v1"].as_object().expect("a group");
        let values: Vec<&Value> = related.values().map(|secret| &secret["data"]["value"]).collect();
        let name = call["parent"]["metadata"]["name"].as_str().expect("a name");
        let children: Vec<Value> = values.iter().map(|value| hook::map(&format!("{name}-0"), value)).collect();
        (200, json!({"children": children, "status": {"seen": related.len()}}))
    });
    let names: Vec<String> = (0..1000).map(|number| format!("p{number}")).collect();
    for name in &names {
        stage.thing(name, 0, "x");
    }
    let _controller = stage.run(&["--workers", "16"]);
    let secret = |name: &String, value: &str| json!({"metadata": {"namespace": "shop", "name": name}, "data": {"value": value}});
    for name in &names {
        stage.server.create("secrets", secret(name, name));
    }
    let right = |name: &String| {
        stage.server.look(|objects| {
            let map = objects.find("configmaps", &format!("{name}-0"));
            match map {
                Some(map) if map["data"]["value"] == json!(name) => Ok(()),
                other => Err(format!("{name}: {other:?}")),
            }
        })
    };
    controlplane::wait_until(std::time::Duration::from_secs(60), "each has seen its own", || {
        names.iter().try_for_each(right)
    });
}

//! `syncwright rbac`: with what it prints everything goes, nothing in it is in vain, and what is missing is named.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::rolling::stage;
use crate::support::hook::{Call, Hook, Reply, from_spec};
use crate::support::lab::{Definition, Lab, synced};
use crate::support::objects::{config_map, secret};
use crate::support::rights::{Right, narrow, refused, right, used_in};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// A lab whose controller has the printed roles and nothing else.
struct Narrow {
    lab: Lab,
    /// The ClusterRole, as printed.
    role: Value,
}

impl Narrow {
    fn new(mut lab: Lab, definition: &Definition, more: &[&str]) -> Narrow {
        lab.write_definitions(&[definition]);
        narrow(&mut lab, more);
        let role = lab.get(&format!("{ROLES}/{}", lab.namespace));
        Narrow { lab, role }
    }

    /// The right that the printed roles give, the Secret's among them.
    fn granted(&self) -> BTreeSet<Right> {
        let role = self.lab.path("rbac.authorization.k8s.io/v1", "roles", &self.lab.namespace);
        let roles = [self.role.clone(), self.lab.get(&role)];
        let rules = roles.iter().flat_map(|role| role["rules"].as_array().unwrap());
        rules.flat_map(rights_of).collect()
    }

    /// The rights that the controller has made use of so far.
    fn used(&self) -> BTreeSet<Right> {
        let events = self.lab.plane.requests_of(&self.lab.user);
        events.iter().filter(|event| !event["objectRef"]["resource"].is_null()).flat_map(used_in).collect()
    }

    /// Takes one right away, does something, and gives the right back.
    fn without(&self, right: &str, test: impl FnOnce(&Lab)) {
        let mut less = self.role.clone();
        let rules = less["rules"].as_array_mut().unwrap();
        let all: Vec<Right> = rules.iter().flat_map(rights_of).collect();
        assert!(all.iter().any(|given| given == right), "{right} is one of {all:?}");
        // Each right is a rule of its own, but for this one.
        *rules = all.iter().filter(|given| *given != right).map(|given| rule_of(given)).collect();
        self.put(&less);
        test(&self.lab);
        self.put(&self.role);
    }

    fn put(&self, role: &Value) {
        let path = format!("{ROLES}/{}", self.lab.namespace);
        self.lab.plane.merge(&path, &json!({"rules": role["rules"]}));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn rights_of(rule: &Value) -> Vec<Right> {
    let group = text(&rule["apiGroups"][0]);
    let resources = rule["resources"].as_array().unwrap().iter().map(text);
    let verbs: Vec<&str> = rule["verbs"].as_array().unwrap().iter().map(text).collect();
    resources.flat_map(|resource| verbs.iter().map(move |verb| right(verb, group, resource))).collect()
}

fn rule_of(right: &str) -> Value {
    let (verb, about) = right.split_once(' ').unwrap();
    let (group, resource) = about.split_once(':').unwrap();
    json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]})
}

/// A definition with all there is: a finalize hook, related objects, a Secret that its hooks are reached with.
fn definition(lab: &Lab, hook: &Hook) -> Definition {
    let token = json!({"secretRef": {"name": "auth", "namespace": lab.namespace, "key": "key"}});
    let definition = lab.definition().config_maps().sync(hook).finalize(hook).customize(hook);
    definition.with("/spec/hooks/sync/webhook/authorization", token)
}

fn answer(call: &Call) -> Value {
    match call.hook.as_str() {
        "customize" => json!({"relatedResources": [{"apiVersion": "v1", "resource": "serviceaccounts"}]}),
        _ => from_spec(call),
    }
}

const RELATED: [&str; 2] = ["--related", "v1/serviceaccounts"];

#[test]
fn printed_rights_are_enough_and_none_is_in_vain() {
    let lab = Lab::new("rights");
    let hook = Hook::new(answer);
    lab.create("v1", "secrets", &secret("auth", "word"));
    let definition = definition(&lab, &hook);
    let narrow = Narrow::new(lab, &definition, &RELATED);
    let lab = &narrow.lab;
    std::fs::remove_file(lab.folder.path().join("controllers.yaml")).unwrap();
    lab.add_definition(&definition);
    let controller = lab.start(&[]);

    let thing = lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    // Adopting reads the parent and the orphan, and patches the orphan.
    let mut orphan = config_map("orphan", "1");
    orphan["metadata"]["labels"] = json!({"controller-uid": thing["metadata"]["uid"]});
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [orphan]}}));
    lab.wait_gone(&lab.config_map("a"));
    lab.create("v1", "configmaps", &config_map("late", "1"));
    lab.merge(&lab.config_map("late"), json!({"metadata": {"labels": orphan["metadata"]["labels"]}}));
    lab.wait_gone(&lab.config_map("late"));
    // The second of two equal events is a patch of the first.
    hook.set(|_| Reply::Text(500, "out of order".into()));
    lab.merge(&lab.thing("t"), json!({"spec": {"more": 1}}));
    lab.wait_refused(&lab.thing("t"), "HookUnavailable");
    lab.wait_until("an event is told again", || narrow.used().contains("patch :events"));
    hook.set(answer);
    lab.wait_synced(&lab.thing("t"));
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));

    controller.terminate();
    assert_eq!(refused(lab), [""; 0]);
    let used = narrow.used();
    let unused: Vec<Right> = narrow.granted().into_iter().filter(|right| !used.contains(right)).collect();
    // A server that can begin a watch with the list is not asked for lists; older ones are.
    let unused: Vec<&str> =
        unused.iter().map(String::as_str).filter(|right| !right.starts_with("list ")).collect();
    // The one is asked for by an admission plugin, where it is on; there is no DecoratorController here.
    let finalizers = right("update", &lab.group, "things/finalizers");
    let decorators = right("patch", "metacontroller.k8s.io", "decoratorcontrollers/status");
    assert_eq!(unused, [decorators.as_str(), finalizers.as_str()]);
}

#[test]
fn missing_right_is_named_on_the_parent() {
    let lab = Lab::new("denied");
    let hook = Hook::new(answer);
    lab.create("v1", "secrets", &secret("auth", "word"));
    let definition = definition(&lab, &hook);
    let narrow = Narrow::new(lab, &definition, &RELATED);
    let group = narrow.lab.group.clone();
    let set =
        |lab: &Lab, children: Value| lab.merge(&lab.thing("t"), json!({"spec": {"children": children}}));
    let named = |lab: &Lab, verb: &str, resource: &str| {
        let expected = format!("{verb} resource \"{resource}\"");
        lab.wait(&lab.thing("t"), &format!("`{expected}` is told"), |thing| {
            synced(thing).is_some_and(|condition| text(&condition["message"]).contains(&expected))
        });
    };
    let restored = |lab: &Lab| lab.wait_synced(&lab.thing("t"));

    let controller = narrow.lab.start(&[]);
    narrow.without(&right("patch", &group, "things"), |lab| {
        lab.add_thing("t", json!({"children": []}));
        named(lab, "patch", "things");
    });
    restored(&narrow.lab);
    narrow.without("create :configmaps", |lab| {
        set(lab, json!([config_map("a", "1")]));
        named(lab, "create", "configmaps");
    });
    restored(&narrow.lab);
    narrow.without("patch :configmaps", |lab| {
        set(lab, json!([config_map("a", "2")]));
        named(lab, "patch", "configmaps");
    });
    restored(&narrow.lab);
    narrow.without("delete :configmaps", |lab| {
        set(lab, json!([]));
        named(lab, "delete", "configmaps");
    });
    restored(&narrow.lab);
    narrow.lab.wait_gone(&narrow.lab.config_map("a"));
    narrow.without(&right("get", &group, "things"), |lab| {
        let mut orphan = config_map("orphan", "1");
        orphan["metadata"]["labels"] = json!({"controller-uid": lab.get(&lab.thing("t"))["metadata"]["uid"]});
        lab.create("v1", "configmaps", &orphan);
        named(lab, "get", "things");
    });
    restored(&narrow.lab);
    narrow.without(&right("patch", &group, "things/status"), |lab| {
        lab.merge(&lab.thing("t"), json!({"spec": {"status": {"a": 1}}}));
        let expected = "cannot patch resource \\\"things/status\\\"";
        lab.wait_until("the log has it", || controller.log().contains(expected));
        let events = lab.path("v1", "events", "");
        lab.wait(&events, "an event has it", |events| {
            let told =
                |event: &Value| text(&event["message"]).contains("cannot patch resource \"things/status\"");
            events["items"].as_array().unwrap().iter().any(told)
        });
    });
    controller.terminate();
    let refused: BTreeSet<Right> = refused(&narrow.lab).into_iter().collect();
    assert!(
        refused.contains("patch :configmaps") && refused.len() >= 5,
        "they are told from others: {refused:?}"
    );

    for (kind, what) in [("configmaps", "configmaps"), ("serviceaccounts", "serviceaccounts")] {
        narrow.without(&format!("watch :{kind}"), |lab| {
            let controller = lab.start(&[]);
            lab.merge(&lab.thing("t"), json!({"spec": {"of": kind}}));
            named(lab, "watch", what);
            controller.terminate();
        });
    }
}

/// Secrets that a hook is reached with are in a Role of their own.
#[test]
fn missing_right_to_a_secret_is_named_on_the_parent() {
    let lab = Lab::new("denied-secret");
    let hook = Hook::new(answer);
    lab.create("v1", "secrets", &secret("auth", "word"));
    let definition = definition(&lab, &hook);
    let narrow = Narrow::new(lab, &definition, &RELATED);
    let lab = &narrow.lab;
    let role = lab.path("rbac.authorization.k8s.io/v1", "roles", &lab.namespace);
    lab.merge(&role, json!({"rules": []}));
    let _controller = lab.start(&[]);
    lab.add_thing("t", json!({"children": []}));
    let message = lab.wait_refused(&lab.thing("t"), "WaitingForAccess");
    assert!(
        message.contains("secrets \"auth\" is forbidden") && message.contains("cannot watch resource"),
        "{message}"
    );
    assert_eq!(hook.count_of("sync"), 0);
}

#[test]
fn printed_rights_are_enough_for_decorators_and_for_roll_outs() {
    let lab = Lab::new("rights-decorator");
    let hook = Hook::new(|call| match call.request["finalizing"] == true {
        true => json!({"attachments": [], "finalized": true}),
        false => {
            json!({"labels": {"a": "b"}, "status": {"seen": true}, "attachments": [config_map("m", "1")]})
        }
    });
    let decorator = lab.decorator(lab.things()).sync(&hook).finalize(&hook);
    let narrow = Narrow::new(lab, &decorator, &[]);
    let lab = &narrow.lab;
    let controller = lab.start(&[]);
    lab.add_thing("t", json!({}));
    lab.wait(&lab.thing("t"), "it is decorated", |thing| thing["status"]["seen"] == true);
    lab.wait(&lab.config_map("m"), "it is attached", |_| true);
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    controller.terminate();
    assert_eq!(refused(lab), [""; 0]);

    let lab = stage::lab("rights-rolling");
    let hook = Hook::new(stage::answer);
    let definition = lab.definition().child("v1", "configmaps", "RollingInPlace").sync(&hook);
    let narrow = Narrow::new(lab, &definition, &[]);
    let lab = &narrow.lab;
    let controller = lab.start(&[]);
    lab.add_thing("t", json!({"x": "1", "books": ["a", "b"]}));
    lab.wait_synced(&lab.thing("t"));
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    for book in ["a", "b"] {
        lab.wait(&lab.config_map(book), "its turn has come", |map| map["data"]["x"] == "2");
    }
    let revisions = lab.path("metacontroller.k8s.io/v1alpha1", "controllerrevisions", "");
    lab.wait(&revisions, "the older revision is gone", |list| list["items"].as_array().unwrap().len() == 1);
    controller.terminate();
    assert_eq!(refused(lab), [""; 0]);
    let used = narrow.used();
    for verb in ["create", "patch", "delete"] {
        assert!(
            used.contains(&right(verb, "metacontroller.k8s.io", "controllerrevisions")),
            "{verb}: {used:?}"
        );
    }
}

#[test]
fn printed_roles_of_a_namespace_are_enough_for_it() {
    let mut lab = Lab::new("rights-namespace");
    let hook = Hook::from_spec();
    lab.write_definitions(&[&lab.definition().config_maps().sync(&hook).finalize(&hook)]);
    let namespace = lab.namespace.clone();
    narrow(&mut lab, &["--namespace", &namespace]);
    assert!(lab.plane.get(&format!("{ROLES}/{namespace}")).is_none(), "no ClusterRole is needed");
    let controller = lab.start(&["--namespace", &namespace]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    controller.terminate();
    assert_eq!(refused(&lab), [""; 0]);
}

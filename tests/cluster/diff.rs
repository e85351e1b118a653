//! `syncwright diff`: what would change is told, and nothing is written.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Definition, Lab};
use crate::support::objects::{config_map, secret};

/// What a command printed, and how it ended.
#[derive(Debug)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

fn diff(lab: &Lab, definition: &Definition, more: &[&str]) -> Said {
    let folder = lab.folder.path();
    fs::write(folder.join("edited.yaml"), definition.0.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_syncwright"))
        .args(["diff", "--controllers", "edited.yaml", "--kubeconfig"])
        .arg(&lab.user.kubeconfig)
        .args(more)
        .current_dir(folder)
        .output()
        .expect("the binary was built for this test");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    Said {
        code: output.status.code().expect("it ends by itself"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// The resource versions of everything that matters, for whoever wonders whether something was written.
fn versions(lab: &Lab) -> Vec<String> {
    let kinds = [
        (lab.api_version(), "things"),
        ("v1".into(), "configmaps"),
        ("v1".into(), "secrets"),
        ("v1".into(), "events"),
    ];
    let lists = kinds.map(|(api_version, plural)| lab.get(&lab.path(&api_version, plural, "")));
    let items = lists.iter().flat_map(|list| list["items"].as_array().unwrap().clone());
    items
        .map(|item| format!("{} {}", item["metadata"]["name"], item["metadata"]["resourceVersion"]))
        .collect()
}

// B115, the part of it that concerns a diff
#[test]
fn edited_answer_is_told_object_by_object_and_nothing_is_written() {
    let lab = Lab::new("diff");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().child("v1", "secrets", "Recreate").sync(&hook);
    let controller = lab.run(&definition);
    let secret = |value: &str| {
        let mut secret = secret("s", value);
        secret["stringData"] = json!({"key": value});
        secret
    };
    let before = json!([config_map("a", "1"), config_map("gone", "1"), secret("word-one")]);
    lab.add_thing("t", json!({"children": before}));
    lab.add_thing("u", json!({"children": [config_map("u", "1")], "status": {"old": 1}}));
    lab.add_thing("same", json!({"children": [config_map("same", "1")]}));
    for name in ["t", "u", "same"] {
        lab.wait_synced(&lab.thing(name));
    }
    let same = diff(&lab, &definition, &[]);
    assert_eq!((same.code, same.out.as_str(), same.err.as_str()), (0, "0 of 3 parents change\n", ""));
    controller.terminate();

    let after = json!([config_map("a", "2"), config_map("new", "1"), secret("word-two")]);
    lab.merge(&lab.thing("t"), json!({"spec": {"children": after}}));
    lab.merge(&lab.thing("u"), json!({"spec": {"status": {"old": 2}}}));
    let (versions_before, writes) = (versions(&lab), lab.writes().len());
    let said = diff(&lab, &definition, &[]);
    let expected = format!(
        "\
Thing {0}/t
  - ConfigMap gone
  ~ ConfigMap a
      ~ data.key: \"1\" -> \"2\"
  + ConfigMap new
      + apiVersion: v1
      + kind: ConfigMap
      + metadata:
      +   name: new
      + data:
      +   key: \"1\"
  -/+ Secret s, to be made anew
      ~ data.key: \"(masked, before)\" -> \"(masked, after)\"
Thing {0}/u
  ~ Thing u
      ~ status.observedGeneration: 1 -> 2
      ~ status.old: 1 -> 2
2 of 3 parents change; objects: 1 to create, 2 to change, 1 to make anew, 1 to delete
",
        lab.namespace
    );
    assert_eq!(said.out, expected);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert!(!said.out.contains("word") && !said.out.contains("d29yZ"), "no value of a Secret is shown");

    let one = diff(&lab, &definition, &["things/u"]);
    assert!(one.out.ends_with("1 of 1 parent changes; objects: 1 to change\n"), "{one:?}");
    assert_eq!(
        diff(&lab, &definition, &["thing", "--namespace", "elsewhere"]).out,
        "0 of 0 parents change\n"
    );
    let nobody = diff(&lab, &definition, &["things/nobody"]);
    assert_eq!((nobody.code, nobody.err.as_str()), (2, "error: there is no parent `things/nobody`\n"));

    assert_eq!(versions(&lab), versions_before);
    let trials: Vec<String> = lab.writes().split_off(writes);
    assert!(trials.iter().all(|write| write.starts_with("patch ")), "{trials:?}");
    let requests = lab.plane.requests_of(&lab.user);
    let dry = |event: &&Value| event["requestURI"].as_str().unwrap_or_default().contains("dryRun=All");
    assert_eq!(requests.iter().filter(dry).count(), trials.len(), "all of them are dry runs");
}

#[test]
fn refusals_are_told_and_what_cannot_be_known_is_an_error() {
    let lab = Lab::new("diff-refused");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().sync(&hook);
    let mut fixed = config_map("a", "1");
    fixed["immutable"] = json!(true);
    let controller = lab.run(&definition);
    lab.add_thing("t", json!({"children": [fixed]}));
    lab.wait_synced(&lab.thing("t"));
    controller.terminate();

    fixed["data"]["key"] = json!("2");
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [fixed]}}));
    let said = diff(&lab, &definition, &[]);
    let stays = "  ! ConfigMap a, stays as it is: a field that cannot change is to change\n      ~ data.key: \"1\" -> \"2\"\n";
    assert!(said.out.contains(stays), "{}", said.out);
    assert!(said.out.contains("  ! ImmutableField: applying ConfigMap "), "{}", said.out);
    assert_eq!(said.code, 1, "{said:?}");

    hook.set(|_| crate::support::hook::Reply::Text(500, "out of order".into()));
    let said = diff(&lab, &definition, &[]);
    let expected = format!("Thing {}/t\n  ! HookUnavailable: sync: 500: out of order\n", lab.namespace);
    assert_eq!(said.out, expected + "0 of 1 parent changes; 1 cannot be told\n");
    assert_eq!(
        (said.code, said.err.as_str()),
        (2, "error: of 1 parent it cannot be told what would happen\n")
    );
}

#[test]
fn edited_definition_and_template_are_looked_at_as_they_will_be() {
    let lab = Lab::new("diff-edited");
    let hooks = lab.folder.path().join("hooks/thing");
    fs::create_dir_all(&hooks).unwrap();
    let template = |lines: &str| {
        let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ parent.metadata.name }}-map\"}\ndata: {text: ";
        fs::write(hooks.join("sync.yaml"), format!("{manifest}{lines}}}\n")).unwrap();
    };
    template("\"a\\nb\\nc\\n\"");
    let definition =
        lab.definition().with("/spec/hooks/sync", json!({"webhook": {"path": "/thing/sync"}})).config_maps();
    let controller = lab.run(&definition);
    lab.add_thing("t", json!({}));
    lab.wait_synced(&lab.thing("t"));
    controller.terminate();
    template("\"a\\nB\\nc\\n\"");
    let said = diff(&lab, &definition, &[]);
    let text = "  ~ ConfigMap t-map\n      ~ data.text:\n            a\n          - b\n          + B\n            c\n";
    assert!(said.out.contains(text) && said.code == 1, "{said:?}");

    let finalizing = definition.with("/spec/hooks/finalize", json!({"webhook": {"path": "/thing/finalize"}}));
    fs::write(hooks.join("finalize.yaml"), "finalized: true\n").unwrap();
    template("\"a\\nb\\nc\\n\"");
    let said = diff(&lab, &finalizing, &[]);
    let finalizer = format!(
        "      + metadata.finalizers: [\"metacontroller.io/compositecontroller-{}\"]\n",
        lab.namespace
    );
    assert!(said.out.contains(&finalizer), "{said:?}");

    fs::write(hooks.join("sync.yaml"), "status: {{ parent.spec.absent }}\n").unwrap();
    let said = diff(&lab, &finalizing, &[]);
    assert!(said.out.contains("  ! HookRefused: sync: hooks/thing/sync.yaml:1:12: "), "{said:?}");
    assert_eq!(said.code, 2);

    fs::write(hooks.join("sync.yaml"), "status: {{ parent.\n").unwrap();
    let said = diff(&lab, &finalizing, &[]);
    assert!(said.err.starts_with("hooks/thing/sync.yaml:1:"), "the template's error page: {said:?}");
    assert!(said.out.contains("  ! HookRefused: sync: "), "{said:?}");
    assert_eq!(said.code, 2);
}

#[test]
fn orphan_that_would_be_adopted_is_told_as_a_child() {
    let lab = Lab::new("diff-adopted");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().sync(&hook);
    let thing = lab.add_thing("t", json!({"children": [config_map("a", "2")]}));
    let mut orphan = config_map("a", "1");
    orphan["metadata"]["labels"] = json!({"controller-uid": thing["metadata"]["uid"]});
    lab.create("v1", "configmaps", &orphan);
    let said = diff(&lab, &definition, &[]);
    let told = "  ~ ConfigMap a\n      ~ data.key: \"1\" -> \"2\"\n      + metadata.ownerReferences: [";
    assert!(said.out.contains(told) && !said.out.contains('!'), "{said:?}");
    assert_eq!(said.code, 1);
    let seen = hook.calls_for("t");
    assert_eq!(seen.last().unwrap().children("ConfigMap.v1"), ["a"], "the hook is shown it");
    assert_eq!(lab.get(&lab.config_map("a"))["metadata"]["ownerReferences"], Value::Null);
}

#[test]
fn decorators_are_told_by_what_they_do_to_their_targets() {
    let lab = Lab::new("diff-decorator");
    let hook = Hook::new(
        |_| json!({"labels": {"tier": "gold"}, "status": {"seen": true}, "attachments": [config_map("a", "1")]}),
    );
    let definition = lab.decorator(lab.things()).sync(&hook);
    lab.add_thing("t", json!({}));
    let said = diff(&lab, &definition, &["things/t"]);
    let expected = format!(
        "\
Thing {}/t
  ~ Thing t
      + metadata.labels: {{\"tier\":\"gold\"}}
      + status: {{\"seen\":true}}
  + ConfigMap a
      + apiVersion: v1
      + kind: ConfigMap
      + metadata:
      +   name: a
      + data:
      +   key: \"1\"
1 of 1 parent changes; objects: 1 to create, 1 to change
",
        lab.namespace
    );
    assert_eq!((said.out, said.code), (expected, 1));
}

#[test]
fn kind_of_the_parents_that_is_not_installed_yet_is_told_with_what_to_do() {
    let lab = Lab::new("diff-no-crd");
    let hook = Hook::from_spec();
    let mut definition = lab.definition().config_maps().sync(&hook);
    definition.0["spec"]["parentResource"] =
        json!({"apiVersion": "absent.example.com/v1", "resource": "sites"});
    let said = diff(&lab, &definition, &[]);
    assert_eq!(said.code, 2, "{said:?}");
    let absent = "absent.example.com/v1 sites, cannot be read: the API server has no `absent.example.com/v1`";
    let hint =
        "hint: apply its CustomResourceDefinition first, as in `kubectl apply -f hooks/<hook>/crd.yaml`";
    assert!(said.err.contains(absent) && said.err.contains(hint), "{said:?}");
}

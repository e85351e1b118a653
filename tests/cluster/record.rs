//! `syncwright record`: a visit of the cluster becomes a case that `syncwright test` replays, without the values of Secrets.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::lab::Lab;

const SYNC: &str = "\
{% set found = children.find('Secret', parent.metadata.name) %}
{% set wanted = related.find('ConfigMap', 'wanted') %}
status:
  at: {{ now }}
  color: {{ wanted.data.color | default('none') }}
  has: {{ 'yes' if found is defined else 'no' }}
---
apiVersion: v1
kind: Secret
metadata: {name: \"{{ parent.metadata.name }}\"}
stringData: {password: \"{{ found.data.password | b64decode if found is defined else 'hunter-twenty-two' }}\"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: \"{{ parent.metadata.name }}\"}
data: {url: \"db://{{ found.data.password | b64decode if found is defined else 'later' }}@x\"}
";
const CUSTOMIZE: &str = "relatedResources: [{apiVersion: v1, resource: configmaps, names: [wanted]}]\n";

/// Exit code, stdout and stderr.
fn syncwright(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_syncwright")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn visit_is_kept_without_secrets_and_replayed() {
    let lab = Lab::new("record");
    let folder = lab.folder.path();
    let hooks = folder.join("hooks/thing");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("sync.yaml"), SYNC).unwrap();
    fs::write(hooks.join("customize.yaml"), CUSTOMIZE).unwrap();
    let webhook = |call: &str| json!({"webhook": {"path": format!("/thing/{call}")}});
    let definition = lab.definition().config_maps().child("v1", "secrets", "InPlace");
    let definition = definition
        .with("/spec/hooks/sync", webhook("sync"))
        .with("/spec/hooks/customize", webhook("customize"));
    let controller = lab.run(&definition);
    lab.create("v1", "configmaps", &json!({"metadata": {"name": "wanted"}, "data": {"color": "green"}}));
    lab.add_thing("t", json!({"size": 3}));
    lab.wait(&lab.config_map("t"), "the password is in use", |map| {
        map["data"]["url"] == "db://hunter-twenty-two@x"
    });
    lab.wait(&lab.thing("t"), "all is seen", |thing| {
        thing["status"]["has"] == "yes" && thing["status"]["color"] == "green"
    });
    controller.terminate();
    let versions = || {
        let lists =
            [lab.thing(""), lab.config_map(""), lab.path("v1", "secrets", "")].map(|path| lab.get(&path));
        lists.map(|list| {
            list["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["metadata"]["resourceVersion"].clone())
                .collect::<Vec<_>>()
        })
    };
    let before = versions();

    let kubeconfig = lab.user.kubeconfig.display().to_string();
    let record = |more: &[&str]| {
        let usual = ["record", "--controllers", "controllers.yaml", "--kubeconfig", &kubeconfig];
        syncwright(folder, &[&usual, more].concat())
    };
    let expected = "\
wrote hooks/thing/cases/recorded-t/customize.request.yaml
wrote hooks/thing/cases/recorded-t/customize.response.yaml
wrote hooks/thing/cases/recorded-t/sync.request.yaml
wrote hooks/thing/cases/recorded-t/sync.response.yaml
";
    assert_eq!(record(&["things/t"]), (0, expected.into(), String::new()));
    assert_eq!(versions(), before, "nothing is written in the cluster");
    assert_eq!(syncwright(folder, &["test"]), (0, "2 passed\n".into(), String::new()));

    let case = hooks.join("cases/recorded-t");
    let read = |file: &str| fs::read_to_string(case.join(file)).unwrap();
    let request = read("sync.request.yaml");
    assert!(request.starts_with(&format!("# Thing {}/t, 20", lab.namespace)), "{request}");
    assert!(
        request.lines().next().unwrap().contains("of the hook. Values of Secrets are masked."),
        "{request}"
    );
    for file in ["sync.request.yaml", "sync.response.yaml", "customize.request.yaml"] {
        let text = read(file);
        assert!(!text.contains("hunter") && !text.contains("aHVudGVy"), "{text}");
    }
    let answer: Value = serde_saphyr::from_str(&read("sync.response.yaml")).unwrap();
    assert_eq!(answer["status"]["color"], "green");
    assert_eq!(answer["children"][0]["stringData"]["password"], "masked-1");
    assert_eq!(answer["children"][1]["data"]["url"], "db://masked-1@x");

    let (code, _, told) = record(&["things/t"]);
    assert_eq!(code, 2);
    assert!(
        told.contains(
            "there is a case `hooks/thing/cases/recorded-t` already; hint: name another one with --case"
        ),
        "{told}"
    );
    lab.add_thing("u", json!({}));
    let (code, _, told) = record(&["things"]);
    let both =
        format!("2 parents are meant: `{0}/t` of `{0}`, `{0}/u` of `{0}`; hint: give a name", lab.namespace);
    assert!(code == 2 && told.contains(&both), "{told}");

    // A definition whose hook is a URL says nothing of templates.
    let remote = definition.with("/spec/hooks/sync", json!({"webhook": {"url": "http://127.0.0.1:9/sync"}}));
    lab.write_definitions(&[&remote]);
    let (code, _, told) = record(&["things/u"]);
    assert!(
        code == 2
            && told.contains("its sync hook is a URL; hint: name the folder of its templates with --hook"),
        "{told}"
    );
    let (code, _, told) = record(&["things/u", "--hook", "thing", "--case", "new"]);
    assert_eq!((code, told.as_str()), (0, ""));
    assert_eq!(
        syncwright(folder, &["test", "--only", "thing/new/"]),
        (0, "2 passed\n".into(), String::new())
    );
}

//! `syncwright migrate`, and the way from one stored version to the next that OPERATIONS.md describes.

use std::fs;
use std::process::{Command, Output};

use serde_json::json;

use crate::support::controller::Controller;
use crate::support::lab::{CRDS, Lab};
use crate::support::pages::webhook_port;

/// The older version has `flat`, the newer one `size`.
const CONVERT: &str = "\
{% if object.spec.stuck is defined %}{{ fail('it is stuck') }}{% endif %}
spec: {% if to == 'v2' %}{size: {{ object.spec.flat }}}{% else %}{flat: {{ object.spec.size }}}{% endif %}
";

fn migrate(lab: &Lab, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
    command.current_dir(lab.folder.path()).env_remove("KUBECONFIG");
    command.arg("migrate").arg("--kubeconfig").arg(&lab.user.kubeconfig).args(arguments);
    let Output { status, stdout, stderr } = command.output().expect("the binary was built for this test");
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn start(lab: &Lab) -> Controller {
    fs::create_dir_all(lab.folder.path().join("hooks/thing")).unwrap();
    fs::write(lab.folder.path().join("hooks/thing/convert.yaml"), CONVERT).unwrap();
    lab.write_definitions(&[]);
    let secret = format!("{}/hooks", lab.namespace);
    lab.start(&[
        "--webhook-listen",
        "127.0.0.1:0",
        "--webhook-host",
        "localhost",
        "--webhook-secret",
        &secret,
    ])
}

#[test]
fn a_kind_is_brought_to_its_next_version_and_loses_the_older_one() {
    let lab = Lab::new("migrated");
    let name = format!("things.{}", lab.group);
    let crd = format!("{CRDS}/{name}");
    let stored = || lab.get(&crd)["status"]["storedVersions"].clone();
    for index in 0..5 {
        lab.add_thing(&format!("thing-{index}"), json!({"flat": index}));
    }
    lab.add_thing("bad", json!({"flat": 9, "stuck": true}));
    let (code, said, _) = migrate(&lab, &[&name]);
    assert_eq!((code, said), (Some(0), format!("{name}: everything is stored as v1 already\n")));

    // The webhook first, then the version.
    let controller = start(&lab);
    let url = format!("https://localhost:{}/thing/convert", webhook_port(&controller));
    let mut versions = lab.get(&crd)["spec"]["versions"].clone();
    let mut newer = versions[0].clone();
    newer["name"] = json!("v2");
    versions[0]["storage"] = json!(false);
    versions.as_array_mut().unwrap().push(newer);
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": {"url": url}});
    let label = format!("{}.hooks", lab.namespace);
    lab.merge(&crd, json!({"metadata": {"labels": {"syncwright.io/inject-ca-from": label}}}));
    let conversion = json!({"strategy": "Webhook", "webhook": webhook});
    lab.merge(&crd, json!({"spec": {"versions": versions, "conversion": conversion}}));
    let newer = |name: &str| lab.path(&format!("{}/v2", lab.group), "things", name);
    lab.wait(&newer("thing-3"), "it is served in the newer version", |thing| {
        thing["spec"] == json!({"size": 3})
    });
    assert_eq!(stored(), json!(["v1", "v2"]));

    let (code, said, complaint) = migrate(&lab, &["--dry-run", &name]);
    assert_eq!(code, Some(1), "{said}{complaint}");
    assert!(complaint.contains(&format!("error: Thing {}/bad: ", lab.namespace)), "{complaint}");
    assert!(complaint.contains("it is stuck"), "{complaint}");
    let (code, said, complaint) = migrate(&lab, &[&name]);
    assert_eq!(code, Some(1), "{said}{complaint}");
    assert!(
        complaint.contains(&format!("{name}: 5 objects rewritten as v2, 1 refused: see above")),
        "{complaint}"
    );
    assert_eq!(stored(), json!(["v1", "v2"]), "one is not");

    // The template is mended, as its author would.
    let (_, mended) = CONVERT.split_once('\n').unwrap();
    fs::write(lab.folder.path().join("hooks/thing/convert.yaml"), mended).unwrap();
    lab.wait(&newer("bad"), "it is served in the newer version", |thing| thing["spec"]["size"] == 9);
    let (code, said, complaint) = migrate(&lab, &[&name]);
    assert_eq!(code, Some(0), "{said}{complaint}");
    assert_eq!(said, format!("{name}: 6 objects rewritten as v2; stored versions: v1, v2 -> v2\n"));
    assert_eq!(stored(), json!(["v2"]));

    // Nothing asks for a conversion any more.
    let kept = lab.get(&crd)["spec"]["versions"][1].clone();
    lab.merge(
        &crd,
        json!({"spec": {"versions": [kept], "conversion": {"strategy": "None", "webhook": null}}}),
    );
    controller.kill();
    for index in 0..5 {
        let thing = lab.wait(&newer(&format!("thing-{index}")), "it is served without a webhook", |_| true);
        assert_eq!(thing["spec"], json!({"size": index}));
    }
}

#[test]
fn what_cannot_be_migrated_is_told() {
    let lab = Lab::new("unmigrated");
    let (code, said, complaint) = migrate(&lab, &["nothing.example.com"]);
    assert_eq!((code, said.as_str()), (Some(1), ""));
    assert!(complaint.contains("there is no CRD `nothing.example.com`"), "{complaint}");
    let (code, _, complaint) = migrate(&lab, &[]);
    assert_eq!(code, Some(2));
    assert!(complaint.contains("<CRD>"), "{complaint}");
}

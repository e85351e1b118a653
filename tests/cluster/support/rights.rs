//! Controllers that have the rights that `syncwright rbac` prints, and no other.

use std::process::Command;

use serde_json::Value;

use crate::support::lab::Lab;

/// A verb on a resource with its group, as roles and the audit log have it: `patch apps:deployments`.
pub type Right = String;

/// Makes the lab's controllers somebody who has the printed roles for the definitions that were written, and nothing else.
#[track_caller]
pub fn narrow(lab: &mut Lab, more: &[&str]) {
    let account = format!("{}/narrow", lab.namespace);
    let output = Command::new(env!("CARGO_BIN_EXE_syncwright"))
        .args(["rbac", "--name", &lab.namespace, "--service-account", &account])
        .args(more)
        .current_dir(lab.folder.path())
        .output()
        .expect("the binary was built for this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    lab.user = lab.plane.account(&lab.namespace, "narrow");
    lab.plane.apply(&lab.namespace, &String::from_utf8(output.stdout).expect("YAML is text"));
    for kind in ["clusterroles", "clusterrolebindings"] {
        lab.plane.delete_at_end(format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{}", lab.namespace));
    }
}

/// What the lab's controllers have been refused so far. Nothing is known of it where the cluster is not ours.
pub fn refused(lab: &Lab) -> Vec<Right> {
    if lab.plane.is_existing() {
        return Vec::new();
    }
    // Admission refuses with the same code, but not by saying who cannot do what.
    let is_refused = |event: &&Value| {
        let status = &event["responseStatus"];
        status["code"] == 403 && text(&status["message"]).contains(" cannot ")
    };
    lab.plane.requests_of(&lab.user).iter().filter(is_refused).flat_map(used_in).collect()
}

pub fn right(verb: &str, group: &str, resource: &str) -> Right {
    format!("{verb} {group}:{resource}")
}

/// A patch that made an object has used the right to create it, too.
pub fn used_in(event: &Value) -> Vec<Right> {
    let about = &event["objectRef"];
    let resource = match text(&about["subresource"]) {
        "" => text(&about["resource"]).to_owned(),
        sub => format!("{}/{sub}", text(&about["resource"])),
    };
    let of = |verb: &str| right(verb, text(&about["apiGroup"]), &resource);
    let verb = text(&event["verb"]);
    let created = verb == "patch" && event["responseStatus"]["code"] == 201;
    if created { vec![of(verb), of("create")] } else { vec![of(verb)] }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

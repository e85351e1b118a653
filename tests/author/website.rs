//! A new author builds a `Website`: Deployment, Service, Ingress and a reference to a TLS Secret, with a status from the
//! Deployment. Each mistake on the way is told with its line; the pages are stored here and reviewed like code.

use std::fs;
use std::path::Path;

use crate::{folder, says, syncwright};

const INGRESS: &str = "\
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ name }}
  labels: {{ labels }}
spec:
  tls:
    - hosts: [{{ spec.host }}]
      secretName: {{ spec.tlsSecret.name }}
  rules:
    - host: {{ spec.host }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend: {service: {name: {{ name }}, port: {name: http}}}
";
const FIELDS: &str = "
                host: {type: string, minLength: 1}
                tlsSecret:
                  type: object
                  required: [name]
                  properties: {name: {type: string, minLength: 1}}
";

/// Puts text before or after a line of a file.
fn edit(folder: &Path, file: &str, edit: impl Fn(String) -> String) {
    let path = folder.join(file);
    let text = fs::read_to_string(&path).unwrap();
    let edited = edit(text.clone());
    assert_ne!(edited, text, "{file} is edited");
    fs::write(path, edited).unwrap();
}

const SYNC: &str = "hooks/website/sync.yaml";

/// What the new author has written so far: an Ingress before the status.
fn begun() -> tempfile::TempDir {
    let folder = folder(&[]);
    assert_eq!(syncwright(folder.path(), &["new", "website", "--group", "example.com"]).code, 0);
    edit(folder.path(), SYNC, |text| {
        text.replace("---\n{# What is observed", &format!("{INGRESS}---\n{{# What is observed"))
    });
    folder
}

#[track_caller]
fn properties(folder: &Path, code: i32, page: &str) {
    let said = syncwright(folder, &["test", "--properties"]);
    assert_eq!((said.code, said.err.as_str()), (code, ""), "{}", said.out);
    let (_, rest) = said.out.split_once('\n').unwrap();
    let shown = rest.split("  with the parent:").next().unwrap();
    assert_eq!(if code == 0 { said.out.as_str() } else { shown }, page);
}

#[test]
fn a_slip_of_the_pen_is_shown_with_what_was_meant() {
    let folder = begun();
    edit(folder.path(), SYNC, |text| text.replace("spec.image", "spec.imgae"));
    let said = syncwright(folder.path(), &["render", "website", "sync", "hooks/website/example.yaml"]);
    let page = "\
hooks/website/sync.yaml:27:21: `parent.spec.imgae` is absent
    |
 27 |           image: {{ spec.imgae }}
    |                     ^^^^^^^^^^
hint: did you mean `image`?
";
    says(&said, 1, "", page);
}

#[test]
fn a_field_that_no_parent_can_have_is_told_apart_from_one_that_may_be_absent() {
    let folder = begun();
    let page = "  hooks/website/sync.yaml:54:18: `parent.spec.host` is absent
      |
   54 |     - hosts: [{{ spec.host }}]
      |                  ^^^^^^^^^
  found: `spec.host` is not in the schema of `crd.yaml`: no parent can have it
";
    let said = syncwright(folder.path(), &["test", "--properties"]);
    assert!(said.code == 1 && said.out.contains(page), "{}{}", said.out, said.err);

    edit(folder.path(), "hooks/website/crd.yaml", |text| {
        text.replace("\n                port:\n", &format!("{FIELDS}                port:\n"))
    });
    let said = syncwright(folder.path(), &["test", "--properties"]);
    assert!(said.code == 1 && said.out.contains("is absent") && !said.out.contains("found:"), "{}", said.out);
}

#[test]
fn the_finished_operator_answers_every_parent() {
    let folder = begun();
    edit(folder.path(), "hooks/website/crd.yaml", |text| {
        text.replace("\n                port:\n", &format!("{FIELDS}                port:\n"))
    });
    edit(folder.path(), SYNC, |text| {
        let text = text.replace(
            "---\napiVersion: networking",
            "{% if spec.host is defined %}\n---\napiVersion: networking",
        );
        let text = text.replace("  tls:\n", "  {% if spec.tlsSecret is defined %}\n  tls:\n");
        let text = text.replace("  rules:\n", "  {% endif %}\n  rules:\n");
        text.replace("---\n{# What is observed", "{% endif %}\n---\n{# What is observed")
    });
    let undeclared = "  child Ingress `a`: its kind is not declared in `childResources`\n";
    properties(folder.path(), 1, undeclared);
    edit(folder.path(), "controllers.yaml", |text| {
        let rule = "    - apiVersion: networking.k8s.io/v1\n      resource: ingresses\n      updateStrategy:\n        method: InPlace\n";
        text.replace("  hooks:\n", &format!("{rule}  hooks:\n"))
    });
    properties(folder.path(), 0, "website: 200 parents, of which 0 are refused on purpose\n");
    says(&syncwright(folder.path(), &["test", "--only", "website/"]), 0, "3 passed\n", "");
}

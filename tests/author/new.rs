//! `syncwright new`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::{folder, says, syncwright};

#[track_caller]
fn new(folder: &Path, arguments: &[&str]) -> crate::Said {
    let said = syncwright(folder, &[&["new"], arguments].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    said
}

#[test]
fn a_new_operator_passes_its_cases_and_says_what_to_do_next() {
    let folder = folder(&[]);
    let said = new(folder.path(), &["mysql", "--group", "database.example.com", "--kind", "MySQL"]);
    let printed = "\
wrote hooks/mysql/crd.yaml
wrote hooks/mysql/sync.yaml
wrote hooks/mysql/example.yaml
wrote hooks/mysql/cases/first-sync/sync.request.yaml
wrote hooks/mysql/cases/all-replicas-are-ready/sync.request.yaml
wrote hooks/mysql/cases/image-is-missing/sync.request.yaml
wrote hooks/mysql/cases/all-replicas-are-ready/sync.response.yaml
wrote hooks/mysql/cases/first-sync/sync.response.yaml
wrote hooks/mysql/cases/image-is-missing/sync.error.txt
added controller `mysql` to controllers.yaml

Next:
  syncwright test --only mysql/
  kubectl apply -f hooks/mysql/crd.yaml
  syncwright run --controllers controllers.yaml
  kubectl apply -f hooks/mysql/example.yaml
";
    assert_eq!(said.out, printed);
    says(&syncwright(folder.path(), &["test", "--only", "mysql/"]), 0, "3 passed\n", "");
    let error = "\
hooks/mysql/sync.yaml:27:21: `parent.spec.image` is absent
    |
 27 |           image: {{ spec.image }}
    |                     ^^^^^^^^^^
hint: it has `replicas`; where one may be missing, write `| default(…)`
";
    let written = folder.path().join("hooks/mysql/cases/image-is-missing/sync.error.txt");
    assert_eq!(fs::read_to_string(written).unwrap(), error);
}

#[test]
fn nothing_is_written_over_unless_told_to() {
    let folder = folder(&[("hooks/a/sync.yaml", "mine\n"), ("controllers.yaml", "# mine\n")]);
    let refused = "\
error: nothing is written: there are files already
found: `hooks/a/sync.yaml`
hint: `--force` writes over them; another name makes another folder
";
    let asked = ["new", "a", "--group", "example.com"];
    says(&syncwright(folder.path(), &asked), 2, "", refused);
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!((read("hooks/a/sync.yaml"), read("controllers.yaml")), ("mine\n".into(), "# mine\n".into()));
    assert!(!folder.path().join("hooks/a/crd.yaml").exists());

    new(folder.path(), &["a", "--group", "example.com", "--force"]);
    let definitions = read("controllers.yaml");
    assert!(definitions.starts_with("# mine\napiVersion: metacontroller"), "{definitions}");
    says(&syncwright(folder.path(), &["test"]), 0, "3 passed\n", "");

    fs::remove_dir_all(folder.path().join("hooks/a")).unwrap();
    let refused = "\
error: nothing is written: `controllers.yaml` has a controller `a` already
hint: `--force` keeps it and writes the folder
";
    says(&syncwright(folder.path(), &asked), 2, "", refused);
    let said = new(folder.path(), &["a", "--group", "example.com", "--force"]);
    assert!(said.out.contains("kept controller `a` in controllers.yaml as it is"), "{}", said.out);
    assert_eq!(read("controllers.yaml"), definitions);
}

#[test]
fn what_cannot_be_made_is_explained() {
    let folder = folder(&[
        ("crd.yaml", "kind: ConfigMap\n"),
        ("broken.yaml", "a: [\n"),
        ("m/a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {}\n"),
        ("empty/README.md", ""),
        ("n/a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"),
    ]);
    let refused = |arguments: &[&str], err: &str| {
        says(&syncwright(folder.path(), &[&["new", "a"], arguments].concat()), 2, "", err);
    };
    refused(
        &[],
        "error: a new kind needs an API group\nhint: name a domain of yours: `--group example.com`\n",
    );
    refused(&["--from", "crd.yaml"], "error: `crd.yaml` holds no CustomResourceDefinition\n");
    refused(
        &["--from", "none.yaml"],
        "error: `none.yaml` cannot be read: No such file or directory (os error 2)\n",
    );
    let group = ["--group", "example.com", "--from-manifests"];
    refused(
        &[&group[..], &["m"]].concat(),
        "error: m/a.yaml:1:1: this is no manifest: it has no `metadata.name`\n",
    );
    refused(&[&group[..], &["empty"]].concat(), "error: `empty` holds no manifest\n");
    refused(
        &[&group[..], &["n"]].concat(),
        "error: `n` holds no manifest\nfound: Namespace `a` is left out: it belongs to no namespace, so a parent in one cannot own it\n",
    );
    let said = syncwright(folder.path(), &[&["new", "a"], &group[..], &["broken.yaml"]].concat());
    assert!(said.code == 2 && said.err.starts_with("error: broken.yaml:"), "{}", said.err);
    assert!(!folder.path().join("hooks").exists() && !folder.path().join("controllers.yaml").exists());
}

#[test]
fn nothing_is_left_behind_of_what_fails() {
    let named = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n");
    let folder = folder(&[
        ("upper.yaml", &named("My_X")),
        ("helm.yaml", &named("RELEASE-NAME-x")),
        ("raw.yaml", &named("{{ .Release.Name }}-x")),
        ("m/kustomization.yaml", "resources: [a.yaml]\n"),
        (
            "mine.yaml",
            "apiVersion: metacontroller.k8s.io/v1alpha1\nkind: CompositeController\nmetadata: {name: a}\nspec: {}\n",
        ),
        ("good.yaml", &named("x")),
        ("controllers/README.md", ""),
    ]);
    let left = || {
        assert!(!folder.path().join("hooks").exists() && !folder.path().join("controllers.yaml").exists());
    };
    let refused = |source: &str, err: &str| {
        let asked = ["new", "shop", "--group", "example.com", "--from-manifests", source];
        says(&syncwright(folder.path(), &asked), 2, "", err);
        left();
    };
    refused(
        "upper.yaml",
        "error: upper.yaml:1:1: ConfigMap: the name `My_X` must consist of lower-case letters, digits, `-` and `.`; no cluster takes it\n\
         hint: a ConfigMap is called by lower-case letters, digits and `-`\n",
    );
    let said = syncwright(
        folder.path(),
        &["new", "shop", "--group", "example.com", "--from-manifests", "helm.yaml"],
    );
    assert!(
        said.code == 2 && said.err.ends_with("hint: give the release a name: `helm template NAME CHART`\n"),
        "{}",
        said.err
    );
    let said =
        syncwright(folder.path(), &["new", "shop", "--group", "example.com", "--from-manifests", "raw.yaml"]);
    let hint = "hint: this is a template: render it first, `helm template NAME CHART | … -`\n";
    assert!(said.code == 2 && said.err.ends_with(hint), "{}", said.err);
    refused(
        "m",
        "error: m/kustomization.yaml:1:1: this is no manifest: it has no `apiVersion`\n\
         hint: of a kustomization, give what it makes: `kubectl kustomize DIR | … -`\n",
    );
    refused(
        "mine.yaml",
        "error: CompositeController `a` is a definition, and no child of an operator\n\
         hint: give the manifests that are to become children; `--controllers` names the file of definitions\n",
    );
    // The last thing that is written cannot be.
    let asked = ["new", "shop", "--group", "example.com", "--controllers", "none/controllers.yaml"];
    let said = syncwright(folder.path(), &asked);
    assert!(
        said.code == 2 && said.err.starts_with("error: `none/controllers.yaml` cannot be "),
        "{}",
        said.err
    );
    left();
}

#[test]
fn secrets_and_namespaces_of_manifests_are_told_of() {
    let manifests = "\
apiVersion: v1
kind: Secret
metadata: {name: shop, namespace: web}
stringData: {password: hunter2}
";
    let folder = folder(&[("m.yaml", manifests)]);
    let said = new(folder.path(), &["shop", "--group", "example.com", "--from-manifests", "m.yaml"]);
    let note = "note: Secret `shop` stands in sync.yaml and in the cases with its values: keep them out of git, or let the template draw them (`random_string`)\n";
    assert!(said.out.contains(note), "{}", said.out);
    let next = "  kubectl create namespace web\n  kubectl apply -f hooks/shop/example.yaml\n";
    assert!(said.out.ends_with(next), "{}", said.out);
}

const CRD: &str = "\
# Not ours to change.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Site, plural: sites}
  versions:
    - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
    - name: v2
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [size, mode]
              properties:
                size: {type: string, pattern: '^[0-9]+Gi$'}
                mode: {type: string, enum: [fast, '#}']}
                port: {type: integer, minimum: 1024, maximum: 65535}
            status:
              type: object
              properties:
                conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[test]
fn an_operator_can_start_from_a_crd() {
    let folder = folder(&[("crd.yaml", CRD)]);
    new(folder.path(), &["site", "--from", "crd.yaml"]);
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(read("hooks/site/crd.yaml"), CRD);
    let example = "\
apiVersion: example.org/v2
kind: Site
metadata:
  name: example
spec:
  size: 1Gi
  mode: fast
";
    assert_eq!(read("hooks/site/example.yaml"), example);
    let fields = "
    size: string
    mode: string, one of [\"fast\",\"# }\"]
    port: integer, at least 1024, at most 65535
#}
";
    assert!(read("hooks/site/sync.yaml").contains(fields), "{}", read("hooks/site/sync.yaml"));
    assert!(read("controllers.yaml").contains("apiVersion: example.org/v2\n    resource: sites\n"));
    says(&syncwright(folder.path(), &["test"]), 0, "1 passed\n", "");
    let said = syncwright(folder.path(), &["new", "site2", "--from", "crd.yaml", "--version", "v3"]);
    says(&said, 2, "", "error: `crd.yaml`: no version is called `v3`; there are: `v1beta1`, `v2`\n");
    let said = syncwright(folder.path(), &["new", "site2", "--from", "crd.yaml", "--group", "example.com"]);
    let other = "error: the CustomResourceDefinition is of another group\nfound: `example.org`\nexpected: `example.com`, as `--group` says\n";
    says(&said, 2, "", other);
}

/// What `helm template` prints looks like this.
fn manifests() -> Vec<Value> {
    let labels = json!({"app.kubernetes.io/name": "nginx", "app.kubernetes.io/instance": "shop", "helm.sh/chart": "nginx-1.0.0"});
    let selector = json!({"app.kubernetes.io/name": "nginx", "app.kubernetes.io/instance": "shop"});
    let metadata = |name: &str| json!({"name": name, "namespace": "prod", "labels": labels});
    let container = json!({
        "name": "nginx", "image": "nginx:1.29", "imagePullPolicy": "IfNotPresent",
        "args": ["--upstream=http://shop-nginx-cache:11211", "{{ not.a.template }}"],
        "env": [{"name": "NO", "value": "no"}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}},
        "resources": {"requests": {"cpu": 0.5, "memory": "64Mi"}},
        "envFrom": [{"configMapRef": {"name": "shop-nginx-config"}}],
    });
    vec![
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("shop-nginx-config"),
            "data": {"page.tmpl": "{{ range .Items }}\n  {{- .Name }}{% raw %}\n{{ end }}\n", "12": "012"},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("shop-nginx"),
            "spec": {
                "replicas": 2, "selector": {"matchLabels": selector},
                "template": {"metadata": {"labels": selector}, "spec": {"containers": [container]}},
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata("shop-nginx"),
            "spec": {"selector": selector, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        }),
    ]
}

/// JSON is YAML, so this is a stream of manifests.
fn stream(manifests: &[Value]) -> String {
    manifests.iter().map(|manifest| format!("---\n# Source: nginx/templates/x.yaml\n{manifest}\n")).collect()
}

fn rendered(folder: &Path) -> Value {
    let said = syncwright(folder, &["render", "shop", "sync", "hooks/shop/example.yaml", "-o", "json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    serde_json::from_str::<Value>(&said.out).unwrap()["children"].take()
}

#[test]
fn manifests_become_templates_that_render_to_them() {
    let manifests = manifests();
    let folder = folder(&[("m/all.yaml", &stream(&manifests))]);
    let said = new(folder.path(), &["shop", "--group", "example.com", "--from-manifests", "m"]);
    assert!(!said.out.contains("note:"), "{}", said.out);
    // A CRD knows no type that takes a fraction beside `1Gi`, so that it gets quotes, which mean the same.
    let quoted = json!(manifests).to_string().replace("\"cpu\":0.5", "\"cpu\":\"0.5\"");
    assert_eq!(rendered(folder.path()), serde_json::from_str::<Value>(&quoted).unwrap());
    says(&syncwright(folder.path(), &["test"]), 0, "2 passed\n", "");

    let example = fs::read_to_string(folder.path().join("hooks/shop/example.yaml")).unwrap();
    let expected = "\
apiVersion: example.com/v1
kind: Shop
metadata:
  name: shop
  namespace: prod
spec:
  replicas: 2
  image: nginx:1.29
  resources:
    requests:
      cpu: \"0.5\"
      memory: 64Mi
  port: 8080
";
    assert_eq!(example, expected);
    let other = example.replace("name: shop", "name: other").replace("namespace: prod", "namespace: test");
    fs::write(folder.path().join("hooks/shop/example.yaml"), other).unwrap();
    let text = rendered(folder.path()).to_string();
    let left: Vec<&str> = ["shop", "prod"].into_iter().filter(|word| text.contains(word)).collect();
    assert!(left.is_empty(), "{left:?} stay in {text}");
}

/// The fields that are lifted take all that the children take, and no more.
#[test]
fn lifted_quantities_are_quantities() {
    let workload = |cpu: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: app}}\nspec:\n  selector: {{matchLabels: {{app: app}}}}\n  \
             template:\n    metadata: {{labels: {{app: app}}}}\n    spec:\n      containers:\n      \
             - {{name: app, image: a, resources: {{limits: {{cpu: {cpu}, memory: 1Gi}}}}}}\n---\n\
             apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: app}}\n\
             spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1G}}}}}}\n"
        )
    };
    let made = |cpu: &str| {
        let folder = folder(&[("m/a.yaml", &workload(cpu))]);
        new(folder.path(), &["app", "--group", "example.com", "--from-manifests", "m"]);
        folder
    };
    for (cpu, seed) in [("1", "1"), ("500m", "2"), ("0.5", "3")] {
        let folder = made(cpu);
        let checked = syncwright(folder.path(), &["check"]);
        assert!(checked.out.starts_with("nothing found"), "{cpu}: {}", checked.out);
        let tried = syncwright(folder.path(), &["test", "--properties", "--seed", seed]);
        assert_eq!((tried.code, tried.err.as_str()), (0, ""), "{cpu}: {}", tried.out);
    }
}

#[test]
fn what_is_not_taken_over_is_told() {
    let object = |kind: &str, name: &str, more: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        object["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let manifests = [
        object("Namespace", "prod", json!({})),
        object("Pod", "shop-test", json!({"annotations": {"helm.sh/hook": "test"}})),
        object("Secret", "shop", json!({})),
        json!({"apiVersion": "example.org/v1", "kind": "Proxy", "metadata": {"name": "edge"},
               "spec": {"secretName": "shop-tls"}}),
    ];
    let folder = folder(&[("all.yaml", &stream(&manifests))]);
    let said = new(folder.path(), &["shop", "--group", "example.com", "--from-manifests", "all.yaml"]);
    let notes: Vec<&str> = said.out.lines().filter(|line| line.starts_with("note:")).collect();
    let expected = [
        "note: Namespace `prod` is left out: it belongs to no namespace, so a parent in one cannot own it",
        "note: Pod `shop-test` is left out: it is a hook of Helm's, which is not there all the time",
        "note: `edge` stay as they are, since they do not begin with `shop`: two parents would share them",
        "note: `shop-tls`: not among the manifests, but expected under a name that follows the parent's",
        "note: the plural of `Proxy` is a guess: see `childResources`",
    ];
    assert_eq!(notes, expected);
}

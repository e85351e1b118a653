//! What Helm says of the chart, of wrong values, and what must be the same in two places.

use crate::helm::{Helm, find, objects, read, text, yaml};

/// The shipped kind that is served in several versions.
const CONVERTED: &str = "postgresqlclusters.db.example.com";

#[test]
fn helm_finds_no_fault() {
    let helm = Helm::new();
    let output = helm.run(&["lint", "chart", "--strict", "--quiet"]);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn wrong_values_are_refused_by_name() {
    let helm = Helm::new();
    for (value, named) in [
        ("replica=2", "'replica'"),
        ("replicas=two", "replicas"),
        ("operators.mongodb=true", "'mongodb'"),
        ("leaderElection.leaseDuration=15", "leaderElection/leaseDuration"),
        ("log.format=xml", "log/format"),
        ("rbac.rules[0].verb=get", "rbac/rules/0"),
        ("hooks.sync=x", "hooks"),
    ] {
        let output = helm.run(&["template", "sw", "chart", "--set", value]);
        let told = text(&output.stderr);
        assert!(!output.status.success() && told.contains(named), "{value}: {told}");
    }
}

#[test]
fn every_value_has_a_comment_and_a_schema() {
    let values = yaml(&read("chart/values.yaml"));
    let schema: serde_json::Value = serde_json::from_str(&read("chart/values.schema.json")).unwrap();
    for name in values.as_object().unwrap().keys() {
        assert!(schema["properties"][name].is_object(), "`{name}` has no schema");
        assert_ne!(schema["properties"][name], serde_json::json!({}), "`{name}` may be anything");
    }
    let text = read("chart/values.yaml");
    let lines: Vec<&str> = text.lines().collect();
    // A block's comment may stand above its first line or above the line that it begins with.
    let told = |index: usize| {
        lines[index.saturating_sub(1)].trim_start().starts_with('#')
            || lines.get(index + 1).is_some_and(|next| next.trim_start().starts_with('#'))
            || !lines[index.saturating_sub(1)].trim().is_empty()
    };
    for (index, line) in lines.iter().enumerate() {
        let is_key = line.starts_with(|c: char| c.is_ascii_lowercase());
        let is_plain = ["resources:", "podAnnotations:"].iter().any(|plain| line.starts_with(plain));
        assert!(!is_key || told(index) || is_plain, "chart/values.yaml:{}: no comment: {line}", index + 1);
    }
}

/// The chart's version of the program is the program's.
#[test]
fn chart_runs_this_version() {
    let chart = yaml(&read("chart/Chart.yaml"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn crds_are_those_of_the_sources_and_are_kept() {
    let rendered = objects(&Helm::new().template(&[]));
    let crds: Vec<_> =
        rendered.iter().filter(|object| object["kind"] == "CustomResourceDefinition").collect();
    assert_eq!(crds.len(), 6);
    for file in [
        "src/config/crds/compositecontrollers.yaml",
        "src/config/crds/controllerrevisions.yaml",
        "src/config/crds/decoratorcontrollers.yaml",
        "hooks/backupschedule/crd.yaml",
        "hooks/mysql/crd.yaml",
        "hooks/postgresqlcluster/crd.yaml",
    ] {
        let mut source = yaml(&read(file));
        if let Some(service) = source.pointer_mut("/spec/conversion/webhook/clientConfig/service") {
            service["name"] = "sw-webhook".into();
            service["namespace"] = "ops".into();
        }
        let crd = find(&rendered, "CustomResourceDefinition", source["metadata"]["name"].as_str().unwrap());
        assert_eq!(crd["spec"], source["spec"], "{file}");
        assert_eq!(crd["metadata"]["annotations"]["helm.sh/resource-policy"], "keep", "{file}");
    }
}

#[test]
fn config_map_holds_the_shipped_definitions_and_templates() {
    let rendered = objects(&Helm::new().template(&[]));
    let data = &find(&rendered, "ConfigMap", "sw")["data"];
    let items =
        &find(&rendered, "Deployment", "sw")["spec"]["template"]["spec"]["volumes"][0]["configMap"]["items"];
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let mut paths = Vec::new();
    for item in items.as_array().unwrap() {
        let path = text(&item["path"]);
        if path != "controllers.yaml" {
            assert_eq!(text(&data[text(&item["key"])]), read(&path), "{path}");
        }
        paths.push(path);
    }
    let expected = [
        "controllers.yaml",
        "hooks/backupschedule/sync.yaml",
        "hooks/mysql/sync.yaml",
        "hooks/postgresqlcluster/_cluster.yaml",
        "hooks/postgresqlcluster/_servers.yaml",
        "hooks/postgresqlcluster/convert.yaml",
        "hooks/postgresqlcluster/finalize.yaml",
        "hooks/postgresqlcluster/sync.yaml",
        "hooks/postgresqlcluster/validate.yaml",
    ];
    assert_eq!(paths, expected);
    assert_eq!(data.as_object().unwrap().len(), expected.len());
    assert_eq!(objects(&text(&data["controllers.yaml"])), objects(&read("controllers.yaml")));
}

/// A release and a ConfigMap may have 1 MiB; there is room for many more operators.
#[test]
fn chart_is_small() {
    let helm = Helm::new();
    let folder = tempfile::tempdir().unwrap();
    helm.answer(&["package", "chart", "--destination", folder.path().to_str().unwrap()]);
    let package = folder.path().join(format!("syncwright-{}.tgz", env!("CARGO_PKG_VERSION")));
    let size = std::fs::metadata(&package).expect("the package is there").len();
    assert!(size < 100_000, "{size} bytes");
}

/// Who serves a kind in several versions has its objects converted by this release, or is told that nobody would.
#[test]
fn a_converted_kind_needs_the_webhooks() {
    let helm = Helm::new();
    let rendered = objects(&helm.template(&[]));
    let crd = find(&rendered, "CustomResourceDefinition", CONVERTED);
    assert_eq!(crd["metadata"]["labels"]["syncwright.io/inject-ca-from"], "ops.sw-webhook");
    let service = &crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"];
    find(&rendered, "Service", service["name"].as_str().unwrap());
    let arguments = &find(&rendered, "Deployment", "sw")["spec"]["template"]["spec"]["containers"][0]["args"];
    for flag in ["--webhook-host=sw-webhook.ops.svc", "--webhook-secret=ops/sw-webhook"] {
        assert!(arguments.as_array().unwrap().contains(&flag.into()), "{flag}: {arguments}");
    }

    let off = ["template", "sw", "chart", "--set", "webhooks.enabled=false"];
    let told = text(&helm.run(&off).stderr);
    let expected = "PostgreSQLCluster has several versions, between which a webhook converts; leave webhooks.enabled on, or \
                    switch operators.postgresqlcluster off, or crds.operators where the CRD comes from elsewhere";
    assert!(told.contains(expected), "{told}");
    for without in ["operators.postgresqlcluster=false", "crds.operators=false"] {
        helm.answer(&[&off[..], &["--set", without]].concat());
    }
}

#[test]
fn certificate_of_cert_manager_is_mounted_and_asked_for() {
    let values = [
        "webhooks.enabled=true",
        "webhooks.certManager.enabled=true",
        "webhooks.certManager.issuerRef.name=own",
    ];
    let set: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    let rendered = objects(&Helm::new().template(&set));
    let certificate = find(&rendered, "Certificate", "sw-webhook");
    assert_eq!(certificate["spec"]["dnsNames"], serde_json::json!(["sw-webhook.ops.svc"]));
    assert_eq!(certificate["spec"]["issuerRef"]["name"], "own");
    let pod = &find(&rendered, "Deployment", "sw")["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][1]["secret"]["secretName"], certificate["spec"]["secretName"]);
    let folder = pod["containers"][0]["volumeMounts"][1]["mountPath"].as_str().unwrap();
    let arguments = pod["containers"][0]["args"].to_string();
    for flag in [format!("--tls-cert={folder}/tls.crt"), format!("--tls-key={folder}/tls.key")] {
        assert!(arguments.contains(&flag), "{arguments}");
    }
    assert!(!arguments.contains("--webhook-host"), "{arguments}");
    let webhooks = find(&rendered, "ValidatingWebhookConfiguration", "ops-sw");
    let converted = find(&rendered, "CustomResourceDefinition", CONVERTED);
    for object in [webhooks, converted] {
        assert_eq!(object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], "ops/sw-webhook");
        assert!(
            object["metadata"]["labels"]["syncwright.io/inject-ca-from"].is_null(),
            "it is cert-manager's"
        );
    }
    assert_eq!(converted["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    assert!(rendered.iter().all(|object| object["kind"] != "Secret"), "it is cert-manager's");
}

/// Nobody builds the image here: what it says is held against the sources and the chart.
#[test]
fn image_is_what_the_chart_runs() {
    let dockerfile = read("Dockerfile");
    let line = |word: &str| -> Vec<String> {
        let last =
            dockerfile.lines().rfind(|line| line.starts_with(word)).unwrap_or_else(|| panic!("no {word}"));
        last.split_whitespace().skip(1).map(str::to_owned).collect()
    };
    let rendered = objects(&Helm::new().template(&["--set", "webhooks.enabled=true"]));
    let pod = &find(&rendered, "Deployment", "sw")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for port in container["ports"].as_array().unwrap() {
        let port = port["containerPort"].to_string();
        assert!(line("EXPOSE").contains(&port), "{port}");
    }
    let user = format!("{}:{}", pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]);
    assert_eq!(line("USER"), [user]);
    assert_eq!(line("WORKDIR"), [container["workingDir"].as_str().unwrap()]);
    let [_, from, to] = line("COPY").try_into().expect("the binary is copied from the build");
    assert_eq!(from, format!("/source/target/release/{}", env!("CARGO_PKG_NAME")));
    assert_eq!(line("ENTRYPOINT"), [format!("[\"{to}\"]")]);
    assert!(container["command"].is_null() && container["args"][0] == "run");
    let rust =
        read("Cargo.toml").lines().find_map(|line| line.strip_prefix("rust-version = ").map(str::to_owned));
    assert!(dockerfile.contains(&format!("FROM rust:{}-", rust.unwrap().trim_matches('"'))));
}

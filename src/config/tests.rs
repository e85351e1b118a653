use std::time::Duration;

use serde_json::json;

use super::spec::{
    Access, CaBundle, ConditionCheck, Credentials, Decoding, Etag, HookVersion, KeyRef, ReadyWhen,
    ResourceName, Target, UpdateMethod,
};
use super::*;
use crate::object::selector::Selector;

const FILE: &str = "controllers.yaml";

/// A definition whose spec has these lines below `parentResource`.
fn manifest(rest: &str) -> String {
    let rest: String = rest.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "apiVersion: metacontroller.k8s.io/v1alpha1\nkind: CompositeController\nmetadata:\n  name: shelf\nspec:\n  \
         parentResource: {{apiVersion: demo.io/v1, resource: shelves}}\n{rest}"
    )
}

const SYNC: &str = "hooks: {sync: {webhook: {path: /shelf/sync}}}\n";

fn definition(rest: &str) -> Definition {
    let text = manifest(rest);
    let mut definitions = load(FILE, &text).unwrap_or_else(|problems| panic!("{}", pages(&problems)));
    assert_eq!(definitions.len(), 1);
    definitions.remove(0)
}

/// The problems, one a line, without their place.
fn told(rest: &str) -> Vec<String> {
    let problems = load(FILE, &manifest(rest)).map(|_| ()).expect_err(rest);
    let line = |problem: Problem| Problem { place: None, ..problem }.to_string();
    problems.into_iter().map(line).collect()
}

fn pages(problems: &[Problem]) -> String {
    problems.iter().map(Problem::page).collect::<Vec<_>>().join("\n\n")
}

/// The webhook of a sync hook with these fields.
fn webhook(fields: &str) -> spec::Webhook {
    definition(&format!("hooks: {{sync: {{webhook: {{{fields}}}}}}}"))
        .spec
        .hooks
        .sync
        .expect("a sync hook")
        .webhook
}

fn webhook_told(fields: &str) -> Vec<String> {
    told(&format!("hooks: {{sync: {{webhook: {{{fields}}}}}}}"))
}

#[test]
fn a_whole_definition_is_read() {
    let text = r#"
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata:
  name: shelf
  generation: 3
spec:
  generateSelector: true
  resyncPeriodSeconds: 30
  parentResource:
    apiVersion: demo.io/v1
    resource: shelves
    ignoreStatusChanges: true
    labelSelector:
      matchLabels: {floor: ground}
    revisionHistory:
      fieldPaths: [spec.template, spec.size]
  childResources:
  - apiVersion: v1
    resource: configmaps
    updateStrategy:
      method: InPlace
  - apiVersion: apps/v1
    resource: deployments
    updateStrategy:
      method: RollingRecreate
      statusChecks:
        conditions:
        - {type: Available, status: "True"}
  - apiVersion: v1
    resource: secrets
  hooks:
    sync:
      version: v2
      webhook:
        service: {name: hooks, namespace: web, port: 8443, protocol: https}
        path: /sync?x=1
        timeout: 1m30s
        responseUnMarshallMode: loose
        etag: {enabled: true, cacheTimeoutSeconds: 60, cacheCleanupSeconds: 5}
        caBundle: {secretRef: {name: ca, namespace: web}}
        authorization: {secretRef: {name: token, namespace: web, key: value}}
    finalize:
      webhook: {path: /shelf/finalize}
    preUpdateChild: {}
"#;
    let definitions = load(FILE, text).unwrap_or_else(|problems| panic!("{}", pages(&problems)));
    let [definition] = &definitions[..] else { panic!("one definition, not {}", definitions.len()) };
    let spec = &definition.spec;
    assert_eq!(definition.name, "shelf");
    assert_eq!(spec.parent.resource.to_string(), "demo.io/v1 shelves");
    assert_eq!(spec.parent.selector, Selector::label("floor", "ground"));
    assert_eq!(spec.parent.revision_paths, ["spec.template", "spec.size"]);
    assert!(spec.parent.ignore_status_changes && spec.generate_selector);
    assert_eq!(spec.resync_period, Some(Duration::from_secs(30)));

    let methods: Vec<UpdateMethod> = spec.children.iter().map(|rule| rule.update).collect();
    assert_eq!(methods, [UpdateMethod::InPlace, UpdateMethod::RollingRecreate, UpdateMethod::OnDelete]);
    let check = ConditionCheck { kind: "Available".into(), status: Some("True".into()), reason: None };
    assert_eq!(spec.children[1].status_checks.conditions, [check]);

    let sync = spec.hooks.sync.as_ref().expect("a sync hook");
    assert_eq!(sync.version, HookVersion::V2);
    assert_eq!(sync.webhook.target, Target::Url("https://hooks.web:8443/sync?x=1".into()));
    assert_eq!(sync.webhook.timeout, Duration::from_secs(90));
    assert_eq!(sync.webhook.decoding, Decoding::Loose);
    assert_eq!(sync.webhook.etag, Some(Etag { keep: Some(Duration::from_secs(60)) }));
    let key = |name: &str, key: &str| KeyRef { namespace: "web".into(), name: name.into(), key: key.into() };
    let access = Access {
        ca_bundle: Some(CaBundle::Secret(key("ca", "ca.crt"))),
        client_tls: None,
        credentials: Some(Credentials::Token { scheme: "Bearer".into(), secret: key("token", "value") }),
    };
    assert_eq!(sync.webhook.access, access);

    let finalize = spec.hooks.finalize.as_ref().expect("a finalize hook");
    assert_eq!(finalize.webhook.target, Target::BuiltIn { hook: "shelf".into(), call: "finalize".into() });
}

#[test]
fn ready_when_is_for_kinds_whose_status_has_rules() {
    let rule = |api_version: &str, resource: &str| {
        format!(
            "childResources:\n- apiVersion: {api_version}\n  resource: {resource}\n  updateStrategy: \
             {{method: RollingInPlace, statusChecks: {{readyWhen: KindStatus}}}}\n{SYNC}"
        )
    };
    for (api_version, resource) in
        [("apps/v1", "statefulsets"), ("batch/v1", "jobs"), ("v1", "persistentvolumeclaims"), ("v1", "pods")]
    {
        let checks = &definition(&rule(api_version, resource)).spec.children[0].status_checks;
        assert_eq!(checks.ready_when, Some(ReadyWhen::KindStatus), "{resource}");
    }
    assert_eq!(
        told(&rule("v1", "configmaps")),
        [
            "`spec.childResources[0].updateStrategy.statusChecks.readyWhen`: the status of v1 configmaps has no rule that \
          is known here; expected: one of the kinds `daemonsets`, `deployments`, `replicasets`, `statefulsets`, `jobs`, \
          `persistentvolumeclaims`, `pods`; hint: name the conditions that count: `statusChecks.conditions`"
        ]
    );
}

#[test]
fn revision_paths_are_names_with_dots_between_them() {
    let text = manifest(SYNC).replace("shelves}", "shelves, revisionHistory: {fieldPaths: [spec..x]}}");
    let problems = load(FILE, &text).expect_err("an empty name");
    assert_eq!(
        problems.iter().map(Problem::to_string).collect::<Vec<_>>(),
        [
            "controllers.yaml:6:94: `spec.parentResource.revisionHistory.fieldPaths[0]` is the text `spec..x`; \
          expected: names with dots between them, such as `spec.template`"
        ]
    );
}

#[test]
fn what_is_left_out_has_metacontrollers_defaults() {
    let spec = definition(SYNC).spec;
    assert_eq!(spec.parent.selector, Selector::everything());
    assert_eq!(spec.parent.revision_paths, ["spec"]);
    assert_eq!((spec.resync_period, spec.generate_selector), (None, false));
    assert_eq!(spec.children, []);
    let sync = spec.hooks.sync.expect("a sync hook");
    assert_eq!((sync.version, sync.webhook.timeout), (HookVersion::V1, Duration::from_secs(10)));
    assert_eq!((sync.webhook.etag, sync.webhook.access.is_empty()), (None, true));
    assert_eq!(
        definition(&format!("{SYNC}resyncPeriodSeconds: 0")).spec.resync_period,
        Some(Duration::from_secs(1))
    );
}

#[test]
fn hooks_are_sent_the_object_as_an_api_server_would_show_it() {
    let definition = definition(
        "childResources:\n- apiVersion: v1\n  resource: pods\n  updateStrategy: {method: Recreate}\n\
         - {apiVersion: v1, resource: secrets}\nhooks:\n  sync: {webhook: {path: /shelf/sync}}",
    );
    let shown = json!({
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "shelf"},
        "spec": {
            "parentResource": {"apiVersion": "demo.io/v1", "resource": "shelves"},
            "childResources": [
                {"apiVersion": "v1", "resource": "pods", "updateStrategy": {"method": "Recreate", "statusChecks": {}}},
                {"apiVersion": "v1", "resource": "secrets"},
            ],
            "hooks": {"sync": {"webhook": {"path": "/shelf/sync"}, "version": "v1"}},
        },
        "status": {},
    });
    assert_eq!(definition.raw, shown);
    assert_eq!(definition.json.get(), definition.raw.to_string());
}

#[test]
fn a_webhook_says_whom_to_call() {
    let target = |fields: &str| webhook(fields).target;
    let url = |url: &str| Target::Url(url.into());
    assert_eq!(target("url: 'http://hooks.web/sync'"), url("http://hooks.web/sync"));
    assert_eq!(target("url: 'https://a/b', path: /c, service: {name: d, namespace: e}"), url("https://a/b"));
    assert_eq!(target("service: {name: a, namespace: b}, path: /c"), url("http://a.b:80/c"));
    assert_eq!(target("path: /my-sql/sync"), Target::BuiltIn { hook: "my-sql".into(), call: "sync".into() });
    assert_eq!(
        target("url: '', path: /mysql/sync"),
        Target::BuiltIn { hook: "mysql".into(), call: "sync".into() }
    );
}

#[test]
fn strictness_follows_the_version_unless_it_is_given() {
    let decoding = |hook: &str| {
        let sync = definition(&format!("hooks: {{sync: {{{hook}}}}}")).spec.hooks.sync.expect("a sync hook");
        sync.webhook.decoding
    };
    assert_eq!(decoding("webhook: {url: 'http://a'}"), Decoding::Loose);
    assert_eq!(decoding("version: v2, webhook: {url: 'http://a'}"), Decoding::Strict);
    assert_eq!(decoding("webhook: {url: 'http://a', responseUnMarshallMode: strict}"), Decoding::Strict);
    assert_eq!(
        decoding("version: v2, webhook: {url: 'http://a', responseUnMarshallMode: loose}"),
        Decoding::Loose
    );
    assert_eq!(decoding("webhook: {path: /a/sync}"), Decoding::Strict);
}

#[test]
fn a_timeout_of_nothing_is_the_default() {
    for (timeout, seconds) in [("20s", 20), ("0s", 10), ("-5s", 10), ("1h", 3600)] {
        let found = webhook(&format!("path: /a/sync, timeout: {timeout}")).timeout;
        assert_eq!(found, Duration::from_secs(seconds), "{timeout}");
    }
    assert_eq!(
        webhook_told("path: /a/sync, timeout: 1d"),
        [
            "`spec.hooks.sync.webhook.timeout` is the text `1d`; expected: a duration such as `90s`, `1h30m` or `1.5h`; \
          hint: there is no unit above the hour: a day is `24h`"
        ]
    );
    assert_eq!(
        webhook_told("path: /a/sync, timeout: 10"),
        [
            "`spec.hooks.sync.webhook.timeout` is `10`; expected: a duration such as `90s`, `1h30m` or `1.5h`; \
          hint: `10s` is this number of seconds"
        ]
    );
}

#[test]
fn a_webhook_that_calls_nobody_is_refused() {
    let nobody = "`spec.hooks.sync.webhook` says nobody to call; expected: `path` alone for the built-in hook service, \
                  `url`, or `service` with `path`";
    assert_eq!(webhook_told(""), [nobody]);
    assert_eq!(webhook_told("timeout: 5s"), [nobody]);
    assert_eq!(
        webhook_told("service: {name: a, namespace: b}"),
        ["`spec.hooks.sync.webhook` has a `service` and no `path`; expected: a path that begins with `/`"]
    );
    assert_eq!(
        webhook_told("service: {name: a, namespace: b, port: 0, protocol: ftp}, path: c"),
        [
            "`spec.hooks.sync.webhook.service.protocol` is the text `ftp`; expected: `http` or `https`",
            "`spec.hooks.sync.webhook.service.port` is `0`; expected: 1 to 65535",
            "`spec.hooks.sync.webhook.path` is the text `c`; expected: a path that begins with `/`; hint: write `/c`",
        ]
    );
    for path in ["mysql", "/mysql", "/mysql/", "mysql/sync", "/a/b/c", "/my sql/sync"] {
        let told = webhook_told(&format!("path: '{path}'"));
        assert_eq!(
            told,
            [format!(
                "`spec.hooks.sync.webhook.path` is the text `{path}`; expected: `/<hook>/<call>`, such as `/mysql/sync`, \
                 for the built-in hook service; hint: a hook elsewhere has a `url`, or a `service` beside its `path`"
            )]
        );
    }
    let url = "`spec.hooks.sync.webhook.url` is the text `/mysql/sync`; expected: a complete URL such as \
               `http://my-hooks.my-namespace/sync`; hint: for the built-in hook service, call it `path`";
    assert_eq!(webhook_told("url: /mysql/sync"), [url]);
    for url in ["mysql.web/sync", "ftp://a/b", "http://", "http:///a", "http://a b/"] {
        let told = webhook_told(&format!("url: '{url}'"));
        assert!(told[0].contains("expected: a complete URL"), "{url}: {told:?}");
    }
}

#[test]
fn a_definition_without_anything_to_call_is_refused() {
    assert_eq!(
        told("childResources: []"),
        ["`spec` has no `hooks`; expected: `hooks.sync.webhook`, or `hooks.finalize.webhook`"]
    );
    let neither = "`spec.hooks` has neither `sync` nor `finalize`; expected: at least one of them: nothing would ever be called";
    assert_eq!(told("hooks: {}"), [neither]);
    assert_eq!(told("hooks: {customize: {webhook: {path: /a/customize}}}"), [neither]);
}

#[test]
fn a_definition_with_a_finalize_hook_alone_is_accepted() {
    let hooks = definition("hooks: {finalize: {webhook: {path: /a/finalize}}}").spec.hooks;
    assert!(hooks.sync.is_none() && hooks.finalize.is_some());
}

#[test]
fn a_hook_without_a_webhook_is_refused() {
    assert_eq!(
        told("hooks: {sync: {webhook: {path: /a/sync}}, finalize: {}}"),
        [
            "`spec.hooks.finalize` has no `webhook`; hint: without anything to call, leave `spec.hooks.finalize` out"
        ]
    );
}

#[test]
fn a_finalizers_name_limits_the_definitions() {
    let named = |name: &str| {
        manifest("hooks: {finalize: {webhook: {path: /a/finalize}}}")
            .replace("name: shelf", &format!("name: {name}"))
    };
    load(FILE, &named(&"a".repeat(43))).expect("43 characters fit");
    let problems = load(FILE, &named(&"a".repeat(44))).expect_err("44 do not");
    assert!(
        problems[0].expected.as_deref().unwrap_or_default().starts_with("at most 43 characters"),
        "{}",
        problems[0]
    );
}

#[test]
fn a_finalizer_can_have_a_name_of_its_own() {
    let with = |finalizer: &str| {
        manifest(&format!("finalizer: {finalizer}\nhooks: {{finalize: {{webhook: {{path: /a/finalize}}}}}}"))
            .replace("name: shelf", &format!("name: {}", "a".repeat(60)))
    };
    let definitions = load(FILE, &with("example.com/cleanup")).expect("a qualified name");
    assert_eq!(definitions[0].spec.finalizer, "example.com/cleanup");
    for wrong in ["cleanup", "example.com/", "Example.com/x", "a/b/c"] {
        assert_eq!(load(FILE, &with(wrong)).expect_err(wrong).len(), 1, "{wrong}");
    }
}

#[test]
fn without_a_name_a_finalizer_is_metacontrollers() {
    let definitions = load(FILE, &manifest("hooks: {sync: {webhook: {path: /a/sync}}}")).expect("good");
    assert_eq!(definitions[0].spec.finalizer, "metacontroller.io/compositecontroller-shelf");
}

#[test]
fn resources_are_named_by_group_version_and_plural() {
    let child = |child: &str| told(&format!("childResources: [{{{child}}}]\n{SYNC}"));
    let plurals = [
        ("Deployment", "deployments"),
        ("NetworkPolicy", "networkpolicies"),
        ("Ingress", "ingresses"),
        ("Gateway", "gateways"),
        ("Endpoints", "endpoints"),
    ];
    for (kind, plural) in plurals {
        assert_eq!(
            child(&format!("apiVersion: apps/v1, resource: {kind}")),
            [format!(
                "`spec.childResources[0].resource` is the text `{kind}`; expected: the plural of a kind in lower case, such \
                 as `deployments`; hint: use the plural, `{plural}`"
            )]
        );
    }
    for resource in ["deployments.apps", "deployments/status", "''"] {
        assert_eq!(child(&format!("apiVersion: v1, resource: {resource}")).len(), 1, "{resource}");
    }
    for version in ["apps", "apps/", "/v1", "apps/v1/x", "v2", "Apps/v1", "''"] {
        let told = child(&format!("apiVersion: {version}, resource: pods"));
        assert!(
            told[0]
                .ends_with("expected: a group and a version such as `apps/v1`, or `v1` for the core group"),
            "{told:?}"
        );
    }
}

#[test]
fn a_kind_of_child_has_one_rule() {
    let rules = "childResources:\n- {apiVersion: apps/v1, resource: deployments}\n- {apiVersion: v1, resource: secrets}\n\
                 - {apiVersion: apps/v1beta1, resource: deployments}\n";
    assert_eq!(
        told(&format!("{rules}{SYNC}")),
        [
            "`spec.childResources[2]` repeats `spec.childResources[0]`: apps/v1beta1 deployments; expected: one rule for each kind"
        ]
    );
}

#[test]
fn selectors_are_checked() {
    let parent = "apiVersion: demo.io/v1, resource: shelves, labelSelector: {matchExpressions: [{key: a, operator: in}]}";
    let text = manifest(SYNC).replace("apiVersion: demo.io/v1, resource: shelves", parent);
    let problems = load(FILE, &text).expect_err("`in` is no operator");
    assert_eq!(
        problems[0].message,
        "`spec.parentResource.labelSelector.matchExpressions[0].operator`: unknown operator `in`, expected `In`, `NotIn`, \
         `Exists` or `DoesNotExist`"
    );
}

#[test]
fn a_webhook_without_access_of_its_own_has_its_hosts() {
    let scheme = |url: &str, host: &str| {
        let definition = definition(&format!(
            "hooks: {{sync: {{webhook: {{url: '{url}'}}}}}}\nendpointConfigs:\n- host: other.web\n- host: '{host}'\n  \
             authorization: {{type: First, secretRef: {{name: a, namespace: b, key: c}}}}\n- host: '{host}'\n  \
             authorization: {{type: Second, secretRef: {{name: a, namespace: b, key: c}}}}"
        ));
        match definition.spec.hooks.sync.expect("a sync hook").webhook.access.credentials {
            Some(Credentials::Token { scheme, .. }) => scheme,
            _ => "none".to_string(),
        }
    };
    let rows = [
        ("http://hooks.web/sync", "hooks.web", "First"),
        ("http://hooks.web/sync", "Hooks.WEB:80", "First"),
        ("http://Hooks.web:80", "hooks.web", "First"),
        ("https://hooks.web:443/", "hooks.web", "First"),
        ("https://hooks.web/", "hooks.web:443", "First"),
        ("https://user:secret@hooks.web/", "hooks.web", "First"),
        ("http://[::1]/", "[::1]:80", "First"),
        ("https://hooks.web/", "hooks.web:80", "none"),
        ("http://hooks.web:8080/", "hooks.web", "none"),
        ("http://hooks.web:8080/", "hooks.web:8080", "First"),
        ("http://hooks.web.svc/", "hooks.web", "none"),
    ];
    for (url, host, wanted) in rows {
        assert_eq!(scheme(url, host), wanted, "{url} by {host}");
    }
}

#[test]
fn a_webhook_with_any_access_of_its_own_has_no_other() {
    let definition = definition(
        "hooks: {sync: {webhook: {url: 'https://a', caBundle: {inline: pem}}}}\nendpointConfigs:\n- host: a\n  \
         basicAuth: {secretRef: {name: user, namespace: web}}",
    );
    let access = definition.spec.hooks.sync.expect("a sync hook").webhook.access;
    let own = Access { ca_bundle: Some(CaBundle::Inline("pem".into())), ..Access::default() };
    assert_eq!(access, own);
}

#[test]
fn access_blocks_that_contradict_themselves_are_refused() {
    let told = |fields: &str| webhook_told(&format!("url: 'https://a', {fields}"));
    let at = "`spec.hooks.sync.webhook";
    assert_eq!(
        told("caBundle: {}"),
        [format!(
            "{at}.caBundle` has no source; expected: exactly one of `inline`, `secretRef`, `configMapRef`"
        )]
    );
    assert_eq!(
        told("caBundle: {inline: x, secretRef: {name: a, namespace: b}}"),
        [format!(
            "{at}.caBundle` has more than one source; expected: exactly one of `inline`, `secretRef`, `configMapRef`"
        )]
    );
    let basic = "basicAuth: {secretRef: {name: a, namespace: b}}";
    assert_eq!(
        told(&format!("{basic}, authorization: {{secretRef: {{name: a, namespace: b, key: c}}}}")),
        [format!("{at}` has `authorization` and `basicAuth`; expected: one of the two")]
    );
    assert_eq!(
        told("authorization: {type: BASIC, secretRef: {name: a, namespace: b, key: c}}"),
        [format!(
            "{at}.authorization.type` is the text `BASIC`; hint: use `basicAuth`, which takes a user name and a password"
        )]
    );
}

#[test]
fn every_problem_is_reported_with_its_line() {
    let text = "\
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata:
  name: shelf
spec:
  parentResource:
    apiVersion: demo.io/v1
    resource: Shelf
  childResource:
  - apiVersion: v1
    resource: pods
  childResources:
  - apiVersion: v1
    resource: pods
    updateStrategy:
      method: Inplace
  generateSelector: 'yes'
  hooks:
    sync:
      webhook:
        pth: /shelf/sync
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata:
  name: Shelf
spec: {}
";
    let problems = load(FILE, text).expect_err("it is full of faults");
    let wanted = "\
controllers.yaml:9:3: unknown field `spec.childResource`
   |
 9 |   childResource:
   |   ^^^^^^^^^^^^^
hint: did you mean `childResources`?

controllers.yaml:16:7: `spec.childResources[0].updateStrategy.method` is the text `Inplace`
    |
 16 |       method: Inplace
    |       ^^^^^^
expected: `OnDelete`, `Recreate`, `InPlace`, `RollingRecreate`, `RollingInPlace`
hint: did you mean `InPlace`?

controllers.yaml:17:3: `spec.generateSelector` is the text `yes`
    |
 17 |   generateSelector: 'yes'
    |   ^^^^^^^^^^^^^^^^
expected: `true` or `false`

controllers.yaml:21:9: unknown field `spec.hooks.sync.webhook.pth`
    |
 21 |         pth: /shelf/sync
    |         ^^^
hint: did you mean `path`?

controllers.yaml:26:3: `metadata.name` is `Shelf`, which must consist of lower-case letters, digits, `-` and `.`
    |
 26 |   name: Shelf
    |   ^^^^";
    assert_eq!(pages(&problems), wanted);
}

#[test]
fn two_definitions_of_one_name_are_refused() {
    let text = format!("{}---\n{}", manifest(SYNC), manifest(SYNC));
    let problems = load(FILE, &text).expect_err("the name is taken");
    assert_eq!(
        pages(&problems),
        "controllers.yaml:12:3: two definitions are called `shelf`\n    |\n 12 |   name: shelf\n    |   ^^^^\n\
         found: the first one at controllers.yaml:4:3"
    );
}

#[test]
fn lists_of_definitions_are_read_as_kubectl_prints_them() {
    let item: String = manifest(SYNC).lines().map(|line| format!("  {line}\n")).collect();
    let list = |kind: &str| format!("apiVersion: v1\nkind: {kind}\nitems:\n- {}", item.trim_start());
    for kind in ["List", "CompositeControllerList"] {
        let definitions = load(FILE, &list(kind)).unwrap_or_else(|problems| panic!("{}", pages(&problems)));
        assert_eq!(definitions[0].name, "shelf");
    }
    let problems = load(FILE, &list("List").replace("shelves", "Shelf")).expect_err("a kind is no plural");
    assert_eq!(problems[0].place.as_ref().map(|place| place.line), Some(9));
    let problems = load(FILE, "kind: List\nitems: {}").expect_err("a map is no list");
    assert_eq!(problems[0].to_string(), "controllers.yaml:2:1: `items` is an object; expected: a list");
}

#[test]
fn what_is_no_definition_is_refused() {
    let refused = |text: &str| load(FILE, text).map(|_| ()).expect_err(text)[0].to_string();
    assert_eq!(
        refused("apiVersion: metacontroller.k8s.io/v1\nkind: CompositeController"),
        "controllers.yaml:1:1: `apiVersion` is the text `metacontroller.k8s.io/v1`; expected: `metacontroller.k8s.io/v1alpha1`"
    );
    assert_eq!(
        refused("apiVersion: metacontroller.k8s.io/v1alpha1\nkind: CompositController"),
        "controllers.yaml:2:1: `kind` is the text `CompositController`; expected: `CompositeController`"
    );
    assert_eq!(
        refused("- 1"),
        "controllers.yaml:1:1: the document is a list; expected: a CompositeController or a DecoratorController"
    );
    assert_eq!(
        refused("kind: CompositeController"),
        "controllers.yaml:1:1: `apiVersion` is missing; expected: `metacontroller.k8s.io/v1alpha1`"
    );
    assert_eq!(
        refused("apiVersion: metacontroller.k8s.io/v1alpha1\nkind: CompositeController\nspec: {}"),
        "controllers.yaml:1:1: `metadata.name` is missing"
    );
    assert_eq!(load(FILE, "# nothing yet\n---\n").map(|definitions| definitions.len()), Ok(0));
}

fn resource() -> serde_json::Value {
    json!({
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "shelf", "generation": 4, "uid": "u-1", "managedFields": [{}]},
        "spec": {
            "parentResource": {"apiVersion": "demo.io/v1", "resource": "shelves", "later": true},
            "hooks": {"sync": {"version": "v1", "webhook": {"url": "http://hooks.web/sync"}}},
        },
        "status": {},
    })
}

#[test]
fn a_custom_resource_is_read_without_minding_fields_of_later_versions() {
    let definition = Definition::from_object(resource()).expect("a valid resource").remove(0);
    assert_eq!(definition.raw, resource());
    let resource_name = ResourceName { api_version: "demo.io/v1".into(), resource: "shelves".into() };
    assert_eq!(definition.spec.parent.resource, resource_name);
}

#[test]
fn the_problems_of_a_custom_resource_have_no_place() {
    let mut object = resource();
    object["spec"]["hooks"]["sync"]["webhook"] = json!({});
    let problems = Definition::from_object(object).expect_err("it calls nobody");
    assert_eq!((problems.len(), &problems[0].place), (1, &None));
    assert!(problems[0].message.contains("says nobody to call"));
}

#[test]
fn the_crds_are_those_of_metacontroller() {
    let rows = [
        ("CompositeController", "compositecontrollers", json!(["cc", "cctl"]), "Cluster"),
        ("DecoratorController", "decoratorcontrollers", json!(["dec", "decorators"]), "Cluster"),
        ("ControllerRevision", "controllerrevisions", json!(null), "Namespaced"),
    ];
    for (crd, (kind, plural, short, scope)) in schema::crds().iter().zip(rows) {
        let names = &crd["spec"]["names"];
        assert_eq!(crd["metadata"]["name"], format!("{plural}.metacontroller.k8s.io"));
        assert_eq!(
            crd["metadata"]["annotations"]["api-approved.kubernetes.io"],
            "unapproved, request not yet submitted"
        );
        assert_eq!(
            (&names["kind"], &names["plural"], &names["shortNames"]),
            (&json!(kind), &json!(plural), &short)
        );
        assert_eq!(
            (&names["singular"], &names["listKind"]),
            (&json!(kind.to_lowercase()), &json!(format!("{kind}List")))
        );
        assert_eq!(crd["spec"]["scope"], scope);
        let version = &crd["spec"]["versions"][0];
        assert_eq!(
            (&version["name"], &version["served"], &version["storage"]),
            (&json!("v1alpha1"), &json!(true), &json!(true))
        );
        assert_eq!(version["subresources"], json!({"status": {}}));
    }
}

/// Every default and every enum of a schema, by path.
fn constraints(schema: &serde_json::Value, path: &str, found: &mut BTreeMap<String, serde_json::Value>) {
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        for constraint in ["default", "enum"] {
            if let Some(value) = schema.get(constraint) {
                found.insert(format!("{path} {constraint}"), value.clone());
            }
        }
        constraints(schema, &path, found);
    }
    if schema["items"].is_object() {
        constraints(&schema["items"], &format!("{path}[]"), found);
    }
}

#[test]
fn the_defaults_and_enums_of_the_crds_are_those_that_are_read() {
    let schema = schema::schema_of("CompositeController").unwrap();
    let mut found = BTreeMap::new();
    constraints(&schema["properties"]["spec"], "", &mut found);
    let methods = found.remove(".childResources[].updateStrategy.method enum").expect("an enum of methods");
    for method in methods.as_array().unwrap() {
        let rule = format!(
            "childResources: [{{apiVersion: v1, resource: pods, updateStrategy: {{method: {method}}}}}]\n{SYNC}"
        );
        let read = definition(&rule).spec.children[0].update;
        assert_eq!(format!("{read:?}"), method.as_str().unwrap());
    }
    let ready_when = found.remove(".childResources[].updateStrategy.statusChecks.readyWhen enum");
    assert_eq!(ready_when, Some(json!(["KindStatus"])));
    let hooks = ["sync", "finalize", "customize", "preUpdateChild", "postUpdateChild"];
    let blocks = hooks
        .map(|hook| format!(".hooks.{hook}.webhook"))
        .into_iter()
        .chain([".endpointConfigs[]".to_string()]);
    let mut wanted = BTreeMap::new();
    for block in blocks {
        for (field, value) in [
            ("caBundle.secretRef.key", "ca.crt"),
            ("caBundle.configMapRef.key", "ca.crt"),
            ("clientTLS.certKey", "tls.crt"),
            ("clientTLS.privateKeyKey", "tls.key"),
            ("authorization.type", "Bearer"),
            ("basicAuth.usernameKey", "username"),
            ("basicAuth.passwordKey", "password"),
        ] {
            wanted.insert(format!("{block}.{field} default"), json!(value));
        }
    }
    for hook in hooks {
        wanted.insert(format!(".hooks.{hook}.version default"), json!("v1"));
        wanted.insert(format!(".hooks.{hook}.version enum"), json!(["v1", "v2"]));
        wanted
            .insert(format!(".hooks.{hook}.webhook.responseUnMarshallMode enum"), json!(["loose", "strict"]));
    }
    assert_eq!(found, wanted);
}

#[test]
fn a_decorators_hooks_are_described_as_a_composites() {
    let spec = |kind: &str| &schema::schema_of(kind).unwrap()["properties"]["spec"]["properties"];
    let (composite, decorator) = (spec("CompositeController"), spec("DecoratorController"));
    for hook in ["sync", "finalize", "customize"] {
        assert_eq!(composite["hooks"]["properties"][hook], decorator["hooks"]["properties"][hook]);
    }
    assert_eq!(composite["endpointConfigs"], decorator["endpointConfigs"]);
    let fields: Vec<&String> = decorator.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["resources", "attachments", "hooks", "endpointConfigs", "resyncPeriodSeconds"]);
}

const DECORATOR: &str = "\
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: marks}
spec:
  resources:
  - apiVersion: v1
    resource: nodes
    labelSelector: {matchLabels: {tier: gold}}
    annotationSelector: {matchAnnotations: {note: 'any text: even, this/one'}}
  - {apiVersion: apps/v1, resource: statefulsets, ignoreStatusChanges: true}
  attachments:
  - {apiVersion: v1, resource: services, updateStrategy: {method: InPlace}}
  hooks:
    sync: {webhook: {url: 'http://hooks/sync'}}
    finalize: {webhook: {url: 'http://hooks/finalize'}}
";

#[test]
fn a_decorator_is_a_definition_for_each_of_its_resources() {
    let definitions = load(FILE, DECORATOR).expect("a valid definition");
    let ids: Vec<String> = definitions.iter().map(Definition::id).collect();
    assert_eq!(ids, ["marks/v1 nodes", "marks/apps/v1 statefulsets"]);
    let [nodes, sets] = [&definitions[0].spec, &definitions[1].spec];
    assert_eq!((nodes.role, nodes.generate_selector), (spec::Role::Decorator, false));
    assert_eq!(nodes.finalizer, "metacontroller.io/decoratorcontroller-marks");
    assert_eq!(nodes.parent.selector, Selector::label("tier", "gold"));
    assert!(nodes.parent.annotations.matches(&map([("note", "any text: even, this/one")])));
    assert!(!nodes.parent.annotations.matches(&map([])));
    assert!(sets.parent.ignore_status_changes && sets.parent.annotations.is_empty());
    assert_eq!(nodes.children, sets.children);
    assert_eq!(nodes.children[0].update, spec::UpdateMethod::InPlace);
    assert_eq!(definitions[0].raw["kind"], "DecoratorController");
}

fn map<const N: usize>(pairs: [(&str, &str); N]) -> std::collections::BTreeMap<String, String> {
    pairs.map(|(key, value)| (key.to_string(), value.to_string())).into()
}

#[test]
fn a_decorators_problems_have_their_places() {
    let told = |from: &str, to: &str| {
        let problems = load(FILE, &DECORATOR.replacen(from, to, 1)).expect_err(to);
        problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        told("attachments:", "atachments:"),
        "controllers.yaml:11:3: unknown field `spec.atachments`; hint: did you mean `attachments`?"
    );
    assert_eq!(
        told("matchAnnotations", "matchLabels"),
        "controllers.yaml:9:26: unknown field `spec.resources[0].annotationSelector.matchLabels`; \
         expected: `matchAnnotations`, `matchExpressions`"
    );
    assert_eq!(
        told("apps/v1, resource: statefulsets", "v1, resource: nodes"),
        "controllers.yaml:10:5: `spec.resources[1]` repeats an earlier one: v1 nodes; expected: one rule for each kind"
    );
    assert_eq!(
        told("kind: DecoratorController", "kind: DecoratorControler"),
        "controllers.yaml:2:1: `kind` is the text `DecoratorControler`; expected: `DecoratorController`"
    );
    let composite = manifest(SYNC).replace("name: shelf", "name: marks");
    let both = format!("{composite}\n---\n{DECORATOR}");
    assert!(load(FILE, &both).is_ok(), "a CompositeController may have a DecoratorController's name");
}

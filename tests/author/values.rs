//! Values of flags that cannot be read: each is told with an example of one that can.

use crate::{folder, syncwright};

#[test]
fn every_value_that_cannot_be_read_is_told_with_an_example() {
    let folder = folder(&[]);
    let whole = |bounds: &str, example: &str| format!("expected a whole number{bounds}, such as `{example}`");
    let listen = "expected an address and a port, such as `:8090`, `127.0.0.1:8090` or `localhost:8090`";
    let name = "it must consist of lower-case letters, digits, `-` and `.`; expected a n";
    let key = "expected a namespace, `/` and a name, such as `operators/syncwright`";
    let duration = "expected a duration such as `90s`, `1h30m` or `1.5h`";
    let workers = whole(" from 1 to 1024", "8");
    let visits = whole(" from 1 to 4096", "64");
    let runs = whole(" of at least 1", "200");
    let (seed, seconds) = (whole("", "1"), whole("", "60"));
    let bytes = whole(" from 1024 to 4294967295", "10485760");
    let (burst, events) = (whole(" from 1 to 4294967295", "100"), whole(" from 1 to 4294967295", "25"));
    let wrong: &[(&[&str], &str)] = &[
        (
            &["render", "a", "sync", "p", "--now", "yesterday"],
            "expected a time with its zone, such as `2026-11-30T17:00:00Z`",
        ),
        (
            &["render", "a", "sync", "p", "--now", "2026-11-30"],
            "expected a time with its zone, such as `2026-11-30T17:00:00Z`",
        ),
        (&["render", "a", "sync", "p", "--output", "toml"], "[possible values: yaml, json]"),
        (&["test", "--properties", "--runs", "abc"], &runs),
        (&["test", "--properties", "--runs", "0"], &runs),
        (&["test", "--properties", "--seed", "x"], &seed),
        (&["check", "--format", "xml"], "[possible values: text, json, sarif, github]"),
        (&["check", "--allow", "unknown-fields"], "hint: did you mean `unknown-field`?"),
        (&["schema", "case"], "[possible values: controllers, case-request, case-response, hook, crds]"),
        (&["serve", "--listen", "8090"], listen),
        (&["serve", "--max-body-bytes", "10M"], &bytes),
        (&["run", "--listen", ":"], listen),
        (&["run", "--webhook-listen", "x", "--tls-cert", "a", "--tls-key", "b"], listen),
        (&["run", "--metrics-address", "x"], "expected `:8080`, `127.0.0.1:8080`, or `0` for nowhere"),
        (&["run", "--hook-url", "hooks:8090"], "expected a URL, such as `http://hooks.operators.svc:8090`"),
        (&["run", "--workers", "many"], &workers),
        (&["run", "--workers", "0"], &workers),
        (&["run", "--max-visits", "5000"], &visits),
        (&["run", "--client-go-qps", "fast"], "expected a number, such as `50`"),
        (&["run", "--client-go-burst", "0"], &burst),
        (&["run", "--events-qps", "0"], "expected a number above zero, such as `0.5`"),
        (&["run", "--events-burst", "x"], &events),
        (&["run", "--cache-flush-interval", "30"], duration),
        (&["run", "--finalize-patience", "1m"], &seconds),
        (&["run", "--leader-elect=yes"], "expected `true` or `false`"),
        (&["run", "--leader-elect-id", "A B"], name),
        (&["run", "--leader-elect-lease-duration", "soon"], duration),
        (&["run", "--namespace", "X y"], name),
        (
            &["run", "--target-label-selector", "a in b"],
            "expected a selector such as `team=web,tier notin (test,demo)`",
        ),
        (&["run", "--log-level", "loud"], "expected one of off, error, warn, info, debug, trace"),
        (&["rbac", "--service-account", "x"], key),
        (&["rbac", "--lease", "a/B"], key),
        (&["rbac", "--name", "A B"], name),
        (&["rbac", "--related", "x"], "such as `v1/secrets` or `apps/v1/deployments`"),
        (&["record", "a/b", "--case", "A b"], name),
        (&["diff", "a/b/c"], "expected a kind, or a kind, `/` and a name, such as `mysqls/shop`"),
    ];
    for (arguments, expected) in wrong {
        let said = syncwright(folder.path(), arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.err);
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
    }
}

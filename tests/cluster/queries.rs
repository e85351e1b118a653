//! The documented metrics, and the queries of the dashboard and the alerts, beside what a controller really has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Lab, SOON};
use crate::support::pages::{ANY_PORTS, Pages, Scrape};

/// Labels that Prometheus adds to whatever it scrapes.
const OF_THE_SCRAPE: [&str; 2] = ["job", "instance"];
/// What is a name in a query and no metric.
const WORDS: [&str; 4] = ["and", "bool", "or", "unless"];

fn text_of(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("the file is there")
}

/// A query taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    /// Metrics with the labels that are matched.
    metrics: Vec<(String, Vec<String>)>,
    /// Labels by which is grouped.
    grouped: Vec<String>,
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// Reads as much of PromQL as finds the names in it.
fn read(query: &str) -> Query {
    let mut found = Query::default();
    let mut rest = query;
    while let Some(start) =
        rest.find(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '[' || c.is_ascii_digit())
    {
        rest = &rest[start..];
        if rest.starts_with('[') {
            rest = &rest[rest.find(']').expect("a range ends")..];
            continue;
        }
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        rest = &rest[name.len()..];
        let after = rest.trim_start();
        if name.starts_with(|c: char| c.is_ascii_digit()) || WORDS.contains(&name) {
            continue;
        }
        if matches!(name, "by" | "without" | "on" | "ignoring") {
            let (labels, other) = after[1..].split_once(')').expect("a list of labels ends");
            found.grouped.extend(labels.split(',').map(|label| label.trim().to_owned()));
            rest = other;
        } else if name == "label_values" {
            let (arguments, other) = after[1..].split_once(')').expect("a call ends");
            let (metric, label) = arguments.split_once(',').expect("a metric and its label");
            found.metrics.push((metric.trim().into(), vec![label.trim().into()]));
            rest = other;
        } else if let Some(matchers) = after.strip_prefix('{') {
            let (matchers, other) = matchers.split_once('}').expect("matchers end");
            let labels = matchers.split(',').filter_map(|matcher| matcher.split(['=', '!']).next());
            found.metrics.push((name.into(), labels.map(|label| label.trim().into()).collect()));
            rest = other;
        } else if !after.starts_with('(') && !is_aggregation(name) {
            found.metrics.push((name.into(), Vec::new()));
        }
    }
    found
}

fn is_aggregation(name: &str) -> bool {
    matches!(name, "sum" | "max" | "min" | "avg" | "count")
}

/// All queries of a dashboard: of its panels, and of its variables.
fn queries_of(dashboard: &Value, found: &mut Vec<String>) {
    match dashboard {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(query) if key == "expr" || key == "definition" => found.push(query.clone()),
                    other => queries_of(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| queries_of(item, found)),
        _ => {}
    }
}

/// A controller that has all there is: a leader, hooks of its own and remote ones, of every call.
fn everything(lab: &Lab, run: impl FnOnce(&Scrape)) {
    let hook = Hook::from_spec();
    let own = json!({"webhook": {"path": "/shelf/sync"}});
    let folder = lab.folder.path().join("hooks/shelf");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("sync.yaml"), "labels: {seen: \"yes\"}\n").unwrap();
    let remote = lab.definition().named("remote").config_maps().sync(&hook).finalize(&hook);
    let remote =
        remote.with("/spec/hooks/sync/webhook/url", json!(format!("http://localhost:{}/sync", hook.port())));
    let local = lab.decorator(lab.things()).named("local").with("/spec/hooks/sync", own);
    lab.write_definitions(&[&remote, &local]);
    let namespace = format!("--leader-elect-namespace={}", lab.namespace);
    let secret = format!("{}/hooks", lab.namespace);
    let webhooks =
        ["--webhook-listen", "127.0.0.1:0", "--webhook-host", "localhost", "--webhook-secret", &secret];
    let flags = [&["--leader-elect", &namespace], &webhooks[..], &ANY_PORTS].concat();
    let controller = lab.start(&flags);
    lab.add_thing("a", json!({"status": {"seen": true}}));
    lab.wait(&lab.thing("a"), "it is labelled", |thing| !thing["metadata"]["labels"]["seen"].is_null());
    lab.wait(&lab.thing("a"), "the hook's status", |thing| thing["status"]["seen"] == true);
    lab.plane.delete(&lab.thing("a"));
    lab.wait_gone(&lab.thing("a"));
    fs::write(folder.join("sync.yaml"), "labels: {{ broken\n").unwrap();
    let pages = Pages::of(&controller);
    pages.counts("syncwright_hook_rejected{hook=\"shelf\"}", 1.0);
    let scrape = wait_until(SOON, "the finalize call is counted, and there is a certificate", || {
        let scrape = pages.scrape();
        let shown = scrape.get("syncwright_webhook_certificate_expiry_timestamp_seconds").is_some();
        let counted = shown && scrape.sum("metacontroller_finalize_requests_total", &[]) >= 1.0;
        if counted { Ok(scrape) } else { Err(format!("{scrape:#?}")) }
    });
    run(&scrape);
}

/// The labels of each family, buckets' bounds apart.
fn labels_of(scrape: &Scrape) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for sample in scrape.samples() {
        let family = scrape.family(sample).expect("every sample has a family");
        let labels = sample.split_once('{').map_or("", |(_, labels)| labels);
        // Values hold no quotes here, so that every other part is outside of them.
        let names = labels.split('"').step_by(2).filter_map(|part| part.strip_suffix('='));
        let names = names.map(|name| name.trim_start_matches(',').to_owned()).filter(|name| name != "le");
        all.entry(family.into()).or_default().extend(names);
    }
    all
}

/// Each documented metric with its type and labels.
fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let page = text_of("docs/observability.md");
    let in_code = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let mut all = BTreeMap::new();
    let tables = page.split("| metric | type | labels | what it is |").skip(1);
    for row in tables.flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with('|'))) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for name in in_code(cells[1]) {
            for hook in if name.contains("HOOK") { &["sync", "finalize"][..] } else { &[""] } {
                let labels = in_code(cells[3]).into_iter().collect();
                all.insert(name.replace("HOOK", hook), (cells[2].to_owned(), labels));
            }
        }
    }
    all
}

#[test]
fn documentation_dashboard_and_alerts_speak_of_what_there_is() {
    let lab = Lab::new("queries");
    everything(&lab, |scrape| {
        let labels = labels_of(scrape);
        let documented = documented();
        let there: BTreeSet<&String> = scrape.families.keys().collect();
        assert_eq!(
            documented.keys().collect::<BTreeSet<_>>(),
            there,
            "the documented metrics, and those there are"
        );
        for (name, (sort, expected)) in &documented {
            assert!(
                sort.is_empty() || *sort == scrape.families[name],
                "the type of {name}: {}",
                scrape.families[name]
            );
            // Nothing has happened yet in a family without a sample.
            let real = labels.get(name);
            assert!(
                real.is_none_or(|real| real == expected),
                "the labels of {name}: {real:?}, not {expected:?}"
            );
        }

        let mut queries = Vec::new();
        queries_of(
            &serde_json::from_str(&text_of("chart/files/dashboard.json")).expect("JSON"),
            &mut queries,
        );
        let alerts: Value = serde_saphyr::from_str(&text_of("chart/files/alerts.yaml")).expect("YAML");
        let rules =
            alerts["groups"].as_array().into_iter().flatten().flat_map(|group| group["rules"].as_array());
        let rules: Vec<&Value> = rules.flatten().collect();
        assert!(rules.len() > 5 && queries.len() > 15, "there are rules and panels");
        queries
            .extend(rules.iter().map(|rule| rule["expr"].as_str().expect("a rule has a query").to_owned()));
        for query in &queries {
            let Query { metrics, grouped } = read(query);
            assert!(!metrics.is_empty(), "a query of nothing: {query}");
            let mut known: BTreeSet<&str> = OF_THE_SCRAPE.into();
            for (name, matched) in &metrics {
                let family = scrape.family(name).unwrap_or_else(|| panic!("there is no `{name}`: {query}"));
                let (_, labels) = &documented[family];
                let unknown = matched.iter().find(|label| !labels.contains(*label));
                assert_eq!(unknown, None, "no label of `{name}`: {query}");
                known.extend(labels.iter().map(String::as_str));
                known.extend(name.ends_with("_bucket").then_some("le"));
            }
            let unknown = grouped.iter().find(|label| !known.contains(label.as_str()));
            assert_eq!(unknown, None, "grouped by what is not there: {query}");
        }
        for rule in rules {
            for text in ["/alert", "/labels/severity", "/annotations/summary", "/annotations/description"] {
                assert!(rule.pointer(text).is_some_and(Value::is_string), "no {text}: {rule}");
            }
        }
    });
}

#[test]
fn names_are_found_in_a_query() {
    let query =
        "sum by (le, job) (rate(a_total{x=~\"b|c\",y!=\"d\"}[5m])) / 2e3 > 0.5 or absent(e) and max(f) < 1";
    let metrics = [("a_total", vec!["x", "y"]), ("e", vec![]), ("f", vec![])];
    let metrics = metrics.map(|(name, labels)| (name.into(), labels.into_iter().map(String::from).collect()));
    assert_eq!(read(query), Query { metrics: metrics.into(), grouped: vec!["le".into(), "job".into()] });
}

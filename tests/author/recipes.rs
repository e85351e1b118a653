//! Each recipe of the author's guide as a small operator of its own, visited again and again.
//!
//! A recipe is taken from `hooks/README.md` as it stands there. A world in memory does to its children what a cluster would:
//! it makes, changes and deletes them as the answers say, and in between their own controllers write what became of them.

use std::fs;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{folder, syncwright};

const GUIDE: &str = include_str!("../../hooks/README.md");

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: websites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Website, listKind: WebsiteList, plural: websites, singular: website}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [image]
              properties:
                image: {type: string}
                replicas: {type: integer, minimum: 1, maximum: 9, default: 3}
                schedule: {type: string, default: 30 2 * * *}
            status:
              type: object
              properties:
                phase: {type: string}
                lastRun: {type: string}
                observedGeneration: {type: integer}
                conditions:
                  type: array
                  items: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// The templates of a chapter below `## Recipes`, in their order.
fn templates(heading: &str) -> Vec<String> {
    let recipes = GUIDE.split("\n## Recipes\n").nth(1).expect("the guide has recipes");
    let chapter = recipes.split("\n### ").find_map(|chapter| chapter.strip_prefix(heading));
    let chapter = chapter.unwrap_or_else(|| panic!("no recipe `{heading}`"));
    let fences = chapter.split("```yaml template\n").skip(1);
    fences.map(|fence| fence.split("```").next().expect("a fence").to_string()).collect()
}

/// An operator, one parent of it, and what is there beside it.
struct World {
    project: TempDir,
    call: &'static str,
    now: &'static str,
    parent: Value,
    children: Vec<Value>,
    related: Vec<Value>,
    visits: usize,
    finalized: bool,
}

impl World {
    /// `children` are the declared ones: API version, resource, method.
    fn of(heading: &str, call: &'static str, children: &[(&str, &str, &str)]) -> World {
        let mut templates = templates(heading);
        let own = templates.pop().expect("a recipe has a template");
        let mut hooks = format!("    {call}: {{webhook: {{path: /website/{call}}}}}\n");
        let project = folder(&[
            ("hooks/website/crd.yaml", CRD),
            (&format!("hooks/website/{call}.yaml"), &own),
            (
                "hooks/website/example.yaml",
                "apiVersion: example.com/v1\nkind: Website\nmetadata: {name: shop, namespace: web}\nspec: {image: \"nginx:1.29\"}\n",
            ),
        ]);
        let write = |path: &str, text: &str| fs::write(project.path().join(path), text).unwrap();
        if let Some(customize) = templates.pop() {
            write("hooks/website/customize.yaml", &customize);
            hooks += "    customize: {webhook: {path: /website/customize}}\n";
        }
        if call == "finalize" {
            write("hooks/website/sync.yaml", "status: {phase: Running}\n");
            hooks += "    sync: {webhook: {path: /website/sync}}\n";
        }
        let mut definition = "\
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: website}
spec:
  generateSelector: true
  parentResource: {apiVersion: example.com/v1, resource: websites}
  childResources:
"
        .to_string();
        for (api_version, resource, method) in children {
            definition += &format!(
                "    - {{apiVersion: {api_version}, resource: {resource}, updateStrategy: {{method: {method}}}}}\n"
            );
        }
        write("controllers.yaml", &(definition + "  hooks:\n" + &hooks));
        let parent = json!({
            "apiVersion": "example.com/v1", "kind": "Website",
            "metadata": {"name": "shop", "namespace": "web", "uid": "1", "generation": 1, "creationTimestamp": "2026-11-01T08:00:00Z"},
            "spec": {"image": "nginx:1.29", "replicas": 3, "schedule": "30 2 * * *"},
        });
        let (now, children, related) = ("2026-11-01T08:00:00Z", Vec::new(), Vec::new());
        World { project, call, now, parent, children, related, visits: 0, finalized: false }
    }

    /// One visit; what it did, such as `+ Job shop-1`. Its request is kept as a case.
    fn visit(&mut self) -> Vec<String> {
        self.visits += 1;
        let request = json!({
            "now": self.now, "parent": self.parent, "children": self.children, "related": self.related,
            "finalizing": self.call == "finalize",
        });
        let case = format!("hooks/website/cases/visit-{}", self.visits);
        fs::create_dir_all(self.project.path().join(&case)).unwrap();
        let file = format!("{case}/{}.request.yaml", self.call);
        fs::write(self.project.path().join(&file), format!("{request:#}\n")).unwrap();
        let said = syncwright(self.project.path(), &["render", "website", self.call, &file, "-o", "json"]);
        assert_eq!(said.code, 0, "visit {}: {}", self.visits, said.err);
        let answer: Value = serde_json::from_str(&said.out).expect("JSON");
        self.carry_out(&answer)
    }

    fn carry_out(&mut self, answer: &Value) -> Vec<String> {
        let wanted = answer["children"].as_array().cloned().unwrap_or_default();
        let mut done = Vec::new();
        for child in &wanted {
            let known = self.children.iter_mut().find(|known| id(known) == id(child));
            match known {
                Some(known) => {
                    let before = known.clone();
                    // What has been started or given out is declared `OnDelete`.
                    if !matches!(known["kind"].as_str(), Some("Job" | "Secret")) {
                        merge(known, child);
                    }
                    if *known != before {
                        known["metadata"]["generation"] =
                            json!(before["metadata"]["generation"].as_i64().unwrap() + 1);
                        done.push(format!("~ {}", id(child)));
                    }
                }
                None => {
                    done.push(format!("+ {}", id(child)));
                    let mut made = child.clone();
                    merge(
                        &mut made,
                        &json!({"metadata": {"namespace": "web", "uid": "2", "generation": 1, "creationTimestamp": self.now}}),
                    );
                    self.children.push(made);
                }
            }
        }
        let (kept, gone): (Vec<Value>, Vec<Value>) =
            self.children.drain(..).partition(|known| wanted.iter().any(|child| id(child) == id(known)));
        done.extend(gone.iter().map(|child| format!("- {}", id(child))));
        self.children = kept;
        self.parent["status"] = answer["status"].clone();
        self.finalized = answer["finalized"] == true;
        done
    }

    /// What the visits do until one does nothing, and the three after it, of which each could be the first after a restart.
    fn settles(&mut self) -> Vec<String> {
        let mut done = Vec::new();
        loop {
            let more = self.visit();
            if more.is_empty() {
                break;
            }
            assert!(done.len() < 20, "it does not come to rest: {done:?}");
            done.extend(more);
        }
        for _ in 0..3 {
            assert_eq!(self.visit(), Vec::<String>::new(), "a visit of a quiet parent does something");
        }
        done
    }

    /// What a child's own controller writes.
    fn becomes(&mut self, child: &str, status: Value) {
        let known = self.children.iter_mut().find(|known| id(known) == child);
        let known = known.unwrap_or_else(|| panic!("there is no {child}"));
        let generation = known["metadata"]["generation"].clone();
        known["status"] = status;
        known["status"]["observedGeneration"] = generation;
    }

    fn goes(&mut self, child: &str) {
        let before = self.children.len();
        self.children.retain(|known| id(known) != child);
        assert_eq!(self.children.len() + 1, before, "there was one {child}");
    }

    fn set(&mut self, field: &str, value: Value) {
        self.parent["spec"][field] = value;
        self.parent["metadata"]["generation"] =
            json!(self.parent["metadata"]["generation"].as_i64().unwrap() + 1);
    }

    /// Whether `check` has anything to say, all requests so far being cases.
    #[track_caller]
    fn is_well(&self) {
        let said = syncwright(self.project.path(), &["check"]);
        assert!(said.code == 0 && said.out.starts_with("nothing found"), "{}{}", said.out, said.err);
    }
}

fn id(object: &Value) -> String {
    format!("{} {}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
}

fn merge(known: &mut Value, wanted: &Value) {
    match (known, wanted) {
        (Value::Object(known), Value::Object(wanted)) => {
            for (key, value) in wanted {
                merge(known.entry(key.clone()).or_insert(Value::Object(Map::new())), value);
            }
        }
        (known, wanted) => *known = wanted.clone(),
    }
}

#[test]
fn a_job_of_a_schedule_is_made_once_and_stays() {
    let mut world = World::of("A job on a schedule", "sync", &[("batch/v1", "jobs", "OnDelete")]);
    assert_eq!(world.settles(), [""; 0]);
    // From its example alone, which no slot has come for yet.
    world.is_well();
    world.now = "2026-11-02T02:30:01Z";
    let first = "Job shop-1793586600";
    assert_eq!(world.settles(), [format!("+ {first}")]);
    world.becomes(first, json!({"active": 1, "startTime": "2026-11-02T02:30:02Z"}));
    assert_eq!(world.settles(), [""; 0]);
    // The status was lost, in a restore or by hand: the newest slot has its Job all the same.
    world.parent.as_object_mut().unwrap().remove("status");
    assert_eq!(world.settles(), [""; 0]);
    world.becomes(first, json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}));
    assert_eq!(world.settles(), [""; 0]);
    world.now = "2026-11-03T02:30:00Z";
    let second = "Job shop-1793673000";
    assert_eq!(world.settles(), [format!("+ {second}")]);
    // The first one's TTL is over.
    world.goes(first);
    assert_eq!(world.settles(), [""; 0]);
    world.goes(second);
    assert_eq!(world.settles(), [""; 0]);
    world.is_well();
}

#[test]
fn servers_are_upgraded_one_by_one() {
    let children = [("apps/v1", "statefulsets", "InPlace")];
    let mut world = World::of("A rolling upgrade, one server at a time", "sync", &children);
    let servers = "StatefulSet shop";
    let partition =
        |world: &World| world.children[0]["spec"]["updateStrategy"]["rollingUpdate"]["partition"].clone();
    let status =
        |ready: i64, updated: i64| json!({"replicas": 3, "readyReplicas": ready, "updatedReplicas": updated});
    assert_eq!(world.settles(), [format!("+ {servers}")]);
    world.becomes(servers, status(3, 3));
    assert_eq!((world.settles(), partition(&world)), (vec![], json!(0)));

    world.set("image", json!("nginx:1.30"));
    // The status is still that of before the change.
    assert_eq!((world.settles(), partition(&world)), (vec![format!("~ {servers}")], json!(2)));
    for held in [2, 1, 0] {
        assert_eq!(partition(&world), json!(held));
        world.becomes(servers, status(2, 2 - held));
        assert_eq!(world.settles(), [""; 0], "one server is away");
        world.becomes(servers, status(3, 3 - held));
        let moves = if held > 0 { vec![format!("~ {servers}")] } else { vec![] };
        assert_eq!(world.settles(), moves);
    }
    assert_eq!(world.parent["status"]["phase"], "Running");
    world.is_well();
}

#[test]
fn children_that_follow_one_by_one_are_quiet() {
    let children = [("apps/v1", "deployments", "RollingInPlace")];
    let mut world = World::of("A rolling upgrade, one child at a time", "sync", &children);
    assert_eq!(world.settles(), ["+ Deployment shop-a", "+ Deployment shop-b"]);
    world.set("image", json!("nginx:1.30"));
    assert_eq!(world.settles(), ["~ Deployment shop-a", "~ Deployment shop-b"]);
    world.goes("Deployment shop-a");
    assert_eq!(world.settles(), ["+ Deployment shop-a"]);
    world.is_well();
}

#[test]
fn a_password_stays_as_it_was_drawn() {
    let mut world = World::of("A generated password", "sync", &[("v1", "secrets", "OnDelete")]);
    assert_eq!(world.visit(), ["+ Secret shop-password"]);
    let drawn = world.children.clone();
    assert_eq!((world.settles(), &world.children), (vec![], &drawn));
    world.is_well();
}

#[test]
fn what_another_object_is_needed_for_outlives_it() {
    let children = [("apps/v1", "deployments", "InPlace")];
    let mut world = World::of("Something that depends on another object", "sync", &children);
    let theme = |colour: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop-theme", "namespace": "web"}, "data": {"colour": colour}});
    assert_eq!(world.settles(), [""; 0]);
    world.related = vec![theme("green")];
    assert_eq!(world.settles(), ["+ Deployment shop"]);
    world.related = vec![theme("red")];
    assert_eq!(world.settles(), ["~ Deployment shop"]);
    world.related = vec![];
    assert_eq!(world.settles(), [""; 0]);
    world.goes("Deployment shop");
    assert_eq!(world.settles(), [""; 0]);
    world.is_well();
}

#[test]
fn what_comes_later_stays_whatever_happens_to_what_it_waited_for() {
    let children = [("apps/v1", "deployments", "InPlace"), ("v1", "services", "InPlace")];
    let mut world = World::of("Waiting for readiness", "sync", &children);
    assert_eq!(world.settles(), ["+ Deployment shop"]);
    world.becomes("Deployment shop", json!({"readyReplicas": 2}));
    assert_eq!(world.settles(), [""; 0]);
    world.becomes("Deployment shop", json!({"readyReplicas": 3}));
    assert_eq!(world.settles(), ["+ Service shop"]);
    world.becomes("Deployment shop", json!({}));
    assert_eq!(world.settles(), [""; 0]);
    world.goes("Deployment shop");
    assert_eq!(world.settles(), ["+ Deployment shop"]);
    world.is_well();
}

#[test]
fn cleaning_up_ends_with_the_job_whether_it_succeeds_or_not() {
    for end in ["Complete", "Failed"] {
        let mut world = World::of("Cleaning up", "finalize", &[("batch/v1", "jobs", "OnDelete")]);
        world.parent["metadata"]["deletionTimestamp"] = json!("2026-11-01T08:00:00Z");
        world.parent["status"] = json!({"phase": "Running"});
        let job = "Job shop-cleanup";
        assert_eq!((world.settles(), world.finalized), (vec![format!("+ {job}")], false));
        world.becomes(job, json!({"active": 1}));
        assert_eq!((world.settles(), world.finalized), (vec![], false));
        assert_eq!(world.parent["status"], json!({"phase": "Running"}), "who looks at it sees how it stood");
        world.becomes(job, json!({"conditions": [{"type": end, "status": "True"}]}));
        assert_eq!((world.visit(), world.finalized), (vec![format!("- {job}")], true));
        world.is_well();
    }
}

/// A recipe that is added to the guide gets a life here.
#[test]
fn every_recipe_is_lived_through() {
    let recipes = GUIDE.split("\n## Recipes\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let headings = recipes.lines().filter_map(|line| line.strip_prefix("### "));
    let here = include_str!("recipes.rs");
    for heading in headings {
        assert!(here.contains(&format!("World::of(\"{heading}\"")), "{heading}");
    }
}

//! `example.yaml`: objects for `kubectl apply`, so they are held against their kinds' schemas.

use serde_json::Value;

use crate::author::case;
use crate::author::check::Check;
use crate::author::check::crds::{at, in_document};
use crate::author::check::finding::Rule;
use crate::author::check::requests::gvk;
use crate::author::check::traps;
use crate::author::check::{look, names};
use crate::author::text;
use crate::object::name::Gvk;
use crate::problem::Problem;
use crate::schedule::Schedule;
use crate::schedule::error::ScheduleError;
use crate::schedule::zone::Zone;
use crate::schema::{Whole, dotted};
use crate::template::yaml::{self, Document};

impl Check {
    pub(super) fn examples(&mut self) {
        let folders = case::folders_in(self.shelf.root()).unwrap_or_default();
        for (_, folder) in folders {
            let file = folder.join("example.yaml");
            if !file.exists() {
                continue;
            }
            let name = file.display().to_string();
            match text::read(&file).and_then(|text| yaml::read(&name, &text)) {
                Ok(documents) => documents.iter().for_each(|document| self.example(document)),
                Err(problem) => self.findings.add(Rule::Syntax, problem),
            }
        }
    }

    fn example(&mut self, document: &Document) {
        let gvk = gvk(&document.value);
        traps::in_document(document, None, &mut self.findings);
        let Some(kind) = self.catalog.kind(&gvk).cloned() else {
            self.unchecked.insert(gvk.to_string());
            return;
        };
        let mut object = document.value.clone();
        kind.fill(&mut object);
        let misfits = kind.misfits(&object, Whole::Yes);
        for misfit in misfits {
            self.findings.add(Rule::of(misfit.nature), plainly(in_document(misfit, &gvk.kind, document)));
        }
        for (rule, path, problem) in by_rule(&gvk, &object, Whole::Yes).into_iter().chain(schedules(&object))
        {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            self.findings.add(rule, plainly(at(problem, document, &path)));
        }
    }
}

/// Hints are written for templates: a file that is none can call no function and leave nothing out by a condition.
fn plainly(mut problem: Problem) -> Problem {
    problem.hint = problem
        .hint
        .filter(|hint| !hint.contains("dns_name("))
        .map(|hint| hint.replace(", or write `| int` behind the expression", "").replace(" with `if`", ""));
    problem
}

/// What is wrong with an object beyond its schema.
pub(super) fn by_rule(gvk: &Gvk, object: &Value, whole: Whole) -> Vec<Wrong> {
    let mut found = names::wrong(gvk, object);
    found.extend(names::selector(gvk, object));
    found.extend(look::wrong(gvk, object, whole));
    if gvk.group_kind() == ("batch", "CronJob") {
        found.extend(cron_job(object));
    }
    found
}

/// A rule, the path of a field, and what is wrong there.
pub(super) type Wrong = (Rule, Vec<String>, Problem);

/// The schedules and time zones in an object, told by the names of their fields.
fn schedules(object: &Value) -> Vec<Wrong> {
    let mut found = Vec::new();
    walk(object, &mut Vec::new(), &mut |path, field, text| {
        let field = field.to_lowercase();
        let named = ["schedule", "cron", "crontab"].iter().any(|name| field.ends_with(name));
        // `schedule: weekly` may mean anything.
        if named && (text.starts_with('@') || text.contains(char::is_whitespace)) {
            found.extend(wrong(path, Schedule::parse(text).err()));
        } else if field == "timezone" {
            found.extend(wrong(path, Zone::parse(text).err()));
        }
    });
    found
}

/// How often Kubernetes looks at CronJobs, in seconds, as the page on CronJob limitations has it.
const CRON_JOBS_SEEN: i64 = 10;

/// The schedule of a CronJob, its zone, and how late a run may start.
fn cron_job(object: &Value) -> Vec<Wrong> {
    let text = |field: &str| object["spec"][field].as_str();
    let path = |field: &str| vec!["spec".to_string(), field.to_string()];
    let schedule = text("schedule").and_then(|text| wrong(&path("schedule"), Schedule::parse(text).err()));
    let zone = text("timeZone").and_then(|text| wrong(&path("timeZone"), Zone::parse(text).err()));
    let deadline = "startingDeadlineSeconds";
    let short = object["spec"][deadline].as_i64().filter(|seconds| *seconds <= CRON_JOBS_SEEN);
    let short = short.map(|seconds| (Rule::ShortDeadline, path(deadline), short_deadline(seconds)));
    schedule.into_iter().chain(zone).chain(short).collect()
}

fn short_deadline(seconds: i64) -> Problem {
    Problem::new(format!(
        "`spec.startingDeadlineSeconds` is `{seconds}`: a run that cannot start by then is left out"
    ))
    .expected(format!(
        "more than {CRON_JOBS_SEEN}: Kubernetes looks at CronJobs every {CRON_JOBS_SEEN} seconds"
    ))
    .hint("leave it out for runs that start however late")
}

fn wrong(path: &[String], error: Option<ScheduleError>) -> Option<Wrong> {
    let error = error?;
    let mut problem = Problem::new(format!("`{}` cannot be read", dotted(path)))
        .found(format!("{}: {}", error.subject, error.found))
        .expected(error.expected);
    problem.hint = error.hint;
    Some((Rule::BadSchedule, path.to_vec(), problem))
}

fn walk(value: &Value, path: &mut Vec<String>, see: &mut impl FnMut(&[String], &str, &str)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                path.push(key.clone());
                if let Value::String(text) = value {
                    see(path, key, text);
                }
                walk(value, path, see);
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                walk(item, path, see);
                path.pop();
            }
        }
        _ => {}
    }
}

//! How much memory the three operators take with many parents each, and how much each further child.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use controlplane::{ControlPlane, Options, wait_until};
use serde_json::{Value, json};

use crate::cluster::{self, NAMESPACE, collection, each};
use crate::parents::{mysql, name, postgresql, schedule};
use crate::process::{Controller, Memory};
use crate::root;

const SCHEDULES: &str = "/apis/ops.io/v1alpha1";
const CLUSTERS: &str = "/apis/db.example.com/v1";
const MYSQLS: &str = "/apis/database.example.com/v1";
/// Nothing written for so long: it has settled.
const QUIET: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(1200);
/// Further parents, and then further children, are added in so many steps each.
const STEPS: usize = 3;

/// What is known at one moment.
struct Row {
    what: String,
    objects: u64,
    bytes: u64,
    memory: Memory,
}

pub fn measure(program: &Path, parents: usize) -> Result<(), String> {
    eprintln!("bench: a fresh API server");
    let plane = ControlPlane::start(Options { bare: true, ..Options::default() })
        .map_err(|error| error.to_string())?;
    plane.create(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
    );
    for operator in ["backupschedule", "postgresqlcluster", "mysql"] {
        let path = root().join("hooks").join(operator).join("crd.yaml");
        let crd = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        plane.apply("default", &crd);
    }
    for (api, plural) in
        [(SCHEDULES, "backupschedules"), (CLUSTERS, "postgresqlclusters"), (MYSQLS, "mysqls")]
    {
        plane.wait_for(&collection(api, plural), Duration::from_secs(30), "the kind can be listed", |_| true);
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| cluster::report(&plane, &ended));
        let rows = run(&plane, program, parents);
        ended.store(true, Ordering::Relaxed);
        print(parents, &rows?);
        Ok(())
    })
}

fn run(plane: &ControlPlane, program: &Path, parents: usize) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let controller = start(plane, program)?;
    rows.push(row("nothing", &controller));
    eprintln!("bench: {parents} BackupSchedules, PostgreSQLClusters and MySQLs");
    each(3 * parents, |number| match number % 3 {
        0 => create(plane, SCHEDULES, "backupschedules", &schedule(number / 3)),
        1 => create(plane, CLUSTERS, "postgresqlclusters", &postgresql(number / 3)),
        _ => create(plane, MYSQLS, "mysqls", &mysql(number / 3)),
    });
    wait_for_jobs(plane, 2 * parents);
    suspend(plane, parents, true);
    settle(&controller);
    rows.push(row(&format!("{parents} parents of each"), &controller));
    for step in 1..=STEPS {
        each(parents / 2, |number| {
            create(plane, MYSQLS, "mysqls", &mysql(parents + (step - 1) * (parents / 2) + number));
        });
        settle(&controller);
        rows.push(row(&format!("and {} more MySQLs", step * (parents / 2)), &controller));
    }
    for step in 1..=STEPS {
        suspend(plane, parents, false);
        wait_for_jobs(plane, (2 + step) * parents);
        suspend(plane, parents, true);
        settle(&controller);
        rows.push(row(&format!("and {} more Jobs", step * parents), &controller));
    }
    drop(controller);
    let controller = start(plane, program)?;
    settle(&controller);
    rows.push(row("restart with all of them", &controller));
    Ok(rows)
}

fn suspend(plane: &ControlPlane, parents: usize, suspended: bool) {
    each(parents, |number| {
        let path = format!("{}/{}", collection(SCHEDULES, "backupschedules"), name("s", number));
        plane.merge(&path, &json!({"spec": {"suspend": suspended}}));
    });
}

fn wait_for_jobs(plane: &ControlPlane, count: usize) {
    eprintln!("bench: {count} Jobs");
    let path = collection("/apis/batch/v1", "jobs?limit=1");
    wait_until(PATIENCE, "the Jobs are there", || {
        let page = plane.get(&path).unwrap_or_default();
        let there = page["metadata"]["remainingItemCount"].as_u64().unwrap_or(0) + 1;
        if there >= count as u64 { Ok(()) } else { Err(format!("{there}")) }
    });
}

fn start(plane: &ControlPlane, program: &Path) -> Result<Controller, String> {
    let file = |path: &str| root().join(path).display().to_string();
    let kubeconfig = plane.kubeconfig().display().to_string();
    let arguments = [
        "--kubeconfig",
        &kubeconfig,
        "--controllers",
        &file("controllers.yaml"),
        "--hooks",
        &file("hooks"),
        "--client-go-qps=-1",
    ];
    Controller::start(program, plane.dir(), &arguments)
}

/// Waits until no request is made any more.
fn settle(controller: &Controller) {
    let mut seen = (0, Instant::now());
    wait_until(PATIENCE, "nothing more is written", || {
        let requests = controller.sum("syncwright_writes_total");
        if requests != seen.0 {
            seen = (requests, Instant::now());
        }
        if requests > 0 && seen.1.elapsed() > QUIET || seen.1.elapsed() > 3 * QUIET {
            return Ok(());
        }
        Err(format!("{requests} writes"))
    });
}

fn row(what: &str, controller: &Controller) -> Row {
    let memory = controller.memory();
    let objects = controller.sum("syncwright_stored_objects");
    let bytes = controller.sum("syncwright_stored_bytes");
    eprintln!("bench: {what}: {objects} objects, {memory:?}");
    Row { what: what.into(), objects, bytes, memory }
}

fn print(parents: usize, rows: &[Row]) {
    println!("{parents} BackupSchedules, PostgreSQLClusters and MySQLs, hooks in process\n");
    println!("| | objects | JSON kept, MiB | resident, MiB | of it heap, MiB | peak, MiB |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mib = |kib: u64| kib as f64 / 1024.0;
    for Row { what, objects, bytes, memory } in rows {
        println!(
            "| {what} | {objects} | {:.1} | {:.1} | {:.1} | {:.1} |",
            mib(bytes / 1024),
            mib(memory.resident),
            mib(memory.anonymous),
            mib(memory.peak)
        );
    }
    println!();
    print_growth("object of a MySQL, the MySQL counted in", &rows[1], &rows[1 + STEPS]);
    print_growth("Job", &rows[1 + STEPS], &rows[1 + 2 * STEPS]);
}

fn print_growth(what: &str, first: &Row, last: &Row) {
    let heap = (last.memory.anonymous as f64 - first.memory.anonymous as f64) * 1024.0;
    let (objects, json) = ((last.objects - first.objects) as f64, (last.bytes - first.bytes) as f64);
    println!("Each further {what}: {:.0} bytes, {:.0} of them its JSON.", heap / objects, json / objects);
}

fn create(plane: &ControlPlane, api: &str, plural: &str, object: &Value) {
    plane.create(&collection(api, plural), object);
}

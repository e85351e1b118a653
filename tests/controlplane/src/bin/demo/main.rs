//! `cargo demo`: the product's main job on a real API server, from nothing to reconciled examples.
//!
//! Steps and states go to stdout, what cargo and Go say to stderr. Whatever it starts ends with it.

mod controller;
mod ending;
mod example;
mod kinds;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use controlplane::ControlPlane;

use controller::Controller;
use example::Example;
use kinds::Kinds;

/// The examples take a few seconds; a busy machine may take ten times that.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let once = match std::env::args().skip(1).collect::<Vec<_>>()[..] {
        [] => false,
        [ref flag] if flag == "--once" => true,
        _ => {
            eprintln!("usage: cargo demo [--once]");
            return ExitCode::from(2);
        }
    };
    ending::end_on_signals();
    let code = match run(once) {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("demo: {problem}");
            1
        }
    };
    ending::end(code)
}

fn run(once: bool) -> Result<(), String> {
    let root = root();
    let program = step("build", || controller::build(&root), |_| "syncwright, from this folder".into())?;
    let plane = step("control plane", start, |plane| {
        format!("Kubernetes {} at {}", plane.version(), plane.server_url())
    })?;
    let namespace =
        if plane.is_existing() { plane.namespace("syncwright-demo") } else { "default".to_owned() };
    let kinds = step("kinds", || Kinds::install(plane, &root), Kinds::to_string)?;
    let controller =
        step("controller", || Controller::start(plane, &kinds, &program, &root), Controller::to_string)?;
    let examples = step(
        "examples",
        || example::apply(plane, &kinds, &root, &namespace),
        |examples| example::names(examples),
    )?;
    ending::remove_at_end(plane, &examples);
    watch(plane, &examples, &controller)?;
    show(plane, &kinds, &namespace);
    if plane.is_existing() {
        ending::say(&format!("\nAt the end the examples go, and the kinds stay: {}", kinds.resources()));
    }
    if once {
        return Ok(());
    }
    say_what_next(plane, &controller, &namespace, &root);
    Err(controller.wait())
}

/// The workspace's folder, in which `cargo demo` was built.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("the package lies two folders below the workspace").to_owned()
}

fn start() -> Result<&'static ControlPlane, String> {
    ControlPlane::try_shared().map_err(|error| error.to_string())
}

/// Does one step, and says in a line what came of it and how long it took.
fn step<T>(
    name: &str,
    work: impl FnOnce() -> Result<T, String>,
    outcome: impl FnOnce(&T) -> String,
) -> Result<T, String> {
    let started = Instant::now();
    let result = work().map_err(|problem| format!("{name}: {problem}"))?;
    ending::say(&format!("{name:<14} {}  ({:.1} s)", outcome(&result), started.elapsed().as_secs_f32()));
    Ok(result)
}

/// Says each change of each example's state until all have reached theirs.
fn watch(plane: &ControlPlane, examples: &[Example], controller: &Controller) -> Result<(), String> {
    let started = Instant::now();
    let mut seen = vec![String::new(); examples.len()];
    loop {
        controller.check()?;
        let mut reached = 0;
        for (example, seen) in examples.iter().zip(&mut seen) {
            let state = example.look(plane)?;
            reached += usize::from(state.reached);
            if state.text != *seen {
                ending::say(&format!(
                    "{:>12.1} s {example}: {}",
                    started.elapsed().as_secs_f32(),
                    state.text
                ));
                *seen = state.text;
            }
        }
        if reached == examples.len() {
            return Ok(());
        }
        if started.elapsed() > PATIENCE {
            let log = controller.last_lines();
            return Err(format!(
                "{reached} of {} examples reached their state in {} s\n{log}",
                examples.len(),
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What a user of the operators sees.
fn show(plane: &ControlPlane, kinds: &Kinds, namespace: &str) {
    let mut command = plane.kubectl();
    command.args(["get", "--namespace", namespace, &kinds.resources()]);
    if let Ok(table) = command.output() {
        ending::say(&format!("\n{}", String::from_utf8_lossy(&table.stdout).trim_end()));
    }
}

fn say_what_next(plane: &ControlPlane, controller: &Controller, namespace: &str, root: &Path) {
    let kubectl = match controller::write_kubectl(plane, namespace, root) {
        Ok(path) => path.display().to_string(),
        Err(_) => format!("KUBECONFIG={} kubectl --namespace {namespace}", plane.kubeconfig().display()),
    };
    // Another cluster could not ask this controller to convert it.
    let older = match plane.is_existing() {
        true => String::new(),
        false => format!(
            "  {kubectl} get postgresqlclusters.v1alpha1.db.example.com accounts -o yaml    # as an older version has it\n"
        ),
    };
    ending::say(&format!(
        "
Try next, in another terminal:
  {kubectl} get statefulsets,services,jobs,pods
  {kubectl} scale mysql/orders-db --replicas=3
  {kubectl} delete service/orders-db    # it comes back
{older}Ask a hook what it would make of a parent:
  curl --data-binary @hooks/mysql/example.yaml {}/mysql/sync
Edit hooks/mysql/sync.yaml: what you save is in force a second later.
The controller's log is {}.
KUBECONFIG={}
Ctrl-C ends everything.",
        controller.url(),
        controller.log().display(),
        plane.kubeconfig().display(),
    ));
}

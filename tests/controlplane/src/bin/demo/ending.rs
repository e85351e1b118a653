//! How the demo ends: by itself, by a signal, or because nobody reads its output any more.

use std::io::Write;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{mem, ptr, thread};

use controlplane::ControlPlane;

use crate::example::Example;

/// The controller finishes the visits under way when it is asked to end.
const PATIENCE: Duration = Duration::from_secs(10);

static CONTROLLER: Mutex<Option<Child>> = Mutex::new(None);
static REMOVE: Mutex<Option<(&'static ControlPlane, Vec<String>)>> = Mutex::new(None);

/// Says one line of the demo on stdout.
pub fn say(line: &str) {
    if writeln!(std::io::stdout(), "{line}").is_err() {
        end(1)
    }
}

/// From here on SIGINT, SIGTERM and SIGHUP end the demo and all that it has started.
///
/// Called before any thread is started, so that every thread leaves these signals to the one that waits for them.
pub fn end_on_signals() {
    // SAFETY: the sets are initialised before they are used.
    let signals = unsafe {
        let mut signals: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut signals);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&mut signals, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, ptr::null_mut());
        signals
    };
    thread::spawn(move || {
        let mut signal = 0;
        // SAFETY: both references are valid.
        unsafe { libc::sigwait(&signals, &mut signal) };
        end(128 + signal)
    });
}

/// The controller that `end` ends.
pub fn controller() -> MutexGuard<'static, Option<Child>> {
    CONTROLLER.lock().expect("no panic while it is held")
}

/// In a cluster that outlives the demo the examples are deleted while their controller still runs.
pub fn remove_at_end(plane: &'static ControlPlane, examples: &[Example]) {
    if plane.is_existing() {
        let paths = examples.iter().map(|example| example.path().to_owned()).collect();
        *REMOVE.lock().expect("no panic while it is held") = Some((plane, paths));
    }
}

/// Ends the controller, then the control plane, then this process.
pub fn end(code: i32) -> ! {
    static ENDING: Mutex<()> = Mutex::new(());
    // Whoever comes second waits here until the process is gone.
    let _ending = ENDING.lock();
    if let Some((plane, paths)) = REMOVE.lock().ok().and_then(|mut remove| remove.take()) {
        remove(plane, &paths);
    }
    if let Some(child) = controller().take() {
        terminate(child);
    }
    // The control plane is shared: its processes and its folder go at exit.
    std::process::exit(code)
}

fn remove(plane: &ControlPlane, paths: &[String]) {
    paths.iter().for_each(|path| drop(plane.request("DELETE", path, None)));
    let gone = |path: &String| plane.request("GET", path, None).is_ok_and(|answer| answer.status == 404);
    let deadline = Instant::now() + PATIENCE;
    while !paths.iter().all(gone) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(100));
    }
}

fn terminate(mut child: Child) {
    // SAFETY: a plain system call; the child is not yet waited for, so its id is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let deadline = Instant::now() + PATIENCE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Runs a command to its end and answers its standard output, or what it said on standard error.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

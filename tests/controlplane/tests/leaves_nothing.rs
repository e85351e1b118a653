//! No process is left behind, however a process that has started some ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use controlplane::{ControlPlane, spawn_tied, spawn_tied_group, wait_until};

const SOON: Duration = Duration::from_secs(30);
const ROLE: &str = "CONTROLPLANE_TEST_ROLE";

/// What the process that `killed_process_leaves_none_behind` starts and kills does; nothing in the other process.
#[test]
fn role_of_the_killed_process() {
    if env::var_os(ROLE).is_some() {
        let plane = ControlPlane::start(Default::default()).unwrap();
        let mut builder = Command::new("sh");
        builder.args(["-c", "sleep 1000 & wait"]).current_dir(plane.dir());
        let mut builder = spawn_tied_group(builder).unwrap();
        println!("\nfolder {}", plane.dir().display());
        let _ = std::io::stdin().read(&mut [0]);
        let _ = builder.wait();
    }
}

#[test]
fn killed_process_leaves_none_behind() {
    let mut victim = Command::new(env::current_exe().unwrap());
    victim.args(["--exact", "role_of_the_killed_process", "--nocapture"]).env(ROLE, "victim");
    victim.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut victim = spawn_tied(victim).unwrap();
    let folder = read_folder(&mut victim);
    let all = "etcd, 3 of Kubernetes, kwok, a proxy, and a shell with its guard and its child";
    wait_until(SOON, all, || match processes_in(&folder) {
        running if running.len() == 9 => Ok(()),
        running => Err(format!("{running:?}")),
    });

    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until_nobody_works_in(&folder);

    assert!(folder.exists(), "nobody was there to remove {}", folder.display());
    let next = ControlPlane::start(Default::default()).unwrap();
    assert!(!folder.exists(), "the next start removes {}", folder.display());
    let folder = next.dir().to_owned();
    drop(next);
    assert!(!folder.exists(), "a control plane that ends removes {}", folder.display());
    wait_until_nobody_works_in(&folder);
}

#[test]
fn child_outlives_the_thread_that_asked_for_it() {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut cat = thread::spawn(move || spawn_tied(command).unwrap()).join().unwrap();
    cat.stdin.as_mut().unwrap().write_all(b"still here\n").unwrap();
    let mut line = String::new();
    BufReader::new(cat.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "still here\n");
    cat.kill().unwrap();
    cat.wait().unwrap();
}

#[test]
fn guard_answers_as_the_program_does() {
    let mut command = Command::new("sh");
    command.args(["-c", "exit 7"]);
    assert_eq!(spawn_tied_group(command).unwrap().wait().unwrap().code(), Some(7));
    let missing = spawn_tied_group(Command::new("/nowhere/program")).map(|_| ());
    assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

fn read_folder(victim: &mut Child) -> PathBuf {
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let line = lines.map_while(Result::ok).find(|line| line.starts_with("folder "));
    PathBuf::from(line.expect("the process says where its folder is").trim_start_matches("folder "))
}

/// The processes that work in `folder`, by their command lines.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let works_there = |process: &Path| {
        fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.to_string_lossy().starts_with(folder))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let there = processes.filter(|process| works_there(process));
    there.map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default()).collect()
}

fn wait_until_nobody_works_in(folder: &Path) {
    wait_until(SOON, "every process is gone", || match processes_in(folder) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    });
}

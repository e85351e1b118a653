//! Child processes that end with this process, however it ends.
//!
//! Linux sends a parent-death signal when the *thread* that spawned the child ends, and a test's thread ends long
//! before its process. So one thread that never ends spawns them all.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread;

struct Order {
    command: Command,
    answer: SyncSender<io::Result<Child>>,
}

/// Starts `command` so that it is killed when this process ends, by SIGKILL too.
///
/// It gets a process group of its own, so that Ctrl-C in a terminal reaches only this process.
pub fn spawn_tied(mut command: Command) -> io::Result<Child> {
    let parent = std::process::id();
    command.process_group(0);
    // SAFETY: between fork and exec the closure only makes system calls, and it allocates nothing.
    unsafe { command.pre_exec(move || die_with(parent)) };
    let (answer, result) = sync_channel(1);
    spawner().send(Order { command, answer }).expect("the spawner never ends");
    result.recv().expect("the spawner answers every order")
}

fn spawner() -> &'static Sender<Order> {
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (orders, inbox) = channel::<Order>();
        let spawn_all = move || {
            for Order { mut command, answer } in inbox {
                // Whoever asked waits for the answer, unless its thread was torn down meanwhile.
                let _ = answer.send(command.spawn());
            }
        };
        thread::Builder::new().name("spawner".into()).spawn(spawn_all).expect("a thread can be started");
        orders
    })
}

fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: plain system calls.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have ended before the request above: then no signal will come.
        if libc::getppid() as u32 != parent {
            libc::_exit(1);
        }
    }
    Ok(())
}

/// Sends SIGKILL to the process group of `child` and waits for `child` to be gone.
pub(crate) fn end(child: &mut Child) {
    // SAFETY: a plain system call; the child is not yet waited for, so its id is still its own.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    let _ = child.wait();
}

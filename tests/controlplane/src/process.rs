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
    unsafe {
        command.pre_exec(move || {
            unblock_signals();
            die_with(parent, libc::SIGKILL)
        })
    };
    spawn(command)
}

/// The same for a program that starts others, as `go build` and `cargo build` do: its whole process group is killed.
///
/// A guard stands between this process and the program. The child returned is the guard, which ends as the program ends.
pub fn spawn_tied_group(mut command: Command) -> io::Result<Child> {
    let parent = std::process::id();
    command.process_group(0);
    // SAFETY: between fork and exec the closure only makes system calls, and it allocates nothing.
    unsafe { command.pre_exec(move || put_guard_before(parent)) };
    spawn(command)
}

fn spawn(command: Command) -> io::Result<Child> {
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

/// A program inherits the signals that its parent blocks, and then cannot be asked to end.
fn unblock_signals() {
    // SAFETY: the set is initialised before it is used.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Has this process sent `signal` when its parent ends.
fn die_with(parent: u32, signal: i32) -> io::Result<()> {
    // SAFETY: plain system calls.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, signal) != 0 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have ended before the request above: then no signal will come.
        if libc::getppid() as u32 != parent {
            libc::_exit(1);
        }
    }
    Ok(())
}

/// Forks once more: the new process goes on to become the program, this one guards it and never returns.
fn put_guard_before(parent: u32) -> io::Result<()> {
    // SAFETY: this process has one thread, that between fork and exec; only system calls are made.
    unsafe {
        let mut awaited: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut awaited);
        libc::sigaddset(&mut awaited, libc::SIGTERM);
        libc::sigaddset(&mut awaited, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_SETMASK, &awaited, std::ptr::null_mut());
        die_with(parent, libc::SIGTERM)?;
        let guard = libc::getpid() as u32;
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                unblock_signals();
                die_with(guard, libc::SIGKILL)
            }
            program => guard_until_end(program, &awaited),
        }
    }
}

/// Waits for the end of the program, or for that of the parent, which comes as SIGTERM.
///
/// # Safety
/// Only for a process that has forked and does not exec: it closes every file.
unsafe fn guard_until_end(program: libc::pid_t, awaited: &libc::sigset_t) -> ! {
    // SAFETY: plain system calls. Pipes to the parent are closed, so that they end when the program ends.
    unsafe {
        // Linux has it since 5.9.
        if libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) != 0 {
            for file in 0..1024 {
                libc::close(file);
            }
        }
        loop {
            let mut signal = 0;
            libc::sigwait(awaited, &mut signal);
            if signal == libc::SIGTERM {
                libc::kill(0, libc::SIGKILL);
            }
            let mut status = 0;
            if libc::waitpid(program, &mut status, libc::WNOHANG) == program {
                libc::_exit(if libc::WIFEXITED(status) {
                    libc::WEXITSTATUS(status)
                } else {
                    128 + libc::WTERMSIG(status)
                });
            }
        }
    }
}

/// Sends SIGKILL to the process group of `child` and waits for `child` to be gone.
pub(crate) fn end(child: &mut Child) {
    // SAFETY: a plain system call; the child is not yet waited for, so its id is still its own.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    let _ = child.wait();
}

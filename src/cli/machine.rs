//! What this process may take of the machine it runs on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::serve::connections::Means;

/// The CPUs that this process may use: its affinity and the quota of its cgroup count, the machine's number does not.
pub(super) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The least memory limit of this process's cgroup and those around it, in bytes.
pub(super) fn memory_limit() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let files = limit_files(&own);
    files.iter().filter_map(|file| limit(&fs::read_to_string(file).ok()?)).min()
}

/// Where limits are: version 2 has one tree of cgroups, version 1 one for memory alone.
fn limit_files(own: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match controllers {
            "" => (Path::new("/sys/fs/cgroup"), "memory.max"),
            named if named.split(',').any(|name| name == "memory") => {
                (Path::new("/sys/fs/cgroup/memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let own = root.join(path.trim_start_matches('/'));
        files.extend(own.ancestors().take_while(|folder| folder.starts_with(root)).map(|it| it.join(file)));
    }
    files
}

/// A number of bytes; version 1 writes no limit as a number beyond all machines.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
}

/// Takes as many open files as the system allows, and tells what there is for the ports. A shell's usual limit of 1024 is
/// for programs that wait for many by an old system call; Go's programs lift it in the same way.
pub(super) fn means() -> Means {
    let mut files = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain system calls, about this process and a value on this stack.
    let told = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut files) == 0 && {
            let all = libc::rlimit { rlim_cur: files.rlim_max, ..files };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &all) == 0 {
                files = all;
            }
            true
        }
    };
    // On some systems the numbers are not this wide.
    #[allow(clippy::useless_conversion)]
    let files = told.then(|| u64::from(files.rlim_cur));
    Means { memory: memory_limit(), files }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_both_versions_are_found() {
        let names = |own: &str| -> Vec<String> {
            limit_files(own).iter().map(|file| file.display().to_string()).collect()
        };
        assert_eq!(names("0::/\n"), ["/sys/fs/cgroup/memory.max"]);
        assert_eq!(
            names("0::/pod/box\n"),
            [
                "/sys/fs/cgroup/pod/box/memory.max",
                "/sys/fs/cgroup/pod/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(names("5:cpu,cpuacct:/\n4:memory:/\n"), ["/sys/fs/cgroup/memory/memory.limit_in_bytes"]);
        assert_eq!(limit("134217728\n"), Some(128 << 20));
        assert_eq!([limit("max\n"), limit("9223372036854771712\n")], [None, None]);
    }
}

//! What the process itself is and uses, under the names that every Prometheus client gives it.

use std::fs;
use std::time::Duration;

use crate::cli::version;
use crate::metric::text::Text;

/// Writes the version, and what Linux tells of this process. Elsewhere there is only the version.
pub(super) fn write(text: &mut Text) {
    let mut family = text.gauge("syncwright_build_info", "The version that runs.");
    family.sample(&[("version", version::NUMBER), ("commit", version::COMMIT.unwrap_or_default())], 1);
    let Some(usage) = Usage::read() else { return };
    let help = "CPU time used, in user and system mode.";
    text.counter("process_cpu_seconds_total", help).sample(&[], usage.cpu.as_secs_f64());
    text.gauge("process_resident_memory_bytes", "Memory in use.").sample(&[], usage.resident_bytes);
    text.gauge("process_open_fds", "Open files and sockets.").sample(&[], usage.open_files);
    text.gauge("process_start_time_seconds", "When it started, in seconds since 1970.")
        .sample(&[], usage.started.as_secs_f64());
}

struct Usage {
    cpu: Duration,
    /// Since 1970.
    started: Duration,
    resident_bytes: u64,
    open_files: usize,
}

impl Usage {
    fn read() -> Option<Usage> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let boot = fs::read_to_string("/proc/stat").ok()?;
        let open_files = fs::read_dir("/proc/self/fd").ok()?.count();
        // SAFETY: plain questions to the system.
        let (ticks, page) = unsafe { (libc::sysconf(libc::_SC_CLK_TCK), libc::sysconf(libc::_SC_PAGESIZE)) };
        Usage::of(&stat, &boot, open_files, (ticks.try_into().ok()?, page.try_into().ok()?))
    }

    /// `stat` is that of the process and `boot` that of the machine, see `man 5 proc`.
    fn of(stat: &str, boot: &str, open_files: usize, (ticks, page): (u64, u64)) -> Option<Usage> {
        // The name of the program may hold anything; what follows it does not.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |place: usize| fields.get(place - 3)?.parse::<u64>().ok();
        let time = |count: u64| Duration::from_secs_f64(count as f64 / ticks as f64);
        let booted = boot.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())?;
        Some(Usage {
            cpu: time(number(14)? + number(15)?),
            started: Duration::from_secs(booted) + time(number(22)?),
            resident_bytes: number(24)? * page,
            open_files,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_own_account_is_read() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 900 0 3 0 150 50 0 0 20 0 9 0 1000 170000000 3000 1 2";
        let usage = Usage::of(stat, "cpu 1 2\nbtime 1700000000\n", 5, (100, 4096)).expect("it can be read");
        assert_eq!(usage.cpu, Duration::from_secs(2));
        assert_eq!(usage.started, Duration::from_secs(1_700_000_010));
        assert_eq!((usage.resident_bytes, usage.open_files), (3000 * 4096, 5));
    }
}

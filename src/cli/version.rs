//! What `--version` says: ours, and what decides behaviour beside it.

use std::sync::LazyLock;

use crate::schedule::zone::tzdb_release;

/// The released kube that the lock file names.
const KUBE: &str = "5.0.0";

pub(super) const NUMBER: &str = env!("CARGO_PKG_VERSION");
/// A release build names its commit; one from a source archive can't.
pub(super) const COMMIT: Option<&str> = option_env!("SYNCWRIGHT_COMMIT");

/// One line, after the program's name.
pub(super) static LINE: LazyLock<String> = LazyLock::new(|| format!("{NUMBER} ({})", details()));

fn details() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let commit = COMMIT.map(|commit| format!("commit {commit}, ")).unwrap_or_default();
    let zones = tzdb_release();
    format!("{commit}{profile} build, time zones {zones}, kube {KUBE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_is_the_one_in_the_lock_file() {
        let lock = include_str!("../../Cargo.lock");
        assert!(
            lock.contains(&format!("name = \"kube\"\nversion = \"{KUBE}\"\n")),
            "update KUBE to the lock file's"
        );
    }
}

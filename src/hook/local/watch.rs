//! Tells of changes below a folder, by inotify where that works and by looking twice a second where it does not.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// How long the folder must be quiet before it is read: an editor writes a file in several steps.
const QUIET: Duration = Duration::from_millis(60);
/// A folder that never gets quiet is read anyway, so that a change is live within a second.
const LONGEST: Duration = Duration::from_millis(400);
/// How often the folder is looked at where nobody tells of changes.
const POLL: Duration = Duration::from_millis(500);

pub(super) enum News {
    /// Something happened in a watched folder; perhaps nothing that matters.
    Stir,
    Stop,
}

/// Where news arrive, and what keeps them coming.
pub(super) struct Watch {
    news: Receiver<News>,
    sender: Sender<News>,
    watcher: Option<RecommendedWatcher>,
    poll_always: bool,
}

impl Watch {
    pub(super) fn new(poll_always: bool) -> Watch {
        let (sender, news) = mpsc::channel();
        Watch { news, sender, watcher: None, poll_always }
    }

    pub(super) fn sender(&self) -> Sender<News> {
        self.sender.clone()
    }

    /// Watches exactly these folders from now on. An error says why they are polled instead.
    pub(super) fn aim<'a>(
        &mut self,
        folders: Option<impl Iterator<Item = &'a PathBuf> + Clone>,
    ) -> Result<(), String> {
        self.watcher = None;
        let folders = folders.ok_or("it cannot be read")?;
        if self.poll_always {
            return Err("asked to".into());
        }
        if let Some(kind) = folders.clone().find_map(|folder| network_file_system(folder)) {
            return Err(format!("a {kind} file system does not tell of changes made elsewhere"));
        }
        let watcher = watch_all(self.sender.clone(), folders).map_err(|error| error.to_string())?;
        self.watcher = Some(watcher);
        Ok(())
    }

    pub(super) fn polls(&self) -> bool {
        self.watcher.is_none()
    }

    /// Waits until it is time to look at the folder; false when there is no need any more.
    pub(super) fn wait(&self) -> bool {
        let first = if self.polls() {
            self.news.recv_timeout(POLL)
        } else {
            self.news.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match first {
            Ok(News::Stir) => self.settle(),
            Ok(News::Stop) | Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => true,
        }
    }

    fn settle(&self) -> bool {
        let deadline = Instant::now() + LONGEST;
        while Instant::now() < deadline {
            match self.news.recv_timeout(QUIET) {
                Ok(News::Stir) => {}
                Ok(News::Stop) => return false,
                Err(_) => return true,
            }
        }
        true
    }
}

fn watch_all<'a>(
    sender: Sender<News>,
    folders: impl Iterator<Item = &'a PathBuf>,
) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading the files must not make them be read again.
        if !matches!(event, Ok(notify::Event { kind: EventKind::Access(_), .. })) {
            let _ = sender.send(News::Stir);
        }
    })?;
    for folder in folders {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// The kind of file system a folder is on, where another machine can change it unheard.
fn network_file_system(folder: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let kind = file_system(&mounts, folder)?;
    let shared = ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "virtiofs", "vboxsf"];
    (shared.contains(&kind) || kind.starts_with("fuse")).then(|| kind.to_string())
}

/// The file system of the last mount on the longest mount point that holds the folder.
/// A line reads `36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw`.
fn file_system<'a>(mounts: &'a str, folder: &Path) -> Option<&'a str> {
    let parse = |line: &'a str| {
        let (mount, kind) = line.split_once(" - ")?;
        let point = Path::new(mount.split(' ').nth(4)?);
        folder.starts_with(point).then_some((point.components().count(), kind.split(' ').next()?))
    };
    mounts.lines().filter_map(parse).max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_nearest_and_newest_mount() {
        let mounts = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:44 / /etc/hooks ro,relatime - tmpfs tmpfs rw
31 22 0:45 / /srv rw - nfs4 server:/srv rw
32 31 0:46 / /srv rw - xfs /dev/sdb1 rw";
        let kind = |folder: &str| file_system(mounts, Path::new(folder)).unwrap();
        assert_eq!(kind("/home/hooks"), "ext4");
        assert_eq!(kind("/etc/hooks/mysql"), "tmpfs");
        assert_eq!(kind("/etc/hooks2"), "ext4");
        assert_eq!(kind("/srv/hooks"), "xfs");
    }
}

//! Where things are kept: built programs, and a folder for each running control plane that dies with it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::{Doing, Error};

/// `$XDG_CACHE_HOME/syncwright/control-plane`, or the same below `~/.cache`.
pub(crate) fn cache() -> Result<PathBuf, Error> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let base = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
    let base = base.ok_or_else(|| {
        Error::new("no place to keep the control plane's programs: set HOME or XDG_CACHE_HOME")
    })?;
    let cache = base.join("syncwright/control-plane");
    fs::create_dir_all(&cache).doing(|| format!("making the folder {}", cache.display()))?;
    Ok(cache)
}

/// The folder of one running control plane. Its lock is held as long as its process lives.
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// A new one; those of dead processes are removed.
    pub(crate) fn new() -> Result<Folder, Error> {
        let running = cache()?.join("running");
        fs::create_dir_all(&running).doing(|| format!("making the folder {}", running.display()))?;
        // Held while a folder exists without its own lock, so that nobody takes it for a dead one.
        let _making = lock(&running.join("lock"))?;
        remove_stale(&running);
        let path = running.join(random_hex(4));
        // Tokens are kept here: nobody else may look.
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .doing(|| format!("making the folder {}", path.display()))?;
        let lock = lock(&path.join("lock"))?;
        Ok(Folder { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        fs::write(&path, content).doing(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A folder whose lock can be taken, or that has none yet, has lost its process.
fn remove_stale(running: &Path) {
    for entry in fs::read_dir(running).into_iter().flatten().flatten() {
        let lock = File::open(entry.path().join("lock"));
        if entry.path().is_dir() && lock.map_or(true, |lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Takes the lock of a file, waiting for whoever has it.
pub(crate) fn lock(path: &Path) -> Result<File, Error> {
    let file = File::create(path).and_then(|file| file.lock().map(|()| file));
    file.doing(|| format!("locking {}", path.display()))
}

pub(crate) fn random_hex(bytes: usize) -> String {
    use ring::rand::{SecureRandom, SystemRandom};
    let mut buffer = vec![0; bytes];
    SystemRandom::new().fill(&mut buffer).expect("the system gives random numbers");
    buffer.iter().map(|byte| format!("{byte:02x}")).collect()
}

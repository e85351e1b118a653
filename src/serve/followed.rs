//! Files that are read anew when one of them changes. What cannot be used leaves what was there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::problem::Problem;

/// What is read from some files, which belong together.
#[derive(Debug)]
pub(super) struct Followed<T> {
    /// The first one stands for all of them in the log.
    paths: Vec<PathBuf>,
    read: fn(&[PathBuf]) -> Result<T, Problem>,
    words: Words,
    held: Mutex<Held<T>>,
}

/// What the log says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub changed: &'static str,
    pub unfit: &'static str,
}

#[derive(Debug)]
struct Held<T> {
    stamps: Vec<Stamp>,
    what: Arc<T>,
    trouble: Option<String>,
}

/// Tells a changed file by its time and size.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    paths.iter().map(|path| stamp(path)).collect()
}

impl<T> Followed<T> {
    /// Reads the files, which can be used.
    pub(super) fn open(
        paths: Vec<PathBuf>,
        read: fn(&[PathBuf]) -> Result<T, Problem>,
        words: Words,
    ) -> Result<Self, Problem> {
        let stamps = stamps(&paths);
        let held = Mutex::new(Held { stamps, what: Arc::new(read(&paths)?), trouble: None });
        Ok(Followed { paths, read, words, held })
    }

    pub(super) fn current(&self) -> Arc<T> {
        self.standing().0
    }

    /// What holds, and why it is not what the files say. A look at files is cheap beside a call or a connection.
    pub(super) fn standing(&self) -> (Arc<T>, Option<String>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = stamps(&self.paths);
        if stamps != held.stamps {
            held.stamps = stamps;
            self.take_up(&mut held);
        }
        (held.what.clone(), held.trouble.clone())
    }

    fn take_up(&self, held: &mut Held<T>) {
        match (self.read)(&self.paths) {
            Ok(what) => {
                (held.what, held.trouble) = (Arc::new(what), None);
                tracing::info!(file = %self.paths[0].display(), "{}", self.words.changed);
            }
            Err(problem) => {
                tracing::error!(error = %problem, "{}", self.words.unfit);
                held.trouble = Some(problem.to_string());
            }
        }
    }
}

pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Problem> {
    fs::read(path).map_err(|error| Problem::new(format!("`{}` cannot be read: {error}", path.display())))
}

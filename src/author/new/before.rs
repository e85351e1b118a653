//! What a folder was before something was written into it, to put it back where that fails.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder as it was, or that it was not there.
pub(super) struct Before {
    /// The outermost folder that would be made; `None` where the folder was there.
    missing: Option<PathBuf>,
    folder: PathBuf,
    /// Its folders, and its files with their content; of what is neither, only that it was there.
    entries: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl Before {
    pub(super) fn of(folder: &Path) -> io::Result<Before> {
        let missing = folder.ancestors().take_while(|path| is_missing(path)).last().map(Path::to_path_buf);
        let mut entries = BTreeMap::new();
        if missing.is_none() {
            note(folder, &mut entries)?;
        }
        Ok(Before { missing, folder: folder.to_path_buf(), entries })
    }

    /// Puts everything back, as far as it can be: the error to tell is the one that led here.
    pub(super) fn restore(&self) {
        if let Some(missing) = &self.missing {
            let _ = fs::remove_dir_all(missing);
            return;
        }
        let mut now = BTreeMap::new();
        let _ = note(&self.folder, &mut now);
        // From the inside outwards: a folder that was made is empty when it comes.
        for path in now.keys().rev().filter(|path| !self.entries.contains_key(*path)) {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
        for (path, content) in &self.entries {
            if let Some(content) = content
                && now.get(path) != Some(&Some(content.clone()))
            {
                let _ = fs::write(path, content);
            }
        }
    }
}

fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.symlink_metadata().is_err()
}

fn note(folder: &Path, entries: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            note(&path, entries)?;
        }
        let content = if kind.is_file() { Some(fs::read(&path)?) } else { None };
        entries.insert(path, content);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_not_there_is_gone_again_with_those_above_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("hooks/a");
        let before = Before::of(&folder).unwrap();
        fs::create_dir_all(folder.join("cases/b")).unwrap();
        fs::write(folder.join("cases/b/sync.yaml"), "").unwrap();
        before.restore();
        assert!(!root.path().join("hooks").exists() && root.path().exists());
    }

    #[test]
    fn what_was_there_is_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("cases/mine")).unwrap();
        fs::write(at("sync.yaml"), "mine").unwrap();
        let before = Before::of(root.path()).unwrap();
        fs::create_dir_all(at("cases/new")).unwrap();
        fs::write(at("cases/new/a.yaml"), "new").unwrap();
        fs::write(at("sync.yaml"), "new").unwrap();
        before.restore();
        assert_eq!(fs::read_to_string(at("sync.yaml")).unwrap(), "mine");
        assert!(at("cases/mine").exists() && !at("cases/new").exists());
    }
}

//! Reads a hooks folder: which files count, what they hold, and which real folders must be watched to hear of a change.
//!
//! Knows nothing of templates. Links are followed, so that a ConfigMap volume works: there `mysql` links to
//! `..data/mysql` and `..data` to a dated folder, and an update swaps only `..data`. Names that begin with a dot are
//! never read by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Nobody nests templates deeper than this.
const DEPTH: usize = 8;
/// More files than this are not a hooks folder, but a home directory given by mistake.
const FILES: usize = 5_000;
/// etcd holds no ConfigMap above 1 MiB, so no larger file can come from one.
const FILE_BYTES: u64 = 1 << 20;
/// A swap while the folder is read mixes two revisions: then it is read again, this often at most.
const ATTEMPTS: usize = 5;

/// The texts of one look at the folder, by path relative to it.
pub(super) struct Folder {
    pub texts: BTreeMap<String, String>,
    /// Files that could not be read, with the reason.
    pub unreadable: BTreeMap<String, String>,
    pub listing: Listing,
}

/// What tells one state of the folder from another without reading the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    files: BTreeMap<String, Stamp>,
    /// Every real folder that holds a file, a folder or a link on the way to one.
    pub folders: BTreeMap<PathBuf, Stamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// Reads the folder as it is at one moment: a file that changes meanwhile makes it read again.
pub(super) fn read(root: &Path) -> io::Result<Folder> {
    let mut listing = list(root)?;
    for attempt in 1.. {
        let (texts, unreadable) = read_files(root, &listing);
        let after = list(root)?;
        if after == listing || attempt == ATTEMPTS {
            return Ok(Folder { texts, unreadable, listing });
        }
        listing = after;
    }
    unreachable!("the last attempt returns")
}

/// Looks at the folder without reading any file.
pub(super) fn list(root: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    note_folders_on(&mut listing, root);
    walk(&mut listing, root, "", &mut Vec::new())?;
    Ok(listing)
}

/// `way` holds the real folders from the root to this one: a link back to one of them leads nowhere new.
fn walk(listing: &mut Listing, folder: &Path, prefix: &str, way: &mut Vec<PathBuf>) -> io::Result<()> {
    let real = note_folder(listing, folder)?;
    if way.contains(&real) || way.len() > DEPTH {
        return Ok(());
    }
    way.push(real);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path();
        // A link to nothing, or a file removed since: its folder is watched, so its return is heard of.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let relative = format!("{prefix}{name}");
        if !counts(&relative, metadata.is_dir()) {
            continue;
        }
        if entry.file_type()?.is_symlink() {
            note_folders_on(listing, &path);
        }
        if metadata.is_dir() {
            match walk(listing, &path, &format!("{relative}/"), way) {
                // Removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                walked => walked?,
            }
        } else if metadata.is_file() {
            listing.files.insert(relative, Stamp::of(&metadata));
        }
        if listing.files.len() > FILES {
            return Err(io::Error::other(format!("more than {FILES} files: this is no hooks folder")));
        }
    }
    way.pop();
    Ok(())
}

/// Whether a path below the folder is a template's: the author's notes, examples and cases are not.
fn counts(relative: &str, is_folder: bool) -> bool {
    let (parent, name) = relative.rsplit_once('/').unwrap_or(("", relative));
    // A volume of its own has a `lost+found` that only root reads.
    if name.starts_with('.') || name == "lost+found" {
        return false;
    }
    let in_hook = !parent.is_empty() && !parent.contains('/');
    if is_folder {
        return !(in_hook && name == "cases");
    }
    let own = in_hook && matches!(name, "crd.yaml" | "example.yaml");
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    !own && matches!(extension, "yaml" | "yml" | "jinja" | "j2")
}

fn read_files(root: &Path, listing: &Listing) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let (mut texts, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
    for (relative, stamp) in &listing.files {
        match read_file(&root.join(relative), stamp.bytes) {
            Ok(text) => texts.insert(relative.clone(), text),
            Err(reason) => unreadable.insert(relative.clone(), reason),
        };
    }
    (texts, unreadable)
}

fn read_file(path: &Path, bytes: u64) -> Result<String, String> {
    if bytes > FILE_BYTES {
        return Err(format!("the file has {bytes} bytes, more than {FILE_BYTES}"));
    }
    let bytes = fs::read(path).map_err(|error| format!("the file cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("the file is not UTF-8 text: line {line} has a byte that is none")
    })
}

fn note_folder(listing: &mut Listing, folder: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(folder)?;
    let mut stamp = Stamp::of(&fs::metadata(&real)?);
    // Any file made or removed changes a folder's size and time; only another folder in its place matters here.
    (stamp.bytes, stamp.changed) = (0, (0, 0));
    listing.folders.insert(real.clone(), stamp);
    Ok(real)
}

/// Notes each folder in which a change could make `path` mean something else: that of the file itself and those of the
/// links on the way.
fn note_folders_on(listing: &mut Listing, path: &Path) {
    let mut ways = vec![path.to_path_buf()];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        if seen.len() > 40 || !seen.insert(way.clone()) {
            continue;
        }
        for step in way.ancestors() {
            let Ok(target) = fs::read_link(step) else { continue };
            let holder =
                step.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let _ = note_folder(listing, holder);
            let rest = way.strip_prefix(step).expect("an ancestor is a prefix");
            ways.push(holder.join(target).join(rest));
        }
    }
    if let Some(parent) = fs::canonicalize(path).ok().as_deref().and_then(Path::parent)
        && fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
    {
        let _ = note_folder(listing, parent);
    }
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn names(root: &Path) -> Vec<String> {
        read(root).unwrap().texts.into_keys().collect()
    }

    #[test]
    fn templates_are_read_and_notes_examples_and_cases_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "_lib/labels.yaml",
            "mysql/README.md",
            "mysql/.sync.yaml.swp",
            "mysql/cases/ready/sync.request.yaml",
            "mysql/crd.yaml",
            "mysql/example.yaml",
            "mysql/parts/labels.jinja",
            "mysql/sync.yaml",
            "mysql/sync/crd.yaml",
        ] {
            write(folder.path(), path, "a");
        }
        let expected =
            ["_lib/labels.yaml", "mysql/parts/labels.jinja", "mysql/sync.yaml", "mysql/sync/crd.yaml"];
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn a_config_map_volume_is_read_through_its_links_once() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "..2026_11/mysql/sync.yaml", "old");
        symlink("..2026_11", folder.path().join("..data")).unwrap();
        symlink("..data/mysql", folder.path().join("mysql")).unwrap();
        let before = read(folder.path()).unwrap();
        assert_eq!(before.texts, BTreeMap::from([("mysql/sync.yaml".into(), "old".into())]));

        write(folder.path(), "..2026_12/mysql/sync.yaml", "new");
        symlink("..2026_12", folder.path().join("..data_tmp")).unwrap();
        fs::rename(folder.path().join("..data_tmp"), folder.path().join("..data")).unwrap();
        let after = read(folder.path()).unwrap();
        assert_ne!(after.listing, before.listing);
        assert_eq!(after.texts["mysql/sync.yaml"], "new");
    }

    #[test]
    fn a_folder_behind_links_is_watched_where_each_link_lies() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        write(&place, "releases/7/hooks/mysql/sync.yaml", "a");
        write(&place, "elsewhere/shared.yaml", "a");
        symlink("releases/7", place.join("current")).unwrap();
        symlink(place.join("elsewhere/shared.yaml"), place.join("releases/7/hooks/shared.yaml")).unwrap();
        let listing = list(&place.join("current/hooks")).unwrap();
        let watched: Vec<_> =
            listing.folders.keys().map(|folder| folder.strip_prefix(&place).unwrap()).collect();
        let expected = ["", "elsewhere", "releases/7/hooks", "releases/7/hooks/mysql"];
        assert_eq!(watched, expected.map(Path::new));
    }

    #[test]
    fn a_link_that_leads_back_up_ends() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "mysql/sync.yaml", "a");
        symlink("..", folder.path().join("mysql/up")).unwrap();
        assert_eq!(names(folder.path()), ["mysql/sync.yaml"]);
    }

    #[test]
    fn what_is_no_text_is_unreadable_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), b"ab\xff").unwrap();
        fs::write(folder.path().join("b.yaml"), vec![b'a'; FILE_BYTES as usize + 1]).unwrap();
        symlink("nowhere", folder.path().join("c.yaml")).unwrap();
        let read = read(folder.path()).unwrap();
        let reasons: Vec<&str> = read.unreadable.values().map(String::as_str).collect();
        assert_eq!(
            reasons,
            [
                "the file is not UTF-8 text: line 1 has a byte that is none",
                "the file has 1048577 bytes, more than 1048576"
            ]
        );
    }
}

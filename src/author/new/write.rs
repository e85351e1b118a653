//! Puts a sketch on disk: all of it or nothing, and never over what is there unless told to.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::author::case::{self, Accept, Case, Verdict};
use crate::author::difference::differences;
use crate::author::new::before::Before;
use crate::author::new::{NewFile, Sketch, definition};
use crate::hook::local::Shelf;
use crate::problem::Problem;
use crate::template::yaml;

/// Where a sketch goes.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The hooks folder.
    pub hooks: PathBuf,
    /// The file of definitions.
    pub controllers: PathBuf,
    pub overwrite: Overwrite,
}

/// What to do about files that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overwrite {
    No,
    Yes,
}

/// What was written, in order.
#[derive(Debug)]
pub(crate) struct Written {
    pub files: Vec<PathBuf>,
    /// What became of the file of definitions.
    pub definition: Appended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Appended {
    Yes,
    /// It has a definition of that name, which stays as it is.
    WasThere,
}

/// Writes the files, appends the definition, and writes what each case answers.
pub(crate) fn write(sketch: &Sketch, target: &Target) -> Result<Written, Problem> {
    let folder = target.hooks.join(&sketch.names.hook);
    let definitions = definitions_after(sketch, target)?;
    if target.overwrite == Overwrite::No {
        refuse_to_overwrite(&sketch.files, &folder, target, definitions.is_none())?;
    }
    let before = Before::of(&folder).map_err(|error| unwritable(&folder, &error))?;
    written(sketch, target, &folder, definitions).inspect_err(|_| before.restore())
}

/// All of it; where it ends in an error, a part of it is there.
fn written(
    sketch: &Sketch,
    target: &Target,
    folder: &Path,
    definitions: Option<String>,
) -> Result<Written, Problem> {
    let mut files = Vec::new();
    for NewFile { path, text } in &sketch.files {
        let path = folder.join(path);
        write_file(&path, text, target.overwrite).map_err(|error| unwritable(&path, &error))?;
        files.push(path);
    }
    files.extend(answer_cases(sketch, target)?);
    let definition = match definitions {
        None => Appended::WasThere,
        Some(text) => {
            let path = &target.controllers;
            fs::write(path, text).map_err(|error| unwritable(path, &error))?;
            Appended::Yes
        }
    };
    Ok(Written { files, definition })
}

/// The file of definitions as it will be; `None` where it has this one.
fn definitions_after(sketch: &Sketch, target: &Target) -> Result<Option<String>, Problem> {
    let path = &target.controllers;
    let before = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Problem::new(format!("`{}` cannot be read: {error}", path.display()))),
    };
    let entry = definition::text(&sketch.names, &sketch.children);
    definition::appended(&path.display().to_string(), &before, &sketch.names.hook, &entry)
}

fn refuse_to_overwrite(
    files: &[NewFile],
    folder: &Path,
    target: &Target,
    is_defined: bool,
) -> Result<(), Problem> {
    let there: Vec<String> = files
        .iter()
        .map(|file| folder.join(&file.path))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| format!("`{}`", path.display()))
        .collect();
    if !there.is_empty() {
        return Err(Problem::new("nothing is written: there are files already")
            .found(there.join(", "))
            .hint("`--force` writes over them; another name makes another folder"));
    }
    if is_defined {
        let (name, file) = (folder.file_name().unwrap_or_default().display(), target.controllers.display());
        return Err(Problem::new(format!("nothing is written: `{file}` has a controller `{name}` already"))
            .hint("`--force` keeps it and writes the folder"));
    }
    Ok(())
}

fn write_file(path: &Path, text: &str, overwrite: Overwrite) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true);
    match overwrite {
        Overwrite::No => options.create_new(true),
        Overwrite::Yes => options.create(true).truncate(true),
    };
    options.open(path)?.write_all(text.as_bytes())
}

/// Writes what each case of the new hook answers: it is known to be what the templates make, and is there to be read.
fn answer_cases(sketch: &Sketch, target: &Target) -> Result<Vec<PathBuf>, Problem> {
    let hook = format!("{}/", sketch.names.hook);
    let shelf = Shelf::open(&target.hooks);
    let ours = |file: &NewFile| file.path.strip_prefix("cases/").map(|path| format!("{hook}{path}"));
    let requests: Vec<String> = sketch.files.iter().filter_map(ours).collect();
    let cases = case::find(&target.hooks).map_err(|error| unwritable(&target.hooks, &error))?;
    let mut written = Vec::new();
    for case in cases.iter().filter(|case| requests.iter().any(|request| request.starts_with(&case.name))) {
        written.extend(answer(case, &shelf)?);
    }
    keep_the_promise(sketch, &target.hooks)?;
    Ok(written)
}

fn answer(case: &Case, shelf: &Shelf) -> Result<Option<PathBuf>, Problem> {
    match case.run(shelf, Accept::Yes) {
        Ok(Verdict::Accepted(path)) => Ok(Some(path)),
        Ok(Verdict::Passed) => Ok(None),
        Ok(Verdict::Failed(lines)) => {
            let state = shelf.state().hooks.into_iter().find_map(|hook| hook.rejected);
            let why = state.and_then(|rejected| rejected.problems.into_iter().next());
            Err(why.unwrap_or_else(|| Problem::new(format!("case {}: {}", case.name, lines.join("; ")))))
        }
        Err(error) => Err(Problem::new(format!("case {}: {error}", case.name))),
    }
}

/// The children that were promised are the ones that the first case answers.
fn keep_the_promise(sketch: &Sketch, hooks: &Path) -> Result<(), Problem> {
    let Some(promised) = &sketch.promised else { return Ok(()) };
    let path = hooks.join(&sketch.names.hook).join("cases/as-given/sync.response.yaml");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let answered = yaml::read(&path.display().to_string(), &text)?;
    let answered = answered.first().map(|document| document.value["children"].clone()).unwrap_or_default();
    let differing = differences(&Value::from(promised.clone()), &answered);
    match differing.first() {
        None => Ok(()),
        Some(first) => {
            Err(Problem::new("the templates do not render to the manifests: this is a bug of syncwright")
                .found(first.clone()))
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(format!("`{}` cannot be written: {error}", path.display()))
}

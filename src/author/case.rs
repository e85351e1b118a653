//! Cases: a request in a file beside the answer that it must get, `hooks/<hook>/cases/<case>/<call>.request.yaml`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::author::{masked, text};
use crate::hook::local::{Given, Reason, Shelf, in_file, to_yaml};
use crate::problem::Problem;
use crate::template::yaml;

/// One call of one case.
#[derive(Debug)]
pub(crate) struct Case {
    /// `mysql/waits-for-replicas/sync`
    pub name: String,
    hook: String,
    call: String,
    folder: PathBuf,
    files: Files,
}

/// Which of a call's files are there.
#[derive(Clone, Copy, Debug, Default)]
struct Files {
    request: bool,
    response: bool,
    error: bool,
    /// A file that belongs to no call: its name is misspelt.
    stray: bool,
    /// No file of a case at all.
    empty: bool,
}

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    /// The file that was written, because what the case expected is not what it got.
    Accepted(PathBuf),
    /// Why, one line or more.
    Failed(Vec<String>),
}

/// What to do with a case that does not get what it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accept {
    No,
    /// Take what it got as what it expects from now on.
    Yes,
}

/// How to come to an answer's form without writing it.
const BY_ITSELF: &str = "`--accept` writes what the case gets now: read it";

/// What a request got.
enum Got {
    Response(Value),
    /// The error page of a template's fault.
    Page(String),
}

/// Finds all cases below a hooks folder, in name order.
pub(crate) fn find(root: &Path) -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (hook, folder) in folders_in(root)? {
        let all = folder.join("cases");
        if !all.is_dir() {
            continue;
        }
        for call in strays_in(&all)? {
            let (name, files) = (format!("{hook}/{call}"), Files { stray: true, ..Files::default() });
            cases.push(Case { name, hook: hook.clone(), call, folder: all.clone(), files });
        }
        for (case, folder) in folders_in(&all)? {
            let calls = calls_in(&folder)?;
            if calls.is_empty() {
                // What nothing is asked of would pass for tested.
                let name = format!("{hook}/{case}");
                let files = Files { empty: true, ..Files::default() };
                cases.push(Case {
                    name,
                    hook: hook.clone(),
                    call: case.clone(),
                    folder: folder.clone(),
                    files,
                });
            }
            for (call, files) in calls {
                let name = format!("{hook}/{case}/{call}");
                cases.push(Case { name, hook: hook.clone(), call, folder: folder.clone(), files });
            }
        }
    }
    Ok(cases)
}

/// What a case asks of which hook.
pub(in crate::author) struct Question<'a> {
    pub hook: &'a str,
    pub call: &'a str,
    pub file: PathBuf,
    /// The template is to refuse it.
    pub refused: bool,
}

impl Case {
    /// `None` for what is no case: a misspelt file, an answer without a request.
    pub(in crate::author) fn question(&self) -> Option<Question<'_>> {
        let Files { request, error, stray, .. } = self.files;
        let file = self.path("request.yaml");
        (request && !stray).then_some(Question { hook: &self.hook, call: &self.call, file, refused: error })
    }

    pub(crate) fn hook(&self) -> &str {
        &self.hook
    }

    /// Whether a pattern means this case: a part of its name, or with `*` the whole.
    pub(crate) fn is_meant(&self, pattern: &str) -> bool {
        if pattern.contains('*') { matches(pattern, &self.name) } else { self.name.contains(pattern) }
    }

    /// Renders the request and compares.
    pub(crate) fn run(&self, shelf: &Shelf, accept: Accept) -> io::Result<Verdict> {
        if self.files.empty {
            return Ok(Verdict::Failed(vec![
                format!("`{}` holds no request", self.folder.display()),
                "expected: `<call>.request.yaml`, such as `sync.request.yaml`".into(),
            ]));
        }
        if self.files.stray {
            let expected = match self.folder.ends_with("cases") {
                true => "expected: a folder for each case, `cases/<case>/`",
                false => "expected: `<call>.request.yaml`, `<call>.response.yaml` or `<call>.error.txt`",
            };
            return Ok(Verdict::Failed(vec![
                format!("`{}` is no file of a case", self.call),
                expected.into(),
            ]));
        }
        if !self.files.request {
            return Ok(Verdict::Failed(vec![format!(
                "there is no `{}`",
                self.path("request.yaml").display()
            )]));
        }
        let path = self.path("request.yaml");
        let answered = text::read(&path).and_then(|body| {
            let got = self.answer(shelf, &path, body.as_bytes())?;
            Ok((body, got))
        });
        let (body, got) = match answered {
            Ok(answered) => answered,
            Err(problem) => return Ok(Verdict::Failed(problem.page().lines().map(String::from).collect())),
        };
        let wrong = self.compare(&got, body.as_bytes());
        match accept {
            _ if wrong.is_empty() => Ok(Verdict::Passed),
            Accept::No => Ok(Verdict::Failed(wrong)),
            Accept::Yes => self.accept(&got).map(Verdict::Accepted),
        }
    }

    /// A case is about what a template answers, faults included; an error is the request's.
    fn answer(&self, shelf: &Shelf, path: &Path, body: &[u8]) -> Result<Got, Problem> {
        match shelf.answer(&self.hook, &self.call, body, usually_given()) {
            Ok(response) => Ok(Got::Response(response.into_value())),
            Err(refusal) if refusal.reason == Reason::Fault => Ok(Got::Page(refusal.problem.page())),
            Err(refusal) if refusal.reason == Reason::NotReady => {
                Err(Problem::new("its hook does not compile"))
            }
            Err(refusal) => Err(in_file(refusal.problem, &path.display().to_string())),
        }
    }

    fn compare(&self, got: &Got, request: &[u8]) -> Vec<String> {
        match (got, self.files) {
            (_, Files { response: true, error: true, .. }) => {
                let call = &self.call;
                vec![format!(
                    "it has both `{call}.response.yaml` and `{call}.error.txt`: one of them is expected"
                )]
            }
            (Got::Response(got), Files { response: true, .. }) => match self.expected() {
                Ok(expected) => masked::differences(request, &expected, got),
                Err(problem) => problem.page().lines().map(String::from).collect(),
            },
            (Got::Page(got), Files { error: true, .. }) => match text::read(&self.path("error.txt")) {
                Ok(expected) => {
                    // An editor's or git's line ends are no difference.
                    let expected = expected.replace("\r\n", "\n");
                    masked::texts(request, differing_pages(expected.trim_end(), got))
                }
                Err(problem) => problem.page().lines().map(String::from).collect(),
            },
            (Got::Response(_), Files { error: true, .. }) => vec!["expected an error, got an answer".into()],
            (Got::Page(page), Files { response: true, .. }) => {
                let lines = page.lines().map(|line| format!("  {line}"));
                std::iter::once("expected an answer, got an error:".into()).chain(lines).collect()
            }
            (_, Files { response: false, error: false, .. }) => {
                let call = &self.call;
                vec![
                    format!("it has neither `{call}.response.yaml` nor `{call}.error.txt`"),
                    "hint: write what it gets now with `--accept`, then read it".into(),
                ]
            }
        }
    }

    fn expected(&self) -> Result<Value, Problem> {
        let path = self.path("response.yaml");
        let (file, text) = (path.display().to_string(), text::read(&path)?);
        yaml::read(&file, &text).and_then(|mut documents| match documents.len() {
            1 => Ok(documents.remove(0).value),
            0 => Err(Problem::new(format!("`{file}` is empty")).expected("the whole answer").hint(BY_ITSELF)),
            many => Err(Problem::new(format!("`{file}` holds {many} documents"))
                .expected("one, with the children in a list: `children: […]`")
                .hint(BY_ITSELF)),
        })
    }

    /// Writes what was got as what is expected, and returns where.
    fn accept(&self, got: &Got) -> io::Result<PathBuf> {
        let (kept, text, gone, was_there) = match got {
            Got::Response(value) => ("response.yaml", to_yaml(value), "error.txt", self.files.error),
            Got::Page(page) => ("error.txt", format!("{page}\n"), "response.yaml", self.files.response),
        };
        if was_there {
            fs::remove_file(self.path(gone))?;
        }
        fs::write(self.path(kept), text)?;
        Ok(self.path(kept))
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.call))
    }
}

/// What a case that sets no `now` or `entropy` is given: always the same, so that it gets the same answer at any time.
pub(in crate::author) fn usually_given() -> Given {
    let now = "2026-01-01T00:00:00Z".parse().expect("a literal time");
    Given { now, entropy: Sha256::digest("").into() }
}

/// The error with the file that it is about, which the system leaves out.
pub(in crate::author) fn of_file(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// The folders in a folder, by name, but for hidden ones and those that begin with `_`.
pub(crate) fn folders_in(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder).map_err(of_file(folder))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if !path.is_dir()
            || name.as_encoded_bytes().starts_with(b".")
            || name.as_encoded_bytes().starts_with(b"_")
        {
            continue;
        }
        let Some(name) = name.to_str().map(str::to_string) else {
            return Err(io::Error::other(format!("the name of `{}` is not UTF-8 text", path.display())));
        };
        folders.push((name, path));
    }
    folders.sort();
    Ok(folders)
}

/// Files of a case that lie beside the cases' folders, where nothing would look for them.
fn strays_in(cases: &Path) -> io::Result<Vec<String>> {
    let mut strays = Vec::new();
    for entry in fs::read_dir(cases).map_err(of_file(cases))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if [".request.yaml", ".response.yaml", ".error.txt"].iter().any(|ending| name.ends_with(ending)) {
            strays.push(name);
        }
    }
    strays.sort();
    Ok(strays)
}

/// The calls that a case's files are about. A misspelt file is a call without a request, which fails.
fn calls_in(folder: &Path) -> io::Result<BTreeMap<String, Files>> {
    let mut calls: BTreeMap<String, Files> = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(of_file(folder))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "README.md" {
            continue;
        }
        let (call, ending) = name.split_once('.').unwrap_or((&name, ""));
        let known = matches!(ending, "request.yaml" | "response.yaml" | "error.txt");
        let files = calls.entry(if known { call.into() } else { name.clone() }).or_default();
        match ending {
            "request.yaml" => files.request = true,
            "response.yaml" => files.response = true,
            "error.txt" => files.error = true,
            _ => files.stray = true,
        }
    }
    Ok(calls)
}

/// `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).filter(|end| text.is_char_boundary(*end)).any(|end| matches(rest, &text[end..]))
}

fn differing_pages(expected: &str, got: &str) -> Vec<String> {
    if expected == got {
        return Vec::new();
    }
    let part = |title: &str, page: &str| -> Vec<String> {
        std::iter::once(title.to_string()).chain(page.lines().map(|line| format!("  {line}"))).collect()
    };
    [part("expected the error:", expected), part("got the error:", got)].concat()
}

/// What to do where the folder that was named for all hooks is one hook's own.
pub(crate) fn one_hook(hooks: &Path) -> Option<String> {
    let is_a_hooks = ["sync.yaml", "sync", "finalize.yaml", "customize.yaml", "crd.yaml"];
    is_a_hooks.iter().find(|file| hooks.join(file).exists())?;
    let above = hooks.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new(".."));
    Some(format!("`{}` is one hook: name the folder above, `{}`", hooks.display(), above.display()))
}

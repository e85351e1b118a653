//! The shelf: a folder of hooks, each compiled on its own, the last good edition of each ready to answer.
//!
//! A hook whose files do not compile keeps the edition it had and holds back no other hook. Renders are pure; what the
//! shelf adds is which edition answers, and a memory of what went wrong.

pub(crate) mod answer;
pub(crate) mod edition;
pub(crate) mod explain;
mod folder;
pub(crate) mod json_schema;
mod record;
pub(crate) mod renders;
pub(crate) mod request;
mod watch;

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch as signal;
use tracing::field::{Empty, display};

use crate::hook::Changes;
use crate::hook::local::answer::Response;
use crate::hook::local::edition::{CALLS, Edition, Rejected, Shelved, shelve};
use crate::hook::local::folder::Listing;
use crate::hook::local::record::{LastError, Outcome, Records};
use crate::hook::local::request::Request;
use crate::hook::local::watch::{News, Watch};
use crate::hook::wire::Call;
use crate::mask::scope::blindly;
use crate::metric::text::Text;
use crate::problem::{Problem, nearest};
use crate::template::{Branch, Budget, Watching};
use crate::trace;

/// The hooks folder, ready to answer.
pub(crate) struct Shelf {
    root: PathBuf,
    /// What the folder is called in places: its own name, so that an error page is the same wherever it lies.
    label: String,
    hooks: ArcSwap<Hooks>,
    /// Held while the folder is read, so that an older look never replaces a newer one.
    listing: Mutex<Option<Listing>>,
    records: Records,
    changes: signal::Sender<Changes>,
    budget: Budget,
    watching: Watching,
}

/// What the last look at the folder gave.
#[derive(Default)]
struct Hooks {
    by_name: BTreeMap<String, Arc<Shelved>>,
    /// The folder itself can't be read; the hooks are those of an earlier look.
    unreadable: Option<Problem>,
}

/// What a render depends on beside its request and its templates. A request may have its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub now: Timestamp,
    /// Seeds `random_string`.
    pub entropy: [u8; 32],
}

/// Why a call is not answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub reason: Reason,
    pub problem: Problem,
    /// The call's last error was the same one: a parent that is retried brings it again and again.
    pub repeated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// The request is none; the caller has to change it.
    Malformed,
    /// There is no such hook, or it has no such call.
    Unknown,
    /// The template can't answer this request; its author has to change it.
    Fault,
    /// No edition of this hook has compiled yet.
    NotReady,
    /// A bug of ours. The panic's message is in the log.
    Panicked,
}

impl Reason {
    fn refuse(self, problem: Problem) -> Refusal {
        Refusal { reason: self, problem, repeated: false }
    }
}

impl Refusal {
    /// What it says goes to logs, pages and conditions, where whoever reads it may not read Secrets.
    fn without_secrets_of(self, body: &[u8]) -> Refusal {
        let veil = request::veil(body);
        Refusal { problem: self.problem.reworded(|text| veil.text(text).into_owned()), ..self }
    }
}

/// How a hook stands, for people.
#[derive(Clone, Debug)]
pub(crate) struct HookState {
    pub hook: String,
    /// The revision that answers, if any ever compiled.
    pub revision: Option<String>,
    /// A newer revision that does not compile.
    pub rejected: Option<Rejected>,
    pub calls: Vec<CallState>,
}

#[derive(Clone, Debug)]
pub(crate) struct CallState {
    pub call: Call,
    pub last_error: Option<LastError>,
}

/// How the whole folder stands.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub hooks: Vec<HookState>,
    /// Why the folder itself could not be read at the last look.
    pub unreadable: Option<Problem>,
}

impl State {
    /// Whether any hook can answer: a broken one must not take the others out of service.
    pub(crate) fn ready(&self) -> bool {
        self.hooks.iter().any(|hook| hook.revision.is_some())
    }
}

impl Shelf {
    /// Reads and compiles a folder. Faults in it are kept as state, not returned: they can be mended while it is in use.
    pub(crate) fn open(root: &Path) -> Arc<Shelf> {
        Shelf::open_watched(root, Watching::Nothing)
    }

    /// The same, for a shelf that may note which branches of its templates are taken.
    pub(crate) fn open_watched(root: &Path, watching: Watching) -> Arc<Shelf> {
        let whole = std::fs::canonicalize(root).unwrap_or_default();
        let label = root.file_name().or(whole.file_name());
        let shelf = Shelf {
            root: root.to_path_buf(),
            label: label.map_or("hooks".into(), |label| label.to_string_lossy().into_owned()),
            hooks: ArcSwap::default(),
            listing: Mutex::new(None),
            records: Records::default(),
            changes: signal::Sender::default(),
            budget: Budget::default(),
            watching,
        };
        shelf.refresh();
        Arc::new(shelf)
    }

    /// Where the folder is.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// What places call the folder.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Keeps the shelf up to date until the returned value is dropped.
    pub(crate) fn keep_fresh(self: &Arc<Shelf>, polling: Polling) -> Fresh {
        let watch = Watch::new(polling == Polling::Always);
        let news = watch.sender();
        let shelf = self.clone();
        let thread = std::thread::Builder::new()
            .name("hooks-watch".into())
            .spawn(move || shelf.follow(watch))
            .expect("the system starts a thread");
        Fresh { news, thread: Some(thread) }
    }

    /// The answer of one call to one body, which may be a whole request or a parent alone, as JSON or YAML.
    pub(crate) fn answer(
        &self,
        hook: &str,
        call: &str,
        body: &[u8],
        given: Given,
    ) -> Result<Response, Refusal> {
        let began = Instant::now();
        let (call, edition) = self.find(hook, call)?;
        let trace = trace::span!(
            "render",
            hook,
            call = call.name(),
            revision = edition.as_ref().ok().map(|edition| &*edition.revision),
            error = Empty
        );
        let within = trace.enter();
        let result = edition.and_then(|edition| {
            let render = AssertUnwindSafe(|| self.render(&edition, call, body, given));
            blindly(|| catch_unwind(render))
                .unwrap_or_else(|panic| Err(panicked(hook, call, panic.as_ref(), body)))
                .map_err(|refusal| refusal.without_secrets_of(body))
        });
        if let Err(refusal) = &result {
            trace.record("error", display(&refusal.problem));
        }
        drop(within);
        self.noted((hook, call), began, given.now, result)
    }

    /// What is wrong with a call whatever it is asked: it is not there, or its newest edition does not compile.
    pub(crate) fn problem(&self, hook: &str, call: &str) -> Option<Problem> {
        let hooks = self.hooks.load();
        let rejected = hooks.by_name.get(hook).and_then(|shelved| shelved.rejected.as_ref());
        let first = rejected.and_then(|rejected| rejected.problems.first().cloned());
        first.or_else(|| {
            self.find(hook, call).and_then(|(_, edition)| edition).err().map(|refusal| refusal.problem)
        })
    }

    /// Tells of every change of what the shelf answers.
    pub(crate) fn changes(&self) -> signal::Receiver<Changes> {
        self.changes.subscribe()
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watching == Watching::Branches
    }

    /// The branches of the templates of a hook, and the ways that its renders took so far.
    pub(crate) fn branches(&self, hook: &str) -> Vec<Branch> {
        let hooks = self.hooks.load();
        let edition = hooks.by_name.get(hook).and_then(|shelved| shelved.edition.as_ref());
        edition.map_or(Vec::new(), |edition| edition.library.branches())
    }

    pub(crate) fn state(&self) -> State {
        let hooks = self.hooks.load();
        State {
            hooks: hooks.by_name.iter().map(|(hook, shelved)| self.state_of(hook, shelved)).collect(),
            unreadable: hooks.unreadable.clone(),
        }
    }

    /// Writes what became of calls, and how each hook stands.
    pub(crate) fn write_metrics(&self, text: &mut Text) {
        self.records.write(text);
        let hooks = self.hooks.load();
        let help = "Whether the newest revision of a hook does not compile.";
        let mut family = text.gauge("syncwright_hook_rejected", help);
        for (hook, shelved) in &hooks.by_name {
            family.sample(&[("hook", hook)], u8::from(shelved.rejected.is_some()));
        }
        let help = "The revision of a hook that answers, and a newer one that does not compile.";
        let mut family = text.gauge("syncwright_hook_revision", help);
        for (hook, shelved) in &hooks.by_name {
            let answers = shelved.edition.as_ref().map(|edition| &edition.revision);
            let rejected = shelved.rejected.as_ref().map(|rejected| &rejected.revision);
            for (state, revision) in [("answers", answers), ("rejected", rejected)] {
                let Some(revision) = revision else { continue };
                family.sample(&[("hook", hook), ("state", state), ("revision", revision)], 1);
            }
        }
    }

    fn render(&self, edition: &Edition, call: Call, body: &[u8], given: Given) -> Result<Response, Refusal> {
        let malformed = |problem| Reason::Malformed.refuse(problem);
        let request = Request::read(call, body, given).map_err(malformed)?;
        let alone = request.alone;
        let answer = self.render_request(edition, call, request);
        // Of an object that stands alone it is not known who would ask about it; what a template asks for and answers is.
        let answer = match answer {
            Err(problem) if alone && answer::is_decorators(&problem) => {
                let request = Request::read_as_decorators(call, body, given).map_err(malformed)?;
                self.render_request(edition, call, request)
            }
            answer => answer,
        };
        answer.map_err(|problem| Reason::Fault.refuse(edition.with_line(problem)))
    }

    fn render_request(&self, edition: &Edition, call: Call, request: Request) -> Result<Response, Problem> {
        let Request { context, shape, .. } = request;
        let files = &edition.calls[&call];
        let first = format!("{}/{}", self.label, files[0]);
        let documents = edition.library.render(files, context, &self.budget)?;
        answer::assemble(documents, &shape, &first)
    }

    /// Remembers how a call ended, and marks an error that only repeats the last one.
    fn noted(
        &self,
        at: (&str, Call),
        began: Instant,
        now: Timestamp,
        mut result: Result<Response, Refusal>,
    ) -> Result<Response, Refusal> {
        let (outcome, error) = match &result {
            Ok(_) => (Outcome::Answered, None),
            Err(refusal) => {
                let error = LastError { at: now, text: refusal.problem.to_string() };
                (Outcome::Refused(refusal.reason), Some(error))
            }
        };
        let repeated = self.records.note(at, outcome, began.elapsed(), error);
        if let Err(refusal) = &mut result {
            refusal.repeated = repeated;
        }
        result
    }

    /// The call and the edition that answers it.
    fn find(&self, hook: &str, call: &str) -> Result<(Call, Result<Arc<Edition>, Refusal>), Refusal> {
        let hooks = self.hooks.load();
        let Some(shelved) = hooks.by_name.get(hook) else {
            return Err(hooks.unknown_hook(hook));
        };
        let known = CALLS.into_iter().find(|known| known.name() == call);
        match (&shelved.edition, known) {
            (Some(edition), Some(call)) if edition.calls.contains_key(&call) => {
                Ok((call, Ok(edition.clone())))
            }
            (Some(edition), _) => Err(unknown_call(hook, call, edition)),
            (None, Some(call)) => Ok((call, Err(not_ready(hook, shelved)))),
            (None, None) => Err(not_ready(hook, shelved)),
        }
    }

    fn state_of(&self, hook: &str, shelved: &Shelved) -> HookState {
        let calls = shelved.edition.iter().flat_map(|edition| edition.calls.keys());
        HookState {
            hook: hook.to_string(),
            revision: shelved.edition.as_ref().map(|edition| edition.revision.clone()),
            rejected: shelved.rejected.clone(),
            calls: calls
                .map(|call| CallState { call: *call, last_error: self.records.last_error(hook, *call) })
                .collect(),
        }
    }

    /// Looks at the folder, and reads it when anything in it is new.
    fn refresh(&self) {
        let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.hooks.load();
        let looked = folder::list(&self.root);
        if before.unreadable.is_none() && looked.is_ok() && looked.as_ref().ok() == listing.as_ref() {
            return;
        }
        let after = match looked.and_then(|_| folder::read(&self.root)) {
            Ok(folder) => {
                let by_name = shelve(&self.label, &folder, &before.by_name, self.watching);
                *listing = Some(folder.listing);
                Hooks { by_name, unreadable: None }
            }
            Err(error) => {
                *listing = None;
                Hooks { by_name: before.by_name.clone(), unreadable: Some(self.unreadable(&error)) }
            }
        };
        let changed = tell_changes(&before, &after);
        self.hooks.store(Arc::new(after));
        if !changed.is_empty() {
            self.changes.send_modify(|changes| {
                changed.into_iter().for_each(|hook| *changes.entry(hook).or_default() += 1);
            });
        }
    }

    fn unreadable(&self, error: &io::Error) -> Problem {
        Problem::new(format!("hooks folder `{}` cannot be read: {error}", self.root.display()))
    }

    /// Watches, and refreshes after each change, until told to stop.
    fn follow(&self, mut watch: Watch) {
        let mut aimed = None;
        let mut said = None;
        loop {
            let listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if aimed.as_ref() != Some(&listing) {
                let why = watch.aim(listing.as_ref().map(|listing| listing.folders.keys())).err();
                if let Some(why) = why.as_ref().filter(|why| said.as_ref() != Some(*why)) {
                    let folder = self.root.display();
                    tracing::warn!(%folder, why, "hooks folder cannot be watched, so it is looked at twice a second");
                }
                (aimed, said) = (Some(listing), why);
                // Something may have changed between the look and the watch.
                self.refresh();
            } else if watch.wait() {
                self.refresh();
            } else {
                return;
            }
        }
    }
}

impl Hooks {
    fn unknown_hook(&self, hook: &str) -> Refusal {
        if let Some(problem) = self.unreadable.as_ref().filter(|_| self.by_name.is_empty()) {
            return Reason::NotReady.refuse(problem.clone());
        }
        let names: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        Reason::Unknown.refuse(unknown(format!("no hook `{hook}`"), hook, &names))
    }
}

fn unknown_call(hook: &str, call: &str, edition: &Edition) -> Refusal {
    let names: Vec<&str> = edition.calls.keys().map(|call| call.name()).collect();
    Reason::Unknown.refuse(unknown(format!("hook `{hook}` has no call `{call}`"), call, &names))
}

/// Says what exists instead.
fn unknown(message: String, word: &str, names: &[&str]) -> Problem {
    let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let expected = if names.is_empty() { "none exists".into() } else { listed.join(", ") };
    let problem = Problem::new(message).expected(expected);
    match nearest(word, names.iter().copied()) {
        Some(name) => problem.hint(format!("did you mean `{name}`?")),
        None => problem,
    }
}

fn not_ready(hook: &str, shelved: &Shelved) -> Refusal {
    let first = shelved.rejected.as_ref().and_then(|rejected| rejected.problems.first().cloned());
    Reason::NotReady
        .refuse(first.unwrap_or_else(|| Problem::new(format!("hook `{hook}` has no edition yet"))))
}

fn panicked(hook: &str, call: Call, panic: &(dyn Any + Send), body: &[u8]) -> Refusal {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    let text = text.map(|text| request::veil(body).text(text));
    let text = text.as_deref();
    tracing::error!(hook, call = call.name(), panic = text, "render panicked: this is a bug of syncwright");
    Reason::Panicked.refuse(Problem::new("internal error; the log says more"))
}

/// Logs what differs, and gives the hooks of which a caller could notice it.
fn tell_changes(before: &Hooks, after: &Hooks) -> Vec<String> {
    let mut noticed = Vec::new();
    if let Some(problem) = after.unreadable.as_ref().filter(|_| after.unreadable != before.unreadable) {
        tracing::error!(error = %problem, "hooks folder unreadable, the last good revisions answer");
    }
    for (hook, shelved) in &after.by_name {
        let earlier = before.by_name.get(hook);
        if earlier.is_some_and(|earlier| Arc::ptr_eq(earlier, shelved)) {
            continue;
        }
        noticed.push(hook.clone());
        match (&shelved.rejected, &shelved.edition) {
            (Some(rejected), edition) => {
                let answering = edition.as_ref().map(|edition| edition.revision.as_str());
                for problem in &rejected.problems {
                    let rejected = &rejected.revision;
                    tracing::error!(hook, rejected, answering, error = %problem, "hook revision does not compile");
                }
            }
            (None, edition) => {
                let revision = edition.as_ref().map(|edition| edition.revision.as_str());
                tracing::info!(hook, revision, "hook revision active");
            }
        }
    }
    for hook in before.by_name.keys().filter(|hook| !after.by_name.contains_key(*hook)) {
        noticed.push(hook.clone());
        tracing::info!(hook, "hook removed");
    }
    noticed
}

/// The problem with the file called by another name, such as the path of what was sent as a body.
pub(crate) fn in_file(mut problem: Problem, file: &str) -> Problem {
    if let Some(place) = problem.place.as_mut().filter(|place| place.file == request::FILE) {
        place.file = file.to_string();
    }
    let body = format!(" at {}:", request::FILE);
    problem.found = problem.found.map(|found| found.replace(&body, &format!(" at {file}:")));
    if problem.place.is_none()
        && let Some(rest) = problem.message.strip_prefix("the body ")
    {
        problem.message = format!("`{file}` {rest}");
    }
    problem
}

/// An answer as YAML, for people.
pub(crate) fn to_yaml(answer: &Value) -> String {
    serde_saphyr::to_string(answer).expect("JSON can be written as YAML")
}

/// How a changed folder is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polling {
    /// Only where the system can't tell of changes.
    WhenNeeded,
    Always,
}

/// Keeps a shelf fresh for as long as it lives.
pub(crate) struct Fresh {
    news: Sender<News>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = self.news.send(News::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

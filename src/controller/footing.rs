//! How a definition at work stands: what keeps it from its work, and how its parents fare.
//!
//! Visits and watches say what happens; whoever writes the definition's status looks when it is time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tokio::sync::Notify;

use crate::cluster::kind::State;
use crate::controller::pause;
use crate::controller::room::Room;
use crate::controller::visit::note;
use crate::controller::visit::status::Note;
use crate::object::name::Key;

/// How a parent's last visit ended, as far as its definition cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fare {
    /// The definition does not select it.
    Foreign,
    Well,
    Failing(Note),
}

/// The parents of one definition by how they fare.
#[derive(Default)]
pub(crate) struct Fares {
    by_parent: HashMap<Key, Fare>,
    /// Whether every parent has been visited once.
    complete: bool,
}

impl Fares {
    /// Whether that is something new.
    pub(crate) fn note(&mut self, parent: &Key, fare: Fare) -> bool {
        if self.by_parent.get(parent) == Some(&fare) {
            return false;
        }
        self.by_parent.insert(parent.clone(), fare);
        true
    }

    pub(crate) fn forget(&mut self, parent: &Key) -> bool {
        self.by_parent.remove(parent).is_some()
    }

    fn failing(&self) -> impl Iterator<Item = (&Key, &Note)> {
        self.by_parent.iter().filter_map(|(parent, fare)| match fare {
            Fare::Failing(note) => Some((parent, note)),
            Fare::Foreign | Fare::Well => None,
        })
    }
}

/// What there is to tell of a definition that was started.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Account {
    /// Why it is not at work.
    pub waiting: Option<Note>,
    /// What is wrong with it as a whole.
    pub trouble: Option<Note>,
    pub parents: u64,
    pub failing: u64,
    /// The first failing parent by name.
    pub example: Option<(Key, Note)>,
    /// Whether every parent has been visited since the start.
    pub complete: bool,
}

/// A started definition, for those who want to know how it is.
pub(crate) struct Footing {
    stage: Mutex<Stage>,
    news: Arc<Notify>,
    started: Arc<Started>,
}

/// Whether an object's start has been told: its definitions share it.
#[derive(Default)]
pub(crate) struct Started(AtomicBool);

impl Started {
    pub(crate) fn is_to_be_told(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

enum Stage {
    Starting,
    /// The parents' kind is not there or cannot be read.
    Waiting(String),
    AtWork(Weak<Room>),
}

impl Footing {
    /// Whoever waits for `news` hears of every change.
    pub(crate) fn new(news: Arc<Notify>, started: Arc<Started>) -> Arc<Self> {
        Arc::new(Footing { stage: Mutex::new(Stage::Starting), news, started })
    }

    pub(crate) fn started(&self) -> &Started {
        &self.started
    }

    pub(crate) fn news(&self) -> Arc<Notify> {
        self.news.clone()
    }

    pub(crate) fn waits(&self, why: &str) {
        self.enter(Stage::Waiting(why.into()));
    }

    pub(crate) fn works(&self, room: &Arc<Room>) {
        self.enter(Stage::AtWork(Arc::downgrade(room)));
    }

    fn enter(&self, stage: Stage) {
        *self.lock() = stage;
        self.news.notify_one();
    }

    /// `None` while it starts or ends.
    pub(crate) fn account(&self) -> Option<Account> {
        let room = match &*self.lock() {
            Stage::Starting => return None,
            Stage::Waiting(why) => return Some(waiting(why)),
            Stage::AtWork(room) => room.upgrade()?,
        };
        match room.parents.state() {
            State::Absent(why) | State::Failing(why) => return Some(waiting(&why)),
            State::Starting => return None,
            State::Live(_) => {}
        }
        if let Some(words) = room.pause_words() {
            return Some(Account { waiting: Some(note(pause::REASON, words)), ..Account::default() });
        }
        let mut fares = room.fares();
        fares.complete |= fares.by_parent.len() >= room.parents.count();
        let ours = fares.by_parent.values().filter(|fare| **fare != Fare::Foreign);
        let example = fares.failing().min_by_key(|(parent, _)| *parent);
        Some(Account {
            waiting: None,
            trouble: trouble(&room),
            parents: ours.count() as u64,
            failing: fares.failing().count() as u64,
            example: example.map(|(parent, note)| (parent.clone(), note.clone())),
            complete: fares.complete,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn waiting(why: &str) -> Account {
    Account { waiting: Some(note("WaitingForKind", why)), ..Account::default() }
}

/// What stands in the way of all parents: a kind that is not there, a hook that cannot be called.
fn trouble(room: &Room) -> Option<Note> {
    let kind = room.children.iter().find_map(|child| match child.hold.kind.state() {
        State::Absent(why) => Some(why),
        State::Failing(why) => Some(format!("{} cannot be read: {why}", child.rule.resource)),
        State::Starting | State::Live(_) => None,
    });
    let hook = || {
        let hooks = [("sync", &room.sync), ("finalize", &room.finalize), ("customize", &room.customize)];
        hooks.into_iter().find_map(|(call, hook)| {
            let hook = hook.as_ref()?;
            let reason = if hook.built_in().is_some() { "HookRefused" } else { "WaitingForAccess" };
            Some(note(reason, format!("{call}: {}", hook.problem()?)))
        })
    };
    kind.map(|why| note("WaitingForKind", why)).or_else(hook)
}

//! What is known of a parent's children beyond what can be observed: what was written, and what came of it.
//!
//! It is lost when the process ends, and nothing wrong follows: at worst a child that the server stores in another form than
//! it was sent is applied once more, which changes nothing.

use std::collections::HashSet;

use serde_json::Value;

use crate::object::name::Key;
use crate::plan::desired::{Desired, Wanted};
use crate::plan::difference::{Differences, difference};
use crate::plan::steps::Observed;

/// One parent's memory. It belongs to one set of child rules: with other rules, start another.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// By rule and key, in that order: most parents have few.
    children: Vec<(usize, Key, Remembered)>,
}

#[derive(Debug, Default)]
pub(super) struct Remembered {
    settled: Option<Settled>,
    /// What a planned write is to change; 0 for a child that is to be created.
    tried: u64,
    /// Seldom there, so that it takes no room where it is not.
    refused: Option<Box<Refused>>,
}

/// A live child that is as the server will have it.
#[derive(Debug)]
pub(super) struct Settled {
    pub uid: Box<str>,
    /// Hash of the wanted child.
    pub wanted: u64,
    pub version: u64,
    /// Differences that the server leaves after a write. `None` until they matter.
    pub residue: Option<Box<[u64]>>,
}

#[derive(Debug)]
struct Refused {
    wanted: u64,
    /// The live child, if there was one: its uid and version.
    live: Option<(Box<str>, u64)>,
    tried: u64,
    message: String,
}

/// What a dry run tells about a child that would be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probed {
    /// The server would store what it has: the differences are its own doing.
    Settled,
    /// The server would change it.
    Differs,
}

impl Memory {
    /// Notes that a wanted child was applied. `answer` is what the server made of it.
    pub(crate) fn applied(&mut self, wanted: &Wanted, answer: &Observed) {
        let remembered = self.entry(wanted);
        remembered.refused = None;
        // What the server made of a write matters once the same is written again; most never is.
        let again = remembered.settled_as(answer.uid).is_some_and(|settled| settled.wanted == wanted.hash);
        let residue = again.then(|| compared(wanted, answer).hashes());
        remembered.tried = 0;
        remembered.settled = Some(Settled::now(wanted, answer, residue));
    }

    /// Notes that a write was refused for a reason that lies in what was written, and would be refused again.
    /// `observed` is the live child that was to be changed, if there was one.
    pub(crate) fn refused(&mut self, wanted: &Wanted, observed: Option<&Observed>, message: &str) {
        let remembered = self.entry(wanted);
        remembered.refused = Some(Box::new(Refused {
            wanted: wanted.hash,
            live: observed.map(|observed| (observed.uid.into(), observed.version)),
            tried: remembered.tried,
            message: message.into(),
        }));
    }

    /// Judges a dry run of applying a wanted child, and remembers what it shows.
    pub(crate) fn probed(&mut self, wanted: &Wanted, observed: &Observed, answer: &str) -> Probed {
        let stored = |text: &str| serde_json::from_str(text).ok().map(without_bookkeeping);
        if stored(observed.body).is_none_or(|live| Some(live) != stored(answer)) {
            return Probed::Differs;
        }
        let remembered = self.entry(wanted);
        let residue = compared(wanted, observed).hashes();
        remembered.settled = Some(Settled::now(wanted, observed, Some(residue)));
        Probed::Settled
    }

    /// Lets refused writes be tried again.
    pub(crate) fn forget_refusals(&mut self) {
        self.children.iter_mut().for_each(|(.., remembered)| remembered.refused = None);
    }

    /// Drops what is no longer wanted.
    pub(super) fn keep(&mut self, desired: &Desired) {
        if self.children.len() <= desired.wanted.len() {
            return;
        }
        let wanted: HashSet<(usize, &Key)> =
            desired.wanted.iter().map(|wanted| (wanted.rule, &wanted.key)).collect();
        self.children.retain(|(rule, key, _)| wanted.contains(&(*rule, key)));
        self.children.shrink_to_fit();
    }

    pub(super) fn of(&mut self, wanted: &Wanted) -> Option<&mut Remembered> {
        let at = self.find(wanted).ok()?;
        Some(&mut self.children[at].2)
    }

    pub(super) fn peek(&self, wanted: &Wanted) -> Option<&Remembered> {
        let at = self.find(wanted).ok()?;
        Some(&self.children[at].2)
    }

    fn entry(&mut self, wanted: &Wanted) -> &mut Remembered {
        let at = self.find(wanted).unwrap_or_else(|at| {
            if self.children.len() == self.children.capacity() {
                self.children.reserve_exact(1 + self.children.len() / 4);
            }
            self.children.insert(at, (wanted.rule, wanted.key.clone(), Remembered::default()));
            at
        });
        &mut self.children[at].2
    }

    /// Where it is, or belongs.
    fn find(&self, wanted: &Wanted) -> Result<usize, usize> {
        self.children.binary_search_by(|(rule, key, _)| (*rule, key).cmp(&(wanted.rule, &wanted.key)))
    }

    /// Notes that a live child was found to be as wanted.
    pub(super) fn settle(&mut self, wanted: &Wanted, observed: &Observed, residue: Box<[u64]>) {
        let remembered = self.entry(wanted);
        remembered.settled = Some(Settled::now(wanted, observed, Some(residue)));
        remembered.refused = None;
    }

    /// Notes what a write that is planned now is to change.
    pub(super) fn try_to(&mut self, wanted: &Wanted, differences: &Differences) {
        let remembered = self.entry(wanted);
        remembered.tried = differences.signature();
    }

    /// Notes that a child is to be created.
    pub(super) fn try_to_create(&mut self, wanted: &Wanted) {
        if let Some(remembered) = self.of(wanted) {
            remembered.tried = 0;
        }
    }
}

impl Remembered {
    pub(super) fn settled_as(&self, uid: &str) -> Option<&Settled> {
        self.settled.as_ref().filter(|settled| &*settled.uid == uid)
    }

    /// Why a write of this child would be refused again, if that can be told without comparing.
    pub(super) fn still_refused(&self, wanted: &Wanted, observed: Option<&Observed>) -> Option<&str> {
        let refused = self.refused.as_ref().filter(|refused| refused.wanted == wanted.hash)?;
        let same = match (&refused.live, observed) {
            (None, None) => true,
            (Some((uid, version)), Some(observed)) => {
                **uid == *observed.uid && *version == observed.version && *version != 0
            }
            _ => false,
        };
        same.then_some(&refused.message)
    }

    /// Why a write of just these changes would be refused again.
    pub(super) fn refused_to(&self, wanted: &Wanted, uid: &str, differences: &Differences) -> Option<&str> {
        let refused = self.refused.as_ref().filter(|refused| refused.wanted == wanted.hash)?;
        let same = refused.live.as_ref().is_some_and(|(known, _)| **known == *uid);
        (same && refused.tried == differences.signature()).then_some(&refused.message)
    }
}

impl Settled {
    /// Whether nobody has written since the child was settled, and the same is wanted now.
    pub(super) fn holds(&self, wanted: &Wanted, observed: &Observed) -> bool {
        self.wanted == wanted.hash && self.version == observed.version && self.version != 0
    }

    fn now(wanted: &Wanted, observed: &Observed, residue: Option<Box<[u64]>>) -> Settled {
        Settled { uid: observed.uid.into(), wanted: wanted.hash, version: observed.version, residue }
    }
}

fn compared(wanted: &Wanted, observed: &Observed) -> Differences {
    let live = serde_json::from_str(observed.body).unwrap_or_default();
    difference(&wanted.body, &live, observed.owned)
}

/// An object without what the server counts up at every write.
fn without_bookkeeping(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(field);
        }
    }
    object
}

//! What is remembered of one parent between visits. All of it may be lost: it saves work, it decides nothing.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::cluster::request::Error;
use crate::controller::footing::Fare;
use crate::controller::meter::Standing;
use crate::controller::undeclared::Unfit;
use crate::controller::visit::status::Note;
use crate::object::name::Key;
use crate::plan;

/// After this time refused writes are tried once more, in case what refused them has changed unseen.
const REFUSALS_LAST: Duration = Duration::from_secs(300);
/// A child that somebody changes back more often than this is fought over.
const REPAIRS: u32 = 5;
/// Repairs are counted over this time. An autoscaler acts every 15 s.
const REPAIRS_COUNT: Duration = Duration::from_secs(600);
/// So often in a row may a visit end with work left before it is slowed down.
const BRISK: u32 = 8;
/// So many children may be made and deleted again before there is peace. More are a name that is never the same.
const FLEETING: usize = 3;
/// So many children that were made are remembered until there is peace.
const MOST_MADE: usize = 64;

#[derive(Debug)]
pub(crate) struct Memory {
    pub uid: Box<str>,
    /// What was written of the children and what came of it.
    pub children: plan::memory::Memory,
    /// Since when children stand refused.
    refused_since: Option<Instant>,
    /// The reasons of refusals that stand.
    reasons: HashMap<(usize, Key), &'static str>,
    /// Children that were brought back to an unchanged wish.
    repairs: HashMap<(usize, Key), Repairs>,
    /// The status that was written.
    pub status: Option<Written>,
    /// The status, by all but its times.
    pub status_writes: Insistence,
    /// Our finalizer, put on or taken off.
    pub finalizer_writes: Insistence,
    /// What was said last of a failing visit.
    told: Option<Note>,
    /// The same of a status that could not be written either.
    status_told: Option<String>,
    /// Whether its definition selects it, or has its finalizer on it.
    pub concerned: bool,
    /// Values in the last status that the server did not take.
    pub unfit: Unfit,
    /// Visits in a row that ended with writes nobody has looked at.
    unsettled: u32,
    /// Children that were made since there was peace last.
    made: VecDeque<Box<str>>,
    /// Those of them that were deleted again, the first ones by name.
    fleeting: Vec<Box<str>>,
    /// Since when the finalize hook has answered, but has not finalized.
    pub finalize_waits_since: Option<Instant>,
    /// Since when the finalize hook gives no usable answer.
    pub finalize_fails_since: Option<Instant>,
    /// Since when a deletion waits for kinds that cannot be read.
    kinds_unread_since: Option<Instant>,
    /// How its last visit ended, as it is counted.
    pub standing: Standing,
}

/// The status that was written last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub wanted: u64,
    /// In what the server answered otherwise to the second such write: it normalises something.
    pub left: Option<u64>,
}

#[derive(Debug)]
struct Repairs {
    wanted: u64,
    since: Instant,
    count: u32,
}

/// Writes of one thing over and over, because somebody else changes it back: another controller perhaps.
#[derive(Debug, Default)]
pub(crate) struct Insistence(Option<Repairs>);

impl Insistence {
    /// How long to leave it as it is.
    pub(crate) fn pause(&self, wanted: u64) -> Option<Duration> {
        let repairs = self.0.as_ref().filter(|repairs| repairs.wanted == wanted)?;
        let over = repairs.count.checked_sub(REPAIRS)?;
        Duration::from_secs(1 << over.min(6)).checked_sub(repairs.since.elapsed())
    }

    /// Counts a write, and tells whether it has become a fight just now.
    pub(crate) fn note(&mut self, wanted: u64) -> bool {
        let count = match &self.0 {
            Some(last) if last.wanted == wanted && last.since.elapsed() < REPAIRS_COUNT => last.count + 1,
            _ => 0,
        };
        self.0 = Some(Repairs { wanted, since: Instant::now(), count });
        count == REPAIRS
    }
}

impl Memory {
    pub(crate) fn new(uid: &str) -> Self {
        Memory {
            uid: uid.into(),
            children: plan::memory::Memory::default(),
            refused_since: None,
            reasons: HashMap::new(),
            repairs: HashMap::new(),
            status: None,
            status_writes: Insistence::default(),
            finalizer_writes: Insistence::default(),
            told: None,
            status_told: None,
            concerned: false,
            unfit: Unfit::default(),
            unsettled: 0,
            made: VecDeque::new(),
            fleeting: Vec::new(),
            finalize_waits_since: None,
            finalize_fails_since: None,
            kinds_unread_since: None,
            standing: Standing::default(),
        }
    }

    /// Notes that a child was refused, and how that is called.
    pub(crate) fn note_refusal(&mut self, rule: usize, key: &Key, reason: &'static str) {
        self.refused_since.get_or_insert_with(Instant::now);
        self.reasons.insert((rule, key.clone()), reason);
    }

    /// How a child's standing refusal is called.
    pub(crate) fn refusal_reason(&self, rule: usize, key: &Key) -> &'static str {
        self.reasons.get(&(rule, key.clone())).copied().unwrap_or("ChildRefused")
    }

    /// Lets what was refused long ago be tried once more.
    pub(crate) fn give_another_chance(&mut self) {
        if self.refused_since.is_some_and(|since| since.elapsed() > REFUSALS_LAST) {
            self.refused_since = None;
            self.reasons.clear();
            self.children.forget_refusals();
        }
    }

    /// Counts one more repair of a child, and tells whether it has become a fight.
    pub(crate) fn is_fought_over(&mut self, rule: usize, key: &Key, wanted: u64) -> bool {
        self.repairs.retain(|_, repairs| repairs.since.elapsed() < REPAIRS_COUNT);
        let first = Repairs { wanted, since: Instant::now(), count: 0 };
        let repairs = self.repairs.entry((rule, key.clone())).or_insert(first);
        if repairs.wanted != wanted {
            *repairs = Repairs { wanted, since: Instant::now(), count: 0 };
        }
        repairs.count += 1;
        repairs.count > REPAIRS
    }

    /// Whether this is not what was said last.
    pub(crate) fn is_news(&mut self, said: Option<&Note>) -> bool {
        let news = self.told.as_ref() != said;
        if news {
            self.told = said.cloned();
        }
        news
    }

    /// The same for a status that could not be written, or was.
    pub(crate) fn is_news_of_status(&mut self, said: Option<&Error>) -> bool {
        let said = said.map(ToString::to_string);
        let news = self.status_told != said;
        self.status_told = said;
        news
    }

    /// How the last visit ended, as far as the definition cares.
    pub(crate) fn fare(&self) -> Fare {
        match &self.told {
            Some(note) => Fare::Failing(note.clone()),
            None if self.concerned => Fare::Well,
            None => Fare::Foreign,
        }
    }

    /// Whether visits keep ending with new writes.
    pub(crate) fn never_settles(&self) -> bool {
        self.unsettled >= BRISK || self.fleeting.len() >= FLEETING
    }

    /// Notes that a child was made.
    pub(crate) fn note_made(&mut self, child: &str) {
        if self.made.len() == MOST_MADE {
            self.made.pop_front();
        }
        self.made.push_back(child.into());
    }

    /// Notes that a child was deleted. One that was made just before will hardly be the last.
    pub(crate) fn note_deleted(&mut self, child: &str) {
        if self.fleeting.len() < FLEETING && self.made.iter().any(|made| **made == *child) {
            self.fleeting.push(child.into());
        }
    }

    /// The first children that were made and deleted again, once they are too many. The words stay the same for as long
    /// as there is no peace: each other message would be an event of its own.
    pub(crate) fn fleeting(&self) -> Option<String> {
        (self.fleeting.len() >= FLEETING).then(|| {
            let mut names: Vec<&str> = self.fleeting.iter().map(|child| &**child).collect();
            names.dedup();
            names.join(", ")
        })
    }

    /// How long to wait before looking at what an unsettled visit has written.
    pub(crate) fn slow_down(&mut self) -> Option<Duration> {
        self.unsettled += 1;
        if self.fleeting.len() >= FLEETING {
            self.unsettled = self.unsettled.max(BRISK);
        }
        let over = self.unsettled.checked_sub(BRISK)?;
        Some(Duration::from_secs(1 << over.min(6)))
    }

    /// For how long a deletion has waited for kinds that cannot be read, where there are any.
    pub(crate) fn wait_for_kinds(&mut self, unread: bool) -> Duration {
        if !unread {
            self.kinds_unread_since = None;
            return Duration::ZERO;
        }
        self.kinds_unread_since.get_or_insert_with(Instant::now).elapsed()
    }

    pub(crate) fn settled(&mut self) {
        self.unsettled = 0;
        self.made = VecDeque::new();
        self.fleeting = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::visit::note;

    #[test]
    fn what_is_changed_back_and_back_is_left_alone_for_a_while() {
        let mut writes = Insistence::default();
        let fights: Vec<bool> = (0..=REPAIRS).map(|_| writes.note(1)).collect();
        assert_eq!(fights.iter().filter(|fight| **fight).count(), 1);
        assert!(writes.pause(1).is_some_and(|pause| pause <= Duration::from_secs(1)));
        writes.note(1);
        assert!(writes.pause(1).is_some_and(|pause| pause > Duration::from_secs(1)));
    }

    #[test]
    fn another_wish_is_written_at_once() {
        let mut writes = Insistence::default();
        for wanted in [1, 1, 1, 1, 1, 1, 1, 2] {
            writes.note(wanted);
        }
        assert_eq!(writes.pause(2), None);
        assert_eq!(writes.pause(1), None);
    }

    #[test]
    fn what_was_said_is_news_once() {
        let mut memory = Memory::new("uid");
        let (one, two) = (note("HookRefused", "one"), note("HookRefused", "two"));
        let said = [Some(&one), Some(&one), Some(&two), None, Some(&two)].map(|said| memory.is_news(said));
        assert_eq!(said, [true, false, true, true, true]);
    }
}

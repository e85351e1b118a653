//! What a candidate makes of the Lease as it has seen it. Pure: the caller says what time it is.
//!
//! The times in a Lease are its holder's, whose clock may be wrong. What counts is how long it has not changed by our own
//! clock. Whatever changes a Lease by hand, its deletion included, is a change as well: the holder may not have noticed, so
//! it is given the time after which it has stopped writing.

use std::time::Duration;

use super::record::{Record, Terms};
use crate::cluster::gate::Moment;

/// The Lease, and since when it has been as it is.
pub(super) struct View {
    /// How long a lease lasts where it does not say.
    usual: Duration,
    record: Option<Record>,
    since: Moment,
    /// What was last seen of one that is gone.
    gone: Option<Terms>,
}

impl View {
    /// Nothing was seen yet.
    pub(super) fn new(usual: Duration, now: Moment) -> Self {
        View { usual, record: None, since: now, gone: None }
    }

    pub(super) fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// Takes in what was read just now. `None`: there is no Lease.
    pub(super) fn look(&mut self, record: Option<Record>, now: Moment) {
        let before = self.record.as_ref().map(|record| &record.terms);
        if before != record.as_ref().map(|record| &record.terms) {
            self.since = now;
            self.gone = before.filter(|_| record.is_none()).cloned();
        }
        self.record = record;
    }

    /// The moment from which the lease may be taken.
    pub(super) fn free_at(&self) -> Moment {
        match self.record.as_ref().map(|record| &record.terms).or(self.gone.as_ref()) {
            None => self.since,
            Some(terms) if terms.given_back() => self.since,
            Some(terms) => self.since + terms.duration(self.usual),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn held(holder: &str, renewed: &str) -> Record {
        let terms = Terms {
            holder: holder.into(),
            seconds: 15,
            acquired: "a".into(),
            renewed: renewed.into(),
            transitions: 0,
        };
        Record { version: renewed.into(), uid: "u".into(), terms }
    }

    fn view() -> View {
        View::new(LEASE, Moment::at(100))
    }

    #[test]
    fn lease_that_never_was_is_free() {
        let mut view = view();
        view.look(None, Moment::at(100));
        assert_eq!(view.free_at(), Moment::at(100));
    }

    #[test]
    fn lease_is_held_for_its_duration_since_it_was_seen_to_change() {
        let mut view = view();
        view.look(Some(held("other", "1")), Moment::at(100));
        view.look(Some(held("other", "1")), Moment::at(104));
        assert_eq!(view.free_at(), Moment::at(115), "whatever its renewTime says");
        view.look(Some(held("other", "2")), Moment::at(106));
        assert_eq!(view.free_at(), Moment::at(121));
    }

    #[test]
    fn change_of_something_else_does_not_prolong_it() {
        let mut view = view();
        view.look(Some(held("other", "1")), Moment::at(100));
        view.look(Some(Record { version: "annotated".into(), ..held("other", "1") }), Moment::at(110));
        assert_eq!(view.free_at(), Moment::at(115));
        assert_eq!(view.record().map(|record| record.version.as_str()), Some("annotated"));
    }

    #[test]
    fn lease_that_was_given_back_is_free_at_once() {
        let mut view = view();
        view.look(Some(held("other", "1")), Moment::at(100));
        let mut record = held("other", "1");
        record.terms = record.terms.given_up("2");
        view.look(Some(record), Moment::at(103));
        assert_eq!(view.free_at(), Moment::at(103));
    }

    #[test]
    fn holder_whose_name_was_taken_out_by_hand_is_given_its_time() {
        let mut view = view();
        view.look(Some(held("other", "1")), Moment::at(100));
        view.look(Some(held("", "1")), Moment::at(103));
        assert_eq!(view.free_at(), Moment::at(118));
    }

    #[test]
    fn holder_of_a_lease_that_was_deleted_is_given_its_time() {
        let mut view = view();
        view.look(Some(held("other", "1")), Moment::at(100));
        view.look(None, Moment::at(103));
        view.look(None, Moment::at(105));
        assert_eq!(view.free_at(), Moment::at(118));
        view.look(Some(held("other", "2")), Moment::at(106));
        assert_eq!(view.free_at(), Moment::at(121));
    }

    #[test]
    fn lease_without_a_duration_lasts_as_long_as_ours() {
        let mut view = view();
        let mut record = held("other", "1");
        record.terms.seconds = 0;
        view.look(Some(record), Moment::at(100));
        assert_eq!(view.free_at(), Moment::at(115));
    }
}

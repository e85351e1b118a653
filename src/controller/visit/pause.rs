//! A visit of a parent that is paused: it says so, and leaves everything as it is.
//!
//! Whatever is to be finalized is not paused: a pause must not hold up a deletion.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::controller::pause::{PAUSED, Pause, REASON};
use crate::controller::visit::{Conclusion, Ended, Visit, note};

impl Visit<'_> {
    /// The end of this visit, where the parent or the whole definition is paused.
    pub(super) async fn paused(&self, parent: &Arc<Object>) -> Result<Option<Conclusion>, Error> {
        if parent.deleting || !self.room.selects(parent) {
            return Ok(None);
        }
        if let Some((pause, words)) = self.room.paused().zip(self.room.pause_words()) {
            return Ok(Some(resting(&pause, words)));
        }
        let Some(pause) = Pause::of_parent(parent) else { return Ok(None) };
        let pause = match pause {
            Pause::For(duration) => self.write_end_down(parent, duration).await?,
            pause if pause.left(Timestamp::now()) == Some(Duration::ZERO) => return Ok(None),
            pause => pause,
        };
        let words = pause.words("it");
        Ok(Some(resting(&pause, words)))
    }

    /// Puts the time at which it ends in the place of how long it lasts: who looks sees it, and a restart knows it.
    async fn write_end_down(&self, parent: &Object, duration: Duration) -> Result<Pause, Error> {
        let seconds = i64::try_from(duration.as_secs().max(1)).unwrap_or(i64::MAX);
        let end = Timestamp::now().as_second().saturating_add(seconds);
        let until = Timestamp::from_second(end).unwrap_or(Timestamp::MAX);
        let metadata = json!({"annotations": {PAUSED: until.to_string()}});
        self.writer.patch_metadata(&self.room.parents, &self.room.parent_resource, parent, metadata).await?;
        Ok(Pause::Until(until))
    }
}

fn resting(pause: &Pause, words: String) -> Conclusion {
    let left = pause.left(Timestamp::now());
    Conclusion { resync_after: left, ..Conclusion::new(Ended::Waiting(note(REASON, words))) }
}

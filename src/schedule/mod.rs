//! When something is due: crontab schedules, read as Kubernetes reads them, in IANA zones whose data is compiled in.
//!
//! Pure: knows no clock and no environment, the system's zone files included. Every answer follows from the
//! arguments and the zone data's release.

mod crontab;
pub(crate) mod duration;
pub(crate) mod error;
pub(crate) mod zone;

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};

use crate::problem::nearest;
use crate::schedule::crontab::Crontab;
use crate::schedule::duration::parse_duration;
use crate::schedule::error::ScheduleError;
use crate::schedule::zone::Zone;

/// A crontab of five fields, an `@name`, or an `@every` interval.
///
/// The text means what the standard parser of robfig/cron v3 makes of it, and that is what CronJob uses: names in any
/// case, `?` as `*`, both day fields restricted as "either", `7` no weekday. Three things are refused that it accepts:
/// a `TZ=` prefix (as CronJob refuses it), a date that never comes, an `@every` that is not positive.
///
/// On the two nights a year when clocks change, the rule is our own:
/// - a schedule that does not name every hour runs once for a local time that is skipped, right after the gap (several
///   skipped times are one run), and once for a local time that comes twice, at the first of the two;
/// - a schedule with every hour (`*` in the hour field) follows real time: it runs whenever the local clock shows a
///   matching time, in both passes of a repeated hour and never inside a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Crontab(Crontab),
    /// Counts from the last run, so it has slots only relative to one.
    Every(SignedDuration),
}

impl Schedule {
    /// Reads a schedule; the error names the field, what was found there and what is allowed.
    pub(crate) fn parse(text: &str) -> Result<Schedule, ScheduleError> {
        refuse_zone_prefix(text)?;
        match text.strip_prefix('@') {
            Some(name) => parse_name(text, name).map(Schedule),
            None => Crontab::parse(text).map(Form::Crontab).map(Schedule),
        }
    }

    /// The first slot after `after`; nothing only at the end of the calendar (year 9999).
    pub(crate) fn next(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        match &self.0 {
            Form::Every(interval) => whole_second(after).checked_add(*interval).ok(),
            Form::Crontab(crontab) if crontab.names_every_hour() => next_by_clock(crontab, after, zone),
            Form::Crontab(crontab) => next_once(crontab, after, zone),
        }
    }

    /// The last slot at or before `before`; an `@every` interval has none, as it counts from a run.
    pub(crate) fn previous(&self, before: Timestamp, zone: &Zone) -> Option<Timestamp> {
        match &self.0 {
            Form::Every(_) => None,
            Form::Crontab(crontab) if crontab.names_every_hour() => previous_by_clock(crontab, before, zone),
            Form::Crontab(crontab) => previous_once(crontab, before, zone),
        }
    }

    /// The newest slot after `last` and not after `now`, found in constant time however long ago `last` was.
    pub(crate) fn due(&self, last: Timestamp, now: Timestamp, zone: &Zone) -> Option<Timestamp> {
        match &self.0 {
            Form::Every(interval) => {
                let last = whole_second(last);
                let passed = now.duration_since(last).as_secs().div_euclid(interval.as_secs());
                let since = (passed > 0).then(|| interval.as_secs().checked_mul(passed))??;
                last.checked_add(SignedDuration::from_secs(since)).ok()
            }
            Form::Crontab(_) => self.previous(now, zone).filter(|slot| *slot > last),
        }
    }

    /// Whether slots count from the last run (`@every`) instead of from the calendar.
    pub(crate) fn counts_from_last_run(&self) -> bool {
        matches!(self.0, Form::Every(_))
    }
}

fn refuse_zone_prefix(text: &str) -> Result<(), ScheduleError> {
    if !text.starts_with("TZ=") && !text.starts_with("CRON_TZ=") {
        return Ok(());
    }
    let prefix = text.split_whitespace().next().unwrap_or(text);
    Err(ScheduleError::new("schedule", format!("`{prefix}`"), "a schedule without a zone")
        .hint("give the zone in a field or argument of its own, as CronJob's `timeZone` does"))
}

const NAMES: [(&str, &str); 7] = [
    ("yearly", "0 0 1 1 *"),
    ("annually", "0 0 1 1 *"),
    ("monthly", "0 0 1 * *"),
    ("weekly", "0 0 * * 0"),
    ("daily", "0 0 * * *"),
    ("midnight", "0 0 * * *"),
    ("hourly", "0 * * * *"),
];

fn parse_name(text: &str, name: &str) -> Result<Form, ScheduleError> {
    if let Some(interval) = name.strip_prefix("every ") {
        return parse_interval(interval).map(Form::Every);
    }
    if let Some((_, fields)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Crontab::parse(fields).map(Form::Crontab);
    }
    let known = NAMES.iter().map(|(name, _)| *name).chain(["every 1h30m"]);
    let error = ScheduleError::new(
        "schedule",
        format!("`{text}`"),
        "`@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually` or `@every` with a duration",
    );
    Err(match nearest(name.trim(), known) {
        Some(near) => error.hint(format!("did you mean `@{near}`?")),
        None => error,
    })
}

/// Fractions of a second are dropped and less than a second becomes one, as the reference does.
fn parse_interval(text: &str) -> Result<SignedDuration, ScheduleError> {
    let interval =
        parse_duration(text).map_err(|error| ScheduleError { subject: "@every".into(), ..error })?;
    if !interval.is_positive() {
        return Err(ScheduleError::new(
            "@every",
            format!("`{text}`"),
            "a duration above zero, such as `1h30m`",
        ));
    }
    Ok(SignedDuration::from_secs(interval.as_secs().max(1)))
}

fn whole_second(time: Timestamp) -> Timestamp {
    let second = time.as_nanosecond().div_euclid(1_000_000_000);
    i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok()).unwrap_or(time)
}

/// A wall time already passed once comes back in a repeated hour, so candidates are taken until one is really later:
/// at most as many as the repeated stretch has minutes.
fn next_once(crontab: &Crontab, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
    let mut wall = crontab.at_or_after(zone.wall(after))?;
    loop {
        let slot = zone.once(wall)?;
        if slot > after {
            return Some(slot);
        }
        wall = crontab.after(wall)?;
    }
}

fn previous_once(crontab: &Crontab, before: Timestamp, zone: &Zone) -> Option<Timestamp> {
    let mut wall = crontab.at_or_before(zone.latest_wall(before))?;
    loop {
        let slot = zone.once(wall)?;
        if slot <= before {
            return Some(slot);
        }
        wall = crontab.before(wall)?;
    }
}

/// Stretches of one offset are walked in order; within a stretch wall time and real time run alike.
fn next_by_clock(crontab: &Crontab, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
    let mut from = after.checked_add(SignedDuration::from_nanos(1)).ok()?;
    loop {
        let stretch = zone.stretch(from);
        let slot = stretch.time(crontab.at_or_after(stretch.wall(from))?)?;
        match stretch.end {
            Some(end) if slot >= end => from = end,
            _ => return Some(slot),
        }
    }
}

fn previous_by_clock(crontab: &Crontab, before: Timestamp, zone: &Zone) -> Option<Timestamp> {
    let mut from = before;
    loop {
        let stretch = zone.stretch(from);
        let slot = stretch.time(crontab.at_or_before(stretch.wall(from))?)?;
        match stretch.start {
            Some(start) if slot < start => from = start.checked_sub(SignedDuration::from_nanos(1)).ok()?,
            _ => return Some(slot),
        }
    }
}

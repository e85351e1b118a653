//! The five fields, and the calendar search for wall times that match them. Knows no zones.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};

use crate::schedule::error::ScheduleError;

/// Five fields that are known to match some date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Crontab {
    minutes: Values,
    hours: Values,
    days: Values,
    months: Values,
    weekdays: Values,
    /// Both day fields restrict, so a day needs to match only one of them.
    either_day: bool,
}

/// What one field may hold.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const MINUTE: Field = Field { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: Field = Field { name: "hour", min: 0, max: 23, names: &[] };
const DAY: Field = Field { name: "day of month", min: 1, max: 31, names: &[] };
const MONTH: Field = Field { name: "month", min: 1, max: 12, names: &MONTHS };
const WEEKDAY: Field = Field { name: "day of week", min: 0, max: 6, names: &WEEKDAYS };
const FIVE_FIELDS: &str = "5 fields (minute, hour, day of month, month, day of week)";

impl Crontab {
    pub(super) fn parse(text: &str) -> Result<Crontab, ScheduleError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(wrong_field_count(&fields));
        };
        let (minutes, _) = MINUTE.parse(minute)?;
        let (hours, _) = HOUR.parse(hour)?;
        let (days, any_day) = DAY.parse(day)?;
        let (months, _) = MONTH.parse(month)?;
        let (weekdays, any_weekday) = WEEKDAY.parse(weekday)?;
        let crontab =
            Crontab { minutes, hours, days, months, weekdays, either_day: !any_day && !any_weekday };
        crontab.refuse_a_date_that_never_comes(day)?;
        Ok(crontab)
    }

    fn refuse_a_date_that_never_comes(&self, day: &str) -> Result<(), ScheduleError> {
        let longest = self.months.iter().map(longest_month).max().unwrap_or(0);
        let comes = self.days.at_or_after(DAY.min).is_some_and(|first| first <= longest);
        if comes || self.either_day {
            return Ok(());
        }
        let months: Vec<&str> = self.months.iter().map(|month| MONTHS[month as usize - 1]).collect();
        Err(ScheduleError::new(
            DAY.name,
            format!("`{day}`, a day that {} never has, so the schedule never fires", months.join(", ")),
            format!("{} to {longest}", DAY.min),
        ))
    }

    pub(super) fn names_every_hour(&self) -> bool {
        self.hours == HOUR.all()
    }

    /// The first matching wall time that is not before `wall`.
    pub(super) fn at_or_after(&self, wall: DateTime) -> Option<DateTime> {
        let (hour, minute) = (wall.hour() as u32, wall.minute() as u32);
        let started = wall.second() > 0 || wall.subsec_nanosecond() > 0;
        let today = || self.time_at_or_after(hour, minute + u32::from(started));
        if self.matches(wall.date())
            && let Some(time) = today()
        {
            return Some(at(wall.date(), time));
        }
        let date = self.date_at_or_after(wall.date().tomorrow().ok()?)?;
        Some(at(date, self.time_at_or_after(0, 0)?))
    }

    /// The last matching wall time that is not after `wall`.
    pub(super) fn at_or_before(&self, wall: DateTime) -> Option<DateTime> {
        if self.matches(wall.date())
            && let Some(time) = self.time_at_or_before(wall.hour() as u32, wall.minute() as u32)
        {
            return Some(at(wall.date(), time));
        }
        let date = self.date_at_or_before(wall.date().yesterday().ok()?)?;
        Some(at(date, self.time_at_or_before(HOUR.max, MINUTE.max)?))
    }

    /// The first matching wall time after a matching one.
    pub(super) fn after(&self, wall: DateTime) -> Option<DateTime> {
        self.at_or_after(wall.checked_add(SignedDuration::from_secs(60)).ok()?)
    }

    /// The last matching wall time before a matching one.
    pub(super) fn before(&self, wall: DateTime) -> Option<DateTime> {
        self.at_or_before(wall.checked_sub(SignedDuration::from_secs(60)).ok()?)
    }

    fn matches(&self, date: Date) -> bool {
        self.months.contains(date.month() as u32) && self.matches_day(date)
    }

    fn matches_day(&self, date: Date) -> bool {
        let day = self.days.contains(date.day() as u32);
        let weekday = self.weekdays.contains(date.weekday().to_sunday_zero_offset() as u32);
        if self.either_day { day || weekday } else { day && weekday }
    }

    /// A date always comes within eight years (29 February across a year such as 2100), so this ends.
    fn date_at_or_after(&self, mut date: Date) -> Option<Date> {
        loop {
            if !self.months.contains(date.month() as u32) {
                date = date.last_of_month().tomorrow().ok()?;
            } else if !self.matches_day(date) {
                date = date.tomorrow().ok()?;
            } else {
                return Some(date);
            }
        }
    }

    fn date_at_or_before(&self, mut date: Date) -> Option<Date> {
        loop {
            if !self.months.contains(date.month() as u32) {
                date = date.first_of_month().yesterday().ok()?;
            } else if !self.matches_day(date) {
                date = date.yesterday().ok()?;
            } else {
                return Some(date);
            }
        }
    }

    fn time_at_or_after(&self, hour: u32, minute: u32) -> Option<(u32, u32)> {
        if self.hours.contains(hour)
            && let Some(minute) = self.minutes.at_or_after(minute)
        {
            return Some((hour, minute));
        }
        Some((self.hours.at_or_after(hour + 1)?, self.minutes.at_or_after(MINUTE.min)?))
    }

    fn time_at_or_before(&self, hour: u32, minute: u32) -> Option<(u32, u32)> {
        if self.hours.contains(hour)
            && let Some(minute) = self.minutes.at_or_before(minute)
        {
            return Some((hour, minute));
        }
        Some((self.hours.at_or_before(hour.checked_sub(1)?)?, self.minutes.at_or_before(MINUTE.max)?))
    }
}

fn at(date: Date, (hour, minute): (u32, u32)) -> DateTime {
    date.at(hour as i8, minute as i8, 0, 0)
}

fn longest_month(month: u32) -> u32 {
    match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A set of numbers below 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Values(u64);

impl Values {
    fn contains(self, value: u32) -> bool {
        value < 64 && self.0 >> value & 1 == 1
    }

    fn at_or_after(self, value: u32) -> Option<u32> {
        let rest = self.0.checked_shr(value).unwrap_or(0);
        (rest != 0).then(|| value + rest.trailing_zeros())
    }

    fn at_or_before(self, value: u32) -> Option<u32> {
        let rest = self.0 << (63 - value.min(63));
        (rest != 0).then(|| value.min(63) - rest.leading_zeros())
    }

    fn iter(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |value| self.contains(*value))
    }
}

/// One comma-separated part of a field.
struct Part {
    values: Values,
    /// `*`, `?` or either with `/1`: the field does not restrict.
    any: bool,
}

impl Field {
    fn all(&self) -> Values {
        Values((self.min..=self.max).fold(0, |set, value| set | 1 << value))
    }

    /// Empty parts between commas are nothing, as in the reference; a field of nothing else is refused.
    fn parse(&self, text: &str) -> Result<(Values, bool), ScheduleError> {
        let mut values = Values(0);
        let mut any = false;
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let part = self.parse_part(part)?;
            values.0 |= part.values.0;
            any |= part.any;
        }
        if values.0 == 0 {
            return Err(self.refuse(text));
        }
        Ok((values, any))
    }

    fn parse_part(&self, text: &str) -> Result<Part, ScheduleError> {
        let mut halves = text.split('/');
        let range = halves.next().unwrap_or_default();
        let step = halves.next();
        if halves.next().is_some() {
            return Err(ScheduleError::new(self.name, format!("`{text}`"), "one step, as in `*/15`"));
        }
        let (first, mut last, mut any) = self.parse_range(range, text)?;
        if step.is_some() && !range.contains('-') {
            // A number with a step counts on to the end of the field.
            last = self.max;
        }
        let step = step.map_or(Ok(1), |step| self.parse_step(step, text))?;
        any &= step == 1;
        self.check_range(first, last, text)?;
        let values = (first..=last).step_by(step as usize).fold(0, |set, value| set | 1 << value);
        Ok(Part { values: Values(values), any })
    }

    fn parse_range(&self, range: &str, part: &str) -> Result<(u32, u32, bool), ScheduleError> {
        let mut ends = range.split('-');
        let first = ends.next().unwrap_or_default();
        if first == "*" || first == "?" {
            return Ok((self.min, self.max, true));
        }
        let last = ends.next();
        if ends.next().is_some() {
            return Err(ScheduleError::new(self.name, format!("`{part}`"), "one range, as in `1-5`"));
        }
        let first = self.parse_value(first, part)?;
        let last = last.map_or(Ok(first), |last| self.parse_value(last, part))?;
        Ok((first, last, false))
    }

    fn parse_value(&self, text: &str, part: &str) -> Result<u32, ScheduleError> {
        if let Some(index) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(index as u32 + self.min);
        }
        text.parse::<u32>().map_err(|_| match self.long_name(text) {
            Some(name) => self.refuse(part).hint(format!("did you mean `{name}`?")),
            None => self.refuse(part),
        })
    }

    fn long_name(&self, text: &str) -> Option<&'static str> {
        let begins =
            |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        self.names.iter().copied().find(|name| begins(name))
    }

    fn parse_step(&self, step: &str, part: &str) -> Result<u32, ScheduleError> {
        match step.parse::<u32>() {
            Ok(step) if step > 0 => Ok(step),
            _ => Err(ScheduleError::new(
                self.name,
                format!("step `{step}` in `{part}`"),
                "a step of at least 1",
            )),
        }
    }

    fn check_range(&self, first: u32, last: u32, part: &str) -> Result<(), ScheduleError> {
        if first < self.min || first > self.max || last > self.max {
            return Err(self.refuse(part));
        }
        if first > last {
            let (min, max) = (self.min, self.max);
            return Err(ScheduleError::new(self.name, format!("`{part}`"), "a range that runs upwards")
                .hint(format!("write `{first}-{max},{min}-{last}`")));
        }
        Ok(())
    }

    fn refuse(&self, part: &str) -> ScheduleError {
        let error = ScheduleError::new(self.name, format!("`{part}`"), self.allowed());
        match part {
            "7" if self.name == WEEKDAY.name => error.hint("write `0` or `SUN` for Sunday"),
            _ if self.name == WEEKDAY.name && part.ends_with("-7") => {
                error.hint("write Sunday as `0` or `SUN`, as in `5-6,0`")
            }
            _ if part.ends_with(['L', 'W']) || part.contains('#') => {
                error.hint("`L`, `W` and `#` belong to Quartz, not to crontab")
            }
            _ => error,
        }
    }

    fn allowed(&self) -> String {
        match self.names {
            [first, .., last] => format!("{} to {} or {first} to {last}", self.min, self.max),
            _ => format!("{} to {}", self.min, self.max),
        }
    }
}

fn wrong_field_count(fields: &[&str]) -> ScheduleError {
    let found = match fields.len() {
        0 => "nothing".to_string(),
        1 => format!("1 field, `{}`", fields[0]),
        count => format!("{count} fields"),
    };
    let error = ScheduleError::new("schedule", found, FIVE_FIELDS);
    let Some((why, rest)) = surplus_fields(fields) else {
        return error;
    };
    let rest = rest.join(" ");
    match Crontab::parse(&rest) {
        Ok(_) => error.hint(format!("{why}; did you mean `{rest}`?")),
        Err(_) => error.hint(why),
    }
}

/// Other schedulers put seconds first or a year last: says which fields those are here, and what is left without them.
fn surplus_fields<'a>(fields: &'a [&'a str]) -> Option<(String, &'a [&'a str])> {
    match fields {
        [rest @ .., year] if fields.len() == 6 && year_is_last(fields) => {
            Some((format!("crontab has no year: the last field, `{year}`, is surplus"), rest))
        }
        [seconds, rest @ ..] if fields.len() == 6 => {
            Some((format!("crontab has no seconds: the first field, `{seconds}`, is surplus"), rest))
        }
        [seconds, rest @ .., year] if fields.len() == 7 => Some((
            format!(
                "crontab has no seconds and no year: the first field, `{seconds}`, and the last, `{year}`, are surplus"
            ),
            rest,
        )),
        _ => None,
    }
}

/// A four-digit year, or a `?` where only a day can be (some cloud schedulers write minute to year).
fn year_is_last(fields: &[&str]) -> bool {
    let last = fields.last().map_or(&[][..], |last| last.as_bytes());
    let year = last.len() >= 4 && last[..4].iter().all(u8::is_ascii_digit);
    year || fields.get(2) == Some(&"?") || fields.get(4) == Some(&"?")
}

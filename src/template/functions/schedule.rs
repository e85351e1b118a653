//! Crontab schedules: which slot comes, which one passed, which one is due.

use jiff::Timestamp;
use minijinja::value::Value;
use minijinja::{Error, State};

use crate::schedule::Schedule;
use crate::schedule::zone::Zone;
use crate::template::functions::arguments::{Arguments, Builtin, Shape};
use crate::template::functions::time::written;
use crate::template::value::kind;

pub(super) const BUILTINS: [Builtin; 5] = [
    Builtin {
        name: "cron_next",
        parameters: &["schedule", "after", "zone"],
        shape: Shape::Fixed,
        call: cron_next,
    },
    Builtin {
        name: "cron_previous",
        parameters: &["schedule", "before", "zone"],
        shape: Shape::Fixed,
        call: cron_previous,
    },
    Builtin {
        name: "cron_due",
        parameters: &["schedule", "last", "now", "zone"],
        shape: Shape::Fixed,
        call: cron_due,
    },
    Builtin {
        name: "cron_slots",
        parameters: &["schedule", "after", "count", "zone"],
        shape: Shape::Fixed,
        call: cron_slots,
    },
    Builtin { name: "cron_error", parameters: &["schedule", "zone"], shape: Shape::Fixed, call: cron_error },
];

/// What one search for a slot costs, in the engine's fuel: about as much as this many instructions.
const SEARCH_FUEL: u64 = 50;

fn cron_next(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    state.consume_fuel(SEARCH_FUEL)?;
    let (schedule, zone) = (arguments.schedule("schedule")?, arguments.zone("zone")?);
    let after = arguments.time_or_now("after", state)?;
    Ok(slot(schedule.next(after, &zone)))
}

fn cron_previous(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    state.consume_fuel(SEARCH_FUEL)?;
    let (schedule, zone) = (arguments.schedule("schedule")?, arguments.zone("zone")?);
    if schedule.counts_from_last_run() {
        return Err(arguments
            .refuse("schedule")
            .found("`@every`, which counts from the last run")
            .expected("a schedule with slots of its own, such as `0 7 * * *`")
            .hint("`cron_due` with `last` works for both")
            .into());
    }
    let before = arguments.time_or_now("before", state)?;
    Ok(slot(schedule.previous(before, &zone)))
}

fn cron_due(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    state.consume_fuel(SEARCH_FUEL)?;
    let (schedule, zone) = (arguments.schedule("schedule")?, arguments.zone("zone")?);
    if arguments.optional("last").is_none() {
        arguments
            .required("last", "the time of the last run")
            .map_err(|fault| fault.hint("before the first run, give `parent.metadata.creationTimestamp`"))?;
    }
    let (last, now) = (arguments.time("last")?, arguments.time_or_now("now", state)?);
    Ok(slot(schedule.due(last, now, &zone)))
}

fn cron_slots(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let count = arguments.whole("count", 1..=1000, Some(5))?;
    state.consume_fuel(SEARCH_FUEL * count.unsigned_abs())?;
    let (schedule, zone) = (arguments.schedule("schedule")?, arguments.zone("zone")?);
    let after = arguments.time_or_now("after", state)?;
    let slots = std::iter::successors(schedule.next(after, &zone), |slot| schedule.next(*slot, &zone));
    Ok(slots.take(count as usize).map(written).collect())
}

/// Never a refusal for what the schedule or the zone is: that is the answer.
fn cron_error(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let schedule = arguments.any("schedule")?;
    let parsed = match schedule.as_str() {
        Some(text) => Schedule::parse(text).map(drop).map_err(|error| error.to_string()),
        None => Err(format!("schedule: found {}, expected text such as `0 7 * * *`", kind(schedule))),
    };
    let zone = match arguments.optional("zone") {
        Some(zone) => match zone.as_str() {
            Some(name) => Zone::parse(name).map(drop).map_err(|error| error.to_string()),
            None => Err(format!("time zone: found {}, expected text such as `Europe/Berlin`", kind(zone))),
        },
        None => Ok(()),
    };
    Ok(parsed.and(zone).err().into())
}

fn slot(time: Option<Timestamp>) -> Value {
    time.map(written).into()
}

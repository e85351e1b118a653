use std::collections::BTreeSet;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn zone(name: &str) -> Zone {
    Zone::parse(name).expect("a zone")
}

fn schedule(text: &str) -> Schedule {
    Schedule::parse(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

fn refusal(text: &str) -> String {
    Schedule::parse(text).expect_err("a refusal").to_string()
}

/// Local times of the slots after `start`, up to and including `end`.
fn slots(text: &str, name: &str, start: &str, end: &str) -> Vec<String> {
    let (schedule, zone) = (schedule(text), zone(name));
    let chain = std::iter::successors(schedule.next(at(start), &zone), |slot| schedule.next(*slot, &zone));
    let rules = rules(name);
    chain
        .take_while(|slot| *slot <= at(end))
        .map(|slot| {
            rules.to_offset(slot).to_datetime(slot).strftime("%m-%dT%H:%M").to_string()
                + &rules.to_offset(slot).to_string()
        })
        .collect()
}

fn rules(name: &str) -> TimeZone {
    jiff::tz::TimeZoneDatabase::bundled().get(name).expect("a zone")
}

mod reference {
    //! The recorded table: 94 expressions from 11 starts, five firings of robfig/cron v3 each.
    use super::*;

    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Row {
        expr: String,
        tz: String,
        start: Timestamp,
        next: Option<Vec<String>>,
        err: Option<String>,
    }

    fn rows() -> Vec<Row> {
        let table = include_str!("../../tests/data/cron-robfig.jsonl");
        table.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
    }

    #[test]
    fn every_refusal_of_the_reference_is_ours() {
        let refused: Vec<Row> = rows().into_iter().filter(|row| row.err.is_some()).collect();
        assert!(refused.len() > 200, "{} rows", refused.len());
        for row in refused {
            assert!(Schedule::parse(&row.expr).is_err(), "`{}`: {:?}", row.expr, row.err);
        }
    }

    #[test]
    fn every_firing_of_the_reference_is_ours_but_on_the_nights_the_clock_changes() {
        let mut differences = Vec::new();
        for row in rows() {
            let Some(recorded) = row.next else { continue };
            if recorded == ["NEVER"] || row.expr.contains("TZ=") {
                assert!(Schedule::parse(&row.expr).is_err(), "`{}` is one we refuse", row.expr);
                continue;
            }
            let theirs: Vec<Timestamp> = recorded.iter().map(|text| at(text)).collect();
            differences.extend(differing(&row.expr, &row.tz, row.start, &theirs));
        }
        let listed = include_str!("../../tests/data/cron-clock-changes.txt");
        assert_eq!(differences.join("\n") + "\n", listed);
    }

    /// One line for each slot that only one side has, up to where both sides' five firings reach.
    fn differing(expr: &str, name: &str, start: Timestamp, theirs: &[Timestamp]) -> Vec<String> {
        let (schedule, zone) = (schedule(expr), zone(name));
        let ours: Vec<Timestamp> =
            std::iter::successors(schedule.next(start, &zone), |slot| schedule.next(*slot, &zone))
                .take(5)
                .collect();
        let reach = *ours.last().min(theirs.last()).expect("five firings");
        let set = |slots: &[Timestamp]| {
            slots.iter().copied().filter(|slot| *slot <= reach).collect::<BTreeSet<_>>()
        };
        let (ours, theirs) = (set(&ours), set(theirs));
        let rules = rules(name);
        let line = |side: &str, slot: &Timestamp, reason: String| {
            let local = rules.to_offset(*slot);
            format!("{expr:?} | {name} | {side} {}{local} | {reason}", local.to_datetime(*slot))
        };
        let only_ours =
            ours.difference(&theirs).map(|slot| line("ours", slot, why_ours(expr, &rules, &zone, *slot)));
        let only_theirs =
            theirs.difference(&ours).map(|slot| line("theirs", slot, why_theirs(expr, &rules, *slot)));
        only_ours.chain(only_theirs).collect()
    }

    fn why_ours(expr: &str, rules: &TimeZone, zone: &Zone, slot: Timestamp) -> String {
        let oracle = Oracle::new(expr);
        if let Some(skipped) = skipped_before(rules, slot).into_iter().find(|wall| oracle.matches(*wall)) {
            return format!("{} is skipped, runs right after the gap", skipped.strftime("%H:%M"));
        }
        let wall = rules.to_offset(slot).to_datetime(slot);
        let change = rules.preceding(slot).next().expect("a change before").timestamp();
        let offset = |time: Timestamp| rules.to_offset(time).seconds();
        let half_hour = (offset(change) - offset(change - SignedDuration::from_nanos(1))) % 3600 != 0;
        let minute_before = slot - SignedDuration::from_secs(60);
        let searched_from = schedule(expr).previous(minute_before, zone).expect("a slot before");
        let crossed = searched_from < change && half_hour;
        assert!(oracle.matches(wall) && crossed, "`{expr}` in {rules:?}: {slot} has no reason");
        "the reference's search loses its way across a half-hour change".into()
    }

    fn why_theirs(expr: &str, rules: &TimeZone, slot: Timestamp) -> String {
        let wall = rules.to_offset(slot).to_datetime(slot);
        if !Oracle::new(expr).matches(wall) {
            return format!(
                "the reference runs at {}, which the schedule does not name",
                wall.strftime("%H:%M")
            );
        }
        let first = rules.to_ambiguous_timestamp(wall).earlier().expect("a time");
        assert!(first < slot, "`{expr}` in {rules:?}: {slot} of the reference has no reason");
        format!("{} comes twice, runs at the first only", wall.strftime("%H:%M"))
    }
}

/// The rule read literally, minute by minute, as a check on the search.
struct Oracle {
    fields: Vec<BTreeSet<i8>>,
    either_day: bool,
}

impl Oracle {
    fn new(text: &str) -> Oracle {
        let text = match text {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            other => other,
        };
        let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
        let texts: Vec<&str> = text.split_whitespace().collect();
        let fields = texts.iter().zip(bounds).map(|(text, bounds)| expand(text, bounds)).collect();
        let restricts = |text: &str| !text.split(',').any(|part| ["*", "?", "*/1"].contains(&part));
        Oracle { fields, either_day: restricts(texts[2]) && restricts(texts[4]) }
    }

    fn matches(&self, wall: DateTime) -> bool {
        let has = |field: usize, value: i8| self.fields[field].contains(&value);
        let (day, weekday) = (has(2, wall.day()), has(4, wall.weekday().to_sunday_zero_offset()));
        let date = if self.either_day { day || weekday } else { day && weekday };
        has(0, wall.minute()) && has(1, wall.hour()) && has(3, wall.month()) && date
    }

    fn fires(&self, rules: &TimeZone, time: Timestamp) -> bool {
        let wall = rules.to_offset(time).to_datetime(time);
        if self.fields[1].len() == 24 {
            return wall.second() == 0 && self.matches(wall);
        }
        let first = rules.to_ambiguous_timestamp(wall).earlier().expect("a time") == time;
        first && self.matches(wall) || skipped_before(rules, time).into_iter().any(|wall| self.matches(wall))
    }
}

fn expand(text: &str, (min, max): (i8, i8)) -> BTreeSet<i8> {
    let number = |text: &str| text.parse::<i8>().unwrap_or_else(|_| named(text));
    let part = |part: &str| {
        let (range, step) =
            part.split_once('/').map_or((part, 1), |(range, step)| (range, step.parse().expect("a step")));
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first), number(last)),
            None if range == "*" || range == "?" => (min, max),
            None if part.contains('/') => (number(range), max),
            None => (number(range), number(range)),
        };
        (first..=last).step_by(step)
    };
    text.split(',').filter(|part| !part.is_empty()).flat_map(part).collect()
}

fn named(text: &str) -> i8 {
    let names = ["sun", "mon", "tue", "wed", "thu", "fri", "sat", "", "jan", "feb", "mar", "apr", "may"];
    let index = names.iter().position(|name| *name == text.to_lowercase()).expect("a name") as i8;
    if index < 7 { index } else { index - 7 }
}

/// The wall minutes that a change of clocks at exactly `time` skipped.
fn skipped_before(rules: &TimeZone, time: Timestamp) -> Vec<DateTime> {
    let before = rules.to_offset(time - SignedDuration::from_nanos(1)).to_datetime(time);
    let after = rules.to_offset(time).to_datetime(time);
    let minute = |wall: &DateTime| wall.checked_add(SignedDuration::from_secs(60)).ok();
    std::iter::successors(Some(before), minute).take_while(|wall| *wall < after).collect()
}

mod refusals {
    use super::*;

    #[test]
    fn a_number_out_of_range_names_the_field_and_its_range() {
        assert_eq!(refusal("60 * * * *"), "minute: found `60`, expected 0 to 59");
        assert_eq!(refusal("0 24 * * *"), "hour: found `24`, expected 0 to 23");
        assert_eq!(refusal("0 0 0 * *"), "day of month: found `0`, expected 1 to 31");
        assert_eq!(refusal("0 0 * 13 *"), "month: found `13`, expected 1 to 12 or JAN to DEC");
        assert_eq!(refusal("0 0 * * 8"), "day of week: found `8`, expected 0 to 6 or SUN to SAT");
        assert_eq!(refusal("99999999999 * * * *"), "minute: found `99999999999`, expected 0 to 59");
        assert_eq!(refusal(", * * * *"), "minute: found `,`, expected 0 to 59");
    }

    #[test]
    fn seven_is_refused_with_the_two_ways_to_write_sunday() {
        assert_eq!(
            refusal("0 0 * * 7"),
            "day of week: found `7`, expected 0 to 6 or SUN to SAT; hint: write `0` or `SUN` for Sunday"
        );
        assert_eq!(
            refusal("0 0 * * 5-7"),
            "day of week: found `5-7`, expected 0 to 6 or SUN to SAT; hint: write Sunday as `0` or `SUN`, as in `5-6,0`"
        );
    }

    #[test]
    fn a_range_that_runs_backwards_is_refused_with_the_two_that_are_meant() {
        assert_eq!(
            refusal("0 22-2 * * *"),
            "hour: found `22-2`, expected a range that runs upwards; hint: write `22-23,0-2`"
        );
        assert_eq!(
            refusal("0 0 * * FRI-MON"),
            "day of week: found `FRI-MON`, expected a range that runs upwards; hint: write `5-6,0-1`"
        );
    }

    #[test]
    fn a_step_of_nothing_and_doubled_signs_are_refused() {
        assert_eq!(refusal("*/0 * * * *"), "minute: found step `0` in `*/0`, expected a step of at least 1");
        assert_eq!(refusal("*/5/5 * * * *"), "minute: found `*/5/5`, expected one step, as in `*/15`");
        assert_eq!(refusal("1-2-3 * * * *"), "minute: found `1-2-3`, expected one range, as in `1-5`");
    }

    #[test]
    fn words_of_other_schedulers_are_refused_with_the_reason() {
        assert_eq!(
            refusal("0 0 L * *"),
            "day of month: found `L`, expected 1 to 31; hint: `L`, `W` and `#` belong to Quartz, not to crontab"
        );
        assert_eq!(
            refusal("0 0 * * MONDAY"),
            "day of week: found `MONDAY`, expected 0 to 6 or SUN to SAT; hint: did you mean `MON`?"
        );
        assert!(refusal("@Daily").ends_with("; hint: did you mean `@daily`?"), "{}", refusal("@Daily"));
        assert!(refusal("@reboot").starts_with("schedule: found `@reboot`, expected `@hourly`, `@daily`"));
    }

    // B62
    #[test]
    fn six_fields_are_refused_and_the_seconds_or_the_year_pointed_out() {
        let expected = "expected 5 fields (minute, hour, day of month, month, day of week)";
        assert_eq!(
            refusal("0 0 7 * * *"),
            format!(
                "schedule: found 6 fields, {expected}; hint: crontab has no seconds: the first field, `0`, is surplus; \
                 did you mean `0 7 * * *`?"
            )
        );
        assert_eq!(
            refusal("0 7 * * * 2027"),
            format!(
                "schedule: found 6 fields, {expected}; hint: crontab has no year: the last field, `2027`, is surplus; \
                 did you mean `0 7 * * *`?"
            )
        );
        assert_eq!(
            refusal("0 10 ? * MON-FRI *"),
            format!(
                "schedule: found 6 fields, {expected}; hint: crontab has no year: the last field, `*`, is surplus; \
                 did you mean `0 10 ? * MON-FRI`?"
            )
        );
        assert_eq!(
            refusal("0 0 7 * * * *"),
            format!(
                "schedule: found 7 fields, {expected}; hint: crontab has no seconds and no year: the first field, `0`, \
                 and the last, `*`, are surplus; did you mean `0 7 * * *`?"
            )
        );
    }

    #[test]
    fn too_few_fields_and_nothing_are_refused() {
        let expected = "expected 5 fields (minute, hour, day of month, month, day of week)";
        assert_eq!(refusal(""), format!("schedule: found nothing, {expected}"));
        assert_eq!(refusal("  "), format!("schedule: found nothing, {expected}"));
        assert_eq!(refusal("daily"), format!("schedule: found 1 field, `daily`, {expected}"));
        assert_eq!(refusal("0 7 * *"), format!("schedule: found 4 fields, {expected}"));
    }

    #[test]
    fn a_zone_before_the_fields_is_refused_as_kubernetes_does() {
        for prefix in ["TZ=Europe/Berlin", "CRON_TZ=Europe/Berlin"] {
            assert_eq!(
                refusal(&format!("{prefix} 0 6 * * *")),
                format!(
                    "schedule: found `{prefix}`, expected a schedule without a zone; \
                     hint: give the zone in a field or argument of its own, as CronJob's `timeZone` does"
                )
            );
        }
    }

    #[test]
    fn a_date_that_never_comes_is_refused() {
        assert_eq!(
            refusal("0 0 30 2 *"),
            "day of month: found `30`, a day that FEB never has, so the schedule never fires, expected 1 to 29"
        );
        assert_eq!(
            refusal("0 0 31 2,4 ?"),
            "day of month: found `31`, a day that FEB, APR never has, so the schedule never fires, expected 1 to 30"
        );
        schedule("0 0 30 2 1");
        schedule("0 0 29 2 *");
    }

    #[test]
    fn an_interval_without_length_is_refused() {
        assert_eq!(
            refusal("@every 0s"),
            "@every: found `0s`, expected a duration above zero, such as `1h30m`"
        );
        assert_eq!(
            refusal("@every -5m"),
            "@every: found `-5m`, expected a duration above zero, such as `1h30m`"
        );
        assert_eq!(
            refusal("@every 1d"),
            "@every: found `1d`, expected a duration such as `90s`, `1h30m` or `1.5h`; \
             hint: there is no unit above the hour: a day is `24h`"
        );
    }

    #[test]
    fn an_unknown_zone_is_refused_with_the_nearest() {
        let refusal = |name: &str| Zone::parse(name).expect_err("a refusal").to_string();
        let expected = "expected an IANA name such as `Europe/Berlin` or `UTC`";
        assert_eq!(
            refusal("Europe/Berln"),
            format!("time zone: found `Europe/Berln`, {expected}; hint: did you mean `Europe/Berlin`?")
        );
        assert_eq!(
            refusal("berlin"),
            format!("time zone: found `berlin`, {expected}; hint: did you mean `Europe/Berlin`?")
        );
        assert_eq!(
            refusal("america/new york"),
            format!(
                "time zone: found `america/new york`, {expected}; hint: did you mean `America/New_York`?"
            )
        );
        assert_eq!(refusal("+02:00"), format!("time zone: found `+02:00`, {expected}"));
        assert_eq!(refusal(""), format!("time zone: found ``, {expected}"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_panics(text in ".{0,40}", fields in "[-0-9*/,?+A-Z ]{0,24}") {
            for text in [text, fields] {
                let _ = Schedule::parse(&text).map_err(|error| error.to_string());
                let _ = Schedule::parse(&format!("@every {text}")).map_err(|error| error.to_string());
            }
        }

        #[test]
        fn no_duration_panics(text in ".{0,24}", numbers in "[-+]?([0-9]{0,20}[.]?[0-9]{0,12}(h|m|s|ms|us|µs|ns|)){0,4}") {
            for text in [text, numbers] {
                let _ = parse_duration(&text).map_err(|error| error.to_string());
            }
        }

        #[test]
        fn no_zone_name_panics(name in ".{0,12}") {
            let _ = Zone::parse(&name);
        }
    }
}

mod clock_changes {
    use super::*;

    #[test]
    fn a_daily_time_that_is_skipped_runs_right_after_the_gap() {
        assert_eq!(
            slots("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", "2026-03-30T12:00:00Z"),
            ["03-28T02:30+01", "03-29T03:00+02", "03-30T02:30+02"]
        );
    }

    #[test]
    fn several_skipped_times_are_one_run() {
        assert_eq!(
            slots("*/15 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z"),
            ["03-29T03:00+02", "03-29T03:15+02", "03-29T03:30+02", "03-29T03:45+02"]
        );
    }

    // B56
    #[test]
    fn a_daily_time_that_comes_twice_runs_at_the_first() {
        assert_eq!(
            slots("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"),
            ["10-25T02:30+02", "10-26T02:30+01"]
        );
    }

    #[test]
    fn the_second_pass_of_a_repeated_hour_is_not_due_again() {
        let (daily, berlin) = (schedule("30 2 * * *"), zone("Europe/Berlin"));
        let ran = at("2026-10-25T02:30:00+02:00");
        assert_eq!(daily.due(ran, at("2026-10-25T02:45:00+01:00"), &berlin), None);
        assert_eq!(daily.previous(at("2026-10-25T02:10:00+01:00"), &berlin), Some(ran));
    }

    #[test]
    fn an_hourly_schedule_keeps_its_real_intervals() {
        let hourly = |start, end| slots("0 * * * *", "Europe/Berlin", start, end);
        assert_eq!(
            hourly("2026-10-24T23:30:00Z", "2026-10-25T02:00:00Z"),
            ["10-25T02:00+02", "10-25T02:00+01", "10-25T03:00+01"]
        );
        assert_eq!(
            hourly("2026-03-28T23:30:00Z", "2026-03-29T01:30:00Z"),
            ["03-29T01:00+01", "03-29T03:00+02"]
        );
    }

    #[test]
    fn midnight_that_is_skipped_runs_at_one() {
        assert_eq!(
            slots("@daily", "Africa/Cairo", "2026-04-22T23:00:00Z", "2026-04-25T00:00:00Z"),
            ["04-24T01:00+03", "04-25T00:00+03"]
        );
    }

    #[test]
    fn a_change_of_half_an_hour_is_one_run_a_day() {
        let daily = |text, start, end| slots(text, "Australia/Lord_Howe", start, end);
        assert_eq!(
            daily("15 2 * * *", "2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z"),
            ["10-04T02:30+11", "10-05T02:15+11"]
        );
        assert_eq!(
            daily("45 1 * * *", "2026-04-04T00:00:00Z", "2026-04-06T00:00:00Z"),
            ["04-05T01:45+11", "04-06T01:45+10:30"]
        );
    }

    #[test]
    fn a_zone_that_skips_a_day_is_not_a_loop() {
        assert_eq!(
            slots("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-31T12:00:00Z"),
            ["12-29T09:00-10", "12-31T00:00+14", "12-31T09:00+14"]
        );
        let (odd, apia) = (schedule("15,45 1 3 * *"), zone("Pacific/Apia"));
        assert_eq!(odd.next(at("2011-11-04T00:00:00Z"), &apia), Some(at("2011-12-03T01:15:00-10:00")));
        let (hourly, only_day) = (schedule("0 * 30 12 *"), zone("Pacific/Apia"));
        assert_eq!(hourly.next(at("2011-12-01T00:00:00Z"), &only_day), Some(at("2012-12-30T00:00:00+14:00")));
    }

    // B58
    #[test]
    fn a_zone_without_changes_runs_once_each_local_day() {
        assert_eq!(
            slots("0 9 * * *", "Asia/Seoul", "2026-06-01T00:00:00Z", "2026-06-03T00:00:00Z"),
            ["06-02T09:00+09", "06-03T09:00+09"]
        );
    }

    /// A controller that wakes every 17 minutes, and is down for three days in June, runs each day's slot once.
    #[test]
    fn a_year_in_berlin_runs_every_slot_once() {
        let (daily, berlin) = (schedule("30 2 * * *"), zone("Europe/Berlin"));
        let (mut now, end) = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
        let outage = at("2026-06-10T00:00:00Z")..at("2026-06-13T00:00:00Z");
        let (mut last, mut days) = (now, Vec::new());
        while now < end {
            if !outage.contains(&now)
                && let Some(slot) = daily.due(last, now, &berlin)
            {
                last = slot;
                days.push(berlin.wall(slot).date());
            }
            now += SignedDuration::from_mins(17);
        }
        let all = std::iter::successors(Some(at("2026-01-01T00:00:00Z")), |day| {
            Some(*day + SignedDuration::from_hours(24))
        });
        let all: Vec<_> = all.take(365).map(|day| berlin.wall(day).date()).collect();
        let missed: Vec<_> = all.iter().filter(|day| !days.contains(day)).map(ToString::to_string).collect();
        assert_eq!(missed, ["2026-06-10", "2026-06-11"], "the outage ends after the slot of the 12th");
        assert_eq!(days.len(), 363);
    }
}

mod slots {
    use super::*;

    // B62
    #[test]
    fn five_fields_are_minutes_first() {
        assert_eq!(
            super::slots("0 7 * * *", "UTC", "2026-01-15T10:07:31Z", "2026-01-17T10:00:00Z"),
            ["01-16T07:00+00", "01-17T07:00+00"]
        );
    }

    // B63
    #[test]
    fn a_slot_is_due_in_no_time_after_days_or_millennia() {
        let utc = Zone::utc();
        let minutely = schedule("* * * * *");
        let now = at("2026-06-15T12:00:30Z");
        assert_eq!(minutely.due(at("2026-06-12T12:00:00Z"), now, &utc), Some(at("2026-06-15T12:00:00Z")));
        assert_eq!(minutely.due(Timestamp::MIN, now, &utc), Some(at("2026-06-15T12:00:00Z")));
        assert_eq!(schedule("@every 1s").due(at("0001-01-01T00:00:00Z"), now, &utc), Some(now));
    }

    #[test]
    fn nothing_is_due_before_the_slot_or_when_the_clock_steps_back() {
        let (daily, utc) = (schedule("0 7 * * *"), Zone::utc());
        let ran = at("2026-06-15T07:00:00Z");
        assert_eq!(daily.due(ran, at("2026-06-16T06:59:59Z"), &utc), None);
        assert_eq!(daily.due(ran, at("2026-06-15T06:00:00Z"), &utc), None);
        assert_eq!(schedule("@every 1h").due(ran, at("2026-06-15T06:00:00Z"), &utc), None);
    }

    #[test]
    fn an_interval_counts_from_the_last_run() {
        let (every, utc) = (schedule("@every 1h30m"), Zone::utc());
        let last = at("2026-01-15T10:07:31.5Z");
        assert_eq!(every.next(last, &utc), Some(at("2026-01-15T11:37:31Z")));
        assert_eq!(every.due(last, at("2026-01-15T11:37:30Z"), &utc), None);
        assert_eq!(every.due(last, at("2026-01-15T15:00:00Z"), &utc), Some(at("2026-01-15T14:37:31Z")));
        assert_eq!(every.previous(last, &utc), None);
        assert_eq!(schedule("@every 100ms"), schedule("@every 1s"));
    }

    #[test]
    fn the_end_of_the_calendar_is_nothing() {
        for text in ["0 0 29 2 *", "* * * * *", "@every 2000000h"] {
            assert_eq!(schedule(text).next(Timestamp::MAX, &Zone::utc()), None, "{text}");
        }
        for text in ["0 0 29 2 *", "* * * * *"] {
            assert_eq!(schedule(text).previous(Timestamp::MIN, &zone("Europe/Berlin")), None, "{text}");
        }
    }

    #[test]
    fn leap_days_are_found_across_a_year_that_has_none() {
        let leap = schedule("0 0 29 2 *");
        assert_eq!(leap.next(at("2096-03-01T00:00:00Z"), &Zone::utc()), Some(at("2104-02-29T00:00:00Z")));
        assert_eq!(leap.previous(at("2104-02-28T00:00:00Z"), &Zone::utc()), Some(at("2096-02-29T00:00:00Z")));
    }

    #[test]
    fn a_slot_itself_is_previous_and_not_next() {
        let (daily, utc) = (schedule("0 7 * * *"), Zone::utc());
        let slot = at("2026-06-15T07:00:00Z");
        assert_eq!(daily.previous(slot, &utc), Some(slot));
        assert_eq!(daily.next(slot, &utc), Some(at("2026-06-16T07:00:00Z")));
    }

    #[test]
    fn the_zone_data_names_its_release() {
        let release = crate::schedule::zone::tzdb_release();
        assert!(release.len() == 5 && release.starts_with("20"), "{release}");
    }

    const ZONES: [&str; 10] = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "America/Havana",
        "Africa/Cairo",
        "Africa/Casablanca",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
        "Pacific/Apia",
        "America/Santiago",
    ];

    fn a_field(min: u32, max: u32) -> impl Strategy<Value = String> {
        prop_oneof![
            3 => Just("*".to_string()),
            4 => (min..=max).prop_map(|value| value.to_string()),
            2 => (1..=max).prop_map(|step| format!("*/{step}")),
            2 => (min..=max, min..=max).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
            1 => (min..=max, min..=max).prop_map(|(a, b)| format!("{a},{b}")),
            1 => (min..=max, 1..=max).prop_map(|(a, step)| format!("{a}/{step}")),
        ]
    }

    fn a_schedule() -> impl Strategy<Value = String> {
        let date = prop_oneof![3 => Just("* * *".to_string()), 1 => (a_field(1, 28), a_field(1, 12), a_field(0, 6))
            .prop_map(|(day, month, weekday)| format!("{day} {month} {weekday}"))];
        (a_field(0, 59), a_field(0, 23), date)
            .prop_map(|(minute, hour, date)| format!("{minute} {hour} {date}"))
    }

    /// A time within 30 hours of a change of clocks where the zone has one.
    fn a_time_near_a_change(rules: &TimeZone, change: usize, off: i64) -> Timestamp {
        let start = at("2011-01-01T00:00:00Z");
        let base = rules.following(start).nth(change).map_or(start, |change| change.timestamp());
        base + SignedDuration::from_secs(off)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_search_finds_what_the_rule_says_minute_by_minute(
            text in a_schedule(), name in prop::sample::select(&ZONES[..]), change in 0usize..12, off in -108_000i64..108_000,
        ) {
            let (schedule, zone, oracle, rules) = (schedule(&text), zone(name), Oracle::new(&text), rules(name));
            let start = a_time_near_a_change(&rules, change, off);
            let minute = Timestamp::from_second(start.as_second().div_euclid(60) * 60).expect("a time");
            let minutes = |from: i64, to: i64| (from..=to).map(move |n| minute + SignedDuration::from_mins(n));
            let day = 26 * 60;
            let next = minutes(0, day).find(|time| *time > start && oracle.fires(&rules, *time));
            let reach = minute + SignedDuration::from_mins(day);
            prop_assert_eq!(schedule.next(start, &zone).filter(|slot| *slot <= reach), next);
            let previous = minutes(-day, 0).rev().find(|time| *time <= start && oracle.fires(&rules, *time));
            let reach = minute - SignedDuration::from_mins(day);
            prop_assert_eq!(schedule.previous(start, &zone).filter(|slot| *slot >= reach), previous);
        }

        #[test]
        fn previous_and_next_meet(
            text in a_schedule(), name in prop::sample::select(&ZONES[..]), second in 0i64..4_102_444_800,
        ) {
            let (schedule, zone) = (schedule(&text), zone(name));
            let time = Timestamp::from_second(second).expect("a time");
            let next = schedule.next(time, &zone).expect("a slot");
            prop_assert!(next > time);
            prop_assert_eq!(schedule.previous(next, &zone), Some(next));
            let previous = schedule.previous(time, &zone).expect("a slot");
            prop_assert!(previous <= time);
            prop_assert_eq!(schedule.next(previous, &zone), Some(next));
            let just_before = next - SignedDuration::from_nanos(1);
            prop_assert_eq!(schedule.previous(just_before, &zone), Some(previous));
            prop_assert_eq!(schedule.due(previous, just_before, &zone), None);
        }
    }
}

mod durations {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let seconds = |text: &str| parse_duration(text).map(|length| length.as_secs_f64());
        for (text, length) in [
            ("1h30m", 5400.0),
            ("90s", 90.0),
            ("1.5h", 5400.0),
            ("250ms", 0.25),
            ("-2m", -120.0),
            ("+1m", 60.0),
            ("0", 0.0),
            (".5s", 0.5),
            ("1.s", 1.0),
            ("1h0m0.000000001s", 3600.000000001),
            ("3us", 0.000003),
        ] {
            assert_eq!(seconds(text), Ok(length), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in [
            "",
            "1",
            "h",
            "1h 30m",
            "1d",
            "1h-5m",
            ".s",
            "1.2.3s",
            "300y",
            "9999999999h",
            "٣s",
            "1e3s",
            "- 1s",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(
            parse_duration("90").expect_err("a refusal").to_string(),
            "duration: found `90`, expected a duration such as `90s`, `1h30m` or `1.5h`; \
             hint: a unit is missing: `h`, `m`, `s`, `ms`, `us` or `ns`"
        );
    }
}

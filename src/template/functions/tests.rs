use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::problem::Problem;
use crate::template::library::Library;
use crate::template::render::{Budget, Context};

const NOW: &str = "2026-11-30T17:00:00.5Z";

/// The value of an expression in a template, at `NOW` and with zeroes for entropy.
fn eval_with(expression: &str, context: Json) -> Result<Json, Problem> {
    eval_at(expression, context, NOW, [0; 32])
}

fn eval_at(expression: &str, context: Json, now: &str, entropy: [u8; 32]) -> Result<Json, Problem> {
    let sources =
        BTreeMap::from([("hook/sync.yaml".to_string(), format!("value: {{{{ {expression} }}}}\n"))]);
    let library = Library::compile("hooks", sources).expect("an expression");
    let mut given = Context::new(now.parse().expect("a time"), entropy);
    for (name, value) in context.as_object().expect("names") {
        given.set(name, value.clone());
    }
    let documents = library.render(&["hook/sync.yaml".to_string()], given, &Budget::default())?;
    Ok(documents[0].value["value"].clone())
}

fn eval(expression: &str) -> Json {
    eval_with(expression, json!({})).unwrap_or_else(|problem| panic!("{}", problem.page()))
}

/// A problem in one line, without its place.
fn line(problem: Problem) -> String {
    Problem { place: None, ..problem }.to_string()
}

fn refusal(expression: &str) -> String {
    line(eval_with(expression, json!({})).expect_err(expression))
}

mod arguments {
    use super::*;

    #[test]
    fn go_by_position_or_by_name_and_as_a_filter() {
        let after = "after=\"2026-11-30T17:00:00Z\"";
        let expected = json!("2026-12-01T06:00:00Z");
        assert_eq!(eval(&format!("cron_next('0 7 * * *', {after}, zone='Europe/Berlin')")), expected);
        assert_eq!(eval("cron_next('0 7 * * *', '2026-11-30T17:00:00Z', 'Europe/Berlin')"), expected);
        assert_eq!(eval(&format!("'0 7 * * *' | cron_next({after}, zone='Europe/Berlin')")), expected);
        assert_eq!(
            eval(&format!("cron_next(schedule='0 7 * * *', zone='Europe/Berlin', {after})")),
            expected
        );
    }

    #[test]
    fn null_for_an_optional_one_is_nothing() {
        assert_eq!(
            eval("cron_next('@daily', '2026-11-30T17:00:00Z', zone=none)"),
            json!("2026-12-01T00:00:00Z")
        );
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        assert_eq!(
            refusal("cron_next('@daily', zome='UTC')"),
            "`cron_next` has no argument `zome`; expected: `schedule`, `after`, `zone`; hint: did you mean `zone`?"
        );
        assert_eq!(
            refusal("dns_name('a', parts='b')"),
            "`dns_name` has no argument `parts`; expected: `max`"
        );
    }

    #[test]
    fn too_many_twice_and_too_few_are_refused() {
        assert_eq!(
            refusal("sha256('a', 'b')"),
            "`sha256` is given too many arguments; found: 2; expected: at most 1: `value`"
        );
        assert_eq!(refusal("sha256('a', value='b')"), "`sha256` is given its argument `value` twice");
        assert_eq!(
            refusal("duration()"),
            "`duration` needs its argument `text`; found: nothing; \
             expected: a duration such as `90s`, `1h30m` or `1.5h`"
        );
    }

    #[test]
    fn another_type_is_refused_by_its_name() {
        assert_eq!(
            refusal("timestamp(5)"),
            "`timestamp` cannot read its argument `time`; found: a number; \
             expected: a time such as `2026-11-30T17:00:00Z`"
        );
        assert_eq!(
            refusal("timestamp(none)"),
            "`timestamp` cannot read its argument `time`; found: null; \
             expected: a time such as `2026-11-30T17:00:00Z`"
        );
        assert_eq!(
            refusal("b64encode({'a': 1})"),
            "`b64encode` cannot read its argument `value`; found: a map; expected: text, a number, true or false; \
             hint: make text of it first: `| to_json`"
        );
    }
}

mod schedules {
    use super::*;

    #[test]
    fn a_fault_names_the_field_of_the_schedule() {
        assert_eq!(
            refusal("cron_next('60 * * * *', '2026-11-30T17:00:00Z')"),
            "`cron_next` cannot read its argument `schedule`: minute; found: `60`; expected: 0 to 59"
        );
        assert_eq!(
            refusal("cron_slots('@daily', '2026-11-30T17:00:00Z', zone='berlin')"),
            "`cron_slots` cannot read its argument `zone`; found: `berlin`; \
             expected: an IANA name such as `Europe/Berlin` or `UTC`; hint: did you mean `Europe/Berlin`?"
        );
    }

    #[test]
    fn a_due_slot_needs_the_last_run() {
        assert_eq!(
            refusal("cron_due('@daily', last=none)"),
            "`cron_due` cannot read its argument `last`; found: null; expected: the time of the last run; \
             hint: before the first run, give `parent.metadata.creationTimestamp`"
        );
        assert_eq!(
            refusal("cron_due('@daily')"),
            "`cron_due` needs its argument `last`; found: nothing; expected: the time of the last run; \
             hint: before the first run, give `parent.metadata.creationTimestamp`"
        );
    }

    #[test]
    fn an_interval_has_no_previous_slot() {
        assert_eq!(
            refusal("cron_previous('@every 1h', '2026-11-30T17:00:00Z')"),
            "`cron_previous` cannot read its argument `schedule`; found: `@every`, which counts from the last run; \
             expected: a schedule with slots of its own, such as `0 7 * * *`; hint: `cron_due` with `last` works for both"
        );
    }

    #[test]
    fn an_error_is_an_answer_whatever_the_schedule_is() {
        assert_eq!(eval("cron_error('@daily')"), Json::Null);
        assert_eq!(eval("cron_error('@daily', zone='UTC')"), Json::Null);
        assert_eq!(
            eval("cron_error(none)"),
            json!("schedule: found null, expected text such as `0 7 * * *`")
        );
        assert_eq!(
            eval("cron_error(5)"),
            json!("schedule: found a number, expected text such as `0 7 * * *`")
        );
        assert_eq!(
            eval("cron_error('@daily', zone=[])"),
            json!("time zone: found a list, expected text such as `Europe/Berlin`")
        );
    }

    #[test]
    fn a_preview_is_bounded() {
        assert_eq!(
            refusal("cron_slots('@daily', '2026-11-30T17:00:00Z', count=1001)"),
            "`cron_slots` cannot read its argument `count`; found: 1001; expected: a whole number from 1 to 1000"
        );
        assert_eq!(
            eval("cron_slots('@daily', '9999-12-29T12:00:00Z', count=9)"),
            json!(["9999-12-30T00:00:00Z"])
        );
    }
}

mod times {
    use super::*;

    #[test]
    fn times_are_read_as_rfc_3339_and_written_in_utc() {
        assert_eq!(eval("timestamp('1969-12-31T23:59:59.5Z')"), json!(-1));
        assert_eq!(eval("time_add('2026-11-30T18:00:00+01:00', '1h')"), json!("2026-11-30T18:00:00Z"));
        assert_eq!(eval("time_add('2026-11-30T18:00:00Z', '250ms')"), json!("2026-11-30T18:00:00.25Z"));
        assert_eq!(eval("time_add('2026-11-30T18:00:00Z', -0.5)"), json!("2026-11-30T17:59:59.5Z"));
        assert_eq!(eval("rfc3339(1796058000.25)"), json!("2026-11-30T17:00:00.25Z"));
    }

    #[test]
    fn other_forms_of_a_time_are_refused() {
        let found = "`timestamp` cannot read its argument `time`; found: ";
        let expected = "; expected: a time such as `2026-11-30T17:00:00Z`";
        for (text, hint) in [
            ("2026-11-30", "; hint: a date alone is no time; add one, such as `T00:00:00Z`"),
            ("2026-11-30T17:00:00", "; hint: add `Z` for UTC or an offset such as `+02:00`"),
            ("2026-11-30 17:00:00Z", ""),
            ("2026-11-30T17:00Z", ""),
            ("2026-02-30T17:00:00Z", ""),
            ("2026-11-30T25:00:00Z", ""),
            ("2026-11-30T17:00:00.Z", ""),
            ("2026-11-30T17:00:00Z[UTC]", ""),
            ("tomorrow", ""),
            ("", ""),
            ("２０２６-11-30", ""),
        ] {
            assert_eq!(refusal(&format!("timestamp('{text}')")), format!("{found}`{text}`{expected}{hint}"));
        }
    }

    #[test]
    fn seconds_are_whole_where_they_are() {
        assert_eq!(eval("duration('1h30m')"), json!(5400));
        assert_eq!(eval("duration('250ms')"), json!(0.25));
        assert_eq!(eval("seconds_between('2026-11-30T18:00:00Z', '2026-11-30T17:00:00Z')"), json!(-3600));
    }

    #[test]
    fn the_last_time_is_told() {
        let page = refusal("timestamp('9999-12-31T23:59:59Z')");
        assert!(page.contains("the last time is `9999-12-30T22:00:00Z`"), "{page}");
        assert_eq!(eval("rfc3339(timestamp('9999-12-30T22:00:00Z'))"), json!("9999-12-30T22:00:00Z"));
    }

    #[test]
    fn no_calendar_and_no_number_overflows() {
        let outside = "cannot write a time before the year 0 or after 9999-12-30T22:00:00Z";
        assert_eq!(refusal("time_add('9999-12-30T00:00:00Z', '2000000h')"), format!("`time_add` {outside}"));
        assert_eq!(refusal("time_add('0000-01-01T00:00:00Z', -1)"), format!("`time_add` {outside}"));
        assert_eq!(refusal("rfc3339(9223372036854775807)"), format!("`rfc3339` {outside}"));
        assert_eq!(refusal("rfc3339(1e17)"), format!("`rfc3339` {outside}"));
        let number = "cannot read its argument";
        assert!(refusal("rfc3339(1e300)").starts_with(&format!("`rfc3339` {number} `seconds`; found: ")));
        assert!(refusal("time_add('2026-11-30T17:00:00Z', 1e300)").starts_with("`time_add` cannot read"));
        assert!(
            refusal("duration('9999999999999h')")
                .starts_with("`duration` cannot read its argument `text`; found")
        );
        assert_eq!(
            eval("seconds_between('0000-01-01T00:00:00Z', '9999-12-30T22:00:00Z')"),
            json!(315_569_426_400_i64)
        );
    }
}

mod names {
    use super::*;

    fn is_label(name: &str, max: usize) -> bool {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        edge(name.chars().next()) && edge(name.chars().last()) && name.chars().all(inner) && name.len() <= max
    }

    #[test]
    fn a_good_name_stays() {
        assert_eq!(eval("dns_name('backup', 'shop', 1796058000)"), json!("backup-shop-1796058000"));
        let longest = "a".repeat(63);
        assert_eq!(eval(&format!("dns_name('{longest}')")), json!(longest));
    }

    #[test]
    fn a_changed_name_is_marked_so_that_no_two_meet() {
        let names: Vec<Json> = ["'a.b'", "'a-b'", "'a_b'", "'A-B'", "'-a-b'", "'a-b-'", "'ä-b'"]
            .iter()
            .map(|text| eval(&format!("dns_name({text})")))
            .collect();
        for (index, name) in names.iter().enumerate() {
            assert!(is_label(name.as_str().expect("text"), 63), "{name}");
            assert!(!names[..index].contains(name), "{name} twice");
        }
        assert_eq!(names[1], "a-b");
    }

    #[test]
    fn a_long_name_is_cut_to_its_limit() {
        let cut = eval(&format!("dns_name('{}-x', '{}', max=52)", "a".repeat(42), "b".repeat(40)));
        assert_eq!(cut, json!(format!("{}-a121b09b", "a".repeat(42))));
    }

    #[test]
    fn nothing_and_no_text_are_refused() {
        assert_eq!(
            refusal("dns_name()"),
            "`dns_name` cannot make a name of nothing; expected: at least one part that is not empty"
        );
        assert_eq!(
            refusal("dns_name('a', 1.5)"),
            "`dns_name` cannot read its argument `parts`; found: a number; expected: text or a whole number"
        );
        assert_eq!(
            refusal("dns_name('a', max=9)"),
            "`dns_name` cannot read its argument `max`; found: 9; expected: a whole number from 10 to 253"
        );
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn any_text_makes_a_label(text in ".{1,80}", max in 10usize..=253) {
            let name = crate::template::functions::name::fitted(&text, max);
            proptest::prop_assert!(is_label(&name, max), "{name}");
        }
    }
}

mod quantities {
    use super::*;

    #[test]
    fn amounts_are_compared_not_texts() {
        assert_eq!(eval("quantity_compare('1000m', 1)"), json!(0));
        assert_eq!(eval("quantity_compare('10Gi', '9Gi')"), json!(1));
        assert_eq!(eval("quantity_compare('0.5', '600m')"), json!(-1));
        assert_eq!(eval("quantity_compare(0.5, '500m')"), json!(0));
        assert_eq!(eval("quantity_add('1Gi', '1Gi')"), json!("2Gi"));
        assert_eq!(eval("quantity_sub('1Gi', '2Gi')"), json!("-1Gi"));
        assert_eq!(eval("quantity_value('10Gi')"), json!(10_737_418_240_u64));
        assert_eq!(eval("quantity_value('500m')"), json!(0.5));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        assert!(
            refusal("quantity_value('10 Gi')").starts_with(
                "`quantity_value` cannot read its argument `quantity`; found: `10 Gi`; \
                 expected: a quantity such as `500m` or `1.5Gi`; hint: "
            ),
            "{}",
            refusal("quantity_value('10 Gi')")
        );
        assert!(refusal("quantity_add(true, 1)").contains("found: true or false"));
        assert!(refusal("quantity_add('90000000000E', '90000000000E')").contains("large"));
    }
}

mod encodings {
    use super::*;

    // B55
    #[test]
    fn scalars_are_encoded_as_they_are_written() {
        assert_eq!(eval("b64encode(5)"), json!("NQ=="));
        assert_eq!(eval("b64encode('5')"), json!("NQ=="));
        assert_eq!(eval("b64encode(10000000)"), eval("b64encode('10000000')"));
        assert_eq!(eval("b64encode(6 / 2)"), eval("b64encode('3')"));
        assert_eq!(eval("b64encode(true)"), eval("b64encode('true')"));
        assert_eq!(eval("b64encode('two\nlines\n')"), json!("dHdvCmxpbmVzCg=="));
        assert_eq!(eval("'NQ==' | b64encode"), json!("TlE9PQ=="), "nothing guesses what is encoded already");
        assert_eq!(
            eval("sha256('')"),
            json!("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        );
    }

    #[test]
    fn base64_comes_back_or_is_refused_without_showing_it() {
        assert_eq!(eval("b64decode('dHdv\nCmxpbmVz\n')"), json!("two\nlines"));
        assert_eq!(
            refusal("b64decode('//79')"),
            "`b64decode` cannot read its argument `text`; found: bytes that are not UTF-8; expected: base64 of text; \
             hint: pass such bytes on as they are, encoded"
        );
        let broken = refusal("b64decode('c2VjcmV0IQ')");
        assert!(
            broken.starts_with("`b64decode` cannot read its argument `text`; found: ")
                && !broken.contains("c2V")
        );
    }

    #[test]
    fn json_and_yaml_come_back_as_they_were() {
        let odd = json!({
            "texts": ["no", "0755", "1e3", "1_000", "0o17", "12:30", "2026-11-30", "null", "~", "", " a ", "#x", "a: b", "- c",
                "two\nlines\n", "\ttab", "{", "*x", "&y", "!z", "%", "@", "`", "'", "\"", "\\", "é", "\u{2028}", "\u{7}", "=", "<<", ".inf",
                "|", ">", "---", "...", "on", "Y", "+1", "0x10", "1.", ".5"],
            "no": [null, true, 0, -1, 1.5, 18446744073709551615u64, 9007199254740993i64, 1e300],
            "deep": {"": {"1": []}, "empty": {}, "a b": "c"},
        });
        let back = |expression: &str| eval_with(expression, json!({"request": {"odd": odd}})).expect("data");
        assert_eq!(back("request.odd | to_json | from_json"), odd);
        assert_eq!(back("request.odd | to_yaml | from_yaml"), odd);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn any_text_comes_back_from_yaml(text in "[-+0-9a-zA-Z_.:~!&*#|>'\"%@`{}, \n\t\u{80}-\u{ff}\u{2028}]{0,12}", key in "\\PC{1,8}") {
            let data = json!({&key: [&text, {&text: 1}]});
            let back = eval_with("request | to_yaml | from_yaml", json!({"request": data.clone()}));
            proptest::prop_assert_eq!(back.map_err(line), Ok(data));
        }
    }

    #[test]
    fn text_that_is_no_json_or_yaml_is_refused_with_its_line() {
        assert_eq!(
            refusal("from_json('{\"a\": 1,\\n}')"),
            "`from_json` cannot read its argument `text`; found: trailing comma at line 2 column 1; \
             expected: one JSON value"
        );
        assert_eq!(
            refusal("from_yaml('a: 1\\n---\\nb: 2')"),
            "`from_yaml` cannot read its argument `text`; found: 2 documents; expected: one YAML document"
        );
        assert_eq!(eval("from_yaml('')"), Json::Null);
        assert!(
            refusal("from_yaml('a: [')")
                .starts_with("`from_yaml` cannot read its argument `text`; found: line 1")
        );
    }

    #[test]
    fn a_shell_reads_the_quoted_text_as_it_is() {
        let texts = [
            "plain",
            "",
            "a b",
            "it's",
            "''",
            "$(reboot)",
            "`x`",
            "\\",
            "a\nb",
            "-n",
            "é",
            "*",
            "!x",
            "\"",
            "&;|<>",
        ];
        for text in texts {
            let quoted =
                eval_with("shell_quote(request.text)", json!({"request": {"text": text}})).expect("text");
            let script = format!("printf %s {}", quoted.as_str().expect("text"));
            let shell =
                std::process::Command::new("/bin/sh").arg("-c").arg(script).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&shell.stdout), text);
        }
        assert_eq!(eval("shell_quote(3306)"), json!("3306"), "a plain word stays");
        assert_eq!(
            refusal("shell_quote('a\\u0000b')"),
            "`shell_quote` cannot read its argument `value`; found: a NUL character; \
             expected: text that a shell word can hold"
        );
    }
}

mod versions {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        for (a, b, order) in [
            ("'8.0'", "'8.0.0'", 0),
            ("'v1.2'", "'1.10'", -1),
            ("14", "'14.0'", 0),
            ("'16'", "15", 1),
            ("'1.0.0-rc.2'", "'1.0.0-rc.10'", -1),
            ("'1.0.0-rc.1'", "'1.0.0'", -1),
            ("'1.0-alpha'", "'1.0-alpha.1'", -1),
            ("'1.0.0+build.1'", "'1.0.0+build.2'", 0),
            ("'08.4'", "'8.4'", 0),
        ] {
            assert_eq!(eval(&format!("semver_compare({a}, {b})")), json!(order), "{a} {b}");
        }
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in
            ["", "v", "1.2.3.4", "1..2", "latest", "1.2-", "1.x", "-1", "99999999999999999999", "1.0.0-a_b"]
        {
            assert_eq!(
                refusal(&format!("semver_compare('{text}', '1')")),
                format!(
                    "`semver_compare` cannot read its argument `a`; found: `{text}`; \
                     expected: a version such as `8.0.36`, `v1.2` or `14`"
                )
            );
        }
        assert_eq!(
            refusal("semver_compare(5.7, '8.0')"),
            "`semver_compare` cannot read its argument `a`; found: a number; \
             expected: a version such as `8.0.36`, `v1.2` or `14`; \
             hint: write it as text: as a number, `1.10` is the same as `1.1`"
        );
    }
}

mod conditions {
    use super::*;

    fn parent() -> Json {
        json!({
            "metadata": {"generation": 7},
            "status": {"conditions": [
                {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-01T00:00:00Z"},
                {"type": "Old", "status": "True", "lastTransitionTime": "2026-10-01T00:00:00Z"},
            ]},
        })
    }

    fn with_parent(expression: &str) -> Json {
        let context = json!({"parent": parent()});
        eval_with(expression, context).unwrap_or_else(|problem| panic!("{}", problem.page()))
    }

    #[test]
    fn the_transition_time_stays_while_the_status_does() {
        let same = with_parent("condition('Ready', 'False', 'Waiting', 'for two')");
        assert_eq!(
            same,
            json!({
                "type": "Ready", "status": "False", "reason": "Waiting", "message": "for two",
                "lastTransitionTime": "2026-11-01T00:00:00Z", "observedGeneration": 7,
            })
        );
        let changed = with_parent("condition('Ready', 'True', 'AllThere')");
        assert_eq!(
            changed["lastTransitionTime"], "2026-11-30T17:00:00Z",
            "in whole seconds, as Kubernetes has it"
        );
        assert_eq!(changed["message"], "");
    }

    #[test]
    fn a_parent_without_a_status_or_a_generation_is_no_error() {
        for context in
            [json!({}), json!({"parent": null}), json!({"parent": {"status": {"conditions": "odd"}}})]
        {
            let made = eval_with("condition('Ready', true, 'AllThere')", context).expect("a condition");
            assert_eq!(made["lastTransitionTime"], "2026-11-30T17:00:00Z");
            assert_eq!(made.get("observedGeneration"), None);
        }
    }

    #[test]
    fn another_list_may_be_the_previous_one() {
        let previous = "[{'type': 'Ready', 'status': 'True', 'lastTransitionTime': '2026-01-01T00:00:00Z'}]";
        let made = with_parent(&format!("condition('Ready', true, 'AllThere', previous={previous})"));
        assert_eq!(made["lastTransitionTime"], "2026-01-01T00:00:00Z");
        let none = with_parent("condition('Ready', false, 'AllThere', previous=[])");
        assert_eq!(none["lastTransitionTime"], "2026-11-30T17:00:00Z");
        assert_eq!(
            refusal("condition('Ready', true, 'AllThere', previous=5)"),
            "`condition` cannot read its argument `previous`; found: a number; expected: a list of conditions"
        );
    }

    #[test]
    fn what_kubernetes_would_refuse_is_refused() {
        assert_eq!(
            refusal("condition('Ready', 'true', 'AllThere')"),
            "`condition` cannot read its argument `status`; found: `true`; expected: `True`, `False` or `Unknown`; \
             hint: did you mean `True`?"
        );
        for reason in ["", "all there", "allThere", "All-there", "9"] {
            assert_eq!(
                refusal(&format!("condition('Ready', 'True', '{reason}')")),
                format!(
                    "`condition` cannot read its argument `reason`; found: `{reason}`; \
                     expected: a reason in CamelCase such as `WaitingForReplicas`"
                )
            );
        }
        assert_eq!(
            refusal("condition('Is Ready', 'True', 'AllThere')"),
            "`condition` cannot read its argument `type`; found: `Is Ready`; expected: a condition type such as `Ready`"
        );
        assert!(refusal("condition('Ready', 'True')").starts_with("`condition` needs its argument `reason`"));
    }

    #[test]
    fn a_message_is_as_long_as_kubernetes_takes() {
        let made = eval_with(
            "condition('Ready', true, 'AllThere', request.text)",
            json!({"request": {"text": "é".repeat(40_000)}}),
        );
        assert_eq!(made.expect("a condition")["message"], "é".repeat(32_768));
    }

    #[test]
    fn merged_conditions_keep_the_others_and_their_order() {
        let types = |list: Json| -> Vec<(String, String)> {
            let text = |value: &Json| value.as_str().expect("text").to_string();
            list.as_array()
                .expect("a list")
                .iter()
                .map(|one| (text(&one["type"]), text(&one["status"])))
                .collect()
        };
        let made =
            with_parent("merge_conditions([condition('New', true, 'Is'), condition('Old', false, 'Was')])");
        let pair = |name: &str, status: &str| (name.to_string(), status.to_string());
        assert_eq!(types(made), [pair("Ready", "False"), pair("Old", "False"), pair("New", "True")]);
        let alone = with_parent("merge_conditions([condition('New', true, 'Is')], previous=[])");
        assert_eq!(types(alone), [pair("New", "True")]);
        assert_eq!(
            refusal("merge_conditions([{'status': 'True'}])"),
            "`merge_conditions` cannot read its argument `conditions`; found: a map without a `type` in the list; \
             expected: a list of conditions"
        );
    }
}

mod random {
    use super::*;
    use crate::template::functions::random::hmac;

    fn drawn(expression: &str, entropy: u8) -> String {
        let value = eval_at(expression, json!({}), NOW, [entropy; 32]).expect("text");
        value.as_str().expect("text").to_string()
    }

    #[test]
    fn the_hash_is_the_one_of_the_standard() {
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(hmac(&[0x0b; 20], &[b"Hi ", b"There"])),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            "RFC 4231, case 1"
        );
    }

    #[test]
    fn the_same_entropy_and_label_give_the_same_text() {
        assert_eq!(drawn("random_string(24)", 1), drawn("random_string(24)", 1));
        assert_ne!(drawn("random_string(24)", 1), drawn("random_string(24)", 2));
        assert_ne!(drawn("random_string(24)", 1), drawn("random_string(24, label='b')", 1));
    }

    #[test]
    fn every_character_of_the_alphabet_comes_and_no_other() {
        let text = drawn("random_string(512)", 1);
        assert!(text.len() == 512 && text.chars().all(|c| c.is_ascii_alphanumeric()), "{text}");
        let digits = drawn("random_string(512, alphabet='0123456789')", 1);
        for digit in '0'..='9' {
            let count = digits.chars().filter(|c| *c == digit).count();
            assert!((25..=80).contains(&count), "{digit} comes {count} times of 512");
        }
        assert!(drawn("random_string(40, alphabet='äß')", 1).chars().all(|c| "äß".contains(c)));
    }

    #[test]
    fn lengths_and_alphabets_are_bounded() {
        assert_eq!(
            refusal("random_string(0)"),
            "`random_string` cannot read its argument `length`; found: 0; expected: a whole number from 1 to 512"
        );
        assert_eq!(
            refusal("random_string(8, alphabet='aba')"),
            "`random_string` cannot read its argument `alphabet`; found: `a` twice; \
             expected: text of 2 to 256 different characters"
        );
        assert!(refusal("random_string(8, alphabet='a')").contains("found: 1 character;"));
        assert!(refusal("random_string('8')").contains("found: text;"));
    }
}

#[test]
fn fail_ends_with_the_message_of_the_author() {
    assert_eq!(refusal("fail('replicas must be odd')"), "replicas must be odd");
}

#[test]
fn seconds_until_keeps_the_fraction_that_now_has() {
    assert_eq!(eval("seconds_until('2026-11-30T18:00:00Z')"), json!(3599.5));
    assert_eq!(eval("seconds_until('2026-11-30T16:00:00.5Z')"), json!(-3600));
}

#[test]
fn slots_count_from_now() {
    assert_eq!(eval("cron_next('@hourly')"), json!("2026-11-30T18:00:00Z"));
    assert_eq!(eval("cron_previous('@hourly')"), json!("2026-11-30T17:00:00Z"));
    assert_eq!(eval("cron_due('* * * * *', last='2026-11-27T17:00:00Z')"), json!("2026-11-30T17:00:00Z"));
}

mod any_arguments {
    use proptest::prelude::*;

    use super::*;
    use crate::template::functions::builtins;

    fn a_value() -> impl Strategy<Value = Json> {
        let texts = [
            "",
            "0 7 * * *",
            "@every 2562047h",
            "2026-11-30T17:00:00Z",
            "9999-12-30T22:00:00Z",
            "0000-01-01T00:00:00Z",
        ];
        let more = [
            "Europe/Berlin",
            "1h",
            "-2562047h47m16s",
            "9E",
            "1e999",
            "-9223372036854775808",
            "True",
            "Ready",
            "v1.2",
            "[1",
        ];
        let numbers = [
            json!(0),
            json!(-1),
            json!(i64::MIN),
            json!(i64::MAX),
            json!(u64::MAX),
            json!(0.1),
            json!(1e300),
            json!(-1e19),
        ];
        prop_oneof![
            4 => prop::sample::select([texts.as_slice(), more.as_slice()].concat()).prop_map(|text| json!(text)),
            2 => prop::sample::select(numbers.to_vec()),
            1 => ".{0,30}".prop_map(|text| json!(text)),
            1 => prop::sample::select(vec![json!(null), json!(true), json!([]), json!({}), json!([{"type": "Ready"}])]),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn end_in_a_value_or_a_problem(
            function in prop::sample::select(builtins().map(|builtin| builtin.name).collect::<Vec<_>>()),
            values in prop::collection::vec(a_value(), 0..4),
        ) {
            let names = ["a", "b", "c"];
            let request: Json = names.iter().map(|name| name.to_string()).zip(values.clone()).collect();
            let arguments = names[..values.len()].iter().map(|name| format!("request.{name}")).collect::<Vec<_>>();
            let _ = eval_with(&format!("{function}({})", arguments.join(", ")), json!({"request": request}));
        }
    }
}

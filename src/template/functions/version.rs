//! Versions of software, compared by semantic versioning's order.

use minijinja::value::Value;
use minijinja::{Error, State};
use semver::{BuildMetadata, Prerelease, Version};

use crate::template::fault::Fault;
use crate::template::functions::arguments::{Arguments, Builtin, Shape, quoted};
use crate::template::value::{kind, to_text};

pub(super) const BUILTINS: [Builtin; 1] =
    [Builtin { name: "semver_compare", parameters: &["a", "b"], shape: Shape::Fixed, call: semver_compare }];

fn semver_compare(_: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let order = read(arguments, "a")?.cmp_precedence(&read(arguments, "b")?);
    Ok((order as i8).into())
}

fn read(arguments: &Arguments, name: &str) -> Result<Version, Fault> {
    const EXPECTED: &str = "a version such as `8.0.36`, `v1.2` or `14`";
    let value = arguments.required(name, EXPECTED)?;
    let text =
        value.as_str().map(str::to_string).or_else(|| to_text(value).ok().filter(|_| value.is_integer()));
    let Some(text) = text else {
        let fault = arguments.refuse(name).found(kind(value)).expected(EXPECTED);
        return Err(match value.is_number() {
            true => fault.hint("write it as text: as a number, `1.10` is the same as `1.1`"),
            false => fault,
        });
    };
    parse(&text).ok_or_else(|| arguments.refuse(name).found(quoted(&text)).expected(EXPECTED))
}

/// One to three numbers, missing ones are zero; then a pre-release and build metadata as semantic versioning has them.
fn parse(text: &str) -> Option<Version> {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let (text, build) = text.split_once('+').unwrap_or((text, ""));
    let (numbers, pre) = text.split_once('-').map_or((text, None), |(numbers, pre)| (numbers, Some(pre)));
    let number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten()
    };
    let numbers: Vec<u64> = numbers.split('.').map(number).collect::<Option<_>>()?;
    BuildMetadata::new(build).ok()?;
    let pre = match pre {
        Some("") => return None,
        Some(pre) => Prerelease::new(pre).ok()?,
        None => Prerelease::EMPTY,
    };
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
    let version = Version { pre, ..Version::new(at(0), at(1), at(2)) };
    (numbers.len() <= 3).then_some(version)
}

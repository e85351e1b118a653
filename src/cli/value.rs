//! Values as they are typed behind flags. What cannot be read is told with an example of what can.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;

use crate::author::case;
use crate::object::name::Key;
use crate::object::selector::Selector;
use crate::object::validity::dns_subdomain;
use crate::problem::nearest;
use crate::schedule::duration::parse_duration;

/// `20s`, `1h30m`; never below zero.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    Duration::try_from(duration).map_err(|_| format!("expected a duration of zero or more, found `{text}`"))
}

/// `true`, `false`, and Go's other words for them.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected `true` or `false`".into()),
    }
}

/// A whole number of a range.
pub(super) fn whole<N: TryFrom<u64>>(
    range: RangeInclusive<u64>,
    example: u64,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse::<u64>().ok().filter(|number| range.contains(number));
        number.and_then(|number| N::try_from(number).ok()).ok_or_else(|| {
            let bounds = match (range.start(), range.end()) {
                (0, &u64::MAX) => String::new(),
                (start, &u64::MAX) => format!(" of at least {start}"),
                (start, end) => format!(" from {start} to {end}"),
            };
            format!("expected a whole number{bounds}, such as `{example}`")
        })
    }
}

/// A point in time, with its zone.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "expected a time with its zone, such as `2026-11-30T17:00:00Z`".into())
}

/// Where to listen: an address or a name, and a port; `:8090` is that port of every address.
pub(super) fn address(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let expected = "expected an address and a port, such as `:8090`, `127.0.0.1:8090` or `localhost:8090`";
    port.map(|_| text.into()).ok_or_else(|| expected.into())
}

/// A service that is reached over HTTP.
pub(super) fn url(text: &str) -> Result<String, String> {
    let host = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    if host.is_none_or(|host| host.is_empty() || host.starts_with('/')) {
        return Err("expected a URL, such as `http://hooks.operators.svc:8090`".into());
    }
    Ok(text.into())
}

/// The name of an object.
pub(super) fn name(text: &str) -> Result<String, String> {
    dns_subdomain(text).map_err(|why| format!("it {why}; expected a name such as `shop-2`"))?;
    Ok(text.into())
}

/// The name of a namespace.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    dns_subdomain(text).map_err(|why| format!("it {why}; expected a namespace such as `default`"))?;
    Ok(text.into())
}

/// The name of an object and its namespace.
pub(super) fn key(text: &str) -> Result<Key, String> {
    let expected = "expected a namespace, `/` and a name, such as `operators/syncwright`";
    let (namespace, name) = text.split_once('/').ok_or(expected)?;
    dns_subdomain(namespace).map_err(|why| format!("the namespace `{namespace}` {why}; {expected}"))?;
    dns_subdomain(name).map_err(|why| format!("the name `{name}` {why}; {expected}"))?;
    Ok(Key::new(namespace, name))
}

/// Labels that are asked for, as `kubectl get -l` has them.
pub(super) fn selector(text: &str) -> Result<Selector, String> {
    Selector::from_text(text)
        .map_err(|why| format!("{why}; expected a selector such as `team=web,tier notin (test,demo)`"))
}

/// Read where nobody says another file.
pub(super) const USUAL_CONTROLLERS: &str = "controllers.yaml";

/// The file of definitions: the one that was named, or the usual one where it is there.
pub(super) fn definitions(named: Option<PathBuf>) -> anyhow::Result<Option<PathBuf>> {
    let usual = PathBuf::from(USUAL_CONTROLLERS);
    // A link that leads nowhere is meant to be there.
    let Some(file) = named.or(usual.symlink_metadata().is_ok().then_some(usual)) else { return Ok(None) };
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(Some(file)),
        Ok(_) => bail!("`{}` is no file; expected: a file with definitions", file.display()),
        Err(error) => bail!("`{}` cannot be read: {error}", file.display()),
    }
}

/// Hooks by the names of their folders below `root`; people also type the way to the folder.
pub(super) fn hooks(root: &Path, typed: &[String]) -> anyhow::Result<Vec<String>> {
    let known: Vec<String> =
        case::folders_in(root).unwrap_or_default().into_iter().map(|(name, _)| name).collect();
    let name = |typed: &String| {
        let way = Path::new(typed);
        let name = way.strip_prefix(root).unwrap_or(way).to_string_lossy().trim_matches('/').to_string();
        if known.contains(&name) {
            return Ok(name);
        }
        let near = nearest(&name, known.iter().map(String::as_str));
        match near {
            Some(near) => {
                bail!("there is no hook `{typed}` below `{}`; hint: did you mean `{near}`?", root.display())
            }
            None if known.is_empty() => {
                bail!("there is no hook below `{}`; hint: name the folder with --hooks", root.display())
            }
            None => bail!(
                "there is no hook `{typed}` below `{}`; expected: `{}`",
                root.display(),
                known.join("`, `")
            ),
        }
    };
    typed.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_below_zero_is_refused() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert!(duration("-1s").is_err());
        assert!(duration("5").is_err_and(|error| error.contains("a unit is missing")));
    }

    #[test]
    fn booleans_are_gos() {
        assert_eq!([boolean("T"), boolean("0")], [Ok(true), Ok(false)]);
        assert!(boolean("yes").is_err());
    }

    #[test]
    fn whole_numbers_keep_to_their_range() {
        let worker = whole::<u16>(1..=1024, 8);
        assert_eq!([worker("1"), worker("1024")], [Ok(1), Ok(1024)]);
        let refused = Err("expected a whole number from 1 to 1024, such as `8`".to_string());
        for wrong in ["0", "1025", "-1", "1.5", "many", ""] {
            assert_eq!(worker(wrong), refused, "{wrong}");
        }
        assert_eq!(whole::<u64>(0..=u64::MAX, 60)("7"), Ok(7));
    }

    #[test]
    fn addresses_have_a_port_and_urls_a_scheme() {
        for good in ["0.0.0.0:8090", "localhost:0", "[::1]:8090", ":8090"] {
            assert_eq!(address(good), Ok(good.to_string()));
        }
        for wrong in ["8090", ":", "localhost", "localhost:http", "a:99999"] {
            address(wrong).unwrap_err();
        }
        assert!(url("http://a:8090").is_ok() && url("https://a/b").is_ok());
        for wrong in ["a:8090", "http://", "http:///a", "ftp://a"] {
            url(wrong).unwrap_err();
        }
    }
}

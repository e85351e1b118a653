//! Which hosts are reached through a proxy, by the environment variables that HTTP clients heed.
//!
//! The rules are those of Go's clients, so that what works for Metacontroller works here: `HTTPS_PROXY` for `https`,
//! `HTTP_PROXY` for `http`, each in lower case too; `NO_PROXY` names hosts, domains, addresses and networks that are
//! reached directly. This machine itself never needs a proxy.

use std::net::IpAddr;

/// The proxies for `http` and `https`, as URLs, and what needs none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    http: Option<String>,
    https: Option<String>,
    direct: Vec<Direct>,
}

/// What is reached without a proxy.
#[derive(Clone, Debug, PartialEq)]
enum Direct {
    Everything,
    Network {
        address: IpAddr,
        bits: u8,
    },
    Address {
        address: IpAddr,
        port: Option<u16>,
    },
    /// A domain and what is below it; the domain itself too unless it was written with a dot before it.
    Domain {
        name: String,
        itself: bool,
        port: Option<u16>,
    },
}

impl Proxies {
    /// `variable` reads one of the environment's.
    pub(crate) fn new(variable: impl Fn(&str) -> Option<String>) -> Proxies {
        let read = |name: &str| {
            let text = variable(name).or_else(|| variable(&name.to_lowercase()))?;
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_string())
        };
        let url = |text: String| if text.contains("://") { text } else { format!("http://{text}") };
        let direct = read("NO_PROXY").unwrap_or_default();
        Proxies {
            http: read("HTTP_PROXY").map(url),
            https: read("HTTPS_PROXY").map(url),
            direct: direct.split(',').filter_map(|entry| Direct::parse(entry.trim())).collect(),
        }
    }

    /// The proxy's URL for a host, which is a name or an address without brackets.
    pub(crate) fn of(&self, tls: bool, host: &str, port: u16) -> Option<&str> {
        let proxy = if tls { self.https.as_deref() } else { self.http.as_deref() }?;
        let host = host.to_lowercase();
        let address: Option<IpAddr> = host.parse().ok();
        let here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        let direct = here || self.direct.iter().any(|direct| direct.is_for(&host, address, port));
        (!direct).then_some(proxy)
    }
}

impl Direct {
    fn parse(entry: &str) -> Option<Direct> {
        let entry = entry.to_lowercase();
        if entry == "*" {
            return Some(Direct::Everything);
        }
        if let Some((address, bits)) = entry.split_once('/') {
            let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
            let most = if address.is_ipv4() { 32 } else { 128 };
            return (bits <= most).then_some(Direct::Network { address, bits });
        }
        if let Ok(address) = entry.parse() {
            return Some(Direct::Address { address, port: None });
        }
        let (name, port) = match entry.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (entry.as_str(), None),
        };
        if let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse() {
            return Some(Direct::Address { address, port });
        }
        let below = name.strip_prefix("*.").or_else(|| name.strip_prefix('.'));
        let domain = below.unwrap_or(name);
        (!domain.is_empty()).then(|| Direct::Domain { name: domain.into(), itself: below.is_none(), port })
    }

    fn is_for(&self, host: &str, address: Option<IpAddr>, to_port: u16) -> bool {
        match self {
            Direct::Everything => true,
            Direct::Network { address: network, bits } => {
                address.is_some_and(|address| is_in(address, *network, *bits))
            }
            Direct::Address { address: named, port } => {
                address == Some(*named) && port.is_none_or(|port| port == to_port)
            }
            Direct::Domain { name, itself, port } => {
                let below = host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
                (below || (*itself && host == name)) && port.is_none_or(|port| port == to_port)
            }
        }
    }
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let cut = |address: u32| address.checked_shr(32 - u32::from(bits)).unwrap_or(0);
            cut(address.to_bits()) == cut(network.to_bits())
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let cut = |address: u128| address.checked_shr(128 - u32::from(bits)).unwrap_or(0);
            cut(address.to_bits()) == cut(network.to_bits())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::new(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn each_scheme_has_its_proxy_in_capitals_or_not() {
        let both = proxies(&[("HTTP_PROXY", "http://a:1"), ("https_proxy", " b:2 "), ("http_proxy", "c")]);
        assert_eq!(both.of(false, "hook.example", 80), Some("http://a:1"));
        assert_eq!(both.of(true, "hook.example", 443), Some("http://b:2"));
        let none = proxies(&[("HTTP_PROXY", "")]);
        assert_eq!((none.of(false, "hook.example", 80), none.of(true, "hook.example", 443)), (None, None));
    }

    #[test]
    fn this_machine_needs_no_proxy() {
        let all = proxies(&[("HTTP_PROXY", "a"), ("HTTPS_PROXY", "a")]);
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.10", "::1"] {
            assert_eq!(all.of(false, host, 80), None, "{host}");
        }
        assert!(all.of(false, "10.0.0.1", 80).is_some());
    }

    #[test]
    fn exceptions_are_domains_addresses_and_networks() {
        for (direct, reached, proxied) in [
            ("*", &["a.b", "10.0.0.1"][..], &[][..]),
            ("svc", &["svc", "a.svc", "A.SVC"], &["asvc", "svc.a"]),
            (".svc", &["a.svc", "a.b.svc"], &["svc", "asvc"]),
            ("*.svc", &["a.svc"], &["svc"]),
            ("10.0.0.0/8", &["10.1.2.3"], &["11.1.2.3", "a.b", "::2"]),
            ("0.0.0.0/0", &["10.1.2.3"], &["::2"]),
            ("fd00::/8", &["fd01::1"], &["fe01::1", "10.0.0.1"]),
            ("10.0.0.1, a.b:81 ,[fd00::1]:80,x:80", &["10.0.0.1", "fd00::1", "y.x"], &["a.b", "10.0.0.2"]),
            (",,:,a:b,/8", &[], &["a", "b"]),
        ] {
            let proxies = proxies(&[("HTTP_PROXY", "p"), ("NO_PROXY", direct)]);
            for host in reached {
                assert_eq!(proxies.of(false, host, 80), None, "{direct}: {host}");
            }
            for host in proxied {
                assert!(proxies.of(false, host, 80).is_some(), "{direct}: {host}");
            }
        }
    }
}

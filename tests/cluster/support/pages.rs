//! The pages that a controller has for machines: metrics and probes.

use std::collections::{BTreeMap, BTreeSet};

use controlplane::wait_until;

use super::controller::Controller;
use super::lab::SOON;

/// Flags for a free port each, which the log names.
pub const ANY_PORTS: [&str; 4] =
    ["--metrics-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"];

/// Where a controller's pages are.
pub struct Pages {
    metrics: String,
    probes: String,
}

/// The port of 127.0.0.1 in the first line of the log that has these words.
#[track_caller]
pub fn port_in_log(controller: &Controller, words: &str) -> String {
    wait_until(SOON, &format!("`{words}` is logged"), || {
        let log = controller.log();
        let line = log.lines().find(|line| line.contains(words));
        let rest = line.and_then(|line| line.split("127.0.0.1:").nth(1));
        rest.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>()).ok_or(log)
    })
}

/// Where it answers the API server.
#[track_caller]
pub fn webhook_port(controller: &Controller) -> String {
    port_in_log(controller, "listening for the API server")
}

/// One answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    pub status: u16,
    pub text: String,
}

/// Everything of one scrape: each sample by its name and labels as they were written.
#[derive(Debug)]
pub struct Scrape {
    samples: BTreeMap<String, f64>,
    /// The type of each family.
    pub families: BTreeMap<String, String>,
}

impl Pages {
    /// The pages of a controller that was started with `ANY_PORTS`.
    #[track_caller]
    pub fn of(controller: &Controller) -> Pages {
        let address = |what: &str| {
            let port = port_in_log(controller, &format!("serving {what}"));
            format!("http://127.0.0.1:{port}")
        };
        Pages { metrics: address("metrics"), probes: address("probes") }
    }

    pub fn probe(&self, path: &str) -> Page {
        get(&format!("{}{path}", self.probes))
    }

    #[track_caller]
    pub fn becomes_ready(&self) {
        wait_until(SOON, "it is ready", || match self.probe("/readyz") {
            Page { status: 200, text } if text == "ok" => Ok(()),
            page => Err(format!("{page:?}")),
        });
    }

    pub fn metrics_text(&self) -> String {
        get(&format!("{}/metrics", self.metrics)).text
    }

    #[track_caller]
    pub fn scrape(&self) -> Scrape {
        let page = get(&format!("{}/metrics", self.metrics));
        assert_eq!(page.status, 200);
        Scrape::read(&page.text)
    }

    /// Waits until one sample has this value.
    #[track_caller]
    pub fn counts(&self, sample: &str, value: f64) {
        wait_until(SOON, &format!("{sample} is {value}"), || {
            let scrape = self.scrape();
            if scrape.get(sample) == Some(value) { Ok(()) } else { Err(format!("{:#?}", scrape.samples)) }
        });
    }
}

impl Scrape {
    /// Reads the text format, and refuses what Prometheus would refuse.
    #[track_caller]
    fn read(text: &str) -> Scrape {
        let mut scrape = Scrape { samples: BTreeMap::new(), families: BTreeMap::new() };
        let mut helped = BTreeSet::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect("a name and its help");
                assert!(!words.is_empty() && helped.insert(name.to_owned()), "help twice or empty: {line}");
                continue;
            }
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, sort) = family.split_once(' ').expect("a name and its type");
                let known = scrape.families.insert(name.to_owned(), sort.to_owned());
                assert!(known.is_none(), "a family twice: {line}");
                continue;
            }
            let (sample, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: `{line}`"));
            let value = value.parse().unwrap_or_else(|_| panic!("no number: `{line}`"));
            assert!(scrape.family(sample).is_some(), "of no family: `{line}`");
            assert!(scrape.samples.insert(sample.to_owned(), value).is_none(), "a sample twice: `{line}`");
        }
        scrape
    }

    /// The family that a sample belongs to.
    pub fn family(&self, sample: &str) -> Option<&str> {
        let name = sample.split('{').next().unwrap_or_default();
        let suffixes = ["", "_bucket", "_sum", "_count"].into_iter();
        suffixes
            .filter_map(|suffix| name.strip_suffix(suffix))
            .find_map(|name| self.families.get_key_value(name).map(|(name, _)| name.as_str()))
    }

    pub fn get(&self, sample: &str) -> Option<f64> {
        self.samples.get(sample).copied()
    }

    pub fn samples(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(String::as_str)
    }

    /// The sum over a family's samples that have these labels.
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let is_meant = |sample: &str| {
            sample.split('{').next() == Some(name) && labels.iter().all(|label| sample.contains(label))
        };
        self.samples.iter().filter(|(sample, _)| is_meant(sample)).map(|(_, value)| value).sum()
    }
}

fn get(url: &str) -> Page {
    let client = reqwest::blocking::Client::builder().no_proxy().build().expect("a client can be made");
    let response = client.get(url).send().expect("the page is there");
    Page { status: response.status().as_u16(), text: response.text().expect("it is text") }
}

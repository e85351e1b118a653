//! What the environment says of traces, beyond what the crates below read of it themselves.

use std::time::Duration;

use http::Uri;

use crate::problem::Problem;

/// How long the collector may take to answer, unless the environment says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// Whom to send traces to.
#[derive(Debug, PartialEq)]
pub(super) struct Settings {
    /// The URL, with what is added to one that is for more than traces.
    pub endpoint: String,
    pub timeout: Duration,
    /// A PEM file with the authorities to trust instead of the system's.
    pub authorities: Option<String>,
    /// What it is that sends them, where the environment does not say.
    pub service: Option<&'static str>,
}

/// Whom to send traces to, where anybody, and what was found of no use. Without an endpoint nobody waits for them.
pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> (Option<Settings>, Vec<Problem>) {
    let variable =
        |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let of_traces = |name: &str| {
        let own = format!("OTEL_EXPORTER_OTLP_TRACES_{name}");
        let all = format!("OTEL_EXPORTER_OTLP_{name}");
        variable(&own).map(|text| (own, text)).or_else(|| variable(&all).map(|text| (all, text)))
    };
    if variable("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        return (None, Vec::new());
    }
    let Some((source, endpoint)) = of_traces("ENDPOINT") else { return (None, Vec::new()) };
    let mut problems = Vec::new();
    let mut heed = |problem: Option<Problem>| {
        let found = problem.is_some();
        problems.extend(problem);
        found
    };
    // It may hold a user, which nobody is to read.
    let no_url = (!is_url(&endpoint)).then(|| {
        Problem::new(format!("{source} is no URL")).expected("`http://HOST:PORT` or `https://HOST:PORT`")
    });
    let exporter = variable("OTEL_TRACES_EXPORTER");
    if exporter.as_deref() == Some("none") {
        return (None, problems);
    }
    let unknown_exporter =
        exporter.and_then(|found| one_of("OTEL_TRACES_EXPORTER", &found, &["otlp", "none"]));
    let protocol = of_traces("PROTOCOL").and_then(|(name, found)| {
        let problem = one_of(&name, &found, &["http/protobuf"])?;
        Some(problem.hint("collectors take it on port 4318"))
    });
    let compression =
        of_traces("COMPRESSION").and_then(|(name, found)| one_of(&name, &found, &["gzip", "none"]));
    if heed(no_url) | heed(unknown_exporter) | heed(protocol) | heed(compression) {
        return (None, problems);
    }
    heed(variable("OTEL_TRACES_SAMPLER").and_then(|found| one_of("OTEL_TRACES_SAMPLER", &found, &SAMPLERS)));
    let is_whole = source.contains("_TRACES_");
    let timeout = of_traces("TIMEOUT").and_then(|(_, text)| text.parse().ok()).map(Duration::from_millis);
    let has_name = variable("OTEL_SERVICE_NAME").is_some()
        || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|text| text.contains("service.name="));
    let settings = Settings {
        endpoint: if is_whole { endpoint } else { format!("{}/v1/traces", endpoint.trim_end_matches('/')) },
        timeout: timeout.unwrap_or(TIMEOUT),
        authorities: of_traces("CERTIFICATE").map(|(_, file)| file),
        service: (!has_name).then_some("syncwright"),
    };
    (Some(settings), problems)
}

fn is_url(text: &str) -> bool {
    let uri = text.parse::<Uri>();
    uri.is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
}

fn one_of(name: &str, found: &str, known: &[&str]) -> Option<Problem> {
    let listed: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
    let problem = || Problem::new(format!("{name} is `{found}`")).expected(listed.join(", "));
    (!known.contains(&found)).then(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> (Option<Settings>, Vec<String>) {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        };
        let (settings, problems) = read(variable);
        (settings, problems.iter().map(ToString::to_string).collect())
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");

    #[test]
    fn nobody_waits_for_traces_unless_an_endpoint_is_named() {
        for variables in [
            &[][..],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[("OTEL_TRACES_SAMPLER", "odd")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert_eq!(of(variables), (None, vec![]), "{variables:?}");
        }
    }

    #[test]
    fn endpoint_for_all_gets_the_path_of_traces_and_their_own_is_taken_as_it_is() {
        let all = Settings {
            endpoint: "http://collector:4318/v1/traces".into(),
            timeout: TIMEOUT,
            authorities: None,
            service: Some("syncwright"),
        };
        assert_eq!(of(&[ENDPOINT]), (Some(all), vec![]));
        let own = [
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces/in"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=mine"),
        ];
        let expected = Settings {
            endpoint: "https://traces/in".into(),
            timeout: Duration::from_millis(2500),
            authorities: Some("ca.pem".into()),
            service: None,
        };
        assert_eq!(of(&own), (Some(expected), vec![]));
    }

    #[test]
    fn endpoint_that_is_none_is_told_without_its_text() {
        for text in ["collector:4318", "http://user:hidden@host:4318 x", "ftp://host", "http://"] {
            let (settings, problems) = of(&[("OTEL_EXPORTER_OTLP_ENDPOINT", text)]);
            assert_eq!(settings, None, "{text}");
            assert_eq!(
                problems,
                [
                    "OTEL_EXPORTER_OTLP_ENDPOINT is no URL; expected: `http://HOST:PORT` or `https://HOST:PORT`"
                ],
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_spoken_here_is_told() {
        let (settings, problems) = of(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert_eq!(settings, None);
        assert_eq!(
            problems,
            ["OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`; expected: `http/protobuf`; \
              hint: collectors take it on port 4318"]
        );
        let (settings, problems) = of(&[ENDPOINT, ("OTEL_TRACES_SAMPLER", "half")]);
        assert!(settings.is_some());
        assert!(
            problems[0].starts_with("OTEL_TRACES_SAMPLER is `half`; expected: `always_on`"),
            "{problems:?}"
        );
    }
}

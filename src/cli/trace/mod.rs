//! Traces: whether anybody collects them, and how they come to an end.

#[cfg(feature = "otel")]
mod client;
#[cfg(feature = "otel")]
mod collector;
// It is tested with or without.
#[cfg(any(feature = "otel", test))]
mod settings;
#[cfg(feature = "otel")]
mod spans;

#[cfg(feature = "otel")]
pub(super) use collector::Traces;
#[cfg(not(feature = "otel"))]
pub(super) use without::Traces;

#[cfg(not(feature = "otel"))]
mod without {
    use tracing_subscriber::layer::Identity;

    /// A program that was built without traces.
    #[derive(Default)]
    pub(in crate::cli) struct Traces {
        asked_for: Option<&'static str>,
    }

    impl Traces {
        pub(in crate::cli) fn begin() -> Traces {
            let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
            Traces { asked_for: endpoints.into_iter().find(|name| std::env::var_os(name).is_some()) }
        }

        pub(in crate::cli) fn layer(&self) -> Option<Identity> {
            None
        }

        /// Says why there are none, where somebody waits for them.
        pub(in crate::cli) fn tell(&self) {
            if let Some(variable) = self.asked_for {
                let why = format!("{variable} is set, and this program is built without the feature `otel`");
                tracing::info!(why, "no traces are sent");
            }
        }

        pub(in crate::cli) fn end(self) {}
    }
}

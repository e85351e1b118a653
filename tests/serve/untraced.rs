//! A program that is built without traces, where somebody waits for them.

use crate::server::Server;

#[test]
fn program_without_traces_says_so_where_a_collector_is_named() {
    let collector = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let server = Server::start_where(&[collector], &[("shelf/sync.yaml", "status: {}\n")]);
    let told = server.logged("no traces are sent");
    assert_eq!(told["level"], "INFO");
    assert_eq!(
        told["why"],
        "OTEL_EXPORTER_OTLP_ENDPOINT is set, and this program is built without the feature `otel`"
    );
    assert_eq!(server.get("/readyz").status, 200);

    let server = Server::start_where(&[], &[("shelf/sync.yaml", "status: {}\n")]);
    assert_eq!(server.lines("no traces are sent"), [] as [serde_json::Value; 0]);
}

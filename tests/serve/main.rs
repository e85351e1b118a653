//! `syncwright serve` from outside: the built program, a folder of hooks, HTTP.

mod callers;
mod calls;
#[path = "../support/canary.rs"]
mod canary;
mod noise;
mod overload;
mod pages;
mod ports;
#[path = "../protocol/mod.rs"]
mod protocol;
mod reload;
mod secrets;
mod server;
#[cfg(not(feature = "otel"))]
mod untraced;
mod year;

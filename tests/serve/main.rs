//! `syncwright serve` from outside: the built program, a folder of hooks, HTTP.

mod callers;
mod calls;
mod noise;
mod overload;
mod pages;
mod ports;
#[path = "../protocol/mod.rs"]
mod protocol;
mod reload;
mod server;
#[cfg(not(feature = "otel"))]
mod untraced;
mod year;

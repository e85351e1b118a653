//! `syncwright serve` from outside: the built program, a folder of hooks, HTTP.

mod calls;
mod overload;
mod pages;
mod reload;
mod server;
mod year;

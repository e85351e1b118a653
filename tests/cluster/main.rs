//! `syncwright run` from outside: the built binary on a real control plane, with hooks that the tests script.

mod answers;
mod changing;
mod creating;
mod foreign;
mod status;
#[allow(dead_code)]
mod support;

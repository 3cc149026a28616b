//! Abuse of the program from outside: killed processes, failing system calls, growing transcripts, signals on a
//! terminal, full and read-only file systems, many processes on one database, misbehaving endpoints.
//!
//! Every scenario plays random cases. `AGENT_MEMORY_ABUSE_SEED` sets the seed of the first case (default 1),
//! `AGENT_MEMORY_ABUSE_CASES` the number of cases of each scenario (default: what a CI run affords). A failing case
//! prints the command that plays it again. `cargo xtask abuse --minutes N` plays new seeds for N minutes.
//!
//! Some scenarios need `strace`, root or `unshare`. Where these are missing the scenario is left out and says so;
//! with `AGENT_MEMORY_REQUIRE_ABUSE` set it fails instead.
#![allow(clippy::disallowed_methods, clippy::print_stderr)]

mod endpoints;
mod erasures;
mod faults;
mod growth;
mod kill;
mod places;
mod processes;
mod signals;
mod tools;

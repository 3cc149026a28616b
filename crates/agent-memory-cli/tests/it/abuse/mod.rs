//! Abuse of the program from outside: killed processes, failing system calls, growing transcripts, signals on a
//! terminal, full and read-only file systems, many processes on one database, misbehaving endpoints.
//!
//! Every scenario runs random cases. `AGENT_MEMORY_ABUSE_SEED` sets the seed of the first case (default 1), and
//! `AGENT_MEMORY_ABUSE_CASES` the number of cases of each scenario (the default suits a CI run). A failing case
//! prints the command that repeats it. `cargo xtask abuse --minutes N` runs new seeds for N minutes.
//!
//! Some scenarios need `strace`, root or `unshare`. Without them, a scenario is skipped with a notice. If
//! `AGENT_MEMORY_REQUIRE_ABUSE` is set, it fails instead.
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

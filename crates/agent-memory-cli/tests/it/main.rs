//! The program as a user runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub
)]

#[cfg(target_os = "linux")]
mod abuse;
mod audit;
mod backup;
#[cfg(target_os = "linux")]
mod browser;
mod commands;
mod compact;
#[cfg(feature = "exact")]
mod cost;
#[cfg(all(unix, feature = "postgres"))]
mod databases;
#[cfg(unix)]
mod endpoint;
mod erase;
mod errors;
mod failing_models;
mod forks;
mod fuzz;
mod hook;
mod import;
mod install;
mod page;
mod places;
mod proof;
mod providers;
mod redact;
mod reference;
mod replay;
mod secrets;
#[cfg(all(target_os = "linux", feature = "serve"))]
mod serve;
#[cfg(feature = "mcp")]
mod server;
mod settings;
mod signals;
mod stored;
mod support;
mod terminal;
mod vectors;

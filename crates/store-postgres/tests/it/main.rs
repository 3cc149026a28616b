//! Integration tests of the store in PostgreSQL.
//!
//! They use the server at `AGENT_MEMORY_TEST_POSTGRES_URL`: each test its own schema, which it drops at the end. Without
//! this variable they are left out, which is a failure if `AGENT_MEMORY_REQUIRE_POSTGRES` is set.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stderr,
    missing_docs
)]

mod cancel;
mod common;
mod conformance;
mod erase;
mod lost;
mod opening;
mod plans;
mod pooler;
mod queue;
mod schema;
mod texts;
mod triggers;
mod writers;

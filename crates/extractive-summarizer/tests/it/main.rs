#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod extract;
mod fixtures;
mod laws;

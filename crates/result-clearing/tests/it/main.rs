//! What clearing promises: by example, and over random conversations under each of the planners.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod examples;
mod laws;
mod world;

//! What the planner promises: by example, and over random conversations compacted to the end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod examples;
mod full;
mod world;

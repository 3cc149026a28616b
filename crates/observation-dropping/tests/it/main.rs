//! What dropping plans: by example, and over random views.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod examples;
mod laws;
mod world;

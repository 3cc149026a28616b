//! Compactions as a whole, on the reference store and on SQLite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

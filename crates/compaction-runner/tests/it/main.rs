//! Compactions as a whole, on the reference store and on SQLite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod before;
mod crash;
mod erased;
mod extracts;
mod failing;
mod fit;
mod gated;
mod hang;
mod hooks;
mod laws;
mod passes;
mod planners;
mod prefetch;
mod race;
mod ranks;
mod snapshots;
mod start;
mod statements;
mod window;
mod world;

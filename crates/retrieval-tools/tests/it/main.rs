//! The tools over the reference store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

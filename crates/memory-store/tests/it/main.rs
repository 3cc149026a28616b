//! What this crate adds to the traits: verification. That the reference
//! store keeps the promises of a store is tested in `store-conformance`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod verify;

//! Tests of verification. The tests that the reference store keeps the promises of a store are in `store-conformance`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod verify;

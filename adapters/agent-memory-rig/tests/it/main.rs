//! Integration tests, in one binary.

#![allow(clippy::unwrap_used, clippy::panic)]

mod compactor;
mod memory;
mod messages;
mod tools;

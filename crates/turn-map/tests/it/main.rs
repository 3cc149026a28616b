//! Laws of atoms, turns and cuts over any list of messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod laws;
mod reference;

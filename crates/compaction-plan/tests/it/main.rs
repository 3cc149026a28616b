//! Overlays and labels, and planners that wrap planners: by example, and over random conversations and views.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod clear {
    mod examples;
    pub(crate) mod laws;
    pub(crate) mod world;
}
mod overlay;
mod source;

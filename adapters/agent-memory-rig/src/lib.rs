#![doc = include_str!("../README.md")]

mod kept;
mod media;
mod messages;

pub use messages::{from_rig, to_rig};

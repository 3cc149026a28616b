#![doc = include_str!("../README.md")]

pub mod conversation;
mod convert;
mod error;
pub mod message;
pub mod pack;
mod sql;
pub mod summary;
pub mod tables;
pub mod view;
pub mod work;

pub use convert::{packed, to_count, to_hash, to_int, to_seq, to_u32};
pub use sql::{Columns, Given, OneOf, Script, Text, Values, build};

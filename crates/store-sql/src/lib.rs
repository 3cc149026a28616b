#![doc = include_str!("../README.md")]

mod batch;
pub mod conversation;
mod convert;
mod copying;
pub mod directory;
pub mod erasure;
mod error;
mod executor;
mod family;
#[cfg(feature = "testing")]
mod hot;
mod insert;
pub mod message;
pub mod pack;
mod prepared;
pub mod queue;
mod row;
pub mod search;
mod store;
pub mod summary;
pub mod tables;
mod usage;
pub mod vector;
pub mod view;
pub mod work;

pub use batch::{Batch, Statement, build, inlined};
pub use convert::{packed, to_count, to_hash, to_int, to_seq, to_u32};
pub use executor::{Database, Executor};
pub use family::Family;
#[cfg(feature = "testing")]
pub use hot::hot_statements;
pub use prepared::{Prepared, PreparedTexts};
pub use row::{BindValue, ColumnType, Columns, TextOrBytes, Values};
pub use store::{Copied, SqlStore};
pub use usage::usage_of;

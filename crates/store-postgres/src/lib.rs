#![doc = include_str!("../README.md")]

mod check;
mod connection;
mod db;
mod error;
mod escape;
mod migrate;
mod migration;
mod migrations;
mod open;
mod options;
mod pool;
mod row;
mod sql;
mod usage;

pub use db::PostgresDatabase;
pub use memory_store;
pub use open::PostgresStore;
pub use options::PostgresOptions;

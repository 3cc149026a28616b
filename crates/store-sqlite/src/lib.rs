#![doc = include_str!("../README.md")]

mod backup;
mod check;
mod connection;
mod db;
mod error;
mod files;
mod library;
mod migrate;
mod migration;
mod migrations;
mod open;
mod options;
mod plain;
mod readers;
mod restore;
mod soon;
mod sql;
mod usage;

pub use backup::BackupReport;
pub use db::SqliteDatabase;
pub use memory_store;
pub use open::SqliteStore;
pub use options::{Durability, LockObserver, LockWait, SqliteOptions};
pub use plain::{PlainExport, write_plain};
pub use restore::{LaterErasure, LostEntries, Replaced, Restore};

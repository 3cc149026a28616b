//! For tests: a disk in memory below SQLite, that loses power and fails.
//!
//! [`Disk::mount`] puts a folder on a simulated disk: SQLite finds its files below that folder in memory, and all other
//! files as usual. No connection needs an option for it. A file has the bytes that programs see, the bytes that are
//! durable, and the writes between them, which only a sync makes durable.
//!
//! - [`Disk::plan`] makes the n-th call of some kinds fail, or cuts the power there. After a cut every call fails.
//! - [`Disk::restart`] gives the disk that is found after the cut. Each write that was not synced is kept, lost or
//!   torn at a boundary of 512 bytes, in any order, as a seed decides.
//! - [`Disk::kill`] gives the disk that is found after the death of all processes: every write is there, durable or not.
//!
//! Assumptions about the medium, which are those of SQLite's own file system with its default settings:
//! - A sync that succeeds makes all earlier writes of the file durable, but for those that a sync with
//!   [`Fault::Dropped`] has dropped.
//! - A write damages no byte outside of its range (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`).
//! - The names of new files and deletions become durable in order, at the latest with the next sync of a new log.
//! - The name of the database itself is durable once it is created.

mod disk;
mod files;
mod shared_memory;
mod vfs;

pub use disk::{Disk, Image};
pub use files::{Call, Fault, Plan};

//! A step of the migration of a database to a newer schema.

/// One step of the migration of a database to a newer schema.
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    /// SHA-256 of `sql`, in hexadecimal.
    pub(crate) checksum: &'static str,
    pub(crate) sql: &'static str,
    /// SQL statement that marks the file as a database of agent-memory at this version.
    pub(crate) mark: &'static str,
}

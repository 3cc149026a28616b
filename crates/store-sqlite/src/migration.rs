//! A step of the schema.

/// One step of the schema.
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    /// SHA-256 of `sql`, in hex.
    pub(crate) checksum: &'static str,
    pub(crate) sql: &'static str,
    /// Statement that marks the file as a database of agent-memory at this version.
    pub(crate) mark: &'static str,
}

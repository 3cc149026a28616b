//! Migrations.

/// One step of the schema.
pub(crate) struct Migration {
    pub(crate) version: u32,
    pub(crate) name: &'static str,
    /// SHA-256 of `sql`, in hex.
    pub(crate) checksum: &'static str,
    pub(crate) sql: &'static str,
}

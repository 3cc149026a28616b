//! Migrations of the schema.

/// A step that brings the schema from one version to the next.
#[derive(Debug)]
pub(crate) struct Migration {
    /// Number of the migration, from 1.
    pub(crate) version: i64,
    /// Name in the file's name.
    pub(crate) name: &'static str,
    /// SHA-256 of the text, in hexadecimal digits.
    pub(crate) checksum: &'static str,
    /// Text of the file.
    pub(crate) sql: &'static str,
}

/// Returns the names of the tables in an SQL text.
pub(crate) fn created<'s>(kind: &'static str, sql: &'s str) -> impl Iterator<Item = &'s str> {
    sql.lines().filter_map(move |line| {
        let rest = line.strip_prefix("create ")?.strip_prefix(kind)?;
        rest.split([' ', '(']).find(|word| !word.is_empty())
    })
}

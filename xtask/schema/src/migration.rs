//! The files of migrations.

use anyhow::bail;
use sha2::{Digest as _, Sha256};

use crate::schema::{Database, files};

/// A migration: its number, its name, its file and its text.
pub(crate) struct Migration {
    pub(crate) version: u32,
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) text: String,
}

impl Migration {
    /// SHA-256 of the text, in hex.
    pub(crate) fn checksum(&self) -> String {
        Sha256::digest(self.text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// All migrations of a database, checked to be numbered 1, 2, 3, …
pub(crate) fn all(database: Database) -> anyhow::Result<Vec<Migration>> {
    let folder = database.migrations();
    number(&folder, files(&folder)?)
}

/// The migrations in a folder's files by name, checked to be numbered 1, 2, 3, …
pub(crate) fn number(folder: &str, files: Vec<(String, String)>) -> anyhow::Result<Vec<Migration>> {
    let mut found = Vec::new();
    for (version, (file, text)) in (1u32..).zip(files) {
        let name = file
            .strip_suffix(".sql")
            .and_then(|stem| stem.strip_prefix(&format!("{version:04}_")))
            .filter(|name| is_name(name));
        let Some(name) = name else {
            bail!("{folder}/{file}: expected {version:04}_name.sql: rename it, numbers are dense");
        };
        found.push(Migration {
            version,
            name: name.to_owned(),
            file: file.clone(),
            text,
        });
    }
    Ok(found)
}

/// Whether a migration may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

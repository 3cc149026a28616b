//! Source files of packages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Rust files of a package, each with the part of the package that it is in.
pub(crate) fn files(folder: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for part in ["src", "tests", "benches", "examples"] {
        let mut open = vec![folder.join(part)];
        while let Some(folder) = open.pop().filter(|folder| folder.is_dir()) {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    found.push((part.to_owned(), path));
                }
            }
        }
    }
    Ok(found)
}

pub(crate) fn folders(folder: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let mut found = BTreeSet::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            found.insert(path);
        }
    }
    Ok(found)
}

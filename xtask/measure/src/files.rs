//! Files of a corpus.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Reads a file of one JSON value.
pub(crate) fn json(path: &Path) -> anyhow::Result<Value> {
    let bytes = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
}

/// The files of a folder whose names end so, sorted; never none.
///
/// # Errors
/// When there are none, or the folder cannot be read.
pub(crate) fn files(folder: &Path, ending: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths: Result<Vec<PathBuf>, _> = entries
        .map(|entry| Ok::<_, std::io::Error>(entry?.path()))
        .collect();
    let mut paths = paths?;
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    ensure!(
        !paths.is_empty(),
        "{} has no file *{ending}",
        folder.display()
    );
    paths.sort();
    Ok(paths)
}

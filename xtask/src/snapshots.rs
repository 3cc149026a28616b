//! Snapshot files that no test reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::mode::root;

/// Compares the snapshot files in `crates` with those that a test run used: `references` is the file that insta writes
/// if `INSTA_SNAPSHOT_REFERENCES_FILE` is set to it.
pub(crate) fn run(references: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(references).with_context(|| {
        format!("read {references}: run the tests with INSTA_SNAPSHOT_REFERENCES_FILE={references}")
    })?;
    let left = unreferenced(&root().join("crates"), &text)?;
    ensure!(
        left.is_empty(),
        "no test reads these snapshots, delete them:\n{}",
        left.join("\n")
    );
    println!("every snapshot is read by a test");
    Ok(())
}

/// The snapshot files below a folder without a line in `lines`.
fn unreferenced(folder: &Path, lines: &str) -> anyhow::Result<Vec<String>> {
    let read: BTreeSet<PathBuf> = lines
        .lines()
        .filter_map(|line| Path::new(line).canonicalize().ok())
        .collect();
    ensure!(
        !read.is_empty(),
        "the tests read no snapshot at all: run them without a filter"
    );
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "snap")
            {
                found.push(path.canonicalize()?);
            }
        }
    }
    found.sort();
    found.retain(|path| !read.contains(path));
    Ok(found
        .iter()
        .map(|path| path.display().to_string())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_no_test_reads_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let snapshots = folder.path().join("a/snapshots");
        std::fs::create_dir_all(&snapshots).unwrap();
        let (read, stale) = (snapshots.join("read.snap"), snapshots.join("stale.snap"));
        std::fs::write(&read, "").unwrap();
        std::fs::write(&stale, "").unwrap();
        std::fs::write(snapshots.join("other.txt"), "").unwrap();
        // As insta writes them: by way of the test's folder.
        let line = snapshots.join("../snapshots/read.snap");
        let left = unreferenced(folder.path(), &line.display().to_string()).unwrap();
        assert_eq!(left, [stale.canonicalize().unwrap().display().to_string()]);
        assert!(unreferenced(folder.path(), "").is_err());
    }
}

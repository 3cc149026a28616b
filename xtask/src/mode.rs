//! Write, check or dry run: the modes of every task.
#![allow(dead_code, reason = "each package of tasks uses a part of it")]

use std::path::PathBuf;

use anyhow::{Context as _, bail};

/// Treatment of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write it.
    Write,
    /// Fail if it is out of date.
    Check,
    /// Print it.
    DryRun,
}

impl Mode {
    pub(crate) fn from_flags(flags: &[String]) -> anyhow::Result<Mode> {
        match flags {
            [] => Ok(Mode::Write),
            [flag] if flag == "--check" => Ok(Mode::Check),
            [flag] if flag == "--dry-run" => Ok(Mode::DryRun),
            _ => bail!("flags: at most one of --check and --dry-run"),
        }
    }

    /// Treats `content` of the file `path` (relative to the root). `command` is the task that writes it.
    pub(crate) fn apply(self, path: &str, content: &str, command: &str) -> anyhow::Result<()> {
        if self == Mode::DryRun {
            println!("{path}: would be written as follows\n{content}");
            return Ok(());
        }
        self.apply_bytes(path, content.as_bytes(), command)
    }

    /// The same for a binary file; a dry run prints its size in bytes.
    pub(crate) fn apply_bytes(
        self,
        path: &str,
        content: &[u8],
        command: &str,
    ) -> anyhow::Result<()> {
        let file = root().join(path);
        let same = std::fs::read(&file).is_ok_and(|found| found == content);
        match self {
            Mode::Check if same => Ok(()),
            Mode::Check => bail!("{path} is out of date: run `{command}`"),
            _ if same => {
                println!("{path}: up to date");
                Ok(())
            }
            Mode::DryRun => {
                println!("{path}: {} bytes would be written", content.len());
                Ok(())
            }
            Mode::Write => {
                if let Some(folder) = file.parent() {
                    std::fs::create_dir_all(folder)
                        .with_context(|| format!("create {}", folder.display()))?;
                }
                std::fs::write(&file, content).with_context(|| format!("write {path}"))?;
                println!("{path}: written");
                Ok(())
            }
        }
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    // As cargo sets it for the run: two checkouts may share a target folder, and then a binary.
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = here.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let root = here
        .ancestors()
        .find(|folder| folder.join("crates").is_dir());
    root.unwrap_or(&here).to_path_buf()
}

/// The folder of cargo's build output.
pub(crate) fn target_folder() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    folder.unwrap_or_else(|| root().join("target"))
}

//! Virtual environments of Python packages in the target folder: independent judges and clients.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

/// Creates the virtual environment of these packages, unless it exists, and returns its Python.
pub(crate) fn environment(base: &Path, packages: &[&str]) -> anyhow::Result<PathBuf> {
    // Other versions live in another folder; one that is half made has no stamp, and is made again.
    let hash = Sha256::digest(packages.join("\n"));
    let folder = base.join(format!("venv-{:.8}", format!("{hash:x}")));
    let (python, stamp) = (folder.join("bin/python"), folder.join("complete"));
    if !stamp.exists() {
        std::fs::create_dir_all(base).with_context(|| format!("create {}", base.display()))?;
        let make = Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder)
            .status();
        let made = make.context("run python3: install Python 3.11 or newer")?;
        ensure!(made.success(), "python3 -m venv failed: install its venv");
        call(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet"])
                .args(packages),
        )?;
        std::fs::write(&stamp, "").with_context(|| format!("write {}", stamp.display()))?;
    }
    Ok(python)
}

/// Runs a command that must succeed.
pub(crate) fn call(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("run {command:?}"))?;
    ensure!(
        status.success(),
        "{command:?} failed: the lines above say why"
    );
    Ok(())
}

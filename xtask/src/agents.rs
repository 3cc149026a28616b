//! `cargo xtask agents [PROGRAM] [AGENT…]`: drives real coding agents, with the program installed, against a scripted model server.
//!
//! The kit in `xtask/agents` installs six agents from npm, and runs them without a network: every address but loopback leads
//! to a closed port. `drive.py` says what is checked.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::mode::{root, target_folder};
use crate::python::call;

/// Variable with the folder of the installed agents and their homes.
const FOLDER: &str = "AGENTS_DIR";

pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let (program, agents) = match words {
        [program, agents @ ..] if program.contains('/') => (PathBuf::from(program), agents),
        agents => (target_folder().join("debug/agent-memory"), agents),
    };
    ensure!(
        program.is_file(),
        "there is no {}: run `cargo build` first",
        program.display()
    );
    let npm = Command::new("npm")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !npm.is_ok_and(|npm| npm.success()) {
        println!("skipped: there is no npm, which installs the agents");
        return Ok(());
    }
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| target_folder().join("agents"));
    let kit = root().join("xtask/agents");
    call(
        Command::new(kit.join("setup.sh"))
            .args(agents)
            .env(FOLDER, &folder),
    )?;
    call(
        Command::new(kit.join("drive.py"))
            .arg(program)
            .args(agents)
            .env(FOLDER, &folder),
    )
}

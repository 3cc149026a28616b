//! Kills processes, connections and a primary server under load, and checks that no acknowledged line is lost.
//! `postgres/chaos.py` starts the servers and contains the checks.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::mode::target_folder;
use crate::postgres::programs;
use crate::python::call;

const CHAOS: &str = include_str!("../postgres/chaos.py");

/// Runs the script for a program, with the options that the script knows.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let program = arguments.first().context(
        "usage: cargo xtask postgres-chaos PROGRAM [--minutes N] [--sessions N] [--messages N] [--processes N]",
    )?;
    ensure!(
        Path::new(program).is_file(),
        "there is no {program}: run `cargo build` first"
    );
    let folder = target_folder();
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let chaos = folder.join("postgres-chaos.py");
    std::fs::write(&chaos, CHAOS).with_context(|| format!("write {}", chaos.display()))?;
    let mut python = Command::new("python3");
    call(python.arg(chaos).arg(programs()?).args(arguments))
}

//! Kills processes, connections and a primary server under load, and checks that no acknowledged line is lost.
//! `postgres/chaos.py` starts the servers and contains the checks.

use std::ffi::OsString;

use anyhow::Context as _;

use crate::postgres::programs;
use crate::python::{load, tested};

const CHAOS: &str = include_str!("../postgres/chaos.py");

/// Runs the script for a program, with the options that the script knows.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let program = arguments.first().context(
        "usage: cargo xtask postgres-chaos PROGRAM [--minutes N] [--sessions N] [--messages N] [--processes N]",
    )?;
    tested(program)?;
    let programs = OsString::from(programs()?);
    let given = arguments.iter().map(OsString::from);
    load(
        "postgres-chaos.py",
        CHAOS,
        std::iter::once(programs).chain(given),
    )
}

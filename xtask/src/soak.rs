//! Many processes of the program on one SQLite database for a long time, with samples of memory, files and latencies.
//! `soak/soak.py` starts the processes, checks the messages at the end, and writes the picture and the page.

use std::ffi::OsString;

use anyhow::Context as _;

use crate::mode::root;
use crate::python::{load, tested};

const SOAK: &str = include_str!("../soak/soak.py");

/// Runs the script for a program, with the options that the script knows.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let program = arguments.first().context(
        "usage: cargo xtask soak PROGRAM [--minutes N] [--messages N] [--processes N] [--page]",
    )?;
    tested(program)?;
    let pages = root().join("docs/measurements").into_os_string();
    let given = arguments.iter().map(OsString::from);
    load("soak.py", SOAK, std::iter::once(pages).chain(given))
}

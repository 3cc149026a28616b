//! The tasks of `cargo xtask` that need a database: migrations, and what is generated from the schema.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

mod codegen;
mod diff;
mod migration;
mod migrations;
#[path = "../../src/mode.rs"]
mod mode;
mod postgres;
mod schema;

use mode::Mode;

fn main() -> anyhow::Result<()> {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mode = Mode::from_flags(&flags)?;
    match words.as_slice() {
        ["migrations", rest @ ..] => migrations::run(rest, mode),
        ["codegen"] => codegen::run(mode),
        _ => anyhow::bail!(
            "usage: cargo xtask migrations … or cargo xtask codegen; `cargo xtask` lists all tasks"
        ),
    }
}

//! Measures the workspace on real conversations, and writes the pages in `docs/measurements`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

mod changes;
mod density;
mod files;
mod flags;
mod gate;
mod logistic;
#[path = "../../src/mode.rs"]
mod mode;
mod next;
mod recall;
mod retention;
mod rules;
mod static_table;

fn main() -> anyhow::Result<()> {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bench-retention", rest @ ..] => retention::run(&flags, rest),
        ["bench-density", rest @ ..] => density::run(&flags, rest),
        ["bench-recall", rest @ ..] => recall::run(&flags, rest),
        ["bench-next", rest @ ..] => next::run(&flags, rest),
        ["bench-gate", rest @ ..] => gate::run(&flags, rest),
        ["fit-changes"] => changes::fit(&flags),
        ["bench-changes"] => changes::run(&flags),
        ["fit-rules", rest @ ..] => rules::fit(&flags, rest),
        ["bench-rules", rest @ ..] => rules::run(&flags, rest),
        ["static-table", rest @ ..] => static_table::run(&flags, rest),
        _ => anyhow::bail!("`cargo xtask` lists all tasks"),
    }
}

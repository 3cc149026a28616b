//! Maintenance tasks: `cargo xtask <task>`. One file per task; each has three modes: write (the default),
//! `--check` (change nothing, fail when something is out of date and name the command that mends it) and
//! `--dry-run` (change nothing, print what would be written).
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

mod abuse;
mod bench_peers;
mod codegen;
mod diff;
mod features;
mod fit;
mod fixtures;
mod layering;
mod migrations;
mod mode;
mod retention;
mod schema;

use mode::Mode;

const USAGE: &str = "\
usage: cargo xtask <task> [--check | --dry-run]

  migrations new NAME    begin an empty migration
  migrations diff NAME   draft the migration that leads to crates/store-sqlite/schema
  migrations list        number, name and whether it is released
  migrations check       numbers, checksums, schema source, generated files
  migrations release     enter new migrations into migrations/lock: from then on they may not change
  codegen                what is generated from the schema: identifiers, list of migrations, docs/schema.md
  fixtures               the conversations in fixtures/
  fit-tokens --data DIR --texts ROOT
                         the weights of the calibrated estimator, from the corpus and unpacked packages (docs/tokens.md);
                         --folds prints errors on unseen files, --report --data DIR the table of docs/tokens.md
  bench-retention --data DIR
                         what the extractive summarizer keeps of real transcripts, beside cuts and TF-IDF (docs/retention.md);
                         --check also fails when a target is missed, --each prints all figures; --print NAME --data DIR prints
                         the extracts of a transcript, --missed NAME --data DIR what they miss
  features CRATE         the features of a crate, one a line
  bench-peers [SIZE…]    the same workload here and on lossless-hermes-py from PyPI, in turn: a table of ratios
  abuse --minutes N      kills, failing system calls, full disks, bad endpoints and more against the program, with new
                         seeds each round (--seed N begins there); a word behind it names a scenario, such as kill
  layering               which crate may use what, held against `cargo tree`";

fn main() -> anyhow::Result<()> {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["fit-tokens", rest @ ..] = words.as_slice() {
        return fit::run(&flags, rest);
    }
    if let ["bench-retention", rest @ ..] = words.as_slice() {
        return retention::run(&flags, rest);
    }
    if let ["abuse", rest @ ..] = words.as_slice() {
        return abuse::run(&flags, rest);
    }
    let mode = Mode::from_flags(&flags)?;
    match words.as_slice() {
        ["migrations", rest @ ..] => migrations::run(rest, mode),
        ["codegen"] => codegen::run(mode),
        ["fixtures"] => fixtures::run(mode),
        ["features", package] => features::run(package),
        ["bench-peers", sizes @ ..] => bench_peers::run(sizes),
        ["layering"] => layering::run(),
        _ => anyhow::bail!("{USAGE}"),
    }
}

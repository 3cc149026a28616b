//! `cargo xtask bench-density --data DIR [--each] [--print NAME [--percent N]]
//! [--strategy handoff] [--check | --dry-run]`: what
//! a context of a few thousand tokens carries, beside the compaction summaries that agents wrote
//! themselves; writes docs/measurements/density.md.

pub(crate) mod cases;
mod gold;
mod measured;
mod naive;
pub(crate) mod ours;
mod page;
mod table;
mod words;

use std::path::PathBuf;

use anyhow::ensure;
use token_estimate::TokenEstimator as _;

use crate::mode::Mode;
use crate::retention::transcripts;
use cases::Case;
use gold::{COLUMNS, Gold};
use measured::Measured;
use ours::{Ours, TOKENS};
use table::table;

const PAGE: &str = "docs/measurements/density.md";
const COMMAND: &str = "cargo xtask bench-density";

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let (mut words, mut mode_flags) = (words.iter(), Vec::new());
    let (mut data, mut each, mut print) = (None, false, None);
    let mut percent = 100;
    let mut handoffs_only = false;
    for flag in flags {
        match flag.as_str() {
            "--data" => data = words.next().map(PathBuf::from),
            "--print" => print = words.next().copied(),
            "--percent" => percent = words.next().map_or(Ok(percent), |word| word.parse())?,
            "--each" => each = true,
            "--strategy" => {
                let strategy = words.next().copied();
                ensure!(
                    strategy == Some("handoff"),
                    "give --strategy handoff, which prints the figures of handoffs and writes nothing"
                );
                handoffs_only = true;
            }
            _ => mode_flags.push(flag.clone()),
        }
    }
    let mode = Mode::from_flags(&mode_flags)?;
    let data = transcripts::corpus(data, COMMAND)?;
    let cases = cases::cases(&data)?;
    if let Some(wanted) = print {
        let wanted = cases.iter().filter(|case| case.name.contains(wanted));
        return wanted
            .into_iter()
            .try_for_each(|case| print_case(case, percent));
    }
    let mut sum = Measured::default();
    for case in &cases {
        let measured = Measured::of(case)?;
        if each {
            println!("{}\n{}", case.name, table(&measured.rows()));
        }
        sum.merge(&measured);
    }
    if handoffs_only {
        let mut rows = vec![sum.theirs.row("theirs")];
        rows.extend(sum.handoff_rows());
        println!("{}", table(&rows));
        return Ok(());
    }
    mode.apply(PAGE, &page::page(&sum, cases.len())?, COMMAND)
}

/// Prints what the agent and the library make of a case, the latter within `percent` per cent of the agent's
/// tokens, and what it misses.
fn print_case(case: &Case, percent: u64) -> anyhow::Result<()> {
    let gold = Gold::of(&case.lines);
    let tokens = TOKENS.text(&case.theirs);
    let ours = Ours::of(case)?.text(tokens * percent / 100)?;
    println!(
        "==== {}, theirs: {tokens} tokens\n{}",
        case.name, case.theirs
    );
    println!(
        "==== {}, ours: {} tokens\n{ours}",
        case.name,
        TOKENS.text(&ours)
    );
    for (column, name) in COLUMNS.iter().enumerate() {
        let missing = gold.missing(column, &ours);
        let all = gold.items(column).len();
        println!("-- {name} that ours misses: {} of {all}", missing.len());
        missing.iter().for_each(|item| println!("   {item}"));
    }
    Ok(())
}

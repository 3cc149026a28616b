//! `cargo xtask bench-recall --data DIR [--table FILE] [--check | --dry-run]`: how well questions find the messages
//! that answer them, by the ranking of `memory-search`; writes docs/measurements/recall.md. With `--table`, what the ranking finds with
//! a table of vectors (`cargo xtask static-table`) is measured and recorded first. The page's last section says what the
//! library's tools find in conversations that were compacted.

mod cases;
mod compacted;
mod compacted_page;
mod floor;
mod measure;
mod page;
mod reached;
mod vectors;

use std::path::PathBuf;

use anyhow::ensure;

use crate::mode::Mode;
use crate::retention::transcripts;
use compacted::Compacted;
use measure::GOALS;

const PAGE: &str = "docs/measurements/recall.md";
const COMMAND: &str = "cargo xtask bench-recall";

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let (mut words, mut mode_flags) = (words.iter(), Vec::new());
    let (mut data, mut table) = (None, None);
    for flag in flags {
        match flag.as_str() {
            "--data" => data = words.next().map(PathBuf::from),
            "--table" => table = words.next().map(PathBuf::from),
            _ => mode_flags.push(flag.clone()),
        }
    }
    let mode = Mode::from_flags(&mode_flags)?;
    let data = transcripts::corpus(data, COMMAND)?;
    let locomo = cases::locomo(&data.join("locomo"))?;
    let beam = cases::beam(&data.join("beam"))?;
    if let Some(table) = table {
        let measured = vectors::measured(&table, &locomo, &beam)?;
        mode.apply(vectors::PATH, &measured, COMMAND)?;
    }
    let (mut page, reached) = page::page(&locomo, &beam)?;
    let compacted = [&locomo, &beam].map(|cases| Compacted::of(cases));
    let [locomo, beam] = compacted;
    page.push_str(&compacted_page::section(&locomo?, &beam?));
    mode.apply(PAGE, &page, COMMAND)?;
    let goals = reached.iter().zip(GOALS);
    let missed: Vec<String> = goals
        .filter(|(reached, goal)| *reached < goal)
        .map(|(reached, goal)| format!("{reached:.3} where {goal} is the goal"))
        .collect();
    ensure!(
        mode != Mode::Check || missed.is_empty(),
        "goals missed on LoCoMo: {}",
        missed.join(", ")
    );
    Ok(())
}

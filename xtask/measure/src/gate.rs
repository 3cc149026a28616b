//! `cargo xtask bench-gate --data DIR [--each] [--check | --dry-run]`: how many good summaries the gate refuses, and how
//! many planted faults it finds; writes docs/measurements/gate.md.

mod faults;
mod measured;
mod page;
mod pairs;

use std::path::PathBuf;

use anyhow::ensure;
use message_formats::KnownAgents;

use crate::flags::Flags;
use measured::Measured;

const PAGE: &str = "docs/measurements/gate.md";
const COMMAND: &str = "cargo xtask bench-gate";
/// The folder of pairs that strong models wrote; by default `gate-pairs` in the folder of the corpus.
const VARIABLE: &str = "AGENT_MEMORY_GATE_PAIRS";
/// Pairs that were invented, in the repository.
const INVENTED: &str = include_str!("gate/pairs.jsonl");

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let flags = Flags::of(flags, words, COMMAND)?;
    let invented = Measured::of(&pairs::parse(INVENTED)?, &KnownAgents, flags.each)?;
    invented.hold(&["invented"])?;
    let folder = std::env::var_os(VARIABLE).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| flags.data.join("gate-pairs"));
    let strong = folder.join("strong.jsonl");
    if !strong.is_file() {
        println!(
            "{} is missing: only the invented pairs were checked; set {VARIABLE} to the folder of pairs",
            strong.display()
        );
        return Ok(());
    }
    let strong = Measured::of(&pairs::read(&strong)?, &KnownAgents, flags.each)?;
    ensure!(strong.pairs() > 0, "{} has no pair", folder.display());
    let junk = folder.join("junk.jsonl");
    let junk = match junk.is_file() {
        true => Some(measured::junk(
            &pairs::read(&junk)?,
            &KnownAgents,
            flags.each,
        )?),
        false => None,
    };
    strong.hold(&["pairs of the strong model"])?;
    let unseen = folder.join("unseen.jsonl");
    ensure!(unseen.is_file(), "{} is missing", unseen.display());
    let unseen = Measured::of(&pairs::read(&unseen)?, &KnownAgents, flags.each)?;
    unseen.hold(&["unseen pairs of the strong model"])?;
    let page = page::page(&invented, &strong, &unseen, junk.as_ref());
    flags.mode.apply(PAGE, &page, COMMAND)
}

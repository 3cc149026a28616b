//! `cargo xtask bench-gate --data DIR [--each] [--check | --dry-run]`: how many good summaries the gate refuses, and how
//! many planted faults and answers of small models it finds; writes docs/measurements/gate.md.

mod faults;
mod measured;
mod page;
mod pairs;

use message_formats::KnownAgents;

use crate::flags::Flags;
use measured::{Measured, Small};

const PAGE: &str = "docs/measurements/gate.md";
const COMMAND: &str = "cargo xtask bench-gate";
/// Pairs that were invented.
const INVENTED: &str = include_str!("gate/pairs.jsonl");
/// Answers of a strong model to the program's requests, with the places of their sources in the corpus.
const STRONG: &str = include_str!("gate/strong.jsonl");
/// Answers of small models to the program's requests about fixtures.
const SMALL: &str = include_str!("gate/small.jsonl");

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let flags = Flags::of(flags, words, COMMAND)?;
    let pairs = |text| pairs::parse(text, &flags.data);
    let invented = Measured::of(&pairs(INVENTED)?, &KnownAgents, flags.each);
    let strong = Measured::of(&pairs(STRONG)?, &KnownAgents, flags.each);
    let small = Small::of(&pairs(SMALL)?, &KnownAgents, flags.each);
    invented.hold("invented")?;
    strong.hold("answers of the strong model")?;
    small.hold()?;
    let page = page::page(&invented, &strong, &small);
    flags.mode.apply(PAGE, &page, COMMAND)
}

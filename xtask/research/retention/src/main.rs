//! Measures what the lines ranked highest by TF-IDF and TextRank keep of real transcripts, and writes
//! the figures that `cargo xtask bench-retention` compares the extractive summarizer with.
//!
//! `cargo research retention -- --data DIR [--check | --dry-run]`

#[allow(dead_code, reason = "shared with `cargo xtask bench-retention`")]
#[path = "../../../measure/src/retention/gold.rs"]
mod gold;
#[path = "../../../src/mode.rs"]
mod mode;
mod ranked;
#[allow(dead_code, reason = "shared with `cargo xtask bench-retention`")]
#[path = "../../../measure/src/retention/transcripts.rs"]
mod transcripts;

use std::fmt::Write as _;
use std::path::PathBuf;

use gold::{COLUMNS, Gold};
use mode::Mode;
use transcripts::{ESTIMATOR, RATIOS, Transcript};

const FILE: &str = "xtask/measure/src/retention/ranked.tsv";
const COMMAND: &str = "cargo research retention --";

type Method = fn(&str, u64, &dyn token_estimate::TokenEstimator) -> String;
const METHODS: [(&str, Method); 2] = [("TF-IDF", ranked::tf_idf), ("TextRank", ranked::text_rank)];

fn main() -> anyhow::Result<()> {
    let (mut data, mut flags) = (None, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--data" => data = words.next().map(PathBuf::from),
            _ => flags.push(word),
        }
    }
    let mode = Mode::from_flags(&flags)?;
    let data = transcripts::corpus(data, COMMAND)?;
    let transcripts: Vec<(Transcript, Gold)> = transcripts::transcripts(&data)?
        .into_iter()
        .map(|transcript| {
            let gold = Gold::of(&transcript.messages);
            (transcript, gold)
        })
        .collect();
    let mut out = String::from(
        "# Written by `cargo research retention`: the mean share that ranked lines keep.\n",
    );
    let _ = writeln!(out, "# ratio\tmethod\t{}", COLUMNS.join("\t"));
    for ratio in RATIOS {
        for (name, method) in METHODS {
            let kept: Vec<_> = transcripts
                .iter()
                .map(|(t, gold)| gold.kept(&method(&t.plain, t.tokens / ratio, &ESTIMATOR)))
                .collect();
            let _ = write!(out, "{ratio}\t{name}");
            for column in 0..COLUMNS.len() {
                let shares: Vec<f64> = kept.iter().filter_map(|kept| kept[column]).collect();
                let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
                let _ = write!(out, "\t{mean:.4}");
            }
            out.push('\n');
        }
    }
    mode.apply(FILE, &out, COMMAND)
}

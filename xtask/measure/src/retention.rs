//! `cargo xtask bench-retention --data DIR [--each] [--check | --dry-run]`: what the extractive
//! summarizer keeps of real transcripts, beside what cuts keep at the same cost; writes
//! docs/measurements/retention.md. The rows of ranked lines are recorded figures: `cargo research retention`
//! measures them with a ranking library and writes them to `retention/ranked.tsv`.

pub(crate) mod cuts;
pub(crate) mod gold;
mod ranked;
pub(crate) mod transcripts;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use extractive_summarizer::{ExtractiveSummarizer, Source};
use memory_model::{EntryKind, Hash, LogEntry, Message, Seq};
use message_formats::KnownAgents;
use token_estimate::TokenEstimator;

use crate::mode::Mode;
use gold::{COLUMNS, Gold};
use transcripts::{ESTIMATOR, RATIOS, Transcript};

const PAGE: &str = "docs/measurements/retention.md";
const COMMAND: &str = "cargo xtask bench-retention";
/// What is measured here: the extractive summarizer, then the cuts.
const METHODS: [&str; 4] = ["extractive", "head", "tail", "head+tail"];
type Kept = [Option<f64>; COLUMNS.len()];

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let (mut folders, mut mode_flags) = (words.iter(), Vec::new());
    let (mut data, mut each, mut print, mut missed) = (None, false, None, None);
    for flag in flags {
        match flag.as_str() {
            "--data" => data = folders.next().map(PathBuf::from),
            "--print" => print = folders.next().copied(),
            "--missed" => missed = folders.next().copied(),
            "--each" => each = true,
            _ => mode_flags.push(flag.clone()),
        }
    }
    let mode = Mode::from_flags(&mode_flags)?;
    let data = transcripts::corpus(data, COMMAND)?;
    let transcripts: Vec<Read> = transcripts::transcripts(&data)?
        .into_iter()
        .map(Read::from)
        .collect();
    if let Some(wanted) = print.or(missed) {
        for t in transcripts.iter().filter(|t| t.name.contains(wanted)) {
            for ratio in RATIOS {
                let text = t.summary(0, ratio);
                let cost = ESTIMATOR.text(&text);
                println!("==== {} 1/{ratio}: {cost} of {}", t.name, t.tokens);
                if missed.is_some() {
                    for (column, name) in COLUMNS.iter().enumerate() {
                        let missing = t.gold.missing(column, &text);
                        println!("-- {name}: {} of {}", missing.len(), t.gold.len(column));
                        missing
                            .iter()
                            .take(40)
                            .for_each(|item| println!("   {item}"));
                    }
                } else {
                    println!("{text}");
                }
            }
        }
        return Ok(());
    }
    let measured: Vec<Measured> = transcripts.iter().map(Measured::of).collect();
    if each {
        for m in &measured {
            println!("{}: {} tokens", m.name, m.tokens);
            for (r, ratio) in RATIOS.iter().enumerate() {
                println!("  1/{ratio}, used {:.0} %", m.used[r] * 100.0);
                for (n, method) in METHODS.iter().enumerate() {
                    let cells: Vec<String> = m.kept[r][n].iter().map(|k| percent(*k)).collect();
                    println!("    {method:<12}{}", cells.join("  "));
                }
            }
        }
    }
    mode.apply(PAGE, &page(&measured, &ranked::rows()?), COMMAND)
}

struct Read {
    name: String,
    log: Vec<LogEntry>,
    plain: String,
    tokens: u64,
    gold: Gold,
}

impl From<Transcript> for Read {
    fn from(transcript: Transcript) -> Self {
        Self {
            gold: Gold::of(&transcript.messages),
            name: transcript.name,
            log: log(transcript.messages),
            plain: transcript.plain,
            tokens: transcript.tokens,
        }
    }
}

/// The messages as log entries.
fn log(messages: Vec<Message>) -> Vec<LogEntry> {
    let mut running = 0;
    messages
        .into_iter()
        .zip(1..)
        .map(|(message, seq)| {
            let tokens = match message.kind {
                EntryKind::Message => {
                    ESTIMATOR.text(&transcripts::plain(std::slice::from_ref(&message)))
                }
                EntryKind::Note => 0,
            };
            running += tokens;
            LogEntry {
                seq: Seq(seq),
                message,
                tokens,
                running,
                hash: Hash::ZERO,
            }
        })
        .collect()
}

impl Read {
    fn summary(&self, method: usize, ratio: u64) -> String {
        let budget = self.tokens / ratio;
        match method {
            0 => {
                let source: Vec<Source<'_>> = self.log.iter().map(Source::from).collect();
                ExtractiveSummarizer::new()
                    .with_conventions(Arc::new(KnownAgents))
                    .extract(&source, budget, &ESTIMATOR)
            }
            1 => cuts::head(&self.plain, budget, &ESTIMATOR),
            2 => cuts::tail(&self.plain, budget, &ESTIMATOR),
            _ => cuts::head_and_tail(&self.plain, budget, &ESTIMATOR),
        }
    }
}

struct Measured {
    name: String,
    tokens: u64,
    /// The share of the budget that the extract uses, by ratio.
    used: [f64; RATIOS.len()],
    /// By ratio, method, column.
    kept: [[Kept; METHODS.len()]; RATIOS.len()],
}

impl Measured {
    fn of(read: &Read) -> Self {
        let mut used = [0.0; RATIOS.len()];
        let kept = std::array::from_fn(|r| {
            std::array::from_fn(|method| {
                let text = read.summary(method, RATIOS[r]);
                let cost = ESTIMATOR.text(&text);
                let budget = read.tokens / RATIOS[r];
                // Cuts at a seam may cost a token more than their halves.
                assert!(cost <= budget + 4, "{}: {cost} > {budget}", METHODS[method]);
                if method == 0 {
                    used[r] = cost as f64 / budget as f64;
                }
                read.gold.kept(&text)
            })
        });
        Self {
            name: read.name.clone(),
            tokens: read.tokens,
            used,
            kept,
        }
    }
}

/// The page.
fn page(measured: &[Measured], ranked: &[ranked::Row]) -> String {
    let mut out = String::from(PREFACE);
    let total: u64 = measured.iter().map(|m| m.tokens).sum();
    let _ = writeln!(
        out,
        "{} conversations, {} thousand tokens.",
        measured.len(),
        total / 1000
    );
    for (r, ratio) in RATIOS.iter().enumerate() {
        let used = measured.iter().map(|m| m.used[r]).sum::<f64>() / measured.len() as f64;
        let _ = write!(
            out,
            "\n## At 1/{ratio} of the source\n\nThe extract uses {:.0} % of the budget on average.\n\n| method |",
            used * 100.0
        );
        for column in COLUMNS {
            let _ = write!(out, " {column} |");
        }
        let _ = writeln!(out, "\n|---|{}", "--:|".repeat(COLUMNS.len()));
        let mut table: Vec<(&str, Kept)> = Vec::new();
        for (n, method) in METHODS.iter().enumerate() {
            let mean_of = |column| {
                mean(
                    measured
                        .iter()
                        .filter_map(|m: &Measured| m.kept[r][n][column]),
                )
            };
            table.push((method, std::array::from_fn(mean_of)));
        }
        for row in ranked.iter().filter(|row| row.ratio == *ratio) {
            table.push((&row.method, row.kept.map(Some)));
        }
        for (method, row) in &table {
            let _ = write!(out, "| {method} |");
            for share in row {
                let _ = write!(out, " {} |", percent(*share));
            }
            out.push('\n');
        }
    }
    out.push_str(POSTFACE);
    out
}

const PREFACE: &str = "\
<!-- generated by `cargo xtask bench-retention` -->

# What an extract keeps

The extractive summarizer writes when no model can. This page measures what it keeps of real
transcripts, beside what else fits into the same number of tokens: the beginning, the end, half of
each, and the lines that TF-IDF or TextRank (crate `keyword_extraction`) rank highest.

What should be kept is defined by a transcript's structure alone, in code that the summarizer does
not share:

- **directives**: the sentences of the texts with the user's role, whoever typed, pasted or injected
  them; **typed**: without texts that begin with a tag or that the transcript marks as a program's.
  One that a later one replaces counts like any other here: [rules.md](rules.md) measures whether the latest is shown;
- **error lines**: the lines of results that are marked as errors;
- **paths**: arguments of tool calls that are paths, in full;
- **identifiers** and **numbers**: in users' and assistants' texts, and in short arguments and
  commands: words with an underscore, a hump, or letters and digits mixed; two digits or more;
- **commands**: the commands that tools ran.

Long lines and commands count by their first 200 characters. White space aside, what is kept must
be there to the letter. A figure is the mean over the conversations that have something to keep.

";

const POSTFACE: &str = "
## Goals

None of these figures is a goal. Sentences that a program injected count as directives, and errors that were mended later as
error lines; an extract tells both in a line or not at all. A list of names would raise *identifiers* and *numbers*, and nobody
could go on from it. What a context is for is measured by [next.md](next.md), [rules.md](rules.md) and [reading.md](reading.md).
";

fn mean(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = shares.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}", share * 100.0))
}

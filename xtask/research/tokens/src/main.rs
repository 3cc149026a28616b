//! Fits the coefficients of the calibrated estimators to exact tokenizers, and writes the tables of docs/measurements/tokens.md.
//!
//! `cargo research tokens -- --data DIR [--texts ROOT] [--check | --dry-run | --report | --folds]`

mod classes;
#[path = "../../../src/mode.rs"]
mod mode;
mod packages;
mod report;
mod solve;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use bpe_openai::Tokenizer;
use token_estimate::fit::{self, COUNTERS, Classes, PAIRS};

use crate::mode::Mode;
use solve::{Row, solve};
use sources::{Source, Transcript};

/// Characters of a chunk.
const CHUNK: usize = 1_500;
const WIDTH: usize = COUNTERS + PAIRS;
/// How strongly a counter, and a pair, is drawn to the weight of its group.
const PULL: (f64, f64) = (2e-9, 1e-8);

const COMMAND: &str = "cargo research tokens --";

fn main() -> anyhow::Result<()> {
    let (mut mode_flags, mut reporting, mut tuning) = (Vec::new(), false, false);
    let (mut data, mut texts) = (None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--data" => data = words.next().map(PathBuf::from),
            "--texts" => texts = words.next().map(PathBuf::from),
            "--report" => reporting = true,
            "--folds" => tuning = true,
            _ => mode_flags.push(word),
        }
    }
    let mode = Mode::from_flags(&mode_flags)?;
    let data = data
        .or_else(|| std::env::var_os("AGENT_MEMORY_CORPUS").map(PathBuf::from))
        .with_context(|| {
            format!(
                "no folder of transcripts: run `{COMMAND} --data DIR` or set AGENT_MEMORY_CORPUS"
            )
        })?;
    if reporting {
        return report::run(&data, texts.as_deref(), mode);
    }
    let Some(texts) = texts else {
        bail!("where are the unpacked packages? --texts ROOT; docs/measurements/tokens.md names them")
    };
    let mut all = sources::texts(&data)?;
    let transcripts = sources::transcripts(&data)?;
    for t in transcripts.iter().filter(|t| t.trained) {
        all.push(joined(t));
    }
    all.extend(sources::other(&data)?);
    all.extend(sources::packaged(&texts)?);
    all.extend(sources::shapes());
    let held = sources::held(&texts)?;
    for (name, tokenizer) in [
        ("o200k", bpe_openai::o200k_base()),
        ("cl100k", bpe_openai::cl100k_base()),
    ] {
        let family = Family::new(tokenizer, &all, &transcripts, &held);
        let weights = family.fit(&|_| true);
        println!("{name}: fitted on {} chunks", family.rows.len());
        family.measure(&weights);
        if tuning {
            family.folds();
            continue;
        }
        let path = format!("crates/token-estimate/src/calibrated/coefficients/{name}.bin");
        mode.apply_bytes(&path, &family.coefficients(&weights), COMMAND)?;
    }
    Ok(())
}

/// A transcript as one text.
fn joined(t: &Transcript) -> Source {
    let text: Vec<&str> = t.messages.iter().flatten().map(String::as_str).collect();
    Source {
        name: t.name.clone(),
        group: "transcript",
        text: text.join("\n"),
    }
}

/// A text in numbers.
struct Counted {
    exact: u64,
    counters: BTreeMap<u32, u32>,
}

struct Family {
    /// The class of each code point that the coefficients hold one for.
    classes: Vec<u8>,
    /// Name and group of each source, and its chunks in `rows`.
    sources: Vec<(String, &'static str)>,
    rows: Vec<(usize, Row)>,
    /// The corpus' texts and its unseen transcripts, for measuring.
    texts: Vec<(String, &'static str, Counted)>,
    messages: Vec<(String, bool, Vec<Counted>)>,
    /// What no fit sees.
    held: Vec<(String, Counted)>,
}

impl Family {
    fn new(
        tokenizer: &Tokenizer,
        all: &[Source],
        transcripts: &[Transcript],
        held: &[Source],
    ) -> Self {
        let table = classes::table(tokenizer);
        let classes = Classes::new(&table);
        let count = |text: &str| {
            let mut counters = BTreeMap::new();
            fit::raise(&classes, text, &mut |n| {
                *counters.entry(n as u32).or_insert(0) += 1
            });
            Counted {
                exact: tokenizer.count(text) as u64,
                counters,
            }
        };
        let mut rows = Vec::new();
        for (n, source) in all.iter().enumerate() {
            let chars: Vec<char> = source.text.chars().collect();
            let chunks = chars
                .chunks(CHUNK)
                .filter(|c| c.len() * 4 > CHUNK || chars.len() < CHUNK);
            let made: Vec<Counted> = chunks
                .map(|c| count(&c.iter().collect::<String>()))
                .filter(|c| c.exact > 0)
                .collect();
            let weight = emphasis(source) / made.len() as f32;
            rows.extend(made.iter().map(|chunk| {
                let share = |v: u32| v as f32 / chunk.exact as f32;
                (
                    n,
                    Row {
                        counters: chunk
                            .counters
                            .iter()
                            .map(|(&j, &v)| (j, share(v)))
                            .collect(),
                        weight,
                    },
                )
            }));
        }
        let total: f32 = rows.iter().map(|(_, row)| row.weight).sum();
        rows.iter_mut().for_each(|(_, row)| row.weight /= total);
        let texts = all
            .iter()
            .filter(|s| (!s.name.contains('/') && !s.name.contains(':')) || s.group == "zh-tw")
            .map(|s| (s.name.clone(), s.group, count(&s.text)))
            .collect();
        let held = held
            .iter()
            .map(|s| (s.name.clone(), count(&s.text)))
            .collect();
        let messages = transcripts
            .iter()
            .map(|t| {
                let of = |texts: &Vec<String>| {
                    texts.iter().map(|text| count(text)).fold(
                        Counted {
                            exact: 0,
                            counters: BTreeMap::new(),
                        },
                        |mut sum, one| {
                            sum.exact += one.exact;
                            for (j, v) in one.counters {
                                *sum.counters.entry(j).or_insert(0) += v;
                            }
                            sum
                        },
                    )
                };
                (
                    t.name.clone(),
                    t.trained,
                    t.messages.iter().map(of).collect(),
                )
            })
            .collect();
        Self {
            classes: table,
            sources: all.iter().map(|s| (s.name.clone(), s.group)).collect(),
            rows,
            texts,
            messages,
            held,
        }
    }

    /// The weights, in tokens, learnt from the sources that `keep` keeps.
    fn fit(&self, keep: &dyn Fn(&(String, &'static str)) -> bool) -> Vec<f64> {
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|(n, _)| keep(&self.sources[*n]))
            .map(|(_, row)| row)
            .collect();
        // First with few counters: those of a group share one weight.
        let groups: Vec<u32> = (0..WIDTH as u32).map(group).collect();
        let names: BTreeSet<u32> = groups.iter().copied().collect();
        let place: BTreeMap<u32, u32> = names
            .iter()
            .enumerate()
            .map(|(n, &g)| (g, n as u32))
            .collect();
        let tied: Vec<Row> = rows
            .iter()
            .map(|row| {
                let mut sums: BTreeMap<u32, f32> = BTreeMap::new();
                for &(j, v) in &row.counters {
                    *sums.entry(place[&groups[j as usize]]).or_insert(0.0) += v;
                }
                Row {
                    counters: sums.into_iter().collect(),
                    weight: row.weight,
                }
            })
            .collect();
        let tied: Vec<&Row> = tied.iter().collect();
        let few = solve(
            &tied,
            &vec![0.0; names.len()],
            &vec![1e-7; names.len()],
            &vec![7.0; names.len()],
            400,
        );
        let target: Vec<f64> = groups.iter().map(|g| few[place[g] as usize]).collect();
        let pull: Vec<f64> = (0..WIDTH)
            .map(|j| if j < COUNTERS { PULL.0 } else { PULL.1 })
            .collect();
        let most: Vec<f64> = (0..WIDTH).map(most).collect();
        solve(&rows, &target, &pull, &most, 400)
    }

    fn estimate(weights: &[f64], of: &Counted) -> f64 {
        of.counters
            .iter()
            .map(|(&j, &v)| weights[j as usize] * f64::from(v))
            .sum()
    }

    fn measure(&self, weights: &[f64]) {
        let error = |of: &Counted| (Self::estimate(weights, of) / of.exact as f64 - 1.0) * 100.0;
        let mut sum = 0.0;
        let mut n = 0.0;
        for (name, _, text) in self.texts.iter().filter(|t| !t.0.contains(':')) {
            println!("  {name:24} {:+6.2} %", error(text));
            sum += error(text).abs();
            n += 1.0;
        }
        println!("  mean of texts {:.2} %", sum / n);
        for (name, text) in &self.held {
            println!("  held out: {name:60} {:+6.2} %", error(text));
        }
        let sizes = self.held.iter().map(|(_, text)| error(text).abs());
        println!(
            "  mean of what was held out {:.2} %",
            sizes.sum::<f64>() / self.held.len() as f64
        );
        for trained in [true, false] {
            let mut all = Vec::new();
            let mut worst = 0.0_f64;
            let mut mean = Vec::new();
            for (name, _, messages) in self.messages.iter().filter(|m| m.1 == trained) {
                all.extend(messages.iter().filter(|m| m.exact > 50).map(error));
                let exact: u64 = messages.iter().map(|m| m.exact).sum();
                let guess: f64 = messages.iter().map(|m| Self::estimate(weights, m)).sum();
                let whole = (guess / exact as f64 - 1.0) * 100.0;
                worst = if whole.abs() > worst.abs() {
                    whole
                } else {
                    worst
                };
                println!("  {name:48} {whole:+6.2} %");
                mean.push(whole.abs());
            }
            let mut sizes: Vec<f64> = all.iter().map(|e| e.abs()).collect();
            sizes.sort_by(f64::total_cmp);
            println!(
                "  transcripts (trained: {trained}): messages mean {:.2} %, p95 {:.2} %, lowest {:+.1} %; whole mean {:.2} %, worst {worst:+.2} %",
                sizes.iter().sum::<f64>() / sizes.len() as f64,
                sizes[sizes.len() * 95 / 100],
                all.iter().copied().fold(0.0, f64::min),
                mean.iter().sum::<f64>() / mean.len() as f64
            );
        }
    }

    /// Each text of the corpus under a fit that has not seen it, and under one that has not seen its language.
    fn folds(&self) {
        let (mut sums, mut count) = ([0.0, 0.0], 0.0);
        for (name, group, text) in &self.texts {
            let fits = [self.fit(&|s| s.0 != *name), self.fit(&|s| s.1 != *group)];
            let errors = fits.map(|w| (Self::estimate(&w, text) / text.exact as f64 - 1.0) * 100.0);
            println!(
                "  {name:24} without the file {:+6.2} %, without {group} {:+6.2} %",
                errors[0], errors[1]
            );
            if name.contains(':') {
                continue;
            }
            count += 1.0;
            for n in [0, 1] {
                sums[n] += errors[n].abs();
            }
        }
        println!(
            "  mean of the corpus: without the file {:.2} %, without its language {:.2} %",
            sums[0] / count,
            sums[1] / count
        );
    }

    /// The file of coefficients, in the format that the README beside it describes.
    fn coefficients(&self, weights: &[f64]) -> Vec<u8> {
        let fixed: Vec<u16> = weights
            .iter()
            .map(|w| (w * 4_096.0).round() as u16)
            .collect();
        let (counters, pairs) = fixed.split_at(COUNTERS);
        let mut numbers: Vec<u16> = counters.to_vec();
        numbers.push(pairs.iter().filter(|w| **w > 0).count() as u16);
        for (place, weight) in pairs.iter().enumerate().filter(|(_, w)| **w > 0) {
            numbers.extend([place as u16, *weight]);
        }
        let mut out: Vec<u8> = numbers.into_iter().flat_map(u16::to_le_bytes).collect();
        out.extend(&self.classes);
        out
    }
}

/// How much a source matters.
fn emphasis(source: &Source) -> f32 {
    const LATIN: &[&str] = &[
        "de", "fr", "es", "pt", "it", "pl", "cs", "fi", "hu", "id", "nl", "ro", "vi", "tr",
    ];
    let interface = source.name.contains("mediawiki") || source.name.contains("wordpress");
    if source.name.starts_with("made: emoji") {
        0.8
    } else if source.name.contains("(raw)") || source.group == "shapes" {
        0.3
    } else if source.group == "transcript" {
        2.5
    } else if interface && LATIN.contains(&source.group) {
        // Their letters are also those of English and of code.
        0.05
    } else if interface {
        0.3
    } else if source.name.contains(": ") {
        0.7
    } else {
        2.0
    }
}

/// No weight may be above this: a pair that was hardly seen must not explain a whole chunk, and what stands before a text
/// must not change its weight by more than about a token.
fn most(counter: usize) -> f64 {
    let (before, after) = (
        counter.wrapping_sub(COUNTERS) / 128,
        counter.wrapping_sub(COUNTERS) % 128,
    );
    match counter {
        // White space: what a line end leads to must be known within a token.
        0..=6 => 1.0,
        7..COUNTERS => 4.0,
        _ if (59..=62).contains(&after) => 0.5,
        _ if before < 64 && after < 64 => 1.0,
        _ => 3.0,
    }
}

/// The counters that share a weight in the first fit.
fn group(counter: u32) -> u32 {
    let counter = counter as usize;
    if counter < COUNTERS {
        return u32::from(fit::group(counter as u16));
    }
    let (before, after) = ((counter - COUNTERS) / 128, (counter - COUNTERS) % 128);
    let kind = |fine: usize| match fine {
        1..=26 => 1,
        27..=58 => 27,
        64..=65 => 64,
        67..=68 => 67,
        70..=71 => 70,
        77..=79 => 77,
        80..=82 => 80,
        83..=85 => 83,
        92..=109 => 92,
        110..=115 => 110,
        116..=118 => 116,
        119.. => 119,
        other => other,
    };
    let same = before == after && (27..=58).contains(&before);
    (COUNTERS + (kind(before) * 128 + kind(after)) * 2 + usize::from(same)) as u32
}

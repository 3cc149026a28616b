//! Runs the same workload on this engine and on lossless-hermes-py, the one engine of this kind that an ordinary
//! package client installs, and prints a table of ratios.
//!
//! `cargo research peers [SIZE…]` installs the peer from PyPI into a virtual environment that is deleted at the
//! end. Both engines run in turn, each round in a new process with a new database: the generated conversation (the peer
//! gets role and text), one durable append per message, a full compaction with a summarizer that always returns the same
//! text at once, a context of 32,000 tokens, and two searches for 20 hits, newest first: a word that occurs in one message
//! and a word that occurs in most.

mod engine;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

const PEER: &str = "lossless-hermes-py";
const VERSION: &str = "0.1.6";
const SCRIPT: &str = include_str!("peer.py");
const ROUNDS: usize = 5;
const SIZES: [&str; 2] = ["1000", "10000"];
/// What the summarizer always answers: some 300 tokens.
const SUMMARY: &str = "What happened: the user asked for a change, files were read, tests were run and failed, \
                       the cause was found and mended. ";
/// A word that the generated conversation has once, and one that many messages have.
const WORDS: [&str; 2] = ["needle1x", "deploy"];
/// What is measured: its name in the output, what it is, and how many of them a second has.
const MEASURES: [(&str, &str, f64, &str); 5] = [
    ("ingest", "ingest, a message", 1e6, "µs"),
    ("pass", "compaction, a summary", 1e3, "ms"),
    ("assemble", "assemble after compaction", 1e3, "ms"),
    ("rare", "search, a rare word", 1e3, "ms"),
    ("common", "search, a common word", 1e3, "ms"),
];

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["engine", words @ ..] = words.as_slice() {
        return engine::run(words);
    }
    let sizes = if words.is_empty() { &SIZES[..] } else { &words };
    let name = format!("agent-memory-bench-peers-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    let done = compare(&folder, sizes);
    std::fs::remove_dir_all(&folder).with_context(|| format!("{} stays", folder.display()))?;
    done
}

fn compare(folder: &Path, sizes: &[&str]) -> anyhow::Result<()> {
    let python = install(folder)?;
    let script = folder.join("peer.py");
    std::fs::write(&script, SCRIPT)?;
    let summary = SUMMARY.repeat(10);
    println!("| messages | measured | agent-memory | {PEER} {VERSION} | theirs / ours |");
    println!("|---:|---|---:|---:|---:|");
    for size in sizes {
        let messages = folder.join(format!("{size}.jsonl"));
        output(ours()?.arg("export").arg(size).arg(&messages))?;
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let database = |whose: &str| folder.join(format!("{whose}-{size}-{round}.db"));
            let mut command = ours()?;
            command.args(["run", size]).arg(database("ours"));
            own.push(measured(command.arg(&summary).args(WORDS))?);
            let mut command = Command::new(&python);
            command.arg(&script).arg(&messages).arg(database("theirs"));
            theirs.push(measured(command.arg(&summary).args(WORDS))?);
        }
        for (key, what, scale, unit) in MEASURES {
            let (own, theirs) = (median(&own, key)?, median(&theirs, key)?);
            let ratio = theirs / own;
            let digits = if ratio < 1.0 { 3 } else { 1 };
            println!(
                "| {size} | {what} | {:.2} {unit} | {:.2} {unit} | {ratio:.digits$} |",
                own * scale,
                theirs * scale,
            );
        }
        for key in ["passes", "rare_hits", "common_hits"] {
            let (own, theirs) = (median(&own, key)?, median(&theirs, key)?);
            println!("| {size} | {key} | {own} | {theirs} | |");
        }
    }
    Ok(())
}

/// A virtual environment with the peer: its interpreter.
fn install(folder: &Path) -> anyhow::Result<std::path::PathBuf> {
    let place = folder.join("venv");
    output(Command::new("python3").args(["-m", "venv"]).arg(&place))
        .context("python3 with its venv module is needed")?;
    let python = place.join("bin").join("python");
    let package = format!("{PEER}=={VERSION}");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", &package]);
    output(&mut pip).with_context(|| {
        format!("{package} could not be installed: is PyPI reachable? Nothing was measured")
    })?;
    Ok(python)
}

/// This engine, in a process of its own: this program again.
fn ours() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("engine");
    Ok(command)
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .output()
        .with_context(|| format!("{:?} could not be started", command.get_program()))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn measured(command: &mut Command) -> anyhow::Result<Value> {
    let text = output(command)?;
    let line = text.lines().rfind(|line| line.starts_with('{'));
    serde_json::from_str(line.context("no figures were printed")?).context("the figures")
}

fn median(rounds: &[Value], key: &str) -> anyhow::Result<f64> {
    let mut all: Vec<f64> = rounds
        .iter()
        .filter_map(|round| round.get(key)?.as_f64())
        .collect();
    ensure!(all.len() == rounds.len(), "{key} was not measured");
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().context("no rounds")
}

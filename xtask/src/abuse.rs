//! Abuse of the program: with `--minutes`, its abuse tests with new seeds for a while; with `--all`, everything once.

#![allow(
    clippy::disallowed_methods,
    reason = "how long the abuse goes on is asked for in minutes of the system's time"
)]

mod counts;
mod scripts;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use counts::Counts;

use crate::mode::{root, target_folder};
use crate::options::Options;
use crate::python::call;

const USAGE: &str = "usage: cargo xtask abuse --minutes N [--seed N] [SCENARIO]
       cargo xtask abuse --all [--short] [--seed N] [PROGRAM] [NAME ...]";

/// Difference of the seeds of two rounds, so that no two rounds play the same case.
const CASES: u64 = 4;

/// Seconds for a check that makes random choices.
const SHORT: u64 = 4;
const LONG: u64 = 60;

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let known: (&[&str], &[&str]) = (&["--minutes", "--seed"], &["--all", "--short"]);
    let options = Options::read(flags, words, known, USAGE)?;
    let (minutes, seed) = (options.get("--minutes"), options.get("--seed"));
    let (all, short) = (options.has("--all"), options.has("--short"));
    match (minutes, options.words.as_slice()) {
        (None, words) if all => run_all(short, seed, words),
        (Some(minutes), words @ ([] | [_])) if !all && !short => {
            run_for(minutes, seed.unwrap_or(1_000), words.first().unwrap_or(&""))
        }
        _ => bail!(USAGE),
    }
}

/// Runs rounds of the abuse tests until the time ends. Stops at the first failing round, which prints the seed and the
/// command that repeats the case.
fn run_for(minutes: u64, first: u64, scenario: &str) -> anyhow::Result<()> {
    let (start, most) = (Instant::now(), Duration::from_secs(60 * minutes));
    let (mut seed, mut rounds) = (first, 0);
    while start.elapsed() < most {
        let status = round(scenario, seed).status().context("run cargo test")?;
        ensure!(
            status.success(),
            "the round that begins at seed {seed} failed: the command above plays the case again"
        );
        rounds += 1;
        seed += CASES;
    }
    println!(
        "{rounds} rounds, seeds {first} to {}, in {} s: nothing was lost",
        seed.saturating_sub(1),
        start.elapsed().as_secs()
    );
    Ok(())
}

/// The command that runs the abuse tests once.
fn round(scenario: &str, seed: u64) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--locked", "--package", "agent-memory-cli"])
        .args(["--test", "it", "--", "--nocapture"])
        .arg(format!("abuse::{scenario}"))
        .env("AGENT_MEMORY_ABUSE_SEED", seed.to_string())
        .env("AGENT_MEMORY_ABUSE_CASES", CASES.to_string());
    command
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs the scripts, and a round of the abuse tests, which `cargo test` runs too and the short form leaves out.
fn run_all(short: bool, seed: Option<u64>, words: &[&str]) -> anyhow::Result<()> {
    let (program, names) = match words {
        [program, names @ ..] if program.contains('/') => (PathBuf::from(program), names),
        names => (target_folder().join("release/agent-memory"), names),
    };
    scripts::ensure_known(names)?;
    if names.len() == words.len() {
        call(cargo().args([
            "build",
            "--release",
            "--locked",
            "--package",
            "agent-memory-cli",
        ]))?;
    }
    ensure!(program.is_file(), "there is no {}", program.display());
    let seed = seed.unwrap_or(1);
    let scripts = scripts::Scripts {
        program: &program,
        seconds: if short { SHORT } else { LONG },
        seed,
        names,
    };
    let mut groups = Vec::new();
    for group in scripts::GROUPS {
        groups.push(scripts.run(group)?);
    }
    if !short && names.is_empty() {
        groups.push(run_tests(seed)?);
    }
    println!("group       run  right  wrong  left out  seconds");
    for counts in &groups {
        counts.print();
    }
    let wrong: usize = groups.iter().map(|counts| counts.wrong).sum();
    ensure!(wrong == 0, "{wrong} wrong: the lines above say which");
    Ok(())
}

/// Runs the abuse tests once and counts them.
fn run_tests(seed: u64) -> anyhow::Result<Counts> {
    let start = Instant::now();
    let output = round("", seed)
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo test")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        println!("{printed}");
    }
    // A line such as `test result: ok. 31 passed; 0 failed; …`.
    let count = |of: &str| {
        let result = printed
            .lines()
            .rev()
            .find(|line| line.starts_with("test result:"));
        let before = result.and_then(|line| line.split_once(of))?.0;
        before.split_whitespace().last()?.parse().ok()
    };
    let (right, wrong) = (count(" passed").unwrap_or(0), count(" failed").unwrap_or(0));
    Ok(Counts {
        right,
        // A build that fails has no counts.
        wrong: wrong.max(usize::from(!output.status.success())),
        seconds: start.elapsed().as_secs(),
        ..Counts::new("tests")
    })
}

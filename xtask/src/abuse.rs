//! Runs the abuse of the program with new seeds for a while.

#![allow(
    clippy::disallowed_methods,
    reason = "how long the abuse goes on is asked for in minutes of the system's time"
)]

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::mode::root;

/// Difference of the seeds of two rounds, so that no two rounds play the same case.
const CASES: u64 = 4;

/// Runs rounds of all scenarios until the time ends. Stops at the first failing round, which prints the seed and the
/// command that repeats the case.
pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    const USAGE: &str = "usage: cargo xtask abuse --minutes N [--seed N] [SCENARIO]";
    let mut minutes = None;
    let mut seed = 1_000;
    let mut words = words.iter();
    for flag in flags {
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value),
            None => (flag.as_str(), *words.next().context(USAGE)?),
        };
        let value: u64 = value
            .parse()
            .with_context(|| format!("{name} {value}: give a number; {USAGE}"))?;
        match name {
            "--minutes" => minutes = Some(value),
            "--seed" => seed = value,
            _ => bail!("{name} is not known; {USAGE}"),
        }
    }
    let minutes = minutes.context(USAGE)?;
    let scenario = format!("abuse::{}", words.next().unwrap_or(&""));
    ensure!(words.next().is_none(), USAGE);
    let (start, most) = (Instant::now(), Duration::from_secs(60 * minutes));
    let (first, mut rounds) = (seed, 0);
    while start.elapsed() < most {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .current_dir(root())
            .args([
                "test",
                "--locked",
                "--package",
                "agent-memory-cli",
                "--test",
                "it",
                "--",
            ])
            .args([&scenario, "--nocapture"])
            .env("AGENT_MEMORY_ABUSE_SEED", seed.to_string())
            .env("AGENT_MEMORY_ABUSE_CASES", CASES.to_string())
            .status()
            .context("run cargo test")?;
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

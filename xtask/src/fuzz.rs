//! Runs the fuzz targets of the crates' tests for a while.

use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::mode::root;
use crate::options::Options;

const USAGE: &str = "usage: cargo xtask fuzz [--minutes N] [--seed N] [TARGET]";

/// The package and the test of each target. The target has the test's name.
const TARGETS: [(&str, &str); 12] = [
    ("provider-shapes", "fuzz::providers"),
    ("message-formats", "fuzz::transcripts"),
    ("message-formats", "fuzz::shapes"),
    ("agent-memory", "fuzz::imports"),
    ("agent-memory", "fuzz::messages"),
    ("agent-memory", "fuzz::packs"),
    ("agent-memory", "fuzz::stored"),
    ("agent-memory", "fuzz::queries"),
    ("agent-memory", "fuzz::calls"),
    ("agent-memory-cli", "fuzz::events"),
    ("agent-memory-cli", "fuzz::requests_of_clients"),
    ("agent-memory-cli", "config::fuzz::settings"),
];

/// Runs one target, or all of them one after the other, each for an equal part of the time. Each prints its figures.
pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let options = Options::read(flags, words, (&["--minutes", "--seed"], &[]), USAGE)?;
    let wanted = options.words.first().map(|name| name.replace('-', "_"));
    let is_wanted = |test: &str| {
        wanted
            .as_deref()
            .is_none_or(|name| test.ends_with(&format!("::{name}")))
    };
    let targets: Vec<_> = TARGETS
        .into_iter()
        .filter(|(_, test)| is_wanted(test))
        .collect();
    ensure!(options.words.len() < 2 && !targets.is_empty(), USAGE);
    let seconds = options.get("--minutes").unwrap_or(1) * 60 / targets.len() as u64;
    let mut failed = Vec::new();
    for (package, test) in targets {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .current_dir(root())
            .args([
                "test",
                "--quiet",
                "--locked",
                "--package",
                package,
                "--bins",
                "--test",
                "it",
            ])
            .args(["--", test, "--exact", "--nocapture"])
            .env("AGENT_MEMORY_FUZZ_SECONDS", seconds.max(1).to_string())
            .env(
                "AGENT_MEMORY_FUZZ_SEED",
                options.get("--seed").unwrap_or(1).to_string(),
            )
            .status()
            .context("run cargo test")?;
        if !status.success() {
            failed.push(test);
        }
    }
    ensure!(
        failed.is_empty(),
        "the messages above name the inputs that {} failed for",
        failed.join(", ")
    );
    Ok(())
}

//! Runs the facade's tests on a simulated disk with many seeds.

use std::io::Write as _;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::mode::root;
use crate::options::Options;

const USAGE: &str =
    "usage: cargo xtask simulate [--cuts N] [--seed N] [--part K --parts N] [TEST] | --keep SEED";
const SEEDS: &str = "crates/agent-memory/tests/it/simulated/seeds.txt";

/// Runs the tests with many seeds for power cuts, and with a kill and a failure at every call, or at those of one of several
/// parts. With `--keep`, adds a seed to the list of seeds that the tests always run.
pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let numbers = ["--cuts", "--seed", "--part", "--parts", "--keep"];
    let options = Options::read(flags, words, (&numbers, &[]), USAGE)?;
    if let Some(seed) = options.get("--keep") {
        return keep(seed);
    }
    let cuts = options.get("--cuts").unwrap_or(10_000);
    let seed = options.get("--seed").unwrap_or(1);
    let [part, parts] = ["--part", "--parts"].map(|name| options.get(name).unwrap_or(1));
    ensure!(
        (1..=parts).contains(&part),
        "there is no part {part} of {parts}\n{USAGE}"
    );
    let tests = match options.words.as_slice() {
        [] => "simulated::".to_owned(),
        [test] => format!("simulated::{test}"),
        _ => bail!(USAGE),
    };
    let listed = test(&tests).arg("--list").output();
    let listed = listed.context("run cargo test")?.stdout;
    ensure!(
        String::from_utf8_lossy(&listed).contains(": test"),
        "there is no test {tests}"
    );
    let status = test(&tests)
        .arg("--nocapture")
        .env("AGENT_MEMORY_SIMULATED_SEED", seed.to_string())
        .env("AGENT_MEMORY_SIMULATED_CASES", cuts.to_string())
        .env("AGENT_MEMORY_SIMULATED_ALL", "1")
        .env("AGENT_MEMORY_SIMULATED_PART", part.to_string())
        .env("AGENT_MEMORY_SIMULATED_PARTS", parts.to_string())
        .status()
        .context("run cargo test")?;
    ensure!(
        status.success(),
        "the message above names the seed: `cargo xtask simulate --keep SEED` makes it a test"
    );
    Ok(())
}

/// The command that runs some of the facade's tests.
fn test(tests: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo.args([
        "test",
        "--locked",
        "--package",
        "agent-memory",
        "--test",
        "it",
    ]);
    cargo.args(["--", tests]);
    cargo
}

fn keep(seed: u64) -> anyhow::Result<()> {
    let path = root().join(SEEDS);
    let kept = std::fs::read_to_string(&path).with_context(|| format!("read {SEEDS}"))?;
    let line = seed.to_string();
    ensure!(
        kept.lines().all(|one| one != line),
        "{SEEDS} has the seed {seed} already"
    );
    let mut file = std::fs::OpenOptions::new().append(true).open(&path)?;
    writeln!(file, "{line}").with_context(|| format!("write {SEEDS}"))?;
    println!("{SEEDS}: the tests always play the seed {seed} now");
    Ok(())
}

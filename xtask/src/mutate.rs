//! Breaks the code in the ways of `xtask/mutations.toml`, one at a time, and runs the test that must notice.
//!
//! The mutations belong to the laws of `docs/promises.md`, which names them. They are applied to a copy of the checkout.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use crate::mode::{root, target_folder};
use crate::options::Options;
use crate::parity::{PROMISES, TestName};

const MUTATIONS: &str = "xtask/mutations.toml";
const USAGE: &str = "usage: cargo xtask mutate [--check | --part K --parts N | NAME ...]";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutations {
    mutation: Vec<Mutation>,
}

/// A change of one place of the code, and the test that must fail with it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    name: String,
    file: PathBuf,
    from: String,
    to: String,
    /// The test as `docs/promises.md` names it: `crate: module::function`.
    test: String,
    /// Environment of the test: names and values.
    #[serde(default)]
    env: Vec<(String, String)>,
}

impl Mutation {
    /// Returns the file's text with the mutation.
    fn apply(&self, root: &Path) -> anyhow::Result<String> {
        let path = root.join(&self.file);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("{}: read {}", self.name, self.file.display()))?;
        let places = text.matches(&self.from).count();
        ensure!(
            places == 1,
            "{}: the text is {places} times in {}: adapt {MUTATIONS} to the code",
            self.name,
            self.file.display()
        );
        Ok(text.replacen(&self.from, &self.to, 1))
    }

    fn cargo(&self, checkout: &Path, build_only: bool) -> anyhow::Result<Output> {
        let test = TestName::parse(&self.test)
            .with_context(|| format!("{}: `crate: module::function` is expected", self.test))?;
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(checkout)
            .env("CARGO_TARGET_DIR", target_folder().join("mutate/target"))
            .env("CARGO_INCREMENTAL", "0")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .args(["test", "--locked", "--package", test.crate_name()])
            .args(test.target(checkout)?);
        match build_only {
            true => cargo.arg("--no-run"),
            false => cargo.args(["--", &test.path()]),
        };
        cargo.output().context("run cargo test")
    }

    /// Runs the test. Returns the beginning of its message if it fails.
    fn test(&self, checkout: &Path) -> anyhow::Result<Option<String>> {
        let ran = self.cargo(checkout, false)?;
        let (out, err) = (
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr),
        );
        let results = |end: &str| out.lines().filter(|line| line.ends_with(end)).count();
        let (passed, failed) = (results(" ... ok"), results(" ... FAILED"));
        ensure!(
            passed + failed == 1,
            "{}: {} tests ran instead of one:\n{out}\n{err}",
            self.test,
            passed + failed
        );
        let message = format!("{out}{err}");
        let mut lines = message
            .lines()
            .skip_while(|line| !line.contains("panicked at"));
        let message = lines.nth(1).unwrap_or_default();
        Ok((failed == 1).then(|| message.chars().take(160).collect()))
    }
}

/// Checks that all mutations can be applied and are named by the page, or also runs the named ones; if none is named, all of
/// them, or one of several parts.
pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let options = Options::read(flags, words, (&["--part", "--parts"], &["--check"]), USAGE)?;
    let (names, check) = (options.words.as_slice(), options.has("--check"));
    let [part, parts] = ["--part", "--parts"].map(|name| options.get(name).unwrap_or(1));
    ensure!(
        (1..=parts).contains(&part),
        "there is no part {part} of {parts}\n{USAGE}"
    );
    let text = std::fs::read_to_string(root().join(MUTATIONS))
        .with_context(|| format!("read {MUTATIONS}"))?;
    let Mutations { mutation: all } =
        toml::from_str(&text).with_context(|| format!("read {MUTATIONS}"))?;
    let page = std::fs::read_to_string(root().join(PROMISES))
        .with_context(|| format!("read {PROMISES}"))?;
    for mutation in &all {
        mutation.apply(&root())?;
        for named in [&mutation.name, &mutation.test] {
            ensure!(
                page.contains(&format!("`{named}`")),
                "{PROMISES} does not name {named}: add it to the row of its law"
            );
        }
    }
    if check {
        println!("{} mutations can be applied", all.len());
        return Ok(());
    }
    for name in names {
        ensure!(
            all.iter().any(|mutation| mutation.name == *name),
            "{MUTATIONS} has no mutation {name}"
        );
    }
    let checkout = target_folder().join("mutate/checkout");
    copy(&checkout)?;
    // Neighbours break the same crates, so a part is a run of neighbours: less is compiled.
    let (first, end) = (
        (part - 1) * all.len() as u64 / parts,
        part * all.len() as u64 / parts,
    );
    let chosen: Vec<&Mutation> = (0_u64..)
        .zip(&all)
        .filter(|(index, mutation)| match names {
            [] => (first..end).contains(index),
            names => names.contains(&mutation.name.as_str()),
        })
        .map(|(_, mutation)| mutation)
        .collect();
    // A test that fails without a mutation proves nothing.
    let mut tests = BTreeSet::new();
    for mutation in &chosen {
        if !tests.insert((&mutation.test, &mutation.env)) {
            continue;
        }
        let failure = mutation.test(&checkout)?;
        ensure!(
            failure.is_none(),
            "{} fails without a mutation: {}",
            mutation.test,
            failure.unwrap_or_default()
        );
    }
    let (mut run, mut unnoticed) = (0, Vec::new());
    for mutation in chosen {
        let path = checkout.join(&mutation.file);
        let whole = std::fs::read_to_string(&path)?;
        std::fs::write(&path, mutation.apply(&checkout)?)?;
        let found = try_one(mutation, &checkout);
        std::fs::write(&path, whole)?;
        let found = found?;
        println!("{}: {found}", mutation.name);
        run += 1;
        if found.starts_with("NOT") {
            unnoticed.push(mutation.name.as_str());
        }
    }
    println!("{run} mutations, {} not noticed", unnoticed.len());
    ensure!(
        unnoticed.is_empty(),
        "no test fails with: {}",
        unnoticed.join(", ")
    );
    Ok(())
}

/// Runs the test of an applied mutation, and describes the result.
#[allow(
    clippy::disallowed_methods,
    reason = "the duration is printed, and nothing depends on it"
)]
fn try_one(mutation: &Mutation, checkout: &Path) -> anyhow::Result<String> {
    let built = mutation.cargo(checkout, true)?;
    if !built.status.success() {
        let err = String::from_utf8_lossy(&built.stderr);
        return Ok(format!("NOT tried, because it does not compile:\n{err}"));
    }
    let start = Instant::now();
    let failure = mutation.test(checkout)?;
    let seconds = start.elapsed().as_secs();
    Ok(match failure {
        Some(message) => format!("noticed in {seconds} s: {message}"),
        None => format!("NOT noticed by {} in {seconds} s", mutation.test),
    })
}

/// Copies the checkout's files. Files that are equal already are left alone, so that little is compiled again.
fn copy(to: &Path) -> anyhow::Result<()> {
    let listed = Command::new("git")
        .current_dir(root())
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()
        .context("run git ls-files")?;
    ensure!(listed.status.success(), "git ls-files failed");
    let names = String::from_utf8(listed.stdout).context("read the names of files")?;
    for name in names.split_terminator('\0') {
        let (from, to) = (root().join(name), to.join(name));
        // A deleted file may still be listed.
        let Ok(bytes) = std::fs::read(&from) else {
            continue;
        };
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        let folder = to.parent().context("a file has a folder")?;
        std::fs::create_dir_all(folder)?;
        std::fs::write(&to, bytes).with_context(|| format!("write {}", to.display()))?;
    }
    Ok(())
}

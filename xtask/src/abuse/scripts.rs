//! Runs the scripts in `xtask/abuse`: the cases, which are situations that users of such programs met, and the checks,
//! which kill, damage and overload the program. Each script is one situation, and its first sentence says what is right.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::counts::Counts;
use crate::mode::{root, target_folder};
use crate::python::environment;

/// Folders of scripts in `xtask/abuse`.
pub(super) const GROUPS: [&str; 2] = ["cases", "checks"];

/// Packages for pip: the decompressor that looks for erased words, and the tables of a tokenizer.
const PACKAGES: [&str; 2] = ["zstandard==0.25.0", "bpe-openai==0.1.4"];

/// Scripts at a time. None asserts a time that another script could exceed.
const WORKERS: usize = 2;

/// Exit code of a script that this machine cannot run.
const LEFT_OUT: i32 = 77;

/// Lines printed of a failing script.
const LAST_LINES: usize = 12;

/// The arguments of all scripts.
pub(super) struct Scripts<'a> {
    pub(super) program: &'a Path,
    /// Time for a script that makes random choices.
    pub(super) seconds: u64,
    pub(super) seed: u64,
    /// The scripts to run, or none for all.
    pub(super) names: &'a [&'a str],
}

impl Scripts<'_> {
    /// Runs the scripts of a folder of `xtask/abuse`, and prints the failing ones.
    pub(super) fn run(&self, group: &'static str) -> anyhow::Result<Counts> {
        let start = Instant::now();
        let python = environment(&target_folder().join("abuse"), &PACKAGES)?;
        let queue = Mutex::new(VecDeque::from(self.scripts(group)?));
        let counts = Mutex::new(Counts::new(group));
        let next = || queue.lock().ok()?.pop_front();
        let work = || -> anyhow::Result<()> {
            while let Some(script) = next() {
                let output = self.call(&python, &script)?;
                if let Ok(mut counts) = counts.lock() {
                    self.count(&mut counts, &script, &output);
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|_| Ok(())))
        })?;
        let mut counts = counts.into_inner().unwrap_or_else(|lock| lock.into_inner());
        counts.seconds = start.elapsed().as_secs();
        Ok(counts)
    }

    /// The scripts of a folder that were asked for, in the order of their names.
    fn scripts(&self, group: &str) -> anyhow::Result<Vec<PathBuf>> {
        let folder = root().join("xtask/abuse").join(group);
        let mut scripts = Vec::new();
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?
        {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "py")
                && (self.names.is_empty() || self.names.contains(&name(&path)))
            {
                scripts.push(path);
            }
        }
        scripts.sort();
        Ok(scripts)
    }

    fn call(&self, python: &Path, script: &Path) -> anyhow::Result<Output> {
        Command::new(python)
            .arg(script)
            .arg(self.program)
            .args([self.seconds.to_string(), self.seed.to_string()])
            .env("PYTHONPATH", root().join("xtask/abuse"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .with_context(|| format!("run {}", script.display()))
    }

    fn count(&self, counts: &mut Counts, script: &Path, output: &Output) {
        let name = name(script);
        let printed = [&*output.stdout, &*output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        let lines: Vec<_> = printed.lines().collect();
        let required = std::env::var_os("AGENT_MEMORY_REQUIRE_ABUSE").is_some();
        match output.status.code() {
            Some(0) => counts.right += 1,
            Some(LEFT_OUT) if !required => {
                counts.left_out += 1;
                println!("{name} is left out: {}", lines.last().unwrap_or(&""));
            }
            _ => {
                counts.wrong += 1;
                println!("\n{name} is wrong:");
                for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
                    println!("  {line}");
                }
                println!(
                    "  again: cargo xtask abuse --all --seed {} {} {name}\n",
                    self.seed,
                    self.program.display()
                );
            }
        }
    }
}

/// Fails if there is no script of one of the names.
pub(super) fn ensure_known(names: &[&str]) -> anyhow::Result<()> {
    for name in names {
        let exists = GROUPS.iter().any(|group| {
            let path = format!("xtask/abuse/{group}/{name}.py");
            root().join(path).is_file()
        });
        ensure!(
            exists,
            "there is no {name}: give the name of a file in xtask/abuse/cases or xtask/abuse/checks"
        );
    }
    Ok(())
}

fn name(script: &Path) -> &str {
    script
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or("")
}

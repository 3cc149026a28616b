//! Fuzzing: mutated inputs for anything that reads text or bytes.
//!
//! A test makes a [`Target`] and calls [`Target::run`] with a check, which asserts laws for any input and returns the
//! *shape* of the outcome: a few facts such as the kinds of its messages. An input with a new shape is kept while the run
//! lasts and mutated further. The same seed plays the same inputs.
//!
//! An input for which the check panics is a finding. It is made smaller and written to a file, which the panic of the run
//! names. Once the bug is mended, the file belongs into the target's folder `found`. Every run plays the inputs there first.
//!
//! `AGENT_MEMORY_FUZZ_SECONDS` sets how long a target runs; without it, a target plays a fixed number of inputs.
//! `AGENT_MEMORY_FUZZ_SEED` sets the seed. `cargo xtask fuzz` sets both.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    reason = "runs in tests, and for a time that people ask for"
)]

mod caught;
mod json;
mod mutate;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Findings after which a run ends.
const MAX_FINDINGS: usize = 8;
/// Attempts to make a finding smaller.
const ATTEMPTS: usize = 400;
/// Inputs with new shapes that are kept, and the longest one.
const MAX_KEPT: usize = 4_000;
const MAX_BYTES: usize = 64 << 10;
/// Time after which an input is reported that is still being checked.
const LONG: Duration = Duration::from_secs(30);

/// A test with mutated inputs, and the inputs that are mutated.
#[derive(Debug)]
pub struct Target {
    name: &'static str,
    found: PathBuf,
    inputs: usize,
    seeds: Vec<Vec<u8>>,
}

impl Target {
    /// A target with the seeds in this package: the files in `seeds/NAME`, and the lines of `seeds/NAME.lines`. `package`
    /// is the folder of the package with the test, and `inputs` the number of mutated inputs of the short form.
    pub fn new(name: &'static str, package: &str, inputs: usize) -> Self {
        let target = Self {
            name,
            found: Path::new(package).join("tests/it/found").join(name),
            inputs,
            seeds: Vec::new(),
        };
        target.seeds_of(name)
    }

    /// Adds the seeds of another target.
    #[must_use]
    pub fn seeds_of(self, name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("seeds")
            .join(name);
        let lines = std::fs::read_to_string(folder.with_extension("lines")).unwrap_or_default();
        self.seeds(files(&folder)).seeds(lines.lines())
    }

    /// Adds inputs to mutate.
    #[must_use]
    pub fn seeds<T: Into<Vec<u8>>>(mut self, seeds: impl IntoIterator<Item = T>) -> Self {
        self.seeds.extend(seeds.into_iter().map(Into::into));
        self
    }

    /// Adds the files in these folders of `fixtures/`, each by its first `lines` lines.
    #[must_use]
    pub fn fixtures(mut self, folders: &[&str], lines: usize) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        for file in folders.iter().flat_map(|folder| files(&root.join(folder))) {
            let lines = file.split_inclusive(|&byte| byte == b'\n').take(lines);
            self.seeds.push(lines.flatten().copied().collect());
        }
        self
    }

    /// Plays the kept findings, the seeds and mutated inputs. The check panics if an assertion fails.
    ///
    /// # Panics
    /// If there was a finding. The text names the files with the inputs.
    pub fn run<S: Hash>(self, check: impl Fn(&[u8]) -> S) {
        let seed = number("AGENT_MEMORY_FUZZ_SEED").unwrap_or(1);
        let seconds = number("AGENT_MEMORY_FUZZ_SECONDS").filter(|seconds| *seconds > 0);
        let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let inputs = watch(self.name);
        let check = |input: &[u8]| {
            let _ = inputs.send(input.to_vec());
            caught::call(|| hash(&check(input)))
        };
        let mut run = Run::default();
        for input in files(&self.found).into_iter().chain(self.seeds) {
            run.play(self.name, input, &check);
        }
        assert!(
            !run.kept.is_empty(),
            "{}: no seed passes its check",
            self.name
        );
        let mut random = fastrand::Rng::with_seed(seed);
        let first = run.inputs;
        while run.findings.len() < MAX_FINDINGS
            && match end {
                Some(end) => Instant::now() < end,
                None => run.inputs - first < self.inputs,
            }
        {
            let input = mutate::input(&run.kept, &mut random);
            run.play(self.name, input, &check);
        }
        println!(
            "fuzz {}: {} inputs, {} shapes, {} findings (seed {seed})",
            self.name,
            run.inputs,
            run.shapes.len(),
            run.findings.len()
        );
        if !run.findings.is_empty() {
            let findings = run.findings.into_values().collect::<Vec<_>>().join("\n");
            let found = self.found.display();
            panic!("{findings}\nonce it is mended, the input belongs into {found}");
        }
    }
}

#[derive(Default)]
struct Run {
    inputs: usize,
    kept: Vec<Vec<u8>>,
    shapes: BTreeSet<u64>,
    /// Messages with the files of the inputs, by the place of the panic.
    findings: BTreeMap<String, String>,
}

impl Run {
    fn play(
        &mut self,
        name: &str,
        input: Vec<u8>,
        check: &impl Fn(&[u8]) -> Result<u64, caught::Panic>,
    ) {
        self.inputs += 1;
        match check(&input) {
            Ok(shape) => {
                if self.shapes.insert(shape)
                    && self.kept.len() < MAX_KEPT
                    && input.len() < MAX_BYTES
                {
                    self.kept.push(input);
                }
            }
            Err(panic) if self.findings.contains_key(&panic.place) => {}
            Err(panic) => {
                let is_same =
                    |input: &[u8]| check(input).is_err_and(|other| other.place == panic.place);
                let input = mutate::smaller(input, ATTEMPTS, is_same);
                let message = check(&input)
                    .err()
                    .map_or(panic.message, |panic| panic.message);
                let file = write(name, &input);
                let place = panic.place;
                let text = format!(
                    "{name}: {message}\n  at {place}\n  input: {}",
                    file.display()
                );
                println!("{text}");
                self.findings.insert(place, text);
            }
        }
    }
}

/// Starts a thread that gets each input before its check, and reports an input whose check does not end.
fn watch(name: &'static str) -> Sender<Vec<u8>> {
    let (sender, inputs) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        let mut last = Vec::new();
        loop {
            match inputs.recv_timeout(LONG) {
                Ok(input) => last = input,
                Err(RecvTimeoutError::Timeout) => {
                    let (seconds, file) = (LONG.as_secs(), write(name, &last));
                    println!("{name}: no end after {seconds} s: {}", file.display());
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    });
    sender
}

/// A value of an environment variable, if it is a number.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The files below a folder, in the order of their paths; without pages.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    let read = |path: &PathBuf| match path.is_dir() {
        true => files(path),
        false if path.extension().is_some_and(|kind| kind == "md") => Vec::new(),
        false => std::fs::read(path).into_iter().collect(),
    };
    paths.iter().flat_map(read).collect()
}

/// Writes the input of a finding to a file of the system's temporary folder.
fn write(name: &str, input: &[u8]) -> PathBuf {
    let folder = std::env::temp_dir().join("agent-memory-fuzz").join(name);
    let file = folder.join(format!("{:016x}", hash(&input)));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, input));
    if let Err(error) = written {
        println!(
            "{}: {error}; the input is {:?}",
            file.display(),
            input.escape_ascii()
        );
    }
    file
}

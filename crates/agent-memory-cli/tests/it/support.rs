//! A home of its own for every test.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A directory with nothing in it, where the program keeps its data.
pub struct Home {
    directory: TempDir,
}

/// What a run left behind.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn database(&self) -> PathBuf {
        self.path().join("agent-memory").join("memory.db")
    }

    /// Writes a file.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("agent-memory"));
        command
            .current_dir(self.path())
            .env("XDG_DATA_HOME", self.path())
            .env("HOME", self.path())
            .env("APPDATA", self.path())
            .env_remove("AGENT_MEMORY_STORE")
            .env_remove("AGENT_MEMORY_TABLE")
            .args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Runs a command that must succeed.
    pub fn ok(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}\n{}\n{}", ran.out, ran.err);
        ran
    }

    /// Runs a command that must succeed and print one JSON value.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let ran = self.ok(&all);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// Asserts that standard error has this text.
    pub fn says(&self, text: &str) {
        assert!(self.err.contains(text), "{text:?} in {}", self.err);
    }

    /// Asserts that standard output has this text.
    pub fn shows(&self, text: &str) {
        assert!(self.out.contains(text), "{text:?} in {}", self.out);
    }
}

/// The words of a command line, which are separated by spaces.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// A fixture's file.
pub fn fixture(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let path = root
        .canonicalize()
        .unwrap()
        .join(name)
        .join("session.jsonl");
    assert!(path.is_file(), "{}", path.display());
    path.to_str().unwrap().to_owned()
}

/// The names of an object's fields, sorted.
pub fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value
        .as_object()
        .unwrap_or_else(|| panic!("no object: {value}"))
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

/// Asserts that an object has these fields, separated by spaces, and perhaps more.
pub fn has(value: &Value, names: &str) {
    let found = fields(value);
    for name in names.split(' ') {
        assert!(found.contains(&name), "no {name} in {found:?}");
    }
}

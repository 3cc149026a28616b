//! Helpers of the tests. Every test has a separate home.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Output, Stdio};
#[cfg(unix)]
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;
use sqlx::{Connection as _, SqliteConnection};
use tempfile::TempDir;

/// Maximum wait for a process or a fact. After it, the test fails.
#[cfg(unix)]
pub const PATIENCE: Duration = Duration::from_secs(120);

/// An empty directory in which the program keeps its data.
pub struct Home {
    directory: TempDir,
}

/// Result of a run of the program.
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
        let mut command = self.process(program());
        command.args(arguments);
        Command::from_std(command)
    }

    /// Returns a process of another program with the home's data, without the developer's environment. Its output is
    /// captured.
    pub fn process(&self, program: impl AsRef<OsStr>) -> Process {
        let mut command = Process::new(program);
        for name in ["XDG_DATA_HOME", "HOME", "USERPROFILE", "APPDATA"] {
            command.env(name, self.path());
        }
        for name in words(
            "AGENT_MEMORY_STORE AGENT_MEMORY_TABLE AGENT_MEMORY_TOKEN OPENAI_API_KEY COMPATIBLE_API_KEY \
             ANTHROPIC_API_KEY GEMINI_API_KEY HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy \
             NO_PROXY no_proxy XDG_CONFIG_HOME CLAUDE_CONFIG_DIR CODEX_HOME PI_CODING_AGENT_DIR",
        ) {
            command.env_remove(name);
        }
        command
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
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

    /// Runs a command that must fail with this exit code.
    pub fn fails(&self, arguments: &[&str], code: i32) -> Ran {
        self.run(arguments).ended(code)
    }

    /// Runs a command that must succeed and print one JSON value.
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.ok(&[&["--json"], arguments].concat()).json()
    }

    /// Returns the key of the first session.
    pub fn session(&self) -> String {
        let sessions = self.json(&["sessions"]);
        sessions["sessions"][0]["session"]
            .as_str()
            .unwrap()
            .to_owned()
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
    /// Asserts that the run ended with this exit code.
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }

    /// Parses the output as JSON.
    pub fn json(&self) -> Value {
        let value = serde_json::from_str(&self.out);
        value.unwrap_or_else(|_| panic!("{}\n{}", self.out, self.err))
    }

    /// Returns the error that `--json` printed.
    pub fn error(&self) -> Value {
        let line = self.err.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{}", self.err));
        value["error"].clone()
    }

    /// Asserts that standard error contains this text.
    pub fn says(&self, text: &str) {
        assert!(self.err.contains(text), "{text:?} in {}", self.err);
    }

    /// Asserts that standard output contains this text.
    pub fn shows(&self, text: &str) {
        assert!(self.out.contains(text), "{text:?} in {}", self.out);
    }
}

/// Returns the path of the tested program.
/// Creates a linked worktree of a repository, as `git worktree add` does.
pub fn linked_worktree(repository: &Path, name: &str, worktree: &Path) {
    let (own, link) = (
        repository.join("worktrees").join(name),
        worktree.join(".git"),
    );
    for folder in [&own, worktree] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(&link, format!("gitdir: {}\n", own.display())).unwrap();
    std::fs::write(own.join("commondir"), "../..\n").unwrap();
    std::fs::write(own.join("gitdir"), format!("{}\n", link.display())).unwrap();
}

pub fn program() -> &'static Path {
    assert_cmd::cargo::cargo_bin!("agent-memory")
}

/// Executes SQL statements on a database outside of the program, and stays connected.
pub fn sql(path: &Path, statements: &'static str) -> Connected {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connection = runtime.block_on(async {
        let url = format!("sqlite://{}?mode=rwc", path.display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let done = sqlx::raw_sql(statements).execute(&mut connection).await;
        done.unwrap();
        connection
    });
    Connected {
        runtime,
        connection,
    }
}

/// A connection to a database.
pub struct Connected {
    runtime: tokio::runtime::Runtime,
    connection: SqliteConnection,
}

impl Connected {
    pub fn close(self) {
        self.runtime.block_on(self.connection.close()).unwrap();
    }
}

/// Splits a command line at spaces.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Returns the path of a fixture.
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

/// Returns the names of an object's fields, sorted.
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

/// Asserts that an object has these fields, separated by spaces. It may have more fields.
pub fn has(value: &Value, names: &str) {
    let found = fields(value);
    for name in names.split(' ') {
        assert!(found.contains(&name), "no {name} in {found:?}");
    }
}

/// Asserts that a value equals the recorded value. Objects may have more fields.
pub fn covers(held: &Value, recorded: &Value, at: &str) {
    match (held, recorded) {
        (Value::Object(held), Value::Object(recorded)) => {
            for (name, value) in recorded {
                let at = format!("{at}/{name}");
                covers(held.get(name).unwrap_or(&Value::Null), value, &at);
            }
        }
        (Value::Array(held), Value::Array(recorded)) => {
            assert_eq!(held.len(), recorded.len(), "{at}");
            for (index, (held, recorded)) in held.iter().zip(recorded).enumerate() {
                covers(held, recorded, &format!("{at}/{index}"));
            }
        }
        _ => assert_eq!(held, recorded, "{at}"),
    }
}

/// Asserts that an object has these fields with these values. It may have more fields.
pub fn is(value: &Value, expected: Value) {
    covers(value, &expected, "");
}

/// Asserts that a text contains this part.
pub fn tells(value: &Value, part: &str) {
    let text = value.as_str().unwrap_or_default();
    assert!(text.contains(part), "{part:?} in {value}");
}

/// Creates a named pipe, which nobody writes to.
#[cfg(target_os = "linux")]
pub fn pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// Returns the rights to a file or folder.
#[cfg(unix)]
pub fn mode(path: &Path) -> u32 {
    let meta = std::fs::symlink_metadata(path).unwrap();
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777
}

/// Returns a process of the program with this umask.
#[cfg(unix)]
pub fn with_umask(home: &Home, umask: &str, arguments: &[&str]) -> Command {
    let mut shell = home.process("sh");
    shell.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
    shell.arg(program()).args(arguments);
    Command::from_std(shell)
}

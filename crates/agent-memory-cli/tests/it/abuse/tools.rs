//! Seeded cases, processes, transcripts, and assertions after each abuse.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Home, PATIENCE, Ran, program};

/// Name of the session in [`transcript`].
pub const SESSION: &str = "abuse";

/// Prints the command that repeats a case, if the case fails.
struct Case {
    test: String,
    seed: u64,
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the case with seed {seed} failed; to play it again: AGENT_MEMORY_ABUSE_SEED={seed} \
                 AGENT_MEMORY_ABUSE_CASES=1 cargo test -p agent-memory-cli --test it -- {test} --exact --nocapture",
                seed = self.seed,
                test = self.test,
            );
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number")),
    )
}

/// Returns the seed of the first case.
pub fn first_seed() -> u64 {
    number("AGENT_MEMORY_ABUSE_SEED").unwrap_or(1)
}

/// Returns the path of the test that contains a closure, in the form that `cargo test` accepts.
fn test_of<F>(_: &F) -> String {
    let name = std::any::type_name::<F>();
    let name = name.split_once("::").map_or(name, |(_, rest)| rest);
    name.trim_end_matches("::{{closure}}").to_owned()
}

/// Runs the cases of the calling test: one, or the number in `AGENT_MEMORY_ABUSE_CASES`.
pub fn cases(play: impl Fn(&mut Rng)) {
    let first = first_seed();
    let count = number("AGENT_MEMORY_ABUSE_CASES").unwrap_or(1);
    let test = test_of(&play);
    for seed in first..first + count {
        let case = Case {
            test: test.clone(),
            seed,
        };
        play(&mut Rng::with_seed(seed));
        drop(case);
    }
}

/// Returns whether a scenario can run here. If it cannot and `AGENT_MEMORY_REQUIRE_ABUSE` is set, panics.
pub fn available(what: &str, there: bool) -> bool {
    if !there {
        assert!(
            std::env::var_os("AGENT_MEMORY_REQUIRE_ABUSE").is_none(),
            "{what} is missing, and AGENT_MEMORY_REQUIRE_ABUSE is set"
        );
        eprintln!("left out: {what} is missing");
    }
    there
}

/// Returns whether `strace` can trace a process here.
pub fn has_strace() -> bool {
    let traced = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .output();
    available("strace", traced.is_ok_and(|output| output.status.success()))
}

/// Returns whether `unshare` can create these namespaces here. It needs root.
pub fn has_unshare(options: &[&str]) -> bool {
    let unshared = Command::new("unshare").args(options).arg("true").output();
    available(
        &format!("unshare {}", options.join(" ")),
        unshared.is_ok_and(|output| output.status.success()),
    )
}

/// Returns a command that runs the program with arguments.
pub fn command(home: &Home, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = home.process(program());
    command.args(arguments);
    command
}

/// Returns a command that runs the program under another program, such as `strace` with its options.
pub fn under(home: &Home, wrapper: &[&str], arguments: &[impl AsRef<OsStr>]) -> Command {
    let (first, options) = wrapper.split_first().unwrap();
    let mut command = home.process(first);
    command.args(options).arg(program()).args(arguments);
    command
}

/// Starts a process. Its output is captured.
pub fn start(mut command: Command) -> Child {
    let started = command.spawn();
    started.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Ran {
    Ran::from(command.output().unwrap())
}

/// Waits until a process has ended. A process that runs longer than [`PATIENCE`] is killed, and the case fails.
pub fn end(mut child: Child) -> Output {
    let pid = Pid::from_child(&child);
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let (ended, has_ended) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = has_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
        if late {
            // Nobody has waited for the process yet: its id is still its own.
            kill_process(pid, Signal::KILL).unwrap();
        }
        late
    });
    let status = child.wait().unwrap();
    drop(ended);
    let output = Output {
        status,
        stdout: out.join().unwrap(),
        stderr: err.join().unwrap(),
    };
    assert!(
        !watch.join().unwrap(),
        "the process did not end within {PATIENCE:?}: {output:?}"
    );
    output
}

fn drain<R: std::io::Read + Send + 'static>(stream: Option<R>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut stream) = stream {
            // A terminal reports an error instead of an end if its other side is closed.
            let _ = stream.read_to_end(&mut all);
        }
        all
    })
}

/// Waits until `fact` is true or the process has ended. Returns whether `fact` was true.
pub fn until(child: &mut Child, fact: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if fact() {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(
            Instant::now() < deadline,
            "nothing happened within {PATIENCE:?}"
        );
        std::thread::yield_now();
    }
}

/// Kills a process and waits until it has ended.
pub fn kill(mut child: Child) {
    // The process may have ended by itself meanwhile.
    let _ = child.kill();
    end(child);
}

/// Returns the size of the database and its write-ahead log, in bytes.
pub fn stored(database: &Path) -> u64 {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    [database, Path::new(&log)]
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|meta| meta.len())
        .sum()
}

/// Sentences without names, so that the gate accepts any English summary of them.
const SENTENCES: [&str; 12] = [
    "The harbour was closed because of the storm, and the ferry stayed on the other side.",
    "They agreed to paint the boat before the summer begins, most of all its keel.",
    "Somebody left the window open, so the letters were all over the floor in the morning.",
    "The bread was better than last week, although the oven is still too hot on the left.",
    "We should ask the neighbours whether they heard the bell during the night.",
    "Nothing grows behind the wall, since the sun never reaches that part of the garden.",
    "The teacher told the story again, and this time the ending was a different one.",
    "A long walk through the hills helped more than any of the good advice.",
    "The clock in the kitchen stopped, and nobody has found the key to wind it.",
    "In the end the choir sang without the organ, which many people liked better.",
    "The map is old, and the bridge it shows was carried away by the river.",
    "Her brother writes that the harvest was poor and that the price of corn went up.",
];

/// Returns a text of this many random sentences.
pub fn text(rng: &mut Rng, sentences: usize) -> String {
    let chosen = (0..sentences).map(|_| SENTENCES[rng.usize(..SENTENCES.len())]);
    chosen.collect::<Vec<_>>().join(" ")
}

/// Returns the lines of a transcript in the plain format: messages of people and an assistant, tool calls and results.
/// About one in eight messages is long. Every line ends with a line feed.
pub fn transcript(rng: &mut Rng, messages: usize) -> Vec<String> {
    let mut lines = Vec::with_capacity(messages);
    for n in 0..messages {
        let length = if rng.u8(..8) == 0 { 120 } else { 20 };
        let length = 1 + rng.usize(..length);
        let said = text(rng, length);
        let line = match n % 5 {
            0 => json!({"role": "user", "content": said}),
            2 => json!({"role": "assistant", "parts": [
                {"type": "text", "text": said},
                {"type": "tool_call", "id": format!("call{n}"), "name": "ask", "arguments": {"question": "why"}},
            ]}),
            3 => json!({"role": "tool", "parts": [
                {"type": "tool_result", "call_id": format!("call{}", n - 1), "content": said},
            ]}),
            _ => json!({"role": "assistant", "content": said}),
        };
        let mut line = line;
        line["session"] = SESSION.into();
        line["external_id"] = format!("message-{n}").into();
        line["created_at"] = format!(
            "2026-01-{:02}T00:{:02}:{:02}Z",
            1 + n / 3600,
            n / 60 % 60,
            n % 60
        )
        .into();
        lines.push(format!("{line}\n"));
    }
    lines
}

/// Returns a home that contains a transcript, and the transcript's path.
pub fn home_with(lines: &[String]) -> (Home, String) {
    let home = Home::new();
    let file = home.file("session.jsonl", lines.concat());
    let file = file.to_str().unwrap().to_owned();
    (home, file)
}

/// Returns the output of `export` after one undisturbed import of the file.
pub fn undisturbed(lines: &[String]) -> String {
    let (home, file) = home_with(lines);
    home.ok(&["import", &file]);
    home.ok(&["export", SESSION]).out
}

/// Asserts that the stored data is intact: `verify` finds no violation. Directly after a kill, the database may be
/// missing or empty, also after SQLite has undone the killed process's transaction.
pub fn assert_sound(home: &Home, after: &str) {
    let is_empty = || std::fs::metadata(home.database()).map_or(0, |meta| meta.len()) == 0;
    if is_empty() {
        return;
    }
    let verified = home.run(&["--json", "verify"]);
    if verified.code == 5 && is_empty() {
        verified.says("holds nothing yet");
        return;
    }
    assert_eq!(
        verified.code, 0,
        "verify after {after}: {}\n{}",
        verified.out, verified.err
    );
    let verified: Value = serde_json::from_str(&verified.out).unwrap();
    assert_eq!(verified["ok"], true, "verify after {after}: {verified}");
}

/// Asserts that the log has the same entries in the same order as after an undisturbed import.
pub fn assert_same_log(home: &Home, expected: &str, after: &str) {
    assert_sound(home, after);
    let exported = home.ok(&["export", SESSION]).out;
    let differing = exported
        .lines()
        .zip(expected.lines())
        .position(|(a, b)| a != b);
    assert_eq!(
        (differing, exported.lines().count()),
        (None, expected.lines().count()),
        "(first differing entry, entries) after {after}"
    );
}

/// Runs `compact` or `redo`, and asserts that it ends with exit code 0 and that no work is left.
pub fn completes(home: &Home, arguments: &[impl AsRef<OsStr> + Debug], after: &str) -> Value {
    let mut command = command(home, &["--json"]);
    command.args(arguments);
    let ran = run(command);
    assert_eq!(
        ran.code, 0,
        "{arguments:?} after {after}: {}\n{}",
        ran.out, ran.err
    );
    let answer = ran.json();
    let stop = answer["stop_reason"].as_str().unwrap();
    assert!(
        ["nothing_eligible", "exhausted", "done"].contains(&stop),
        "{arguments:?} after {after} stopped with {stop}: {}",
        ran.err
    );
    assert_eq!(answer["verify"]["ok"], true);
    answer
}

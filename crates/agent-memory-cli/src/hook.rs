//! `hook`: answers an event of a coding agent, one JSON object on stdin.
//!
//! An agent waits for its hooks, so the command starts a second process for the work, passes its answer on, and ends at
//! the deadline at the latest. The second process then finishes the rest, such as the import of a large transcript.
//! The command never fails: it exits with 0 and prints nothing if it has no answer. Each event leaves a line in a log
//! next to the database.

pub(crate) mod answer;
mod appended;
mod claude;
mod door;
mod event;
pub(crate) mod log;
mod opencode;
mod pi;
pub(crate) mod rendering;
mod worker;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tokio::time::Instant;

use crate::app::App;
use crate::args::Hook;
use event::Event;
use log::{Log, Outcome};

/// Maximum size of an event, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Time for a whole event to arrive on stdin.
const ARRIVAL: Duration = Duration::from_secs(10);

pub(crate) async fn run(app: &mut App, args: &Hook) -> anyhow::Result<()> {
    if args.worker {
        worker::run(app, args).await;
        return Ok(());
    }
    let text = within(ARRIVAL, || {
        let mut text = Vec::new();
        let stdin = std::io::stdin().lock();
        let read = stdin.take(MOST_BYTES).read_to_end(&mut text);
        read.ok().map(|_| text)
    });
    let text = text.flatten().unwrap_or_default();
    let event = Event::parse(&text, args.agent.as_deref());
    let answer = ask(app, args, text, event.as_ref()).unwrap_or_default();
    let answer = match answer.trim() {
        "" if event.is_some_and(|event| event.agent == event::GEMINI) => "{}",
        answer => answer,
    };
    if !answer.is_empty() {
        // An agent that has gone away needs no answer.
        let _ = app.out.raw(answer.as_bytes());
    }
    Ok(())
}

/// Returns the answer to an event with this text. `None` if there is none, or none in time.
fn ask(app: &App, args: &Hook, text: Vec<u8>, event: Option<&Event>) -> Option<String> {
    let began = Instant::now();
    let log = Log::of(app);
    let answered = start(app, args).map(|mut worker| {
        let (stdin, stdout) = (worker.stdin.take(), worker.stdout.take());
        let deadline = event.map_or(Duration::from_secs(2), Event::deadline);
        within(deadline, move || {
            // The worker may end before it has read everything.
            stdin.and_then(|mut stdin| stdin.write_all(&text).ok());
            let mut line = String::new();
            BufReader::new(stdout?).read_line(&mut line).ok()?;
            Some(line)
        })
    });
    let late = match answered {
        Ok(Some(answer)) => return answer,
        Ok(None) => Outcome::Deferred,
        Err(error) => Outcome::Failed(error.to_string()),
    };
    if let Some(log) = log {
        log.add(event, began.elapsed(), &late);
    }
    None
}

/// Runs work on another thread and returns its result if it ends within the time.
fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(limit).ok()
}

/// Starts the process that does the work. It belongs to no terminal and goes on when this process ends.
fn start(app: &App, args: &Hook) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    app.pass_on(&mut command);
    command.args(["hook", "--worker", "--budget", &args.budget.to_string()]);
    for (option, value) in [
        ("--transcript-days", args.transcript_days),
        ("--transcript-mib", args.transcript_mib),
    ] {
        command.args(value.map(|value| format!("{option}={value}")));
    }
    command.args(&args.agent);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    #[cfg(windows)]
    {
        const DETACHED_PROCESS: u32 = 0x0000_0008;
        std::os::windows::process::CommandExt::creation_flags(&mut command, DETACHED_PROCESS);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

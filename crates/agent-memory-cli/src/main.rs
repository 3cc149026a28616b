#![doc = include_str!("../README.md")]

mod app;
mod args;
mod commands;
mod error;
mod output;
mod place;
mod policy;
mod progress;
mod stop;
mod table;
#[cfg(feature = "mcp")]
mod token;
mod writer;

use std::io;
use std::process::ExitCode;

use clap::Parser as _;

use crate::app::App;
use crate::args::{Cli, Command};
use crate::error::{Failure, Kind};
use crate::output::note;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let json = cli.json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure, json),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let mut app = App::new(cli.store, cli.lock_timeout, cli.json);
    match run_in(&mut app, cli.command) {
        Err(error) if !is_closed_pipe(&error) => Err(app.explained(Failure::from_any(error))),
        _ => Ok(()),
    }
}

fn run_in(app: &mut App, command: Command) -> anyhow::Result<()> {
    app.stop.listen()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(commands::run(app, command));
    // In any case, written data is on the disk before the last line is printed.
    let closed = runtime.block_on(app.close());
    // Results so far are shown even if the command failed later.
    let flushed = app.out.flush();
    // A call that a client no longer waits for keeps nobody waiting.
    runtime.shutdown_background();
    done?;
    closed?;
    Ok(flushed?)
}

/// Prints help and version, or an error of the command line.
fn usage(error: &clap::Error) -> ExitCode {
    // The reader may have closed the pipe.
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ").lines().next();
        let failure =
            Failure::new(Kind::Usage, text.unwrap_or_default()).hint("see `agent-memory --help`");
        note(&failure.json().to_string());
    }
    ExitCode::from(Kind::Usage.exit_code())
}

fn fail(failure: &Failure, json: bool) -> ExitCode {
    note(&format!("error: {}", failure.message));
    if let Some(hint) = &failure.hint {
        note(&format!("hint: {hint}"));
    }
    if json {
        note(&failure.json().to_string());
    }
    ExitCode::from(failure.kind.exit_code())
}

/// Whether the reader of stdout closed it, as `| head` does.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    })
}

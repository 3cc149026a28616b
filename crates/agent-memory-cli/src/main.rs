#![doc = include_str!("../README.md")]

mod agents;
mod app;
mod args;
mod commands;
mod config;
mod cost;
mod error;
mod files;
mod hook;
mod kept;
mod output;
mod page;
mod place;
mod policy;
mod progress;
mod redact;
#[cfg_attr(
    not(any(feature = "mcp", feature = "serve")),
    allow(dead_code, reason = "without a server no client asks for a project")
)]
mod scope;
#[cfg(feature = "serve")]
mod serve;
mod stop;
mod table;
#[cfg(any(feature = "mcp", feature = "serve"))]
mod token;
mod writer;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::app::App;
use crate::args::{Cli, Command};
use crate::error::{Failure, Kind};
use crate::output::{note, safe};

fn main() -> ExitCode {
    let command = args::examples::add(Cli::command());
    let matches = command.try_get_matches();
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        // An agent takes the exit code 2 of a hook for an order to stop.
        Err(error) if is_hook(std::env::args_os().skip(1)) => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => return usage(&error),
    };
    let (json, is_hook) = (cli.json, matches!(cli.command, Command::Hook(_)));
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if is_hook => ExitCode::SUCCESS,
        Err(failure) => fail(&failure, json),
    }
}

/// Returns whether the first argument that is no option and no option's value is `hook`.
fn is_hook(arguments: impl Iterator<Item = OsString>) -> bool {
    let mut is_value = false;
    for argument in arguments {
        if std::mem::take(&mut is_value) {
            continue;
        }
        match &*argument.to_string_lossy() {
            "--store" | "--lock-timeout" => is_value = true,
            option if option.starts_with('-') => {}
            command => return command == "hook",
        }
    }
    false
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
    // Even if the command failed, written data is synced to the disk before the last line is printed.
    let closed = runtime.block_on(app.close());
    // Results are shown even if the command failed after them.
    let flushed = app.out.flush();
    // Background tasks for a client that has gone do not delay the end of the program.
    runtime.shutdown_background();
    done?;
    closed?;
    Ok(flushed?)
}

/// Prints the help text, the version, or an error of the command line. Returns the exit code.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Printing fails if the reader has closed the pipe.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    // Arguments may have anything in them.
    let _ = write!(io::stderr(), "{}", safe(&error.render().to_string()));
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

/// Returns whether an error means that the reader of stdout has closed the pipe, as `| head` does.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    })
}

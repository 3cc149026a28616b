//! The command line.

mod compaction;
mod context;
mod database;
mod doors;
pub(crate) mod examples;
mod retrieval;
mod sessions;
mod transcripts;
mod writing;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

pub(crate) use self::compaction::{Compact, Policy, Redo, Replay, Work};
pub(crate) use self::context::{Context, Form};
#[cfg(feature = "postgres")]
pub(crate) use self::database::Migrate;
pub(crate) use self::database::{Backup, Certify, Export, Receipt, Restore, Verify};
#[cfg(feature = "serve")]
pub(crate) use self::doors::Serve;
pub(crate) use self::doors::{Hook, Install};
#[cfg(feature = "mcp")]
pub(crate) use self::doors::{Mcp, Names};
pub(crate) use self::retrieval::{Describe, Expand, Files, Grep, Index, Recall, Vectors};
pub(crate) use self::sessions::{Delete, Erase, Fork, Sessions, Set, View};
use self::transcripts::AUDIT;
pub(crate) use self::transcripts::{Audit, Import};
pub(crate) use self::writing::{Given, Prompts, Reasoning, Writing};

/// Exit codes in `--help`. `error.rs` assigns them.
const EXIT_CODES: &str = "\
Exit codes:
  0  done, including without work or hits
  1  any other failure
  2  the command line is wrong
  3  there is no such session, summary or message, or no database yet
  4  the input is invalid: unreadable, empty, not text, of an unknown format
  5  the database belongs to another program or version, is damaged, or cannot be read or written
  6  the budget is too small
  7  verification found violations
  8  lines or files were skipped under --strict
  9  another process kept the database locked for longer than --lock-timeout
  10 another process works on the same summaries, so no work was done
  130, 143  stopped by SIGINT (Ctrl-C), by SIGTERM";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "agent-memory",
    version,
    about,
    after_help = EXIT_CODES,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// The database: `sqlite:PATH`, just a path, or `postgres://…` [default: memory.db in the platform's data
    /// directory]
    #[arg(
        long,
        global = true,
        value_name = "STORE",
        env = "AGENT_MEMORY_STORE",
        hide_env_values = true,
        display_order = 100
    )]
    pub(crate) store: Option<String>,

    /// Maximum wait for a database that another process has locked, in seconds, when it is opened and
    /// at each write
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value = "10",
        value_parser = lock_timeout,
        display_order = 101
    )]
    pub(crate) lock_timeout: Duration,

    /// Print JSON instead of text
    #[arg(long, global = true, display_order = 102)]
    pub(crate) json: bool,

    /// The command
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Parses a time in seconds, with or without a fraction.
fn lock_timeout(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "give a number of seconds from 0 to 86400";
    let seconds: f64 = text.parse().map_err(|_| EXPECTED.to_owned())?;
    match (0.0..=86_400.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(EXPECTED.to_owned()),
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compact a transcript or a session, and show the result
    Compact(Compact),
    /// Replay a transcript message by message, and check laws at each step
    Replay(Replay),
    /// Measure the compactions that an agent made: the items that it kept and lost, and the commands that return lost ones
    #[command(long_about = AUDIT)]
    Audit(Audit),
    /// Import transcripts of Claude Code, Codex, Gemini CLI, pi, Qwen Code and others, or JSON lines
    Import(Import),
    /// Answer an event of a coding agent, one JSON object on stdin: import new messages, and give the agent an outline after
    /// a compaction, or the compaction itself. Always exits with 0
    Hook(Hook),
    /// Put the program into the configuration of a coding agent, so that the agent calls it by itself
    Install(Install),
    /// Show for which agents the program is installed, the results of their events, and the transcripts that they delete soon
    Doctor,
    /// Assemble the context for a model
    Context(Context),
    /// Search a session's messages and summaries
    Grep(Grep),
    /// Recall what a session said about something: the best passages within a budget, or one message
    Recall(Recall),
    /// List the messages of a session that read or changed files or ran commands, latest first
    Files(Files),
    /// Show the details of a summary
    Describe(Describe),
    /// Expand a summary by one level, or print messages verbatim
    Expand(Expand),
    /// Create a session that shares another session's log up to a message
    Fork(Fork),
    /// Show a session's view, current or earlier, or revert to an earlier version
    View(View),
    /// List the sessions
    Sessions(Sessions),
    /// Show the size of the database and the number of stored objects
    Stats,
    /// Verify that the stored data is complete and unchanged
    Verify(Verify),
    /// Print receipts of sessions, to be kept outside of the database: `verify --against` finds with them what was lost since
    Receipt(Receipt),
    /// Print a certificate of a session's compaction, which `verify --against` and docs/verifier/verify.py check
    Certify(Certify),
    /// Copy the database to a new file, while programs use it
    Backup(Backup),
    /// Put a backup in the place of the database. Erasures that were made after the backup are made in it again
    Restore(Restore),
    /// Copy all sessions to another database, and verify the copy. Run again, it goes on where it was interrupted
    #[cfg(feature = "postgres")]
    Migrate(Migrate),
    /// Index the rest of a session for searches, or rebuild its index
    Index(Index),
    /// Rewrite the summaries that no model wrote, with a model
    Redo(Redo),
    /// Erase the words of a range for ever, also in the forks and summaries that show them
    Erase(Erase),
    /// Erase a session's own log, and archive it
    Delete(Delete),
    /// Set a session's title and channel, archive or unarchive it
    Set(Set),
    /// Print a session's log as JSON lines, which `import` reads; or export sessions as a plain database
    Export(Export),
    /// Count the tokens of files with every estimator; opens no database
    Tokens(Tokens),
    /// Serve the retrieval tools to a client of the Model Context Protocol, over stdin and stdout
    #[cfg(feature = "mcp")]
    Mcp(Mcp),
    /// Serve the memory over HTTP at 127.0.0.1: sessions, searches, contexts, and compactions for clients of OpenAI's
    /// responses. Needs no model
    #[cfg(feature = "serve")]
    Serve(Serve),
    /// Compact sessions in the background as they change, until a signal comes. Several workers share the sessions of a
    /// PostgreSQL database
    Work(Work),
    /// Print a completion script for a shell
    Completions(Completions),
}

/// Arguments of `tokens`.
#[derive(Debug, Args)]
pub(crate) struct Tokens {
    /// Files; their raw text is counted, in any format
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

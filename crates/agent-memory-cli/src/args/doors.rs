//! Arguments of the commands by which agents and other programs use the memory.

#[cfg(any(feature = "mcp", feature = "serve"))]
use std::path::PathBuf;

use clap::Args;
#[cfg(feature = "mcp")]
use clap::ValueEnum;

#[cfg(any(feature = "mcp", feature = "serve"))]
use super::Vectors;
use crate::agents::Agent;

/// Arguments of `hook`.
#[derive(Debug, Args)]
pub(crate) struct Hook {
    /// The agent: claude-code, codex, gemini-cli, opencode, pi or qwen-code [default: by the event]
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Size of the messages or the text in place of the older messages, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 16_000, value_parser = clap::value_parser!(u64).range(500..))]
    pub(crate) budget: u64,
    /// Remove kept transcripts that the agent has deleted and that were last written to before this number of days
    /// [default: keep them]
    #[arg(long, value_name = "DAYS")]
    pub(crate) transcript_days: Option<u32>,
    /// Remove the oldest kept transcripts that the agent has deleted if they have more MiB together [default: keep them]
    #[arg(long, value_name = "MIB")]
    pub(crate) transcript_mib: Option<u32>,
    /// Do the work of the event
    #[arg(long, hide = true)]
    pub(crate) worker: bool,
}

/// Arguments of `install`.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The agent
    #[arg(value_enum)]
    pub(crate) agent: Agent,
    /// Print the changes as diffs without writing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take the program out of the agent's configuration
    #[arg(long)]
    pub(crate) remove: bool,
}

/// Arguments of `mcp`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// A session that clients can read: its name or the beginning of it; may be given several times, and then each call
    /// names one of them [default: the sessions of --project; without it all if --store is given, else those in the
    /// project that the working folder is in]
    #[arg(long = "session", value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    /// Folder of a project, with all folders in it: clients can read the sessions of agents that worked there. Its
    /// folder .agents has identity files that take the place of those of --identity
    #[arg(long, value_name = "FOLDER")]
    pub(crate) project: Option<PathBuf>,
    /// Offer a tool that reads and writes SOUL.md, USER.md and MEMORY.md in this folder; without it and --names no tool
    /// writes
    #[arg(long, value_name = "FOLDER")]
    pub(crate) identity: Option<PathBuf>,
    /// Offer the tools of a vendor too, under the names that its models know: history and notes of Codex, or the tool
    /// memory of the Claude API. Their notes are written into the database
    #[arg(long, value_name = "VENDOR")]
    pub(crate) names: Option<Names>,
    /// Name of the notes, which servers of other projects can name too [default: the project has notes of its own; all
    /// of a database that --store names share theirs]
    #[arg(long, value_name = "NAME", requires = "names")]
    pub(crate) notes: Option<String>,
    /// Serve over HTTP at this port of 127.0.0.1 instead; 0 chooses a free port. Clients send a token from
    /// AGENT_MEMORY_TOKEN, or a new one that is printed on stderr
    #[arg(long, value_name = "PORT")]
    pub(crate) http: Option<u16>,
    /// Size that every reply stays below, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(500..))]
    pub(crate) reply_tokens: u64,
    /// Time after which a search returns its results so far, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) time_limit: u64,
    /// Vectors of words that searches count.
    #[command(flatten)]
    pub(crate) vectors: Vectors,
}

/// Vendors whose tools `mcp` can offer.
#[cfg(feature = "mcp")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Names {
    Codex,
    Anthropic,
}

/// Arguments of `serve`.
#[cfg(feature = "serve")]
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Port of 127.0.0.1; 0 chooses a free port. Clients send a token from AGENT_MEMORY_TOKEN, or a new one that is
    /// printed on stderr
    #[arg(long, value_name = "PORT", default_value_t = 8_732)]
    pub(crate) port: u16,
    /// A session that clients can use, with its forks: its name or the beginning of it; may be given several times
    /// [default: the sessions of --project; without it all if --store is given, else those of the project that the
    /// working folder is in]
    #[arg(long = "session", value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    /// Folder of a project, with all folders in it: clients can use the sessions of agents that worked there, and new
    /// sessions belong to it
    #[arg(long, value_name = "FOLDER")]
    pub(crate) project: Option<PathBuf>,
    /// Size of a compaction's text, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 16_000, value_parser = clap::value_parser!(u64).range(500..))]
    pub(crate) budget: u64,
    /// Time after which a search returns its results so far, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) time_limit: u64,
    /// Print a line on stderr for each request: route, status and duration, without any words of messages
    #[arg(long)]
    pub(crate) log: bool,
    /// Vectors of words that searches count.
    #[command(flatten)]
    pub(crate) vectors: Vectors,
}

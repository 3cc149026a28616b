//! The commands that list, show and change sessions.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `fork`.
#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The session to fork: its name or the beginning of it
    pub(crate) session: String,
    /// Position of the last shared message
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: u32,
    /// Name of the new session [default: SESSION@SEQ]
    #[arg(long, value_name = "KEY")]
    pub(crate) name: Option<String>,
}

/// Arguments of `erase`.
#[derive(Debug, Args)]
pub(crate) struct Erase {
    /// The session: its name, or the beginning of it, of 4 characters at least
    pub(crate) session: String,
    /// Position of the first entry
    #[arg(long, value_name = "SEQ", required_unless_present_any = ["archived", "older_than"])]
    pub(crate) from: Option<u32>,
    /// Position of the last entry [default: the first]
    #[arg(long, value_name = "SEQ")]
    pub(crate) to: Option<u32>,
    /// All entries that contexts do not show verbatim: summarized and omitted ones
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub(crate) archived: bool,
    /// Only archived entries, of at least this age in days; 0 for all [default: 0]
    #[arg(long, value_name = "DAYS", conflicts_with_all = ["from", "to"], value_parser = clap::value_parser!(u32).range(..=36_500))]
    pub(crate) older_than: Option<u32>,
    /// Reason; kept for ever, so do not repeat the erased words
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    pub(crate) reason: Option<String>,
    /// Print the entries and sessions that would be erased, without changing the database
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `delete`.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The session: its name, or the beginning of it, of 4 characters at least
    pub(crate) session: String,
    /// Reason; kept for ever, so do not repeat the erased words
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    pub(crate) reason: Option<String>,
    /// Print the entries and sessions that would be erased, without changing the database
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `set`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Set {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// Title
    #[arg(long, value_name = "TITLE", group = "what")]
    pub(crate) title: Option<String>,
    /// Channel that the session comes from, such as telegram
    #[arg(long, value_name = "CHANNEL", group = "what")]
    pub(crate) channel: Option<String>,
    /// Archive the session: `sessions` lists it only with --all
    #[arg(long, group = "what", conflicts_with = "unarchive")]
    pub(crate) archive: bool,
    /// Unarchive the session
    #[arg(long, group = "what")]
    pub(crate) unarchive: bool,
}

/// Arguments of `view`.
#[derive(Debug, Args)]
pub(crate) struct View {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// Version to show; 0 shows all messages verbatim [default: the latest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) at: Option<u64>,
    /// Show the changes from this version to the shown one
    #[arg(long, value_name = "VERSION")]
    pub(crate) diff: Option<u64>,
    /// First publish the spans of this version, as a new version
    #[arg(long, value_name = "VERSION", conflicts_with = "at")]
    pub(crate) revert_to: Option<u64>,
    /// Also list all versions, with their publications
    #[arg(long)]
    pub(crate) history: bool,
    /// Number of levels to show below the spans
    #[arg(long, value_name = "LEVELS", default_value_t = 1)]
    pub(crate) depth: usize,
    /// Write the session as one HTML page into this new file instead: all its views and messages; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["at", "diff", "revert_to", "history", "depth"])]
    pub(crate) html: Option<PathBuf>,
    /// Keep keys, tokens, passwords, e-mail and IP addresses and names of home folders in the page
    #[arg(long, requires = "html")]
    pub(crate) no_redact: bool,
}

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub(crate) struct Sessions {
    /// Also list archived sessions
    #[arg(long)]
    pub(crate) all: bool,
}

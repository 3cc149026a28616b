//! The commands that verify, copy and export the database.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Verify only this session. With --against all are verified, and transcripts that name no session are compared with this
    /// one [default: the database and all sessions]
    pub(crate) session: Option<String>,
    /// Also compare the database with these files: receipts, certificates, or transcripts. The content of a file tells
    /// which it is
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) against: Vec<PathBuf>,
    /// Require a certificate, and accept only those that this Ed25519 public key has signed, in hex digits (docs/proof.md)
    #[arg(long, value_name = "KEY", requires = "against")]
    pub(crate) signer: Option<String>,
}

/// Arguments of `receipt`.
#[derive(Debug, Args)]
pub(crate) struct Receipt {
    /// The sessions: their names or the beginnings of them [default: all]
    pub(crate) sessions: Vec<String>,
}

/// Arguments of `certify`.
#[derive(Debug, Args)]
pub(crate) struct Certify {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// Sign with the Ed25519 private key in this PEM file, as `openssl genpkey -algorithm ed25519` writes it
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Certify that the view costs at most this; fails if it costs more
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
}

/// Arguments of `migrate`.
#[cfg(feature = "postgres")]
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// The database to copy, which no program may write to meanwhile [default: the one of `--store`]
    #[arg(long, value_name = "STORE")]
    pub(crate) from: Option<String>,
    /// The database to copy to: a new one, or one that an interrupted copy left
    #[arg(long, value_name = "STORE")]
    pub(crate) to: String,
}

/// Arguments of `backup`.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The new file
    pub(crate) file: PathBuf,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup
    pub(crate) file: PathBuf,
    /// Replace a database that has sessions
    #[arg(long)]
    pub(crate) replace: bool,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The session: its name or the beginning of it. With `--sqlite` several, or all if none is named
    #[arg(required_unless_present = "sqlite", num_args = 0..)]
    pub(crate) sessions: Vec<String>,
    /// Export to a new SQLite file with plain, uncompressed tables: conversations, messages, message_parts,
    /// summaries, summary_messages, summary_parents, context_items, and those that hashes are computed from
    #[arg(long, value_name = "FILE")]
    pub(crate) sqlite: Option<PathBuf>,
    /// Print the agent's own transcript, as it was kept, byte for byte
    #[arg(long, conflicts_with_all = ["sqlite", "redact", "session_file"])]
    pub(crate) transcript: bool,
    /// Print a session file for pi: the summary of the handoff, and the messages since
    #[arg(long, conflicts_with = "sqlite")]
    pub(crate) session_file: bool,
    /// Replace keys, tokens, passwords, e-mail and IP addresses and names of home folders by marks, such as
    /// [redacted:email 1]. Only known forms are found: read the result before you share it
    #[arg(long)]
    pub(crate) redact: bool,
}

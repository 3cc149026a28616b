//! The commands that take a transcript alone: `audit` and `import`.

use std::path::PathBuf;

use clap::Args;

/// Help of `audit`: the meaning of its figures.
pub(super) const AUDIT: &str = "\
Measure the compactions that an agent made: the items that it kept and lost, and the commands that return lost ones.

An agent compacts its conversation when it no longer fits: it goes on with a summary, and perhaps with some messages word
for word. The audit compares the words before and after. It asks no model, uses no network and leaves no data behind.

\"Keeps\" means that the words are in the text that the agent went on with:
- A changed file: its name. If several changed files have this name: its name with the folder.
- A name that the next 40 messages use and earlier ones know (a file with its folder, an identifier, a hash, a number):
  the same letters. Identifiers in mere lists of names do not count.
- The newest request: half of the lines in its first 300 characters that have three words or more.
- Everything else, and each such line: the same text, or all of its numbers and two thirds of its other words, within as
  many lines as it has, and two more. Five letters of a word count. Other words for the same thing do not count, so read
  the lost items.

agent-memory's context is made of the same messages, without a model, in the same number of tokens (300 at least).";

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// A transcript of an agent that compacted its conversation
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the figures and the lost items as one HTML page into this new file instead; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Keep keys, tokens, passwords, e-mail and IP addresses and names of home folders in the output
    #[arg(long)]
    pub(crate) no_redact: bool,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Transcripts, or directories to search for transcripts; - is standard input. Of an agent's home, such as ~/.claude,
    /// only the transcripts are read
    #[arg(value_name = "FILE or DIR", required_unless_present = "all")]
    pub(crate) paths: Vec<PathBuf>,
    /// Search the homes of all known agents: Claude Code, Codex, Gemini CLI, Kimi Code, opencode, pi and
    /// Qwen Code
    #[arg(long, conflicts_with_all = ["paths", "session"])]
    pub(crate) all: bool,
    /// Session of JSON lines that name none
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Also publish the summaries that transcripts hold, such as pi's compactions, in the view of handoffs
    #[arg(long)]
    pub(crate) summaries: bool,
    /// Also keep the transcripts themselves, in a folder next to the database: `export --transcript` prints one
    #[arg(long)]
    pub(crate) keep_transcripts: bool,
    /// Exit with code 8 if a line or file was skipped, after importing the rest
    #[arg(long)]
    pub(crate) strict: bool,
}

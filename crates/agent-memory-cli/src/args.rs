//! The command line.

mod doors;
pub(crate) mod examples;
mod retrieval;
mod writing;

use std::path::PathBuf;
use std::time::Duration;

use agent_memory::providers::Provider;
use agent_memory::{Mode, Strategy};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

#[cfg(feature = "serve")]
pub(crate) use self::doors::Serve;
pub(crate) use self::doors::{Hook, Install};
#[cfg(feature = "mcp")]
pub(crate) use self::doors::{Mcp, Names};
use self::retrieval::named;
pub(crate) use self::retrieval::{Describe, Expand, Files, Grep, Index, Recall, Vectors};
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

/// Arguments of `compact`.
#[derive(Debug, Args)]
pub(crate) struct Compact {
    /// A transcript's file, or a session: its name or the beginning of it
    #[arg(value_name = "FILE or SESSION")]
    pub(crate) target: String,
    /// Compaction strategy, which becomes the session's [default: the session's own, at first dag]
    #[arg(long, value_parser = strategy())]
    pub(crate) strategy: Option<Strategy>,
    /// When to stop: after one pass over messages and one over summaries, or when there is no more to compact
    #[arg(long, default_value = "full", value_parser = named::<Mode>(&["incremental", "full"]))]
    pub(crate) mode: Mode,
    /// Summarizer
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Compaction policy
    #[command(flatten)]
    pub(crate) policy: Policy,
    /// Configuration file in TOML: the table [handoff] has max_tokens, a quarter of the bytes of the session's file
    /// above which a handoff is due (0 for 80000, -1 for no threshold), and keep_tail, the number of newest messages
    /// that stay (0 for 20). The tables [dag], [blocks], [turns] and [context] have the fields of the library's
    /// policies (docs/cli.md). --threshold, --fresh-tail, --leaf-messages and --leaf-tokens take precedence
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Size of the model's window, in tokens, for --threshold
    #[arg(long, value_name = "TOKENS", requires = "threshold", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Print the next step, and the cost of the run, without calling a model or writing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Budget of the context that is shown afterwards, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    pub(crate) budget: u64,
    /// Also print the messages that the new summaries do not mention, with commands that show them
    #[arg(long)]
    pub(crate) report_dropped: bool,
}

/// Arguments of `work`.
#[derive(Debug, Args)]
pub(crate) struct Work {
    /// Stop when no changed session waits
    #[arg(long)]
    pub(crate) once: bool,
    /// Time between two looks for changed sessions while none waits, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) every: u64,
    /// Port of 127.0.0.1 with counts in the text format of Prometheus, at /metrics; 0 chooses a free port
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "PORT")]
    pub(crate) metrics: Option<u16>,
    /// Print a line on stderr for each session that was looked at, without any words of messages
    #[cfg(feature = "serve")]
    #[arg(long)]
    pub(crate) log: bool,
    /// Summarizer
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Compaction policy
    #[command(flatten)]
    pub(crate) policy: Policy,
    /// Configuration file in TOML, as for `compact`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Parses the name of a compaction strategy.
fn strategy() -> impl TypedValueParser<Value = Strategy> {
    let names = [
        (
            "dag",
            "A graph of summaries: leaves over messages, condensed ones over summaries",
        ),
        (
            "handoff",
            "One summary that each handoff updates, then the newest messages",
        ),
        (
            "blocks",
            "The newest loops of an agent: first turns, a summary, recent turns; older loops are left out",
        ),
    ];
    let names = names.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Strategy>())
}

/// The compaction policy.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Policy {
    /// Number of newest messages that are not compacted: with dag within a limit of tokens, with handoff exactly. Not
    /// for blocks [default: 20 with dag, and the newest 16384 tokens with handoff]
    #[arg(long, value_name = "MESSAGES")]
    pub(crate) fresh_tail: Option<usize>,
    /// Minimum number of messages of a leaf. For dag alone [default: 10]
    #[arg(long, value_name = "MESSAGES", value_parser = at_least_one)]
    pub(crate) leaf_messages: Option<usize>,
    /// Maximum size of one summary's source, in tokens. For dag alone [default: 20000]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) leaf_tokens: Option<u64>,
    /// Compact only if the context costs more than this share of --window, which compact needs then [default: 0.75
    /// for replay; compact has none]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) threshold: Option<f64>,
}

/// Parses a number of messages.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("give 1 or more".to_owned()),
        Ok(messages) => Ok(messages),
        Err(error) => Err(format!("{error}: give a number of messages")),
    }
}

/// Parses a share of a whole, above 0 and up to 1.
fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("give a share above 0 and up to 1, such as 0.75".to_owned()),
    }
}

/// Arguments of `redo`.
#[derive(Debug, Args)]
pub(crate) struct Redo {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// Summarizer
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Maximum number of model calls; each retry counts. The next run continues, and retries refused summaries at its end [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_calls: Option<u64>,
    /// Rewrite the extracts of older versions, without a model
    #[arg(long, conflicts_with_all = ["summarizer", "max_calls"])]
    pub(crate) extracts: bool,
    /// Rewrite this summary and those above it, although a model wrote it; may be given several times. Until it is
    /// rewritten, every redo selects it, and no other summary is made from it while the view fits without one
    #[arg(long, value_name = "SUMMARY", conflicts_with = "extracts")]
    pub(crate) again: Vec<String>,
    /// Print the summaries to rewrite, and with a summarizer the cost of it, without calling a model or changing
    /// the database
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A transcript, which is replayed into a temporary database
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Size of the model's window, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    pub(crate) window: u64,
    /// Compaction strategy
    #[arg(long, value_parser = strategy(), default_value = "dag")]
    pub(crate) strategy: Strategy,
    /// Compaction policy
    #[command(flatten)]
    pub(crate) policy: Policy,
    /// Maximum number of statements of a step
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_statements: u64,
    /// Session of JSON lines that name none
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
}

/// Help of `audit`: the meaning of its figures.
const AUDIT: &str = "\
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

/// Arguments of `context`.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// Budget of the context, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    pub(crate) budget: u64,
    /// Maximum number of pictures in the context: older ones are left out
    #[arg(long, value_name = "COUNT")]
    pub(crate) pictures: Option<usize>,
    /// Maximum size of the context in bytes, with pictures and files in Base64: the oldest of these are left out, then
    /// text is shortened [default with `--as` and a provider: what the provider accepts]
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes: Option<u64>,
    /// Have a message of the assistant acknowledge each summary
    #[arg(long)]
    pub(crate) acknowledge_summaries: bool,
    /// Strategy with the view to assemble [default: the session's own]
    #[arg(long, value_parser = strategy())]
    pub(crate) strategy: Option<Strategy>,
    /// Version of the view to assemble from; `view --history` lists them [default: the latest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) at: Option<u64>,
    /// Output format; --json alone is the same as json
    #[arg(long = "as", value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub(crate) form: Form,
    /// File with the system prompt: it begins the context, and is counted in the budget
    #[arg(long, value_name = "FILE")]
    pub(crate) system: Option<PathBuf>,
    /// Also print the receipt: omissions, shortened and moved parts (JSON always has it)
    #[arg(long)]
    pub(crate) receipt: bool,
}

/// Output formats of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Text
    Text,
    /// JSON
    Json,
    /// Fields of an OpenAI chat completion: {messages}
    Openai,
    /// Fields of an OpenAI response: {instructions?, input}
    Responses,
    /// Fields of an Anthropic request: {system?, messages}
    Anthropic,
    /// Fields of a Gemini request: {systemInstruction?, contents}
    Gemini,
}

impl Form {
    /// Returns the provider with requests in this form; `None` for text and plain JSON.
    pub(crate) fn provider(self) -> Option<Provider> {
        match self {
            Form::Text | Form::Json => None,
            Form::Openai => Some(Provider::OpenAi),
            Form::Responses => Some(Provider::Responses),
            Form::Anthropic => Some(Provider::Anthropic),
            Form::Gemini => Some(Provider::Gemini),
        }
    }
}

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

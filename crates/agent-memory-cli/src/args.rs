//! What the program can be asked.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use model_client::ApiKey;

/// The exit codes, as `--help` lists them. `error.rs` gives them.
const EXIT_CODES: &str = "\
Exit codes:
  0  done, also when nothing was left to do or nothing was found
  1  something else went wrong
  2  the command line is wrong
  3  there is no such session, summary or message, or no database yet
  4  the input is wrong: unreadable, empty, not text, of no known format
  5  the database is not ours, of another version, damaged, or cannot be read or written
  6  the budget is too small
  7  verification found something wrong
  8  something was skipped, and --strict was given
  9  another process kept the database locked for longer than --lock-timeout
  10 nothing was done: another process is at work on the same summaries
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
    /// The database: `sqlite:PATH`, or just a path [default: memory.db in the platform's data
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

    /// How long to wait for a database that another process has locked, when it is opened and at
    /// each write, in seconds
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

    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A time in seconds, with or without a fraction.
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
    /// Compact a transcript or a session, and show what became of it
    Compact(Compact),
    /// Drive a session with a transcript, message by message, and check the laws at each step
    Replay(Replay),
    /// Take over transcripts: Claude Code, pi, or JSON lines, found by their content
    Import(Import),
    /// Assemble the context that a model would get
    Context(Context),
    /// Find text in a session's messages and summaries
    Grep(Grep),
    /// Tell all about a summary
    Describe(Describe),
    /// Unfold a summary by one level, or read messages word for word
    Expand(Expand),
    /// Begin a session that shares another's log up to a message
    Fork(Fork),
    /// Show what stands for a session's messages, now or earlier, and go back to that
    View(View),
    /// List the sessions
    Sessions(Sessions),
    /// Tell how much is stored
    Stats,
    /// Check that nothing was lost or changed
    Verify(Verify),
    /// Let a model write the summaries that were written without one
    Redo(Redo),
    /// Set a session's title and channel, archive it, or take it back from the archive
    Set(Set),
    /// Write a session's log, one JSON object a line, which `import` takes back; or sessions as a plain database
    Export(Export),
    /// Count the tokens of files with every estimator; opens no database
    Tokens(Tokens),
    /// Print a completion script for a shell
    Completions(Completions),
}

/// Arguments of `compact`.
#[derive(Debug, Args)]
pub(crate) struct Compact {
    /// A transcript's file, or a session: its name or how it begins
    #[arg(value_name = "FILE or SESSION")]
    pub(crate) target: String,
    /// How the history is compacted
    #[arg(long, value_enum, default_value_t = Strategy::Dag)]
    pub(crate) strategy: Strategy,
    /// How far to go: until nothing is left to do, or one pass over messages and one over summaries
    #[arg(long, value_enum, default_value_t = ModeArg::Full)]
    pub(crate) mode: ModeArg,
    /// Who writes
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// What is compacted, and when
    #[command(flatten)]
    pub(crate) policy: Policy,
    /// The model's window, in tokens, that --threshold is a share of
    #[arg(long, value_name = "TOKENS", requires = "threshold", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Only print what would be done next; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The budget, in tokens, of the context that is shown afterwards
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    pub(crate) budget: u64,
}

/// How a history is compacted.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Strategy {
    /// A graph of summaries: leaves over messages, condensed ones over summaries
    Dag,
}

/// What is compacted, and when.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Policy {
    /// The policies that the options below change
    #[arg(long, value_enum, value_name = "PRESET")]
    pub(crate) preset: Option<Preset>,
    /// The newest messages that are not compacted, as far as their tokens allow [default: 20]
    #[arg(long, value_name = "MESSAGES")]
    pub(crate) fresh_tail: Option<usize>,
    /// The fewest messages of a leaf [default: 10]
    #[arg(long, value_name = "MESSAGES", value_parser = at_least_one)]
    pub(crate) leaf_messages: Option<usize>,
    /// The most tokens of source that one summary is made of [default: 20000]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) leaf_tokens: Option<u64>,
    /// Compact only when a context costs more than this share of --window [default: 0.75 for
    /// replay; compact always does]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) threshold: Option<f64>,
}

/// Sets of policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// This program's own
    Default,
    /// anna's: 20 messages stay whole, each run of 10 or more becomes one leaf
    Anna,
}

/// A number of messages.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("give 1 or more".to_owned()),
        Ok(messages) => Ok(messages),
        Err(error) => Err(format!("{error}: give a number of messages")),
    }
}

/// A share of a whole.
fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("give a share above 0 and up to 1, such as 0.75".to_owned()),
    }
}

/// How far a compaction goes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    /// One pass over messages and one over summaries
    Incremental,
    /// Until nothing is left to do
    Full,
}

/// Who writes the summaries.
#[derive(Debug, Args)]
pub(crate) struct Writing {
    /// Who writes the summaries: extractive, which needs no model and no key, or PROVIDER:MODEL,
    /// such as openai:gpt-5-mini, ollama:qwen3:8b, compatible:NAME with --base-url, and, where
    /// the program was built with the feature genai, anthropic:NAME or gemini:NAME
    #[arg(long, value_name = "SUMMARIZER", default_value = "extractive")]
    pub(crate) summarizer: String,
    /// Who writes what that model could not: MODEL of the same provider, or PROVIDER:MODEL
    #[arg(long, value_name = "MODEL")]
    pub(crate) fallback_model: Option<String>,
    /// The provider's address, the part before /chat/completions [default: its own]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The provider's key, which other users can see while the program runs: better is a file, or
    /// the environment [default: OPENAI_API_KEY, COMPATIBLE_API_KEY, ANTHROPIC_API_KEY or
    /// GEMINI_API_KEY, by provider]
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(crate) api_key: Option<ApiKey>,
    /// A file with the provider's key; - reads it from standard input
    #[arg(long, value_name = "PATH", conflicts_with = "api_key")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// What the summaries should mind
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// The prompts that the model gets [default: standard]
    #[arg(long, value_enum, value_name = "SET")]
    pub(crate) prompts: Option<Prompts>,
    /// How much the model takes in and gives at once, in tokens; a longer source is summarised in
    /// parts [default: no limit]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) model_window: Option<u64>,
    /// Minimum share of its source's identifiers, paths, addresses and codes that a model's summary
    /// retains, from 0 to 1; 0 checks none [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = share_or_none)]
    pub(crate) min_retained: Option<f64>,
    /// How long one attempt at a call may take, in seconds [default: 120]. A silent endpoint holds a
    /// call for all attempts and the waits of 1, 2, 4 … seconds between them: 363 seconds by
    /// default. Calls made at the same time wait together, and after 3 that failed no more are made
    /// for a minute
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) model_timeout: Option<u64>,
    /// How often a call is made at most when it times out or its failure may pass [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) model_attempts: Option<u32>,
}

/// Which prompts a model gets.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Prompts {
    /// What to keep and what to drop, in plain words
    Standard,
    /// anna's seven sections
    Anna,
    /// pi's six sections
    Pi,
    /// koda's nine sections, after notes that are dropped
    Koda,
}

/// A key is taken as it is, and shown nowhere.
fn key(text: &str) -> Result<ApiKey, std::convert::Infallible> {
    Ok(ApiKey::new(text))
}

/// Arguments of `redo`.
#[derive(Debug, Args)]
pub(crate) struct Redo {
    /// The session: its name or how it begins
    pub(crate) session: String,
    /// Who writes
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Maximum number of calls, each attempt counted; run it again to go on, it asks for what was
    /// refused before last [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_calls: Option<u64>,
    /// Only print what would be made anew; call no model and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A transcript; it is replayed into a database of its own, which is gone afterwards
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The model's window, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    pub(crate) window: u64,
    /// What is compacted, and when
    #[command(flatten)]
    pub(crate) policy: Policy,
    /// The most statements that a step may take
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_statements: u64,
    /// The session of JSON lines that name none
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Transcripts, or directories that are searched for them
    #[arg(value_name = "FILE or DIR", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// The session of JSON lines that name none
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Fail with exit code 8 when a line or file did not become messages, after importing the rest
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Arguments of `context`.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// The session: its name or how it begins
    pub(crate) session: String,
    /// The most that the context may cost, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    pub(crate) budget: u64,
    /// As an earlier version of the view shows it; see `view --history`
    #[arg(long, value_name = "VERSION")]
    pub(crate) at: Option<u64>,
    /// How to print it; --json is the same as json
    #[arg(long = "as", value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub(crate) form: Form,
    /// Print also how the context came about (JSON always has it)
    #[arg(long)]
    pub(crate) receipt: bool,
}

/// How a context is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Arguments of `grep`.
#[derive(Debug, Args)]
pub(crate) struct Grep {
    /// The session: its name or how it begins
    pub(crate) session: String,
    /// The text to find, literally, whatever its case
    pub(crate) pattern: String,
    /// Where to look
    #[arg(long, value_enum, default_value_t = ScopeArg::Both)]
    pub(crate) scope: ScopeArg,
    /// Maximum number of hits, at least 1
    #[arg(long, value_name = "N", default_value = "20")]
    pub(crate) limit: NonZeroUsize,
    /// Go on where an earlier answer to the same search in the same session stopped
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

/// Where to look.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Messages only
    Messages,
    /// Summaries only
    Summaries,
    /// Messages, then summaries
    Both,
}

/// Arguments of `describe`.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// The session: its name or how it begins
    pub(crate) session: String,
    /// The summary's id
    pub(crate) summary: String,
}

/// Arguments of `expand`.
#[derive(Debug, Args)]
pub(crate) struct Expand {
    /// The session: its name or how it begins
    pub(crate) session: String,
    /// A summary's id, `message:12`, or `messages:12-40`
    #[arg(value_name = "SUMMARY or MESSAGES")]
    pub(crate) target: String,
    /// Maximum number of tokens of content in the answer
    #[arg(long, value_name = "TOKENS", default_value_t = 4000)]
    pub(crate) cap: u64,
    /// Go on where an earlier answer for the same target in the same session stopped
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

/// Arguments of `fork`.
#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The session to fork: its name or how it begins
    pub(crate) session: String,
    /// The last message that both share
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: u32,
    /// The new session's name [default: SESSION@SEQ]
    #[arg(long, value_name = "KEY")]
    pub(crate) name: Option<String>,
}

/// Arguments of `set`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Set {
    /// The session: its name or how it begins
    pub(crate) session: String,
    /// A title for people
    #[arg(long, value_name = "TITLE", group = "what")]
    pub(crate) title: Option<String>,
    /// Where the session comes from, such as telegram
    #[arg(long, value_name = "CHANNEL", group = "what")]
    pub(crate) channel: Option<String>,
    /// Archive it: `sessions` lists it only with --all
    #[arg(long, group = "what", conflicts_with = "unarchive")]
    pub(crate) archive: bool,
    /// Take it back from the archive
    #[arg(long, group = "what")]
    pub(crate) unarchive: bool,
}

/// Arguments of `view`.
#[derive(Debug, Args)]
pub(crate) struct View {
    /// The session: its name or how it begins
    pub(crate) session: String,
    /// An earlier version instead of today's; 0 is all messages as they are
    #[arg(long, value_name = "VERSION")]
    pub(crate) at: Option<u64>,
    /// Show instead what changed from this version to the one shown
    #[arg(long, value_name = "VERSION")]
    pub(crate) diff: Option<u64>,
    /// Go back to this version first: publish what it showed as a new one
    #[arg(long, value_name = "VERSION", conflicts_with = "at")]
    pub(crate) return_to: Option<u64>,
    /// Also list what made each version
    #[arg(long)]
    pub(crate) history: bool,
    /// How many levels below the spans to show
    #[arg(long, value_name = "LEVELS", default_value_t = 1)]
    pub(crate) depth: usize,
}

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub(crate) struct Sessions {
    /// Also those that were put away
    #[arg(long)]
    pub(crate) all: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Only this session [default: the database and every session]
    pub(crate) session: Option<String>,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The session: its name or how it begins. With `--sqlite` several, or all when none is named
    #[arg(required_unless_present = "sqlite", num_args = 0..)]
    pub(crate) sessions: Vec<String>,
    /// Write a new SQLite file with plain tables, in which nothing is packed: conversations, messages, message_parts,
    /// summaries, summary_messages, summary_parents, context_items
    #[arg(long, value_name = "FILE")]
    pub(crate) sqlite: Option<PathBuf>,
}

/// Arguments of `tokens`.
#[derive(Debug, Args)]
pub(crate) struct Tokens {
    /// The files; their raw text is counted, whatever their format
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

/// Parses a share from 0 to 1.
fn share_or_none(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "give a number from 0 to 1, such as 0.3".to_owned())
}

//! The commands that compact: `compact`, `work`, `redo` and `replay`, and the options of their policy.

use std::path::PathBuf;

use agent_memory::{Mode, Strategy};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::retrieval::named;
use super::writing::Writing;

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
pub(super) fn strategy() -> impl TypedValueParser<Value = Strategy> {
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

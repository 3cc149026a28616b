//! Arguments of the commands that search and read a session.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use agent_memory::retrieval::UseKind;
use agent_memory::{
    Role,
    model::Timestamp,
    search::{HitOrder, SearchMode, SearchScope},
};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

/// Parses a value from one of these names, as the library serializes them.
pub(super) fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(name.into()))
}

/// Arguments of `grep`.
#[derive(Debug, Args)]
pub(crate) struct Grep {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// Text to find
    pub(crate) pattern: String,
    /// How the pattern is read: literal, in any case, with no special character; as a regular expression; as words that
    /// all occur, in any form and order; as prose, any word of which occurs, the best answers first [default: literal;
    /// without hits, words; without hits again, prose]
    #[arg(long, value_parser = named::<SearchMode>(&["literal", "regex", "words", "prose"]))]
    pub(crate) mode: Option<SearchMode>,
    /// Let upper case in the pattern count, with --mode literal and regex
    #[arg(long)]
    pub(crate) smart_case: bool,
    /// Part to search
    #[arg(long, default_value = "both", value_parser = named::<SearchScope>(&["messages", "summaries", "both"]))]
    pub(crate) scope: SearchScope,
    /// Find only messages of this role; may be given several times
    #[arg(long = "role", value_name = "ROLE", value_parser = named::<Role>(&["system", "user", "assistant", "tool"]))]
    pub(crate) roles: Vec<Role>,
    /// Find only messages that call this tool or hold its result; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,
    /// Also search calls of the memory's tools and their results, which repeat earlier messages
    #[arg(long)]
    pub(crate) echoes: bool,
    /// Number of messages to show before and after each hit, at most 5
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) around: usize,
    /// Find only messages from this position on
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) from: Option<u32>,
    /// Find only messages up to this position, inclusive
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) to: Option<u32>,
    /// Find only messages from this time on: RFC 3339, such as 2026-02-08T09:16:00Z, or a date
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) since: Option<Timestamp>,
    /// Find only messages before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) until: Option<Timestamp>,
    /// Order of the hits: the best first, or the oldest first for literal and regex, which do not rank; or by time
    #[arg(long, default_value = "relevance", value_parser = named::<HitOrder>(&["relevance", "oldest", "newest"]))]
    pub(crate) order: HitOrder,
    /// Maximum number of hits, at least 1
    #[arg(long, value_name = "N", default_value = "20")]
    pub(crate) limit: NonZeroUsize,
    /// Cursor of an earlier answer to the same search, to continue it
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Vectors of words that the search counts.
    #[command(flatten)]
    pub(crate) vectors: Vectors,
}

/// Vectors of words that a search counts in addition to the words.
#[derive(Debug, Args)]
pub(crate) struct Vectors {
    /// A table of vectors of words: a question then also finds texts of nearly the same meaning
    #[arg(
        long,
        value_name = "FILE",
        env = "AGENT_MEMORY_TABLE",
        hide_env_values = true
    )]
    pub(crate) table: Option<PathBuf>,
}

/// Parses a time. A date is the beginning of its day in UTC.
fn time(text: &str) -> Result<Timestamp, String> {
    let time = Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{text}T00:00:00Z")));
    time.ok_or_else(|| "give a time such as 2026-02-08T09:16:00Z, or a date".to_owned())
}

/// Arguments of `recall`.
#[derive(Debug, Args)]
pub(crate) struct Recall {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// What to recall: a question or a few words
    #[arg(required_unless_present = "turn")]
    pub(crate) query: Option<String>,
    /// Recall one message by its position instead
    #[arg(long, value_name = "SEQ", conflicts_with = "query")]
    pub(crate) turn: Option<u32>,
    /// Maximum size of all passages, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 2000)]
    pub(crate) budget: u64,
    /// Cursor of an earlier answer to the same query, to continue it
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Vectors of words that the search counts.
    #[command(flatten)]
    pub(crate) vectors: Vectors,
}

/// Arguments of `files`.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// Find only uses of this file, and commands that name it: a path or the end of one; a folder ends
    /// with / [default: all uses]
    pub(crate) path: Option<String>,
    /// Find only commands with this text, in any case
    #[arg(long, value_name = "TEXT")]
    pub(crate) command: Option<String>,
    /// Find only uses of this kind
    #[arg(long, value_parser = named::<UseKind>(&["read", "changed", "ran"]))]
    pub(crate) action: Option<UseKind>,
    /// Maximum number of uses, at least 1
    #[arg(long, value_name = "N", default_value = "20")]
    pub(crate) limit: NonZeroUsize,
    /// Cursor of an earlier answer to the same question, to continue it
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

/// Arguments of `index`.
#[derive(Debug, Args)]
pub(crate) struct Index {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// Remove the session's index first, such as after `verify` found damage in it
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Vectors of words that are indexed.
    #[command(flatten)]
    pub(crate) vectors: Vectors,
}

/// Arguments of `describe`.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// The summary's id
    pub(crate) summary: String,
}

/// Arguments of `expand`.
#[derive(Debug, Args)]
pub(crate) struct Expand {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// A summary's id, `message:12`, or `messages:12-40`
    #[arg(value_name = "SUMMARY or MESSAGES")]
    pub(crate) target: String,
    /// Maximum size of the answer's content, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 4000)]
    pub(crate) cap: u64,
    /// Cursor of an earlier answer for the same target, to continue it
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

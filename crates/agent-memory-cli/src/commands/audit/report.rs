//! The report of an audit: the figures of each compaction, the items that were known, and sums.

use std::collections::BTreeMap;

use agent_memory::transcripts::CountedInput;
use serde::Serialize;

/// Report of the audit of one session.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) file: String,
    pub(super) session: String,
    pub(super) format: String,
    pub(super) messages: u64,
    pub(super) compactions: Vec<Compaction>,
    /// Number of compactions in other sessions of the file: abandoned branches and sub-agents.
    pub(super) elsewhere: usize,
    pub(super) total: Total,
    /// Number of different values of each kind that were redacted; `None` if no text was.
    pub(super) redacted: Option<BTreeMap<&'static str, usize>>,
}

/// A compaction with its figures.
#[derive(Debug, Serialize)]
pub(super) struct Compaction {
    pub(super) number: usize,
    /// Position of the entry that records the compaction.
    pub(super) seq: u64,
    /// Id of this entry in the transcript, or one that is made of its text.
    pub(super) entry: Option<String>,
    pub(super) created_at: Option<String>,
    pub(super) trigger: Option<String>,
    pub(super) before: SizeBefore,
    pub(super) after: SizeAfter,
    pub(super) cache: Cache,
    /// Context of agent-memory; `None` if the budget is too small for one.
    pub(super) agent_memory: Option<OurContext>,
    /// Number of the messages after the compaction that were searched for names.
    pub(super) next_messages: u64,
    pub(super) kinds: Vec<KindCounts>,
    /// Items that hold at the time of the compaction, those that an earlier compaction lost at the end.
    pub(super) items: Vec<Known>,
}

/// Size of the agent's context before a compaction, without its system prompt and tools.
#[derive(Debug, Serialize)]
pub(super) struct SizeBefore {
    pub(super) messages: u64,
    pub(super) tokens: u64,
    /// Tokens by the agent's own count, which may include its system prompt and tools.
    pub(super) tokens_by_agent: Option<u64>,
}

/// Size of the agent's context after a compaction, without its system prompt and tools.
#[derive(Debug, Serialize)]
pub(super) struct SizeAfter {
    pub(super) tokens: u64,
    /// Text that the compaction wrote.
    pub(super) summary: String,
    pub(super) summary_tokens: u64,
    /// Messages that were kept word for word.
    pub(super) messages: u64,
    pub(super) message_tokens: u64,
    /// Messages that the agent's program added right after the compaction.
    pub(super) added: u64,
    pub(super) added_tokens: u64,
}

/// Tokens of the messages of the next request, by the use that a provider's prompt cache has for them.
#[derive(Debug, Serialize)]
pub(super) struct Cache {
    /// Tokens that would be the same without the compaction.
    pub(super) before: u64,
    /// Tokens at the beginning that are the same after the compaction.
    pub(super) same: u64,
    /// Tokens after them, which are written again.
    pub(super) rewritten: u64,
    /// Input of the last request before the compaction as the provider counted it, with instructions, tools and
    /// everything else that the transcript lacks; `None` if the transcript has no count.
    pub(super) counted_before: Option<CountedInput>,
    /// The same for the first request after the compaction.
    pub(super) counted_after: Option<CountedInput>,
}

#[derive(Debug, Serialize)]
pub(super) struct OurContext {
    pub(super) budget: u64,
    pub(super) tokens: u64,
}

/// Kinds of items that an agent knows, in the order of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    NewestRequest,
    StandingInstruction,
    Decision,
    ChangedFile,
    FailingCheck,
    OpenTask,
    UsedNext,
}

impl Kind {
    pub(super) const ALL: [Self; 7] = [
        Self::NewestRequest,
        Self::StandingInstruction,
        Self::Decision,
        Self::ChangedFile,
        Self::FailingCheck,
        Self::OpenTask,
        Self::UsedNext,
    ];

    /// Returns the name of one item of the kind.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NewestRequest => "newest request",
            Self::StandingInstruction => "standing instruction",
            Self::Decision => "decision",
            Self::ChangedFile => "changed file",
            Self::FailingCheck => "failing check",
            Self::OpenTask => "open task",
            Self::UsedNext => "name used next",
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct KindCounts {
    pub(super) kind: Kind,
    /// Items that hold at the time of the compaction.
    pub(super) known: u64,
    /// Of these, items in the agent's context after it.
    pub(super) kept: u64,
    /// Items in the agent's context before the compaction and not after it.
    pub(super) lost: u64,
    /// Items that an earlier compaction lost.
    pub(super) missing_before: u64,
    /// Items in agent-memory's context of the same size.
    pub(super) agent_memory: u64,
}

impl KindCounts {
    /// Counts items by kind.
    pub(super) fn all<'a>(items: impl Iterator<Item = &'a Known> + Clone) -> Vec<Self> {
        let counts = Kind::ALL.map(|kind| {
            let count = |is: fn(&Known) -> bool| {
                let items = items.clone();
                items.filter(|item| item.kind == kind && is(item)).count() as u64
            };
            Self {
                kind,
                known: count(|_| true),
                kept: count(|item| item.kept),
                lost: count(|item| !item.kept && !item.missing_before),
                missing_before: count(|item| item.missing_before),
                agent_memory: count(|item| item.agent_memory),
            }
        });
        counts.to_vec()
    }
}

/// An item that holds at the time of a compaction.
#[derive(Debug, Serialize)]
pub(super) struct Known {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// Output of a failing check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) says: Option<String>,
    /// Message that states it.
    pub(super) seq: Option<u64>,
    /// Whether the agent's context after the compaction has it.
    pub(super) kept: bool,
    /// Whether an earlier compaction lost it.
    pub(super) missing_before: bool,
    /// Whether it is in another script than the summary, which then cannot have its words.
    pub(super) other_script: bool,
    /// Whether agent-memory's context has it.
    pub(super) agent_memory: bool,
    /// Command that returns a lost item from a database with the transcript; `None` if none does.
    pub(super) command: Option<String>,
}

impl Compaction {
    /// Returns the items that are not in the agent's context after the compaction.
    pub(super) fn missing(&self) -> impl Iterator<Item = &Known> {
        self.items.iter().filter(|item| !item.kept)
    }
}

/// Sums over all compactions.
#[derive(Debug, Serialize)]
pub(super) struct Total {
    pub(super) compactions: u64,
    pub(super) tokens_before: u64,
    pub(super) tokens_after: u64,
    pub(super) tokens_rewritten: u64,
    pub(super) kinds: Vec<KindCounts>,
    /// Number of items that are missing after a compaction, and of those that a command returns.
    pub(super) missing: u64,
    pub(super) recoverable: u64,
}

impl Total {
    pub(super) fn of(compactions: &[Compaction]) -> Self {
        let sum = |of: fn(&Compaction) -> u64| compactions.iter().map(of).sum();
        Self {
            compactions: compactions.len() as u64,
            tokens_before: sum(|one| one.before.tokens),
            tokens_after: sum(|one| one.after.tokens),
            tokens_rewritten: sum(|one| one.cache.rewritten),
            kinds: KindCounts::all(compactions.iter().flat_map(|one| &one.items)),
            missing: sum(|one| one.missing().count() as u64),
            recoverable: sum(|one| {
                one.missing().filter(|item| item.command.is_some()).count() as u64
            }),
        }
    }
}

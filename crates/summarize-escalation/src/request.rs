//! The request to a summarizer.

use std::fmt;

use async_trait::async_trait;
use extractive_summarizer::{Source, source};
use memory_model::conventions::{AgentConventions, GenericConventions};
use memory_model::{FieldHasher, Hash, Purpose, SeqRange, SourceHasher, Timestamp};
use model_client::{CacheKey, Failure};
use serde::{Deserialize, Serialize};
use token_estimate::TokenEstimator;

use crate::criteria::Gate;
use crate::prompt::PromptSet;
use crate::refusal::Reason;

/// Amount of detail that a summary keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Style {
    /// Keeps decisions, the reasons for them, constraints and tasks.
    #[default]
    Normal,
    /// Keeps only durable facts and the state of the work.
    Aggressive,
}

/// Kind of a summary, by the kind of its sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummaryKind {
    /// All sources are messages.
    Leaf,
    /// At least one source is a summary.
    Condensed,
}

/// A request to a summarizer: the source, the length of the summary, and the user's instructions.
#[derive(Clone, Copy)]
#[must_use]
pub struct SummaryRequest<'a> {
    /// Messages and summaries to summarize, in the order of the log.
    pub source: &'a [Source<'a>],
    /// Target length of the summary, in tokens of `estimator`; 0 uses the ladder's target length.
    pub target_tokens: u64,
    /// Maximum cost of the summary, in tokens, if it is below the ladder's maximum; 0 uses the ladder's maximum.
    pub max_tokens: u64,
    /// Counts the tokens of the source and of the summary.
    pub estimator: &'a dyn TokenEstimator,
    /// Number of tokens that rendering the summary in a context adds to the cost of its text. The text and these tokens
    /// together must cost less than the source. Default 0.
    pub overhead_tokens: u64,
    /// Amount of detail that the summary keeps. The ladder sets it for each tier.
    pub style: Style,
    /// Purpose of the summary, such as to replace its source.
    pub purpose: Purpose,
    /// Text of the summary that precedes the source; `None` if there is none. The summarizer reads it for continuity
    /// and does not summarize it.
    pub previous: Option<&'a str>,
    /// Messages before the source, oldest first. A prompt shows them as context, shortened, and does not ask for their
    /// summary. Without them, a source that begins in the middle of a task does not tell what the task is. Default: none.
    pub before: &'a [Source<'a>],
    /// Instructions of the user for the summary; `None` if there are none.
    pub instructions: Option<&'a str>,
    /// Prompts to use instead of the summarizer's own prompts; `None` keeps them.
    pub prompts: Option<&'a PromptSet>,
    /// Conventions of the agent that took part in the conversation. By them a prompt tells the user's own words from those that
    /// programs added. Default: the conventions of no particular agent.
    pub conventions: &'a dyn AgentConventions,
    /// Reason for which the answer before this one was refused, so that a prompt can say it; `None` for the first
    /// answer. The ladder sets it for each tier.
    pub refused: Option<&'a Reason>,
    /// Paths of the files that the source is known to have changed, so that a summary that denies it is refused. `None`
    /// reads them from the tool calls of the source, by `conventions`.
    pub changed_files: Option<&'a [String]>,
    /// Gate of the ladder, for summarizers that choose between answers or merge them: by it they refuse an answer
    /// before the ladder sees it. `None` checks nothing. The ladder sets it.
    pub gate: Option<&'a Gate>,
    /// Check that runs before each call of a model, including each retry; `None` for no check.
    pub before_call: Option<&'a dyn BeforeCall>,
}

/// Check that decides whether a model may still be called. For example, text in the prompt may have been erased since
/// the prompt was written.
#[async_trait]
pub trait BeforeCall: Send + Sync + fmt::Debug {
    /// Returns `Ok` if the call may be made.
    ///
    /// # Errors
    /// The failure that the caller gets instead of the model's answer.
    async fn before_call(&self) -> Result<(), Failure>;
}

impl fmt::Debug for SummaryRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SummaryRequest")
            .field("range", &self.range())
            .field("pieces", &self.source.len())
            .field("depth", &self.depth())
            .field("source_tokens", &self.source_tokens())
            .field("target_tokens", &self.target_tokens)
            .field("style", &self.style)
            .finish_non_exhaustive()
    }
}

impl<'a> SummaryRequest<'a> {
    /// Creates a request for a summary of `source` with the ladder's target length.
    pub fn new(source: &'a [Source<'a>], estimator: &'a dyn TokenEstimator) -> Self {
        Self {
            source,
            target_tokens: 0,
            max_tokens: 0,
            estimator,
            overhead_tokens: 0,
            style: Style::Normal,
            purpose: Purpose::Replace,
            previous: None,
            before: &[],
            instructions: None,
            prompts: None,
            conventions: &GenericConventions,
            refused: None,
            changed_files: None,
            gate: None,
            before_call: None,
        }
    }

    /// Runs the check [`before_call`](Self::before_call), if it is set.
    ///
    /// # Errors
    /// The failure that the check returns if the call must not be made.
    pub async fn before_call(&self) -> Result<(), Failure> {
        match self.before_call {
            Some(check) => check.before_call().await,
            None => Ok(()),
        }
    }

    /// Returns the same request for another source, without the messages before the source.
    pub(crate) fn with_source<'b>(&self, source: &'b [Source<'b>]) -> SummaryRequest<'b>
    where
        'a: 'b,
    {
        SummaryRequest {
            source,
            before: &[],
            ..*self
        }
    }

    /// Returns whether the summary should be shorter than an ordinary one. The aggressive style is no reason for it if
    /// the answer before was refused for its content.
    pub(crate) fn is_brief(&self) -> bool {
        let for_content = matches!(
            self.refused,
            Some(Reason::Empty | Reason::Refused | Reason::Filtered | Reason::Gate { .. })
        );
        self.style == Style::Aggressive && !for_content
    }

    /// Returns the depth that the summary will have: 0 if all sources are messages, otherwise 1 + the depth of the
    /// deepest source.
    pub fn depth(&self) -> u32 {
        source::depth(self.source)
    }

    /// Returns [`SummaryKind::Leaf`] if all sources are messages, otherwise [`SummaryKind::Condensed`].
    pub fn kind(&self) -> SummaryKind {
        match self.depth() {
            0 => SummaryKind::Leaf,
            _ => SummaryKind::Condensed,
        }
    }

    /// Returns the cost of the source, in tokens.
    pub fn source_tokens(&self) -> u64 {
        source::tokens(self.source)
    }

    /// Returns the range from the source's first message to its last; `None` if the source is empty.
    pub fn range(&self) -> Option<SeqRange> {
        source::range(self.source)
    }

    /// Returns the key under which a cache keeps the summary of this request by `summarizer`: a hash of the source and
    /// of everything else that the summary depends on. `None` if a message has no hash, as outside of a log, because
    /// the key could not distinguish it from other messages.
    pub(crate) fn cache_key(&self, summarizer: &str) -> Option<CacheKey> {
        let mut sources = SourceHasher::new();
        for piece in self.before.iter().chain(self.source) {
            match piece {
                Source::Message(entry) if entry.hash == Hash::ZERO => return None,
                Source::Message(entry) => sources.message(entry.hash),
                Source::Summary(summary) => {
                    let mut hasher = FieldHasher::new("agent-memory cached source 1");
                    hasher.bytes(summary.id.as_bytes());
                    hasher.bytes(summary.text.as_bytes());
                    sources.summary(hasher.finish());
                }
            }
        }
        // The key covers positions and times, because prompts show them.
        let prompts = self.prompts.map(|prompts| prompts.hash().to_string());
        let how = format!(
            "{} {:?} {:?} {:?} {} {} {} {} {} {:?}",
            self.before.len(),
            self.style,
            self.purpose,
            self.range(),
            self.depth(),
            self.target_tokens,
            self.estimator.id().as_str(),
            prompts.as_deref().unwrap_or("-"),
            self.conventions.id(),
            self.refused,
        );
        let optional = |text: Option<&'a str>| match text {
            Some(text) => [&b"1"[..], text.as_bytes()],
            None => [&b"0"[..], &b""[..]],
        };
        let fields = [
            &sources.finish().0[..],
            summarizer.as_bytes(),
            how.as_bytes(),
        ];
        let texts = [self.previous, self.instructions].map(optional);
        Some(CacheKey::new(
            fields.into_iter().chain(texts.into_iter().flatten()),
        ))
    }

    /// Returns the earliest and the latest time of the source's messages; `None` if no time is known. See
    /// [`source::times`].
    pub fn times(&self) -> Option<(Timestamp, Timestamp)> {
        source::times(self.source)
    }
}

//! The ladder of summaries as rig's compactor.

use std::sync::Arc;

use agent_memory::tokens::{TokenEstimator, default_estimator};
use agent_memory::{
    Message, Seq, SeqRange,
    model::{Hash, LogEntry, Timestamp},
};
use rig_core::completion::message::Message as RigMessage;
use rig_core::id::ConversationId;
use rig_core::memory::{Compactor, MemoryError};
use rig_core::wasm_compat::WasmBoxedFuture;
use summarize_escalation::{
    ErrorKind, ExtractiveSummarizer, Ladder, Source, Summarizer, SummaryRequest, SummarySource,
    escalate,
};

use crate::messages::from_rig;

/// Cost up to which evicted messages stay word for word, in tokens. An extract of less would be
/// fragments of sentences.
const MIN_SOURCE_TOKENS: u64 = 128;

/// rig's compactor over a [`Ladder`]: the summarizer is asked normally, then aggressively; then an extract is
/// made without a model, then a cut.
///
/// Under the default ladder a summary costs less than what it stands for. Messages that together cost no more than 128
/// tokens, or that nothing shorter can stand for, stay word for word.
#[derive(Debug, Clone)]
pub struct LadderCompactor {
    summarizer: Arc<dyn Summarizer>,
    ladder: Ladder,
    estimator: Arc<dyn TokenEstimator>,
    target_tokens: u64,
}

impl Default for LadderCompactor {
    /// Extracts, without a model.
    fn default() -> Self {
        Self::new(Arc::new(ExtractiveSummarizer::new()))
    }
}

impl LadderCompactor {
    /// Creates a compactor that asks this summarizer, with the default ladder and estimator.
    pub fn new(summarizer: Arc<dyn Summarizer>) -> Self {
        Self {
            summarizer,
            ladder: Ladder::default(),
            estimator: default_estimator(),
            target_tokens: 0,
        }
    }

    /// Sets the ladder.
    #[must_use]
    pub fn with_ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// Sets the estimator that counts messages and summaries.
    #[must_use]
    pub fn with_estimator(mut self, estimator: Arc<dyn TokenEstimator>) -> Self {
        self.estimator = estimator;
        self
    }

    /// Sets the target length of a summary, in tokens. By default 0: the ladder derives it from the source.
    #[must_use]
    pub fn with_target_tokens(mut self, tokens: u64) -> Self {
        self.target_tokens = tokens;
        self
    }

    async fn summarize(
        &self,
        evicted: &[RigMessage],
        before: Option<&RigSummary>,
    ) -> Result<RigSummary, summarize_escalation::Error> {
        let covered = before.map_or(0, |before| before.messages);
        let entries = self.entries(evicted, covered);
        let messages = entries.last().map_or(covered, |entry| entry.seq.0);
        let previous = before.and_then(|before| {
            Some(Source::Summary(SummarySource {
                id: "summary",
                range: SeqRange::new(Seq(1), Seq(before.messages))?,
                depth: 0,
                text: &before.text,
                ranks: None,
                tokens: before.tokens,
                earliest_at: Timestamp::default(),
                latest_at: Timestamp::default(),
            }))
        });
        let source: Vec<Source<'_>> = previous
            .into_iter()
            .chain(entries.iter().map(Source::from))
            .collect();
        let request = SummaryRequest {
            target_tokens: self.target_tokens,
            ..SummaryRequest::new(&source, &*self.estimator)
        };
        if request.source_tokens() <= MIN_SOURCE_TOKENS {
            return Ok(self.word_for_word(before, &entries, messages));
        }
        match escalate(&*self.summarizer, &self.ladder, &request).await {
            Ok(outcome) => Ok(RigSummary {
                text: outcome.text,
                tokens: outcome.tokens_out,
                messages,
                provisional: outcome.provisional,
            }),
            Err(error) if error.kind() == ErrorKind::CannotShrink => {
                Ok(self.word_for_word(before, &entries, messages))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the summary before and what was said since then.
    fn word_for_word(
        &self,
        before: Option<&RigSummary>,
        entries: &[LogEntry],
        messages: u32,
    ) -> RigSummary {
        let provisional = before.is_some_and(|before| before.provisional);
        let before = before.map(|before| before.text.clone());
        let said = entries.iter().map(|entry| said(&entry.message));
        let texts: Vec<String> = before.into_iter().chain(said).collect();
        let text = texts.join("\n");
        RigSummary {
            tokens: self.estimator.text(&text),
            text,
            messages,
            provisional,
        }
    }

    /// Returns log entries of these messages, which come after `covered` others.
    fn entries(&self, messages: &[RigMessage], covered: u32) -> Vec<LogEntry> {
        let mut running = 0_u64;
        let mut seq = Seq(covered);
        let entry = |message: &RigMessage| {
            let message = from_rig(message);
            let tokens = self.estimator.message(&message);
            running = running.saturating_add(tokens);
            seq = seq.next();
            LogEntry {
                seq,
                message,
                tokens,
                running,
                hash: Hash::ZERO,
            }
        };
        messages.iter().map(entry).collect()
    }
}

/// Returns what a message says, in one line for each of its texts.
fn said(message: &Message) -> String {
    let mut texts = Vec::new();
    for part in &message.parts {
        part.visit_texts(&mut |text| texts.push(text.into_owned()));
    }
    format!("{}: {}", message.role, texts.join("\n"))
}

/// Summary of the messages that rig evicted from a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RigSummary {
    /// Text of the summary.
    pub text: String,
    /// Cost of the text, in tokens.
    pub tokens: u64,
    /// Number of messages that it stands for, from the first one on.
    pub messages: u32,
    /// Whether it was written without the summarizer that was asked for.
    pub provisional: bool,
}

impl From<RigSummary> for RigMessage {
    /// A user's message, as what a summary says is not the application's own instruction.
    fn from(summary: RigSummary) -> Self {
        // What was said must not end the summary.
        let text = summary.text.replace("</summary", "&lt;/summary");
        RigMessage::user(format!(
            "<summary messages=\"1-{}\">\n{text}\n</summary>",
            summary.messages
        ))
    }
}

impl Compactor for LadderCompactor {
    type Artifact = RigSummary;

    fn compact<'a>(
        &'a self,
        _conversation_id: &'a ConversationId,
        evicted: &'a [RigMessage],
        carry_over: Option<&'a RigSummary>,
    ) -> WasmBoxedFuture<'a, Result<RigSummary, MemoryError>> {
        Box::pin(async move {
            let summary = self.summarize(evicted, carry_over).await;
            summary.map_err(MemoryError::backend)
        })
    }
}

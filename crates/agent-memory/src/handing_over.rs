//! Handoffs of a session, their outcomes, and the reasons for skipping one. The names are those of the agents pi and
//! Operator-Use.

use std::sync::Arc;

use compaction_plan::{Label, Mode, StopReason};
use compaction_runner::{CancellationToken, Compaction, CompactionReason, Outcome};
use handoff_compactor::{FileLedger, TURN_PREFIX};
use memory_model::{EntryKind, Purpose, RawJson, Seq, SeqRange, SpanBody, Summary, SummaryId};
use summarize_escalation::{Ladder, OnError, Summarizer, Tier};

use crate::error::{Error, ErrorKind, Result};
use crate::runner::Runner;
use crate::session::Session;
use crate::strategy::Strategy;
use crate::supplied;

/// Separator between two texts of a handoff summary in a session file: the summary of the earlier turns, and the
/// summary of the beginning of the last turn. The coding agent pi writes the same separator.
pub(crate) const TURN_CONTEXT: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";

/// Options for a handoff: see [`Session::hand_over`].
#[derive(Debug, Clone, Default)]
pub struct HandOver {
    /// Instructions of the user for the summary; `None` for no instructions.
    pub instructions: Option<String>,
    /// Reason for the handoff, which is part of the events that hooks receive.
    pub reason: CompactionReason,
    /// Token with which the caller can cancel the handoff.
    pub cancel: CancellationToken,
    /// Minimum number of messages that contexts show, not counting summaries. A session with fewer messages is skipped.
    /// Default 0.
    pub min_messages: u64,
    /// The agent's own runner, to write the summary; `None` for the memory's summarizer. No other model and no extract
    /// replaces the runner: if the runner fails, the session stays unchanged. After a handoff, a runner that is not
    /// [stateful](Runner::stateful) is reset once.
    pub runner: Option<Arc<dyn Runner>>,
    /// Model that the runner uses for the handoff; `None` for its current model. Afterwards the runner gets its
    /// previous model again.
    pub runner_model: Option<String>,
}

/// Outcome of a handoff, which replaces older messages by one summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandOverOutcome {
    /// The session was handed over; the value is a report.
    Done(Box<Handoff>),
    /// The session was skipped and is unchanged; the value gives the reason.
    Skipped(HandOverSkip),
}

/// Reason for skipping a handoff. The reasons are not errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandOverSkip {
    /// The last response has tool calls without results. Hand over after the results were appended.
    PendingToolCalls,
    /// The session has fewer messages than [`HandOver::min_messages`].
    TooShort {
        /// Number of messages that contexts show, not counting summaries.
        messages: u64,
    },
    /// The messages are too long for the summarizer's model.
    HistoryTooLarge,
    /// All messages before the kept ones were already handed over.
    NothingToDo,
    /// No summary was shorter than the messages that it would replace.
    CannotShrink,
    /// A hook prevented the handoff, or the caller cancelled it.
    Cancelled,
    /// Another process is handing the session over, or has just handed it over.
    Busy,
}

/// Report of a completed handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handoff {
    /// Text of the summary. If the kept messages begin inside a turn, a summary of that turn's beginning follows.
    pub summary: String,
    /// Ids of the published summaries: one, or two if the kept messages begin inside a turn.
    pub summaries: Vec<SummaryId>,
    /// Position of the first message that is kept unchanged.
    pub kept_from: Seq,
    /// External id of the message at [`kept_from`](Self::kept_from); `None` if the message has none.
    pub kept_from_id: Option<String>,
    /// Whether the kept messages begin inside a turn.
    pub is_split_turn: bool,
    /// Cost of the view (the compacted log) before the handoff, in tokens.
    pub tokens_before: u64,
    /// Cost of the view (the compacted log) after the handoff, in tokens.
    pub tokens_after: u64,
    /// Number of messages that contexts no longer show. They stay in the log.
    pub archived: u64,
    /// Cost of the summaries as contexts show them, in tokens.
    pub summary_tokens: u64,
    /// Files that the agent's tools read or changed, over all handoffs of the session.
    pub files: FileLedger,
}

impl Handoff {
    /// Returns the text of the summary, followed by lists of the read and changed files.
    pub fn summary_with_files(&self) -> String {
        format!("{}{}", self.summary, self.files.footer())
    }
}

impl Session {
    /// Hands the session over: one summary replaces the previous summary and all messages before the kept ones. No
    /// message is lost: [`Session::retrieval`] expands the summary to all of its messages.
    ///
    /// # Errors
    /// `Invalid` if the session has another strategy: see [`Session::use_strategy`]. `Model` if the summary could not
    /// be written; the error's text gives the reason, and the session is unchanged. `Store` if the store fails.
    pub async fn hand_over(&self, request: &HandOver) -> Result<HandOverOutcome> {
        if let Some(runner) = &request.runner {
            return self.hand_over_by(runner, request).await;
        }
        self.run_handoff(self.compaction(request.cancel.clone()), request)
            .await
    }

    /// Hands the session over like [`Session::hand_over`], with a summary by this summarizer. If the summarizer fails,
    /// no other summarizer is asked.
    pub(crate) async fn hand_over_with(
        &self,
        request: &HandOver,
        summarizer: &dyn Summarizer,
    ) -> Result<HandOverOutcome> {
        let ladder = Ladder {
            tiers: vec![Tier::Normal],
            on_error: OnError::Fail,
            gate: None,
            ..Ladder::default()
        };
        let mut compaction = self.compaction(request.cancel.clone());
        compaction.summarizer = summarizer;
        compaction.ladder = &ladder;
        self.run_handoff(compaction, request).await
    }

    async fn run_handoff(
        &self,
        mut compaction: Compaction<'_>,
        request: &HandOver,
    ) -> Result<HandOverOutcome> {
        self.must_hand_over()?;
        if let Some(skip) = self.skip(request).await? {
            return Ok(HandOverOutcome::Skipped(skip));
        }
        // Either both summaries of a split turn are published or none of them.
        compaction.policy.whole_passes = true;
        compaction.reason = request.reason;
        compaction.instructions.clone_from(&request.instructions);
        let outcome = compaction.run(Mode::Incremental).await?;
        self.handed_over(outcome).await
    }

    /// Hands the session over with a summary that the caller supplies: `summary` replaces all messages before position
    /// `kept_from`. `details` are stored with the summary.
    ///
    /// # Errors
    /// `Invalid` if the session has another strategy, if the text is blank or costs as much as the messages that it
    /// replaces, or if the position would separate a tool call from its result. `Store` if the store fails.
    pub async fn append_compaction(
        &self,
        summary: &str,
        kept_from: Seq,
        details: Option<RawJson>,
    ) -> Result<Handoff> {
        self.must_hand_over()?;
        let invalid = |what: String| Error::new(ErrorKind::Invalid, what);
        if summary.trim().is_empty() {
            return Err(invalid(format!(
                "the summary of the session {} is empty: give a text",
                self.key()
            )));
        }
        if kept_from <= Seq::FIRST {
            return Err(invalid(format!(
                "nothing stands before message {kept_from} of the session {}: give the first message \
                 that is kept",
                self.key()
            )));
        }
        let planner = self.memory().inner.planners.handoff();
        let outcome = supplied::publish(self, planner, kept_from, summary, details).await?;
        match self.handed_over(outcome).await? {
            HandOverOutcome::Done(handoff) => Ok(*handoff),
            HandOverOutcome::Skipped(skip) => Err(invalid(format!(
                "the summary of the session {} was not published ({skip:?}): it must cost less than what it \
                 replaces",
                self.key()
            ))),
        }
    }

    fn must_hand_over(&self) -> Result<()> {
        if self.strategy() == Some(Strategy::Handoff) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "the session {} is not compacted by handoff: choose the strategy first, by `use_strategy`",
                self.key()
            ),
        ))
    }

    /// Returns the reason for skipping the session if it is known before planning.
    async fn skip(&self, request: &HandOver) -> Result<Option<HandOverSkip>> {
        if self.has_open_calls().await? {
            return Ok(Some(HandOverSkip::PendingToolCalls));
        }
        if request.min_messages == 0 {
            return Ok(None);
        }
        let messages = self.shown_messages().await?;
        let short = messages < request.min_messages;
        Ok(short.then_some(HandOverSkip::TooShort { messages }))
    }

    /// Returns the number of messages in the spans of the view that no summary replaces.
    async fn shown_messages(&self) -> Result<u64> {
        let head = self.snapshot().await?.head;
        let mut messages = 0;
        for span in self.spans().await? {
            let mut rest = match span.body {
                SpanBody::Raw | SpanBody::Trimmed(_) => span.range.up_to(head),
                _ => None,
            };
            while let Some(range) = rest {
                let page = self.entries_in(range).await?;
                let shown = page.items.iter().filter(|e| e.kind == EntryKind::Message);
                messages += shown.count() as u64;
                rest = page.next;
            }
        }
        Ok(messages)
    }

    /// Converts the outcome of a compaction run into the outcome of a handoff.
    async fn handed_over(&self, outcome: Outcome) -> Result<HandOverOutcome> {
        if outcome.published.total() == 0 {
            return self.not_handed_over(&outcome).map(HandOverOutcome::Skipped);
        }
        let spans = self.spans().await?;
        let summaries = self.summaries_in(&spans).await?;
        let last = summaries.last().map_or(Seq::NONE, |s| s.range.last);
        let kept_from = last.next();
        let kept = self.entries_in(SeqRange::single(kept_from)).await?;
        let kept = kept.items.into_iter().next();
        let mut files = FileLedger::default();
        for ledger in summaries.iter().filter_map(FileLedger::of) {
            files.add_ledger(&ledger);
        }
        let texts: Vec<&str> = summaries.iter().map(Summary::text).collect();
        Ok(HandOverOutcome::Done(Box::new(Handoff {
            summary: texts.join(TURN_CONTEXT),
            kept_from,
            kept_from_id: kept.and_then(|entry| entry.message.external_id),
            is_split_turn: summaries.iter().any(is_turn_prefix),
            tokens_before: outcome.before.tokens,
            tokens_after: outcome.after.tokens,
            archived: outcome.messages_compacted,
            summary_tokens: summaries.iter().map(|summary| summary.tokens).sum(),
            summaries: summaries.iter().map(|summary| summary.id.clone()).collect(),
            files,
        })))
    }

    /// Returns the reason for which a run published no summary.
    fn not_handed_over(&self, outcome: &Outcome) -> Result<HandOverSkip> {
        let too_long = outcome
            .model
            .causes
            .iter()
            .any(|cause| cause.cause.is_too_long());
        Ok(match outcome.stop_reason {
            StopReason::SummarizerFailed if too_long => HandOverSkip::HistoryTooLarge,
            StopReason::SummarizerFailed => {
                let label = failure_label(outcome.failed_kind.as_ref(), outcome.failure.as_deref());
                return Err(Error::new(
                    ErrorKind::Model(model_client::FailureKind::Other),
                    format!("{label}; nothing changed, so it can be tried again"),
                ));
            }
            StopReason::Exhausted => HandOverSkip::CannotShrink,
            // Jobs were planned, and hooks refused them all.
            StopReason::Cancelled | StopReason::NoProgress => HandOverSkip::Cancelled,
            StopReason::Held | StopReason::LostRace => HandOverSkip::Busy,
            _ => HandOverSkip::NothingToDo,
        })
    }
}

/// Returns a description of a failure with its reason, in the words of the coding agent pi.
fn failure_label(kind: Option<&Label>, why: Option<&str>) -> String {
    let what = match kind {
        Some(kind) if *kind == TURN_PREFIX => "Turn prefix summarization failed",
        _ => "Summarization failed",
    };
    let why = why.map(str::trim).filter(|why| !why.is_empty());
    format!("{what}: {}", why.unwrap_or("Unknown error"))
}

/// Returns whether a summary covers the beginning of a turn whose end is kept unchanged.
fn is_turn_prefix(summary: &Summary) -> bool {
    handoff_compactor::purpose(summary) == Some(Purpose::TurnPrefix)
}

#[cfg(test)]
mod tests {
    use handoff_compactor::HANDOFF;

    use super::*;

    #[test]
    fn failures_have_pis_labels() {
        for (kind, why, label) in [
            (
                Some(&HANDOFF),
                Some("m: 503"),
                "Summarization failed: m: 503",
            ),
            (
                Some(&TURN_PREFIX),
                Some("m: 503"),
                "Turn prefix summarization failed: m: 503",
            ),
            (
                Some(&TURN_PREFIX),
                Some(" "),
                "Turn prefix summarization failed: Unknown error",
            ),
            (None, None, "Summarization failed: Unknown error"),
        ] {
            assert_eq!(failure_label(kind, why), label);
        }
    }
}

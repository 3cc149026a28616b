//! Handoffs of a session, their outcomes, and the reasons for skipping one. The names are those of the agents pi and
//! Operator-Use.

use compaction_plan::{CompactionResult, Label, StopReason};
use compaction_runner::{CancellationToken, Compaction, Outcome};
use handoff_compactor::{FileLedger, TURN_PREFIX};
use memory_model::{
    EntryKind, Message, Purpose, RawJson, Seq, SeqRange, Span, SpanBody, Summary, SummaryId,
};
use summarize_escalation::Summarizer;

use crate::by_runner::AskRunner;
use crate::error::{Error, ErrorKind, Result};
use crate::hand_over_options::{EMPTY, HandOver, model_only};
use crate::session::Session;
use crate::strategy::Strategy;

/// Separator between two texts of a handoff summary in a session file: the summary of the earlier turns, and the
/// summary of the beginning of the last turn. The coding agent pi writes the same separator.
const TURN_CONTEXT: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";

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

/// Maximum number of iterations of a handoff, and whether a view of this cost, in tokens, needs no further iteration.
pub(crate) type Rounds<'r> = (u32, &'r (dyn Fn(u64) -> bool + Send + Sync));

/// Outcome of running a handoff.
#[derive(Debug)]
pub(crate) enum HandoffRun {
    /// The handoff was run.
    Ran {
        outcome: Box<Outcome>,
        /// Error if the runner did not get its model back, or could not be started again.
        restarted: Result<()>,
    },
    /// The session was skipped.
    Skipped(HandOverSkip),
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

/// Returns the texts of a handoff's summaries as one text; `None` without a summary.
pub(crate) fn joined(texts: &[&str]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join(TURN_CONTEXT))
}

impl Session {
    /// Hands the session over: one summary replaces the previous summary and all messages before the kept ones. No
    /// message is lost: [`Session::retrieval`] expands the summary to all of its messages.
    ///
    /// # Errors
    /// `Invalid` if the session has another strategy: see [`Session::use_strategy`]. `Model` if the summary could not
    /// be written, and the session is unchanged; the error's text gives the reason. `Model` too if the handoff stands
    /// and the runner could not be started again. `Store` if the store fails.
    pub async fn hand_over(&self, request: &HandOver) -> Result<HandOverOutcome> {
        let mut compaction = self.compaction(request.cancel.clone());
        compaction.reason = request.reason;
        match self
            .run_handoff(compaction, request, (1, &|_| false))
            .await?
        {
            HandoffRun::Skipped(skip) => Ok(HandOverOutcome::Skipped(skip)),
            HandoffRun::Ran { outcome, restarted } => {
                restarted?;
                self.handed_over(*outcome).await
            }
        }
    }

    /// Runs a handoff in at most `most` iterations, until `is_enough` returns true for the cost of the view in tokens.
    /// The request decides which summarizer writes the summary.
    pub(crate) async fn run_handoff(
        &self,
        mut compaction: Compaction<'_>,
        request: &HandOver,
        (most, is_enough): Rounds<'_>,
    ) -> Result<HandoffRun> {
        self.must_hand_over()?;
        if let Some(skip) = self.skip(request).await? {
            return Ok(HandoffRun::Skipped(skip));
        }
        compaction.instructions.clone_from(&request.instructions);
        let runner = request.runner.as_ref();
        let writer = runner.map(|runner| AskRunner::new(runner, request.runner_model.as_deref()));
        let ladder = model_only();
        let own = writer.as_ref().map(|writer| writer as &dyn Summarizer);
        if let Some(own) = own.or(request.summarizer.as_deref()) {
            compaction.summarizer = own;
            compaction.ladder = &ladder;
        }
        if let Some(writer) = &writer {
            writer.begin().await?;
        }
        let outcome = compaction.run_until(most, is_enough).await;
        let published = outcome
            .as_ref()
            .map_or(0, |outcome| outcome.published.total());
        let restarted = match &writer {
            Some(writer) => writer.end(published > 0).await,
            None => Ok(()),
        };
        self.index_summaries(published).await;
        let mut outcome = outcome?;
        if outcome.failure.is_some() {
            outcome.failure = Some(failure_label(&outcome));
        }
        let outcome = Box::new(outcome);
        Ok(HandoffRun::Ran { outcome, restarted })
    }

    /// Hands the session over with a summary that the caller supplies. It replaces everything before the first kept
    /// entry, also if it is longer. The details are stored with the summary.
    ///
    /// # Errors
    /// `Invalid` if the session has another strategy, if the text is blank, or if the first kept entry does not exist,
    /// is the first of the log, or was already handed over. `Invalid` too if a hook refuses the summary. `Store` if the
    /// store fails, or if another handoff changed the session first.
    pub async fn append_compaction(&self, result: &CompactionResult) -> Result<Handoff> {
        self.must_hand_over()?;
        let compaction = self.compaction(CancellationToken::new());
        let outcome = compaction.publish_result(result).await?;
        self.index_summaries(outcome.published.total()).await;
        match self.handed_over(outcome).await? {
            HandOverOutcome::Done(handoff) => Ok(*handoff),
            HandOverOutcome::Skipped(skip) => Err(self.not_appended(skip)),
        }
    }

    /// Returns the error for a supplied summary that was not published.
    fn not_appended(&self, skip: HandOverSkip) -> Error {
        let (kind, why) = match skip {
            HandOverSkip::Busy => (
                ErrorKind::Store(memory_store::ErrorKind::Stale),
                "another handoff changed the session first: append it again if it still applies",
            ),
            HandOverSkip::Cancelled => (
                ErrorKind::Invalid,
                "a hook refused it: remove the hook, or change its answer",
            ),
            _ => (
                ErrorKind::Invalid,
                "the first kept message must come after the messages of the last handoff",
            ),
        };
        let key = self.key();
        let text = format!("the summary of the session {key} was not published: {why}");
        Error::new(kind, text)
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
        let spans = self.spans().await?;
        let messages = self.shown_messages(&spans).await?.len() as u64;
        let short = messages < request.min_messages;
        Ok(short.then_some(HandOverSkip::TooShort { messages }))
    }

    /// Returns the messages in the spans that no summary replaces.
    pub(crate) async fn shown_messages(&self, spans: &[Span]) -> Result<Vec<Message>> {
        let head = self.snapshot().await?.head;
        let mut messages = Vec::new();
        for span in spans {
            let mut rest = match span.body {
                SpanBody::Raw | SpanBody::Trimmed(_) => span.range.up_to(head),
                _ => None,
            };
            while let Some(range) = rest {
                let page = self.entries_in(range).await?;
                let said = page.items.into_iter().map(|entry| entry.message);
                messages.extend(said.filter(|message| message.kind == EntryKind::Message));
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
        let is_new = |summary: &&Summary| outcome.summaries.contains(&summary.id);
        let given = summaries.iter().rfind(is_new);
        let given = given.and_then(supplied_tokens_before);
        let texts: Vec<&str> = summaries.iter().map(Summary::text).collect();
        Ok(HandOverOutcome::Done(Box::new(Handoff {
            summary: joined(&texts).unwrap_or_default(),
            kept_from,
            kept_from_id: kept.and_then(|entry| entry.message.external_id),
            is_split_turn: summaries.iter().any(is_turn_prefix),
            tokens_before: given.unwrap_or(outcome.before.tokens),
            tokens_after: outcome.after.tokens,
            archived: outcome.messages_compacted,
            summary_tokens: summaries.iter().map(|summary| summary.tokens).sum(),
            summaries: outcome.summaries,
            files,
        })))
    }

    /// Returns the reason for which a run published no summary.
    pub(crate) fn not_handed_over(&self, outcome: &Outcome) -> Result<HandOverSkip> {
        let too_long = outcome
            .model
            .causes
            .iter()
            .any(|cause| cause.cause.is_too_long());
        Ok(match outcome.stop_reason {
            StopReason::SummarizerFailed if too_long => HandOverSkip::HistoryTooLarge,
            StopReason::SummarizerFailed => {
                let label = outcome.failure.as_deref().unwrap_or("Unknown error");
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

/// Returns a description of a run's failure with its reason, in the words of the coding agent pi, and of the agent anna
/// for an empty answer.
pub(crate) fn failure_label(outcome: &Outcome) -> String {
    let mut causes = outcome.model.causes.iter();
    // A client refuses an empty answer itself, or returns it.
    let is_empty = causes.any(|count| matches!(&*count.cause.kind, "empty" | "empty_answer"));
    let why = match is_empty {
        true => Some(EMPTY),
        false => outcome.failure.as_deref(),
    };
    label(outcome.failed_kind.as_ref(), why)
}

/// Returns the label of a summary that failed, with the reason.
pub(crate) fn label(kind: Option<&Label>, why: Option<&str>) -> String {
    let what = match kind {
        Some(kind) if *kind == TURN_PREFIX => "Turn prefix summarization failed",
        _ => "Summarization failed",
    };
    let why = why.map(str::trim).filter(|why| !why.is_empty());
    format!("{what}: {}", why.unwrap_or("Unknown error"))
}

/// Returns the cost before the handoff that was given with a supplied summary, in tokens.
fn supplied_tokens_before(summary: &Summary) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Meta {
        tokens_before: Option<u64>,
    }
    let meta = summary.meta.as_ref().map(RawJson::as_str)?;
    serde_json::from_str::<Meta>(meta).ok()?.tokens_before
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
            assert_eq!(super::label(kind, why), label);
        }
    }
}

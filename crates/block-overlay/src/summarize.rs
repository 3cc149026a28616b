//! Summarizers and blocks: a strategy that digests the middle of a loop, and one-liners as a
//! summarizer.

use std::sync::Arc;

use async_trait::async_trait;
use memory_model::{Hash, LogEntry, Message, Part, RawJson, ResultContent, Seq};
use summarize_escalation::{
    ErrorKind, Ladder, LadderOutcome, OmittedSource, Source, Summarizer, SummarizerResponse,
    SummaryRequest, Tolerance, escalate,
};
use turn_map::{MessageView, PartView};

use crate::block::CompactedSection;
use crate::config::{BlockCompactionStrategy, BlockInput};
use crate::error::{Error, Result};
use crate::layout::LoopLayout;
use crate::message::LoopMessage;
use crate::omission::{Omission, OmissionReason};
use crate::one_liner::{OneLiners, SUMMARY_PREFIX, turns_that_fit};
use crate::planner::{line_cost, turn_text};
use crate::strategy::{DefaultBlockCompaction, one_liner_section};
use crate::turn_range::TurnRange;

/// Makes blocks whose summaries digest **all** turns within
/// [`max_summary_tokens`](crate::CompactionConfig::max_summary_tokens), by a summarizer and a ladder. The
/// first and the recent turns are those of [`DefaultBlockCompaction`].
///
/// The ladder's last tiers need no model, so a model that fails leaves an extract and not an error. A
/// source that is too short for a summary becomes one-liners. The
/// [`focus_message`](crate::CompactionConfig::focus_message) is an instruction to the summarizer.
#[derive(Debug, Clone)]
pub struct SummarizingBlockCompaction {
    summarizer: Arc<dyn Summarizer>,
    ladder: Ladder,
}

impl SummarizingBlockCompaction {
    /// Creates the strategy with the default ladder, whose results never exceed the tokens for a summary.
    pub fn new(summarizer: Arc<dyn Summarizer>) -> Self {
        Self::with_ladder(summarizer, Ladder::default())
    }

    /// Creates the strategy with a ladder of its own. Its tolerance is not used: the tokens for a summary
    /// are a limit.
    pub fn with_ladder(summarizer: Arc<dyn Summarizer>, ladder: Ladder) -> Self {
        Self {
            summarizer,
            ladder: Ladder {
                accept: Tolerance::NONE,
                ..ladder
            },
        }
    }

    /// Asks for the summary of some messages; `None` where it could not be shorter than they are.
    async fn digest<M: LoopMessage>(
        &self,
        input: &BlockInput<'_, M>,
        messages: &[M],
    ) -> Result<Option<LadderOutcome>> {
        let log = log_of(input, messages);
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        let overhead = input.cost(SUMMARY_PREFIX);
        let target = input
            .config
            .max_summary_tokens
            .saturating_sub(overhead)
            .max(1);
        let mut request = SummaryRequest {
            overhead_tokens: overhead,
            target_tokens: target,
            ..SummaryRequest::new(&source, input.estimator)
        };
        request.instructions = input.config.focus_message.as_deref();
        match escalate(&*self.summarizer, &self.ladder, &request).await {
            Ok(outcome) => Ok(Some(outcome)),
            Err(error) if error.kind() == ErrorKind::CannotShrink => Ok(None),
            Err(error) => {
                let what = format!("the middle of loop `{}`", input.record.loop_id);
                Err(Error::summarizer(&what, error))
            }
        }
    }
}

#[async_trait]
impl<M: LoopMessage> BlockCompactionStrategy<M> for SummarizingBlockCompaction {
    async fn keep_first(&self, input: &BlockInput<'_, M>) -> Result<Option<TurnRange>> {
        DefaultBlockCompaction.keep_first(input).await
    }

    async fn keep_recent(&self, input: &BlockInput<'_, M>) -> Result<Option<CompactedSection<M>>> {
        DefaultBlockCompaction.keep_recent(input).await
    }

    async fn keep_compacted(
        &self,
        input: &BlockInput<'_, M>,
    ) -> Result<Option<CompactedSection<M>>> {
        let Some(range) = input.sections().middle else {
            return Ok(None);
        };
        let outcome = self.digest(input, input.messages(range)).await?;
        let written = outcome.filter(|outcome| {
            let text = format!("{SUMMARY_PREFIX}{}", outcome.text);
            input.cost(&text) <= input.config.max_summary_tokens
        });
        Ok(Some(match written {
            None => one_liner_section(input, range),
            Some(outcome) => CompactedSection {
                range,
                messages: vec![M::user(format!("{SUMMARY_PREFIX}{}", outcome.text))],
                omitted: outcome
                    .left_out
                    .and_then(|left| left_out(input, range, &left)),
            },
        }))
    }
}

/// The turns that no model saw, where the source was too long for it.
fn left_out<M: LoopMessage>(
    input: &BlockInput<'_, M>,
    range: TurnRange,
    left: &OmittedSource,
) -> Option<Omission> {
    let turns = input.layout.turns();
    let start = turns.span(range.indices()).start;
    // Position 1 of the source is the first message of the range.
    let turn = |seq: Seq| turns.turn_of(start + (seq.0 as usize).saturating_sub(1));
    let first = u32::try_from(turn(left.range.first)?).ok()?;
    let last = u32::try_from(turn(left.range.last)?).ok()?;
    Some(input.omission(TurnRange::new(first, last)?, OmissionReason::TooLong))
}

/// Messages as entries of a log, numbered from 1.
fn log_of<M: LoopMessage>(input: &BlockInput<'_, M>, messages: &[M]) -> Vec<LogEntry> {
    let entry = |(seq, message): (u32, &M)| {
        let tokens = input.estimator.message(message);
        let message = to_message(message);
        let hash = message
            .body()
            .map_or(Hash::ZERO, |body| message.hash(&body));
        LogEntry {
            seq: Seq(seq),
            tokens,
            running: 0,
            message,
            hash,
        }
    };
    (1..).zip(messages).map(entry).collect()
}

/// A message of any type as one of this workspace's.
fn to_message<M: MessageView>(message: &M) -> Message {
    let mut parts = Vec::new();
    message.parts(&mut |part| parts.extend(to_part(part)));
    let mut copy = match message.is_note() {
        true => Message::note(message.role(), parts),
        false => Message::new(message.role(), parts),
    };
    copy.response = message.response().map(str::to_owned);
    copy
}

/// A part; `None` for media, of which a view tells the size only.
fn to_part(part: PartView<'_>) -> Option<Part> {
    Some(match part {
        PartView::Text(text) => Part::text(text),
        PartView::Reasoning(text) => Part::Reasoning {
            text: text.to_owned(),
            signature: None,
        },
        PartView::ToolCall {
            id,
            name,
            arguments,
        } => Part::ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: RawJson::parse(arguments)
                .or_else(|_| RawJson::from_value(&arguments))
                .ok()?,
        },
        PartView::ToolResult {
            call_id, is_error, ..
        } => Part::ToolResult {
            call_id: call_id.to_owned(),
            content: ResultContent::Text(part.text().into_owned()),
            is_error: Some(is_error),
        },
        PartView::Other(text) => Part::text(text),
        _ => return None,
    })
}

/// One-liners as a summarizer: one line a turn, without a model.
///
/// A run over a store writes with it what [`Digest::OneLiners`](crate::planner::Digest::OneLiners) plans.
/// Lines that do not fit into the request's target are counted in a last line. Its summaries are
/// provisional, as all are that no model wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OneLineSummarizer {
    rule: OneLiners,
}

impl OneLineSummarizer {
    /// Creates the summarizer with a rule for the lines.
    pub fn new(rule: OneLiners) -> Self {
        Self { rule }
    }

    fn lines(&self, pieces: &[Source<'_>]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut messages: Vec<&LogEntry> = Vec::new();
        for piece in pieces {
            match piece {
                Source::Message(entry) => messages.push(entry),
                Source::Summary(summary) => {
                    lines.extend(self.turns(&std::mem::take(&mut messages)));
                    lines.extend(summary.text.lines().map(str::to_owned));
                }
            }
        }
        lines.extend(self.turns(&messages));
        lines
    }

    fn turns(&self, messages: &[&LogEntry]) -> Vec<String> {
        let indexed = messages.iter().any(|message| message.turn().is_some());
        let rule = if indexed {
            crate::TurnRule::Index
        } else {
            crate::TurnRule::Responses
        };
        let layout = LoopLayout::new(messages, rule);
        let turns = 0..layout.turns().count();
        let texts =
            turns.map(|turn| turn_text(layout.turns().slice(messages, turn..turn + 1), self.rule));
        texts.filter(|text| !text.is_empty()).collect()
    }
}

#[async_trait]
impl Summarizer for OneLineSummarizer {
    fn id(&self) -> &str {
        match self.rule {
            OneLiners::Turn => "one-liners@1",
            OneLiners::AssistantMessages => "one-liners-assistant@1",
        }
    }

    fn provisional(&self) -> bool {
        true
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> std::result::Result<SummarizerResponse, summarize_escalation::Error> {
        let mut lines = self.lines(request.source);
        let target = match request.target_tokens {
            0 => u64::MAX,
            tokens => tokens,
        };
        let costs: Vec<u64> = lines
            .iter()
            .map(|line| line_cost(line, request.estimator))
            .collect();
        let mark = |count: usize| format!("[… left out: {count} turns …]");
        let reserve = line_cost(&mark(lines.len()), request.estimator);
        let fit = turns_that_fit(&costs, target, reserve);
        if fit < lines.len() {
            let rest = lines.len() - fit;
            lines.truncate(fit);
            lines.push(mark(rest));
        }
        Ok(SummarizerResponse::new(lines.join("\n")))
    }
}

//! Blocks with summaries: a strategy that summarizes the middle of a run of the agent with a model, and a summarizer
//! that writes one line for each turn.

use std::sync::Arc;

use async_trait::async_trait;
use memory_model::{Hash, LogEntry, Message, Seq};
use summarize_escalation::{
    ErrorKind, Ladder, LadderOutcome, Source, Summarizer, SummarizerResponse, SummaryRequest,
    Tolerance, escalate,
};

use crate::block::{CompactedSection, TurnRange};
use crate::config::{BlockCompactionStrategy, CompactionConfig};
use crate::error::{Error, Result};
use crate::lines::{SUMMARY_PREFIX, line_cost, lines_that_fit, turn_lines};
use crate::session::LoopRecord;
use crate::strategy::{compacted_range, one_line_each};
use crate::turns::TurnMap;

/// Makes blocks (compacted forms of an agent's runs) in which a summarizer summarizes **all** middle turns within
/// [`max_summary_tokens`](CompactionConfig::max_summary_tokens). The first and the recent turns are the same as in
/// [`DefaultBlockCompaction`](crate::DefaultBlockCompaction).
///
/// A [`Ladder`] lists the methods that are tried for each summary. Its last tiers need no model, so the block contains
/// an extract if the model fails. Turns that are too short for a summary become one line each.
#[derive(Debug, Clone)]
pub struct SummarizingBlockCompaction {
    /// Summarizer that writes the summaries.
    pub summarizer: Arc<dyn Summarizer>,
    /// Methods that are tried for each summary, in order. The ladder's tolerance is ignored: no summary may exceed
    /// [`max_summary_tokens`](CompactionConfig::max_summary_tokens).
    pub ladder: Ladder,
    /// Additional instructions for the summarizer, such as subjects to keep. `None` for no instructions.
    pub instructions: Option<String>,
}

impl SummarizingBlockCompaction {
    /// Requests the summary of some messages. Returns `None` if the messages are too short for a shorter summary.
    async fn digest(
        &self,
        messages: &[Message],
        config: &CompactionConfig,
    ) -> std::result::Result<Option<LadderOutcome>, summarize_escalation::Error> {
        let entry = |(seq, message): (u32, &Message)| LogEntry {
            seq: Seq(seq),
            tokens: config.estimator.message(message),
            running: 0,
            hash: message
                .body()
                .map_or(Hash::ZERO, |body| message.hash(&body)),
            message: message.clone(),
        };
        let log: Vec<LogEntry> = (1..).zip(messages).map(entry).collect();
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        let overhead = config.cost(&[Message::user(SUMMARY_PREFIX)]);
        let mut request = SummaryRequest::new(&source, &config.estimator);
        request.overhead_tokens = overhead;
        request.target_tokens = config.max_summary_tokens.saturating_sub(overhead).max(1);
        request.instructions = self.instructions.as_deref();
        let mut ladder = self.ladder.clone();
        ladder.accept = Tolerance::NONE;
        match escalate(&*self.summarizer, &ladder, &request).await {
            Err(error) if error.kind() == ErrorKind::CannotShrink => Ok(None),
            outcome => outcome.map(Some),
        }
    }
}

#[async_trait]
impl BlockCompactionStrategy for SummarizingBlockCompaction {
    async fn keep_compacted(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        config: &CompactionConfig,
        is_most_recent: bool,
    ) -> Result<Option<CompactedSection>> {
        let Some(range) = compacted_range(turn_map, config, is_most_recent) else {
            return Ok(None);
        };
        let messages = turn_map.messages_for_range(range, &record.messages);
        let outcome = self.digest(messages, config).await;
        let outcome = outcome.map_err(|error| Error::Summarizer {
            loop_id: record.loop_id.clone(),
            source: error.into(),
        })?;
        let written = outcome.map(|outcome| {
            let text = format!("{SUMMARY_PREFIX}{}", outcome.text);
            (vec![Message::user(text)], outcome.left_out)
        });
        let fits = |messages: &[Message]| config.cost(messages) <= config.max_summary_tokens;
        Ok(Some(match written.filter(|(summary, _)| fits(summary)) {
            None => one_line_each(record, turn_map, config, range),
            // Turns that no model read, because the source was too long for the model.
            Some((messages, left)) => CompactedSection {
                range,
                messages,
                omitted: left.and_then(|left| {
                    let start = turn_map.span(range.indices()).start;
                    // Position 1 of the source is the first message of the range of turns.
                    let turn = |seq: Seq| turn_map.turn_of(start + seq.0 as usize - 1);
                    let turns = turn(left.range.first)?..turn(left.range.last)? + 1;
                    Some(record.omission(
                        turn_map,
                        TurnRange::from_indices(turns)?,
                        &config.estimator,
                    ))
                }),
            },
        }))
    }
}

/// Writes one line for each turn, without a model.
///
/// With the planner's [`Digest::OneLiners`](crate::planner::Digest::OneLiners), this summarizer writes the planned
/// summaries. If the lines exceed the requested length, a last line counts the turns without a line. The summaries are
/// marked as provisional, like all summaries that no model wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OneLineSummarizer;

#[async_trait]
impl Summarizer for OneLineSummarizer {
    fn id(&self) -> &str {
        "one-liners@1"
    }

    fn provisional(&self) -> bool {
        true
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> std::result::Result<SummarizerResponse, summarize_escalation::Error> {
        let mut lines: Vec<String> = Vec::new();
        let is_message = |piece: &Source<'_>| matches!(piece, Source::Message(_));
        for run in request
            .source
            .chunk_by(|one, next| is_message(one) && is_message(next))
        {
            let mut messages: Vec<&LogEntry> = Vec::new();
            for piece in run {
                match piece {
                    Source::Message(entry) => messages.push(entry),
                    Source::Summary(summary) => {
                        lines.extend(summary.text.lines().map(str::to_owned))
                    }
                }
            }
            let turn_map = TurnMap::of_loop(&messages);
            let turns = 0..turn_map.turn_count();
            lines.extend(
                turn_lines(&messages, &turn_map, turns)
                    .into_iter()
                    .flatten(),
            );
        }
        let target = match request.target_tokens {
            0 => u64::MAX,
            tokens => tokens,
        };
        let cost = |line: &String| line_cost(Some(line), request.estimator);
        let costs: Vec<u64> = lines.iter().map(cost).collect();
        let mark = |count: usize| format!("[… left out: {count} turns …]");
        let fit = lines_that_fit(&costs, target, cost(&mark(lines.len())));
        if fit < lines.len() {
            let rest = lines.len() - fit;
            lines.truncate(fit);
            lines.push(mark(rest));
        }
        Ok(SummarizerResponse::new(lines.join("\n")))
    }
}

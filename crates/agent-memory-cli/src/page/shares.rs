//! The parts of a log that a context shows, shortens and leaves out.

use agent_memory::context::{DegradationStep, MessageOrigin, Receipt};
use agent_memory::{Context, Strategy};
use serde::Serialize;

use super::log::Log;
use super::messages::Shown;

/// The parts of the log that a context shows, shortens and leaves out.
#[derive(Debug, Serialize)]
pub(super) struct Shares {
    view: &'static str,
    budget: u64,
    tokens: u64,
    /// Ranges of messages with the same state, in order.
    runs: Vec<(u32, u32, State)>,
    /// Summaries of the context.
    summaries: Vec<ShownSummary>,
}

/// State of a message in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Whole,
    Shortened,
    Summary,
    LeftOut,
    /// A note, which no context shows.
    Note,
}

#[derive(Debug, Serialize)]
struct ShownSummary {
    id: String,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<(usize, usize)>,
}

impl Shares {
    pub(super) fn of(
        strategy: Strategy,
        budget: u64,
        context: &Context,
        log: &Log,
        shown: Shown<'_>,
    ) -> Self {
        let mut states = vec![State::LeftOut; log.tokens.len()];
        let mut summaries = Vec::new();
        let mut set = |first: u32, last: u32, state: State| {
            let from = (first as usize).saturating_sub(1);
            let range = states.get_mut(from..last as usize);
            range.into_iter().flatten().for_each(|one| *one = state);
        };
        for message in &context.messages {
            match &message.source {
                MessageOrigin::Message { first, last } | MessageOrigin::Quoted { first, last } => {
                    set(first.0, last.0, State::Whole);
                }
                MessageOrigin::Trimmed { first, last } => set(first.0, last.0, State::Shortened),
                MessageOrigin::Summary {
                    first,
                    last,
                    summary_id,
                } => {
                    set(first.0, last.0, State::Summary);
                    let mut shortened = context.receipt.shortened.iter();
                    let form = shortened.find(|form| form.summary_id == *summary_id);
                    summaries.push(ShownSummary {
                        id: shown(summary_id.as_str()).into_owned(),
                        tokens: message.tokens,
                        lines: form.map(|form| (form.lines, form.of_lines)),
                    });
                }
                _ => {}
            }
        }
        let Receipt {
            degraded, dropped, ..
        } = &context.receipt;
        for part in degraded {
            // A digest is one text for all of its messages.
            let state = match part.step {
                DegradationStep::Digest => State::Summary,
                _ => State::Shortened,
            };
            set(part.first.0, part.last.0, state);
        }
        for part in dropped {
            set(part.first.0, part.last.0, State::LeftOut);
        }
        let notes = log
            .letters
            .bytes()
            .zip(&mut states)
            .filter(|(letter, _)| *letter == b'n');
        notes.for_each(|(_, state)| *state = State::Note);
        let mut runs: Vec<(u32, u32, State)> = Vec::new();
        for (seq, state) in (1..).zip(states) {
            match runs.last_mut() {
                Some(run) if run.2 == state => run.1 = seq,
                _ => runs.push((seq, seq, state)),
            }
        }
        Self {
            view: strategy.as_str(),
            budget,
            tokens: context.tokens,
            runs,
            summaries,
        }
    }
}

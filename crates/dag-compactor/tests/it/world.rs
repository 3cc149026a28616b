//! A log, a view, and a runner that makes summaries of a given cost.

use std::sync::Arc;

use compaction_plan::{InMemoryView, Job, Label, PassInput, Planner, Room};
use context_assembler::ContextAccounting;
use memory_model::{
    Accounting, Hash, LogEntry, Message, Part, RawJson, Role, Seq, SeqRange, Span, SpanBody,
    SummaryId, View,
};
use token_estimate::HeuristicEstimator;

pub(crate) fn accounting() -> ContextAccounting {
    ContextAccounting::new(Arc::new(HeuristicEstimator::Bytes4))
}

/// One word a message: `u`ser, `a`ssistant, `n`ote; `a+x` calls x, `t-x` answers it, `a/r+x` is a
/// line of the response r. A number behind it is the tokens of its text, 40 without one.
pub(crate) fn log(script: &str) -> Vec<LogEntry> {
    let mut running = 0;
    let store = |(index, word): (usize, &str)| {
        let message = message(word);
        let tokens = accounting().message(&message);
        running += tokens;
        LogEntry {
            seq: Seq(index as u32 + 1),
            message,
            tokens,
            running,
            hash: Hash::ZERO,
        }
    };
    script.split_whitespace().enumerate().map(store).collect()
}

fn message(word: &str) -> Message {
    let (word, tokens) = word.split_once('*').unwrap_or((word, "40"));
    let text = "text".repeat(tokens.parse().unwrap());
    let (word, id) = match word.split_once(['+', '-']) {
        Some((word, id)) => (word, Some(id)),
        None => (word, None),
    };
    let (kind, response) = match word.split_once('/') {
        Some((kind, response)) => (kind, Some(response)),
        None => (word, None),
    };
    let message = match (kind, id) {
        ("u", _) => Message::user(text),
        ("n", _) => Message::note(Role::System, vec![Part::text(text)]),
        ("a", None) => Message::assistant(text),
        ("a", Some(id)) => {
            let arguments = RawJson::from_value(&text).unwrap();
            Message::tool_call(id, "read", arguments)
        }
        ("t", Some(id)) => Message::tool_result(id, text),
        _ => panic!("cannot read {word}"),
    };
    match response {
        Some(response) => message.with_response(response),
        None => message,
    }
}

/// A view of a log, which a planner compacts.
pub(crate) struct World {
    pub(crate) entries: Vec<LogEntry>,
    pub(crate) view: View,
    pub(crate) made: usize,
}

impl World {
    pub(crate) fn new(entries: Vec<LogEntry>) -> Self {
        Self {
            entries,
            view: View::new(),
            made: 0,
        }
    }

    fn slice(&self, range: SeqRange) -> &[LogEntry] {
        &self.entries[range.first.0 as usize - 1..range.last.0 as usize]
    }

    pub(crate) fn tokens(&self, range: SeqRange) -> u64 {
        self.slice(range).iter().map(|entry| entry.tokens).sum()
    }

    /// The view and its log as a planner reads them, in pages of `page` spans or entries.
    pub(crate) fn source(&self, page: usize) -> InMemoryView {
        InMemoryView::new(self.entries.clone())
            .with_view(&self.view)
            .with_page_size(page)
    }

    /// The jobs of a pass, spans and entries read in pages.
    pub(crate) fn plan_by(
        &self,
        planner: &dyn Planner,
        room: Option<Room>,
        pass: &Label,
        page: usize,
    ) -> Vec<Job> {
        let (accounting, view) = (accounting(), self.source(page));
        let input = PassInput {
            room,
            ..view.input(pass, &accounting)
        };
        view.plan(planner, input).unwrap()
    }

    /// Publishes a summary of `tokens` for a job.
    pub(crate) fn publish(&mut self, job: &Job, tokens: u64) {
        self.made += 1;
        let body = SpanBody::Summary {
            id: SummaryId::new(format!("sum_{:016x}", self.made)),
            depth: job.depth().unwrap(),
        };
        let new = [Span::closed(job.range, body, tokens)];
        self.view = self.view.splice(job.range, &job.expect, &new).unwrap();
    }

    /// The spans as words: `S` and the depth for summaries, `R` for messages.
    pub(crate) fn shown(&self) -> String {
        let word = |span: &Span| match &span.body {
            SpanBody::Summary { depth, .. } => format!("S{depth}:{}", span.range),
            _ => format!("R:{}", span.range),
        };
        let words: Vec<String> = self.view.spans().iter().map(word).collect();
        words.join(" ")
    }
}

/// Jobs as ranges.
pub(crate) fn ranges(jobs: &[Job]) -> Vec<(u32, u32)> {
    jobs.iter()
        .map(|job| (job.range.first.0, job.range.last.0))
        .collect()
}

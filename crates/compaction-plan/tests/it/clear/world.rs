//! A log, a view, and a runner that makes summaries of the maximum length.

use std::sync::Arc;

use compaction_plan::CLEAR;
use compaction_plan::{InMemoryView, Job, Label, Planner, Work};
use context_assembler::ContextAccounting;
use memory_model::{
    Accounting, Hash, LogEntry, Message, RawJson, Seq, SeqRange, Span, SpanBody, SummaryId, View,
    summary_overhead,
};
use token_estimate::HeuristicEstimator;
use turn_map::TrimPolicy;

pub(crate) fn accounting() -> ContextAccounting {
    ContextAccounting::new(Arc::new(HeuristicEstimator::Bytes4))
}

/// Parses a message from a word: `u`ser, `a`ssistant, `a+x` calls the tool `Read` with the id x, `e+x` calls `Edit`,
/// `t-x` is a result, `l-x` a result with lines of one word, `f-x` an error result. A number after `*` is the cost of
/// the text in tokens, by default 40.
pub(crate) fn message(word: &str) -> Message {
    let (word, tokens) = word.split_once('*').unwrap_or((word, "40"));
    let text = "text".repeat(tokens.parse().unwrap());
    let (kind, id) = match word.split_once(['+', '-']) {
        Some((kind, id)) => (kind, id),
        None => (word, ""),
    };
    match kind {
        "u" => Message::user(text),
        "a" if id.is_empty() => Message::assistant(text),
        "a" => Message::tool_call(id, "Read", RawJson::parse("{}").unwrap()),
        "e" => Message::tool_call(id, "Edit", RawJson::parse("{}").unwrap()),
        "t" => Message::tool_result(id, text),
        "l" => Message::tool_result(id, text.replace("text", "text\n")),
        "f" => {
            let mut message = Message::tool_result(id, text);
            for part in &mut message.parts {
                if let memory_model::Part::ToolResult { is_error, .. } = part {
                    *is_error = Some(true);
                }
            }
            message
        }
        _ => panic!("cannot read {word}"),
    }
}

pub(crate) struct World {
    pub(crate) entries: Vec<LogEntry>,
    pub(crate) view: View,
    made: usize,
}

impl World {
    pub(crate) fn new(script: &str) -> Self {
        let mut world = Self {
            entries: Vec::new(),
            view: View::new(),
            made: 0,
        };
        world.say(script);
        world
    }

    pub(crate) fn say(&mut self, script: &str) {
        for word in script.split_whitespace() {
            let message = message(word);
            let tokens = accounting().message(&message);
            let running = self.entries.last().map_or(0, |last| last.running) + tokens;
            self.entries.push(LogEntry {
                seq: Seq(self.entries.len() as u32 + 1),
                message,
                tokens,
                running,
                hash: Hash::ZERO,
            });
        }
    }

    pub(crate) fn head(&self) -> Seq {
        Seq(self.entries.len() as u32)
    }

    pub(crate) fn slice(&self, range: SeqRange) -> &[LogEntry] {
        &self.entries[range.first.0 as usize - 1..range.last.0 as usize]
    }

    /// Returns the cost of the unchanged messages, in tokens.
    pub(crate) fn raw_tokens(&self, range: SeqRange) -> u64 {
        self.slice(range).iter().map(|entry| entry.tokens).sum()
    }

    /// Returns the spans, with the costs of raw ones.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans = self.view.spans().to_vec();
        for span in spans.iter_mut().filter(|span| span.body == SpanBody::Raw) {
            let range = span.range.up_to(self.head());
            span.tokens = range.map_or(0, |range| self.raw_tokens(range));
        }
        spans
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.spans().iter().map(|span| span.tokens).sum()
    }

    /// Returns the jobs of a pass. Spans and entries are read in pages.
    pub(crate) fn plan(&self, planner: &dyn Planner, pass: &Label, page: usize) -> Vec<Job> {
        let view = InMemoryView::new(self.entries.clone()).with_view(&self.view);
        let view = view.with_page_size(page);
        view.plan(planner, view.input(pass, &accounting())).unwrap()
    }

    /// Publishes a job with a summary of the maximum length. Returns the cost of the view before and after.
    pub(crate) fn publish(&mut self, job: &Job) -> (u64, u64) {
        let before = self.tokens();
        let new = match &job.work {
            Work::Replace(spans) => spans.clone(),
            _ => {
                self.made += 1;
                let asked = job.request.as_ref().map(|request| request.max_tokens);
                let limit = asked.filter(|most| *most > 0).unwrap_or(u64::MAX);
                let depth = job.depth().unwrap();
                let overhead = summary_overhead(&accounting(), job.range, depth, job.children());
                let body = SpanBody::Summary {
                    id: SummaryId::new(format!("sum_{:016x}", self.made)),
                    depth,
                };
                // As in the ladder, a summary must cost less than its messages.
                let most = self.raw_tokens(job.range).saturating_sub(1);
                let tokens = limit.saturating_add(overhead).min(most);
                vec![Span::closed(job.range, body, tokens)]
            }
        };
        self.view = self.view.splice(job.range, &job.expect, &new).unwrap();
        (before, self.tokens())
    }

    /// Runs one iteration of all passes. Returns the number of jobs.
    pub(crate) fn iterate(&mut self, planner: &dyn Planner, page: usize) -> usize {
        let mut count = 0;
        for pass in planner.passes() {
            let jobs = self.plan(planner, pass, page);
            assert_eq!(
                jobs,
                self.plan(planner, pass, usize::MAX),
                "pages of {page}"
            );
            for job in jobs {
                let clears = job.kind == CLEAR;
                let told = job.source_tokens;
                let touches_cleared = job
                    .expect
                    .iter()
                    .any(|span| matches!(span.body, SpanBody::Trimmed(_)));
                let (before, after) = self.publish(&job);
                count += 1;
                if clears || touches_cleared {
                    assert!(after < before, "{job:?} costs {after} in place of {before}");
                }
                if let (true, Work::Replace(spans)) = (clears, &job.work) {
                    let new: u64 = spans.iter().map(|span| span.tokens).sum();
                    assert_eq!(before - after, told - new, "{job:?}");
                }
            }
        }
        count
    }

    /// Writes the spans as words: `S` for summaries, `C` for cleared groups, `R` for messages.
    pub(crate) fn shown(&self) -> String {
        let word = |span: &Span| match &span.body {
            SpanBody::Summary { .. } => format!("S:{}", span.range),
            SpanBody::Trimmed(_) => format!("C:{}", span.range),
            SpanBody::Omitted => format!("O:{}", span.range),
            SpanBody::Raw => format!("R:{}", span.range),
        };
        let words: Vec<String> = self.view.spans().iter().map(word).collect();
        words.join(" ")
    }

    /// Returns the cost of a cleared span, counted again.
    pub(crate) fn cleared_tokens(&self, range: SeqRange, policy: &str) -> u64 {
        let trim: TrimPolicy = policy.parse().unwrap();
        let accounting = accounting();
        let cost = |entry: &LogEntry| {
            let pointer = format!("message:{}", entry.seq);
            let short = trim.trim(&entry.message, &pointer, accounting.estimator());
            short.map_or(entry.tokens, |short| accounting.message(&short))
        };
        self.slice(range).iter().map(cost).sum()
    }
}

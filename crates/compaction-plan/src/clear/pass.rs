//! The pass (planning round) that replaces tool results by placeholders: reads the view, and then the messages that the
//! view shows unchanged.

use std::ops::Range;

use memory_model::{Accounting, LogEntry, Seq, SeqRange, Span, SpanBody, TrimPolicyId};
use turn_map::{
    Atom, AtomBuilder, ClearPolicy, MessageView, PartView, ResultPlace, ResultScan, TrimPolicy,
};

use super::lens::is_cleared;
use crate::job::{Job, Work};
use crate::label::Label;
use crate::planner::PassInput;
use crate::source::{BoxError, EntryReader, JobSink, SpanReader, ViewSource};

/// Name of the pass (planning round) that replaces old tool results by placeholders in the messages that the inner
/// planner left unchanged. Also the kind of all jobs that replace tool results by placeholders.
pub const CLEAR: Label = Label::from_static("clear");

/// Plans the groups to clear. Does not keep the text of messages.
pub(super) async fn plan(
    policy: &ClearPolicy,
    input: PassInput<'_>,
    view: &dyn ViewSource,
    jobs: &mut dyn JobSink,
) -> Result<(), BoxError> {
    // Ranges of neighbouring messages that the view shows, with or without placeholders.
    let mut runs: Vec<SeqRange> = Vec::new();
    let mut log = ShownLog::new(policy.trim());
    let mut spans = SpanReader::new(view, SeqRange::new(Seq::FIRST, input.head));
    while let Some(span) = spans.next().await? {
        let Some(range) = span.range.up_to(input.head) else {
            continue;
        };
        let cleared = is_cleared(&span);
        log.cleared.extend(cleared.then_some(range));
        if cleared || span.body == SpanBody::Raw {
            let before = runs.pop_if(|run| run.last.next() == range.first);
            let first = before.map_or(range.first, |run| run.first);
            runs.extend(SeqRange::new(first, range.last));
        }
    }
    let mut groups: Vec<Range<usize>> = Vec::new();
    for run in runs {
        let mut atoms = AtomBuilder::starting_at(log.messages.len());
        let mut entries = EntryReader::new(view, run);
        while let Some(entry) = entries.next().await? {
            atoms.push(&*entry);
            log.push(&entry, input.accounting);
        }
        let atoms = atoms.finish();
        // A group at the end of the log that may still get a tool result is not cleared.
        let settled = match run.last == input.head {
            true => atoms.settled(),
            false => atoms.as_slice(),
        };
        groups.extend(settled.iter().map(Atom::range));
    }
    let chosen = policy.clears(&log.scan);
    let planned = groups
        .into_iter()
        .filter_map(|group| log.job(group, &chosen));
    jobs.extend(planned);
    Ok(())
}

/// The messages that the view shows, with or without placeholders.
#[derive(Debug)]
struct ShownLog {
    trim: TrimPolicy,
    /// Ranges that already show placeholders.
    cleared: Vec<SeqRange>,
    scan: ResultScan,
    messages: Vec<Shown>,
}

/// A message that the view shows.
#[derive(Debug)]
struct Shown {
    seq: Seq,
    tokens: u64,
    /// Cost of the message with placeholders for its large tool results, in tokens.
    trimmed: u64,
    /// Indices of the parts that are large enough to be cleared.
    large: Vec<usize>,
}

impl ShownLog {
    fn new(trim: TrimPolicy) -> Self {
        Self {
            trim,
            cleared: Vec::new(),
            scan: ResultScan::default(),
            messages: Vec::new(),
        }
    }

    fn push(&mut self, entry: &LogEntry, accounting: &dyn Accounting) {
        let estimator = accounting.estimator();
        let pointer = format!("message:{}", entry.seq);
        let (mut large, mut part) = (Vec::new(), 0);
        entry.parts(&mut |view| {
            if let PartView::ToolResult { .. } = view
                && !entry.is_note()
                && self
                    .trim
                    .trim_result(&view.text(), &pointer, estimator)
                    .is_some()
            {
                large.push(part);
            }
            part += 1;
        });
        let trimmed = match large.is_empty() {
            true => None,
            false => self.trim.trim(&entry.message, &pointer, estimator),
        };
        self.scan.push(entry, estimator);
        self.messages.push(Shown {
            seq: entry.seq,
            tokens: entry.tokens,
            trimmed: trimmed.map_or(entry.tokens, |short| accounting.message(&short)),
            large,
        });
    }

    /// Returns the job that replaces the tool results in a group of messages by placeholders. `None` if the policy
    /// keeps a large tool result of the group, if the group already has placeholders, or if placeholders save no
    /// tokens.
    fn job(&self, group: Range<usize>, chosen: &[ResultPlace]) -> Option<Job> {
        let offset = group.start;
        let group = self.messages.get(group)?;
        let range = SeqRange::new(group.first()?.seq, group.last()?.seq)?;
        let mut results = 0_u64;
        for (position, message) in group.iter().enumerate() {
            for part in &message.large {
                let place = ResultPlace {
                    message: offset + position,
                    part: *part,
                };
                chosen.binary_search(&place).ok()?;
                results += 1;
            }
        }
        let is_done = |done: &SeqRange| done.intersect(&range).is_some();
        let sum = |cost: fn(&Shown) -> u64| {
            let costs = group.iter().map(cost);
            costs.fold(0_u64, u64::saturating_add)
        };
        let (tokens, trimmed) = (sum(|one| one.tokens), sum(|one| one.trimmed));
        if results == 0 || trimmed >= tokens || self.cleared.iter().any(is_done) {
            return None;
        }
        let body = SpanBody::Trimmed(TrimPolicyId::new(self.trim.to_string()));
        Some(Job {
            kind: CLEAR,
            range,
            expect: vec![Span::closed(range, SpanBody::Raw, tokens)],
            work: Work::Replace(vec![Span::closed(range, body, trimmed)]),
            request: None,
            source_tokens: tokens,
            why: format!(
                "{results} old results cost {} tokens more than their placeholders",
                tokens - trimmed
            ),
        })
    }
}

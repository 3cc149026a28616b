//! The pass that clears: reads the view, then the messages that it shows as they are.

use std::collections::VecDeque;
use std::ops::Range;

use memory_model::{Accounting, LogEntry, Seq, SeqRange, Span, SpanBody, TrimPolicyId};
use turn_map::{
    Atom, AtomBuilder, ClearPolicy, MessageView, PartView, ResultPlace, ResultScan, TrimPolicy,
};

use super::lens::is_cleared;
use crate::job::{Job, Work};
use crate::label::Label;
use crate::planner::{Pass, ReadRequest};

/// Name of the pass that clears what the inner planner left, and of the jobs that clear.
pub const CLEAR: Label = Label::from_static("clear");

/// Plans the groups to clear. Keeps no text of a message.
#[derive(Debug)]
pub(super) struct ClearPass {
    policy: ClearPolicy,
    trim: TrimPolicy,
    head: Seq,
    /// The part of the view that was not fed yet.
    rest: Option<SeqRange>,
    /// Neighbouring messages that the view shows, cleared or as they are, and were not read yet.
    runs: VecDeque<SeqRange>,
    /// Ranges that are cleared already.
    cleared: Vec<SeqRange>,
    /// The groups of the run that is read.
    run: Option<AtomBuilder>,
    scan: ResultScan,
    messages: Vec<Shown>,
    /// Settled groups: first and last position in `messages`, the last exclusive.
    groups: Vec<Range<usize>>,
}

/// A message that the view shows.
#[derive(Debug)]
struct Shown {
    seq: Seq,
    tokens: u64,
    /// Cost with its large results as placeholders, in tokens.
    trimmed: u64,
    /// Positions of the parts that the policy's rule would shorten.
    large: Vec<usize>,
}

impl ClearPass {
    /// A pass over the view up to `head`; `None` for a pass that does nothing.
    pub(super) fn new(policy: ClearPolicy, head: Option<Seq>) -> Self {
        Self {
            trim: policy.trim(),
            policy,
            head: head.unwrap_or(Seq::NONE),
            rest: head.and_then(|head| SeqRange::new(Seq::FIRST, head)),
            runs: VecDeque::new(),
            cleared: Vec::new(),
            run: None,
            scan: ResultScan::default(),
            messages: Vec::new(),
            groups: Vec::new(),
        }
    }

    fn take_span(&mut self, span: &Span) {
        let Some(range) = span.range.up_to(self.head) else {
            return;
        };
        let cleared = is_cleared(span);
        if cleared {
            self.cleared.push(range);
        }
        if !cleared && span.body != SpanBody::Raw {
            return;
        }
        let before = self.runs.pop_back_if(|run| run.last.next() == range.first);
        let first = before.map_or(range.first, |run| run.first);
        self.runs.extend(SeqRange::new(first, range.last));
    }

    fn take_entry(&mut self, entry: &LogEntry, accounting: &dyn Accounting) {
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

    /// Ends the run that was read. A group at the log's end that may still get a result is left alone.
    fn end_run(&mut self) {
        let is_last = self
            .messages
            .last()
            .is_some_and(|last| last.seq == self.head);
        if let Some(builder) = self.run.take() {
            let atoms = builder.finish();
            let groups = match is_last {
                true => atoms.settled(),
                false => atoms.as_slice(),
            };
            self.groups.extend(groups.iter().map(Atom::range));
        }
    }

    /// The job that clears a group; `None` where the policy keeps a large result of it, where it is cleared
    /// already, or where nothing is saved.
    fn job(&self, group: &[Shown], offset: usize, chosen: &[ResultPlace]) -> Option<Job> {
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

impl Pass for ClearPass {
    fn next_read(&mut self) -> Option<ReadRequest> {
        if let Some(rest) = self.rest {
            return Some(ReadRequest::Spans(rest));
        }
        self.runs.front().copied().map(ReadRequest::Entries)
    }

    fn feed_spans(&mut self, spans: &[Span], _accounting: &dyn Accounting) -> Vec<Job> {
        spans.iter().for_each(|span| self.take_span(span));
        let last = spans.last().and_then(|span| span.range.last);
        let next = last.and_then(|last| SeqRange::new(last.next(), self.head));
        self.rest = next;
        Vec::new()
    }

    fn feed_entries(&mut self, entries: &[LogEntry], accounting: &dyn Accounting) -> Vec<Job> {
        for entry in entries {
            let Some(run) = self.runs.front().copied() else {
                break;
            };
            let origin = self.messages.len();
            self.run
                .get_or_insert_with(|| AtomBuilder::starting_at(origin))
                .push(entry);
            self.take_entry(entry, accounting);
            self.runs.pop_front();
            match SeqRange::new(entry.seq.next(), run.last) {
                Some(rest) => self.runs.push_front(rest),
                None => self.end_run(),
            }
        }
        Vec::new()
    }

    fn finish(&mut self, _accounting: &dyn Accounting) -> Vec<Job> {
        self.end_run();
        let chosen = self.policy.clears(&self.scan);
        let job = |group: &Range<usize>| {
            self.job(self.messages.get(group.clone())?, group.start, &chosen)
        };
        self.groups.iter().filter_map(job).collect()
    }
}

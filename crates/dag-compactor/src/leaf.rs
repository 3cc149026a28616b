//! The pass over messages: runs of them become leaves.

use std::collections::VecDeque;

use compaction_plan::{Job, Pass, ReadRequest, Work};
use memory_model::{Accounting, Child, LogEntry, Seq, SeqRange, Span, SpanBody, summary_overhead};
use turn_map::{Atom, AtomBuilder, GroupingPolicy};

use crate::condensed::rest_after;
use crate::labels::LEAF;
use crate::policy::DagPolicy;

/// A pass over the messages before the fresh tail.
#[derive(Debug)]
pub(crate) struct LeafPass {
    policy: DagPolicy,
    /// The part of the view that was not fed yet.
    rest: Option<SeqRange>,
    /// The first position that is not compacted.
    tail: Seq,
    /// Whether the span that was fed last is a summary.
    after_summary: bool,
    /// A run whose right neighbour is not known yet.
    last: Option<LastRun>,
    runs: VecDeque<LeafRun>,
}

#[derive(Debug)]
struct LastRun {
    range: SeqRange,
    /// Whether a summary stands before it, and it reaches up to the next span.
    bridgeable: bool,
}

impl LeafPass {
    pub(crate) fn new(policy: DagPolicy, head: Seq, tail: Seq) -> Self {
        // Nothing to read where nothing stands before the tail.
        let rest = SeqRange::new(Seq::FIRST, head).filter(|_| tail > Seq::FIRST);
        Self {
            policy,
            rest,
            tail,
            after_summary: false,
            last: None,
            runs: VecDeque::new(),
        }
    }

    fn take_span(&mut self, span: &Span) {
        let summary = matches!(span.body, SpanBody::Summary { .. });
        self.end_last(summary);
        if span.range.first >= self.tail {
            self.rest = None;
        } else if span.body == SpanBody::Raw {
            let before_tail = self.tail.prev();
            let last = span.range.last.map_or(before_tail, |l| l.min(before_tail));
            let whole = span.range.last == Some(last);
            self.last = SeqRange::new(span.range.first, last).map(|range| LastRun {
                range,
                bridgeable: whole && self.after_summary,
            });
        }
        self.after_summary = summary;
    }

    fn end_last(&mut self, before_summary: bool) {
        if let Some(run) = self.last.take() {
            self.runs.push_back(LeafRun::new(Run {
                range: run.range,
                bridged: run.bridgeable && before_summary,
            }));
        }
    }
}

impl Pass for LeafPass {
    fn next_read(&mut self) -> Option<ReadRequest> {
        if self.rest.is_none() {
            self.end_last(false);
        }
        match self.runs.iter().find_map(LeafRun::next_read) {
            Some(range) => Some(ReadRequest::Entries(range)),
            None => self.rest.map(ReadRequest::Spans),
        }
    }

    fn feed_spans(&mut self, spans: &[Span], _accounting: &dyn Accounting) -> Vec<Job> {
        self.rest = rest_after(self.rest, spans);
        for span in spans {
            self.take_span(span);
        }
        Vec::new()
    }

    fn feed_entries(&mut self, entries: &[LogEntry], accounting: &dyn Accounting) -> Vec<Job> {
        let mut jobs = Vec::new();
        for entry in entries {
            // A run that has all its entries is done before the next one begins.
            while let Some(front) = self.runs.front() {
                match front.next_read() {
                    Some(range) if range.first == entry.seq => break,
                    Some(_) => return jobs,
                    None => {
                        let Some(run) = self.runs.pop_front() else {
                            break;
                        };
                        jobs.extend(run.finish(&self.policy, accounting));
                    }
                }
            }
            if let Some(run) = self.runs.front_mut() {
                run.feed(entry, &self.policy, accounting, &mut jobs);
            }
        }
        jobs
    }

    fn finish(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        self.end_last(false);
        let runs = std::mem::take(&mut self.runs);
        runs.into_iter()
            .flat_map(|run| run.finish(&self.policy, accounting))
            .collect()
    }
}

/// A stretch of messages outside the fresh tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    range: SeqRange,
    /// Whether summaries stand on both sides, so that it may be compacted however short it is.
    bridged: bool,
}

/// Messages that will be one leaf, as long as nothing more fits.
#[derive(Debug, Clone, Copy, Default)]
struct Chunk {
    first: Option<Seq>,
    last: Seq,
    messages: usize,
    tokens: u64,
}

/// Cuts one run into leaves while its entries are fed.
#[derive(Debug)]
struct LeafRun {
    run: Run,
    /// The next entry that it wants.
    next: Seq,
    atoms: AtomBuilder,
    /// Costs of the entries from `costs_from` on, which are in no chunk yet.
    costs: VecDeque<u64>,
    costs_from: Seq,
    chunk: Chunk,
}

impl LeafRun {
    fn new(run: Run) -> Self {
        let first = run.range.first;
        Self {
            run,
            next: first,
            atoms: AtomBuilder::starting_at(first.0 as usize, GroupingPolicy::default()),
            costs: VecDeque::new(),
            costs_from: first,
            chunk: Chunk::default(),
        }
    }

    fn next_read(&self) -> Option<SeqRange> {
        SeqRange::new(self.next, self.run.range.last)
    }

    fn feed(
        &mut self,
        entry: &LogEntry,
        policy: &DagPolicy,
        accounting: &dyn Accounting,
        jobs: &mut Vec<Job>,
    ) {
        self.next = entry.seq.next();
        self.costs.push_back(entry.tokens);
        self.atoms.push(entry);
        let settled: Vec<Atom> = self.atoms.drain_settled().collect();
        for atom in &settled {
            self.take(atom, policy, accounting, jobs);
        }
    }

    /// Ends the run: nothing more of it comes, so all its atoms are as they will be.
    fn finish(mut self, policy: &DagPolicy, accounting: &dyn Accounting) -> Vec<Job> {
        let mut jobs = Vec::new();
        let builder =
            std::mem::replace(&mut self.atoms, AtomBuilder::new(GroupingPolicy::default()));
        for atom in builder.finish().iter() {
            self.take(atom, policy, accounting, &mut jobs);
        }
        let bridge = self.run.bridged && policy.bridge;
        let heavy = policy.heavy(self.chunk.tokens);
        let enough = self.chunk.messages >= policy.leaf_min_messages || heavy || bridge;
        if enough {
            jobs.extend(self.close(policy, accounting));
        }
        jobs
    }

    /// Adds an atom to the chunk, or begins the next one with it.
    fn take(
        &mut self,
        atom: &Atom,
        policy: &DagPolicy,
        accounting: &dyn Accounting,
        jobs: &mut Vec<Job>,
    ) {
        let entries = atom.range().len();
        let tokens = self.costs.drain(..entries.min(self.costs.len())).sum();
        let first = self.costs_from;
        let last = Seq(first.0.saturating_add(entries as u32)).prev();
        self.costs_from = last.next();
        let together = self.chunk.tokens.saturating_add(tokens);
        // A chunk too small to gain anything goes with the atom that does not fit.
        if self.chunk.first.is_some()
            && !policy.fits(together)
            && let Some(job) = self.close(policy, accounting)
        {
            jobs.push(job);
        }
        self.chunk.first.get_or_insert(first);
        self.chunk.last = last;
        self.chunk.messages = self.chunk.messages.saturating_add(atom.messages());
        self.chunk.tokens = self.chunk.tokens.saturating_add(tokens);
    }

    /// The leaf for the chunk, if it is worth making; then the next chunk begins.
    fn close(&mut self, policy: &DagPolicy, accounting: &dyn Accounting) -> Option<Job> {
        let chunk = self.chunk;
        let range = SeqRange::new(chunk.first?, chunk.last)?;
        let children = vec![Child::Messages { range }];
        let overhead = summary_overhead(accounting, range, 0, &children);
        if chunk.messages == 0 || !policy.gains(chunk.tokens, overhead) {
            return None;
        }
        self.chunk = Chunk::default();
        Some(Job {
            kind: LEAF,
            range,
            expect: vec![Span::closed(range, SpanBody::Raw, chunk.tokens)],
            work: Work::summarize(children, 0),
            request: None,
            source_tokens: chunk.tokens,
            why: format!(
                "{} messages outside the fresh tail cost {} tokens",
                chunk.messages, chunk.tokens
            ),
        })
    }
}

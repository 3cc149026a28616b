//! Runs of messages become leaves.

use std::collections::VecDeque;

use memory_model::{
    Accounting, Body, Child, Job, JobKind, LogEntry, Seq, SeqRange, Span, summary_overhead,
};
use turn_map::{Atom, AtomBuilder, GroupingPolicy};

use crate::policy::DagPolicy;

/// A stretch of messages outside the fresh tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) range: SeqRange,
    /// Whether summaries stand on both sides, so that it may be compacted however short it is.
    pub(crate) bridged: bool,
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
pub(crate) struct LeafRun {
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
    pub(crate) fn new(run: Run) -> Self {
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

    pub(crate) fn wants(&self) -> Option<SeqRange> {
        SeqRange::new(self.next, self.run.range.last)
    }

    pub(crate) fn feed(
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
    pub(crate) fn finish(mut self, policy: &DagPolicy, accounting: &dyn Accounting) -> Vec<Job> {
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
            kind: JobKind::Leaf,
            range,
            expect: vec![Span::closed(range, Body::Raw, chunk.tokens)],
            children,
            depth: 0,
            source_tokens: chunk.tokens,
            why: format!(
                "{} messages outside the fresh tail cost {} tokens",
                chunk.messages, chunk.tokens
            ),
        })
    }
}

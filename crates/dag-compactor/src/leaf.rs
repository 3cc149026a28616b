//! The pass over messages: runs of them become leaves.

use std::collections::VecDeque;

use compaction_plan::{Job, Pass, ReadRequest, Work};
use memory_model::{Accounting, Child, LogEntry, Seq, SeqRange, Span, SpanBody, summary_overhead};
use turn_map::{Atom, AtomBuilder};

use crate::condensed::rest_after;
use crate::labels::LEAF;
use crate::policy::DagPolicy;
use crate::request::{RequestRule, is_request};

/// A pass over the messages before the fresh tail.
#[derive(Debug)]
pub(crate) struct LeafPass {
    policy: DagPolicy,
    rule: RequestRule,
    /// The part of the view that was not fed yet.
    rest: Option<SeqRange>,
    /// The first position that is not compacted.
    tail: Seq,
    /// Whether the span that was fed last is a summary, or nothing was fed: messages at the beginning
    /// of the log never become more either.
    after_summary: bool,
    /// A run whose right neighbour is not known yet.
    last: Option<LastRun>,
    runs: VecDeque<LeafRun>,
    /// The messages that will be the next leaf.
    chunk: Chunk,
    /// The atom of what may be the request, and everything behind it: whether it is the newest one
    /// is known only when a newer one comes, or nothing more.
    held: Vec<Step>,
}

#[derive(Debug)]
struct LastRun {
    range: SeqRange,
    /// Whether a summary or nothing stands before it, and it reaches up to the next span.
    bridgeable: bool,
}

impl LeafPass {
    pub(crate) fn new(policy: DagPolicy, rule: RequestRule, head: Seq, tail: Seq) -> Self {
        // Nothing to read where nothing stands before the tail.
        let rest = SeqRange::new(Seq::FIRST, head).filter(|_| tail > Seq::FIRST);
        Self {
            policy,
            rule,
            rest,
            tail,
            after_summary: true,
            last: None,
            runs: VecDeque::new(),
            chunk: Chunk::default(),
            held: Vec::new(),
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

impl LeafPass {
    /// Takes the next step of a run, and returns the jobs that it completes.
    fn take_step(&mut self, step: Step, accounting: &dyn Accounting) -> Vec<Job> {
        let may_be_request = matches!(step, Step::Atom(piece) if piece.may_be_request);
        if !may_be_request && self.held.is_empty() {
            return self.cut(step, accounting).into_iter().collect();
        }
        let mut jobs = Vec::new();
        if may_be_request {
            // What was held is older: ordinary messages.
            for step in std::mem::take(&mut self.held) {
                jobs.extend(self.cut(step, accounting));
            }
        }
        self.held.push(step);
        jobs
    }

    /// Cuts what was held, with a gap for the request, which stays as it is.
    fn end_held(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        let mut held = std::mem::take(&mut self.held);
        if let Some(first) = held.first_mut()
            && let Step::Atom(piece) = *first
            && self.rule.protects(piece.tokens)
        {
            *first = Step::End { bridged: false };
            // What follows the request has a summary at one side only.
            if let Some(Step::End { bridged }) = held.iter_mut().skip(1).find(|s| s.is_end()) {
                *bridged = false;
            }
        }
        let mut jobs = Vec::new();
        for step in held {
            jobs.extend(self.cut(step, accounting));
        }
        jobs
    }

    /// Adds an atom to the chunk, or begins the next one with it; or ends a run.
    fn cut(&mut self, step: Step, accounting: &dyn Accounting) -> Option<Job> {
        let piece = match step {
            Step::Atom(piece) => piece,
            Step::End { bridged } => {
                let bridge = bridged && self.policy.bridge;
                let heavy = self.policy.heavy(self.chunk.tokens);
                let enough = self.chunk.messages >= self.policy.leaf_min_messages || heavy;
                let job = (enough || bridge).then(|| self.close(accounting));
                self.chunk = Chunk::default();
                return job.flatten();
            }
        };
        let together = self.chunk.tokens.saturating_add(piece.tokens);
        // A chunk too small to gain anything goes with the atom that does not fit.
        let job = match self.chunk.first.is_some() && !self.policy.fits(together) {
            true => self.close(accounting),
            false => None,
        };
        self.chunk.first.get_or_insert(piece.first);
        self.chunk.last = piece.last;
        self.chunk.messages = self.chunk.messages.saturating_add(piece.messages);
        self.chunk.tokens = self.chunk.tokens.saturating_add(piece.tokens);
        job
    }

    /// The leaf for the chunk, if it is worth making; then the next chunk begins.
    fn close(&mut self, accounting: &dyn Accounting) -> Option<Job> {
        let chunk = self.chunk;
        let range = SeqRange::new(chunk.first?, chunk.last)?;
        let children = vec![Child::Messages { range }];
        let overhead = summary_overhead(accounting, range, 0, &children);
        if chunk.messages == 0 || !self.policy.gains(chunk.tokens, overhead) {
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

    /// Ends the first run, of which nothing more comes.
    fn end_run(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        let steps = self.runs.pop_front().map(LeafRun::finish);
        self.take_steps(steps.unwrap_or_default(), accounting)
    }

    fn take_steps(&mut self, steps: Vec<Step>, accounting: &dyn Accounting) -> Vec<Job> {
        let jobs = |step| self.take_step(step, accounting);
        steps.into_iter().flat_map(jobs).collect()
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
                    None => jobs.extend(self.end_run(accounting)),
                }
            }
            if let Some(run) = self.runs.front_mut() {
                let steps = run.feed(entry, &self.rule);
                jobs.extend(self.take_steps(steps, accounting));
            }
        }
        jobs
    }

    fn finish(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        self.end_last(false);
        let mut jobs = Vec::new();
        while !self.runs.is_empty() {
            jobs.extend(self.end_run(accounting));
        }
        jobs.extend(self.end_held(accounting));
        jobs
    }
}

/// A stretch of messages outside the fresh tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    range: SeqRange,
    /// Whether summaries (or the log's beginning) stand on both sides, so that it may be compacted
    /// however short it is.
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

/// An atom of a run, or the end of one.
#[derive(Debug, Clone, Copy)]
enum Step {
    Atom(Piece),
    End { bridged: bool },
}

impl Step {
    fn is_end(&self) -> bool {
        matches!(self, Self::End { .. })
    }
}

/// An atom as far as leaves depend on it.
#[derive(Debug, Clone, Copy)]
struct Piece {
    first: Seq,
    last: Seq,
    messages: usize,
    tokens: u64,
    /// Whether a message of it may be the user's running request.
    may_be_request: bool,
}

/// An entry that is in no atom yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    tokens: u64,
    may_be_request: bool,
}

/// Groups one run's entries into atoms while they are fed.
#[derive(Debug)]
struct LeafRun {
    run: Run,
    /// The next entry that it wants.
    next: Seq,
    atoms: AtomBuilder,
    /// The entries from `pending_from` on.
    pending: VecDeque<Pending>,
    pending_from: Seq,
}

impl LeafRun {
    fn new(run: Run) -> Self {
        let first = run.range.first;
        Self {
            run,
            next: first,
            atoms: AtomBuilder::starting_at(first.0 as usize),
            pending: VecDeque::new(),
            pending_from: first,
        }
    }

    fn next_read(&self) -> Option<SeqRange> {
        SeqRange::new(self.next, self.run.range.last)
    }

    fn feed(&mut self, entry: &LogEntry, rule: &RequestRule) -> Vec<Step> {
        self.next = entry.seq.next();
        self.pending.push_back(Pending {
            tokens: entry.tokens,
            may_be_request: rule.looks_at(entry.seq) && is_request(entry),
        });
        self.atoms.push(entry);
        let settled: Vec<Atom> = self.atoms.drain_settled().collect();
        settled.iter().map(|atom| self.take(atom)).collect()
    }

    /// Ends the run: nothing more of it comes, so all its atoms are as they will be.
    fn finish(mut self) -> Vec<Step> {
        let builder = std::mem::replace(&mut self.atoms, AtomBuilder::starting_at(0));
        let atoms = builder.finish();
        let mut steps: Vec<Step> = atoms.iter().map(|atom| self.take(atom)).collect();
        steps.push(Step::End {
            bridged: self.run.bridged,
        });
        steps
    }

    fn take(&mut self, atom: &Atom) -> Step {
        let entries = atom.range().len();
        let first = self.pending_from;
        let last = Seq(first.0.saturating_add(entries as u32)).prev();
        self.pending_from = last.next();
        let taken = self.pending.drain(..entries.min(self.pending.len()));
        let (mut tokens, mut may_be_request) = (0_u64, false);
        for entry in taken {
            tokens = tokens.saturating_add(entry.tokens);
            may_be_request |= entry.may_be_request;
        }
        Step::Atom(Piece {
            first,
            last,
            messages: atom.messages(),
            tokens,
            may_be_request,
        })
    }
}

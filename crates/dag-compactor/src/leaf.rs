//! The planning round (pass) over messages: summarizes runs of messages. The summaries are the leaves.

use std::sync::Arc;

use compaction_plan::{
    AtomReader, BoxError, Job, JobSink, PassInput, SpanReader, ViewSource, Work,
};
use memory_model::{
    Accounting, Child, EntryKind, LogEntry, Seq, SeqRange, Span, SpanBody, summary_overhead,
};

use crate::labels::LEAF;
use crate::policy::DagPolicy;
use crate::request::{Held, RequestRule, is_request};

/// Plans leaves, which are summaries of messages, before the fresh tail. `tail` is the position at which the fresh tail
/// begins.
pub(crate) async fn plan_leaves(
    policy: &DagPolicy,
    (rule, tail): (RequestRule, Seq),
    input: PassInput<'_>,
    view: &dyn ViewSource,
    jobs: &mut dyn JobSink,
) -> Result<(), BoxError> {
    let mut leaves = Leaves {
        policy,
        accounting: input.accounting,
        jobs,
        next: None,
    };
    let mut held = Held(Vec::new());
    let is_summary = |span: &Span| span.body.summary().is_some();
    let all = SeqRange::new(Seq::FIRST, input.head).filter(|_| tail > Seq::FIRST);
    let mut spans = SpanReader::new(view, all);
    // The beginning of the log counts as a summary, because the messages after it cannot become more.
    let mut after_summary = true;
    while let Some(span) = spans.next().await?
        && let Some(range) = span.range.up_to(tail.prev())
    {
        if span.body == SpanBody::Raw {
            let is_whole = span.range.last == Some(range.last);
            let may_bridge = policy.bridge && is_whole && after_summary;
            let bridged = may_bridge && spans.peek().await?.is_some_and(is_summary);
            let mut atoms = AtomReader::new(view, range);
            while let Some(atom) = atoms.next().await? {
                if let Some(atom) = Group::of(atom, rule) {
                    let may_be_request = atom.may_be_request;
                    held.take(Step::Atom(atom), may_be_request, |step| leaves.take(step));
                }
            }
            held.take(Step::End { bridged }, false, |step| leaves.take(step));
        }
        after_summary = is_summary(&span);
    }

    let Held(mut held) = held;
    if matches!(held.first(), Some(Step::Atom(request)) if rule.protects(request.tokens)) {
        // The request is kept, so the messages after it have a summary on one side only.
        let end = Step::End { bridged: false };
        if let Some(next) = held
            .iter_mut()
            .find(|step| matches!(step, Step::End { .. }))
        {
            *next = end;
        }
        leaves.take(end);
        held.remove(0);
    }
    held.into_iter().for_each(|step| leaves.take(step));
    Ok(())
}

/// Step through the messages that become leaves.
#[derive(Debug, Clone, Copy)]
enum Step {
    Atom(Group),
    /// End of a run of messages. A bridged run has a summary or the beginning of the log on both sides. Because it
    /// cannot grow, it may be compacted even if it is short.
    End {
        bridged: bool,
    },
}

/// Neighbouring messages: an atom (messages that must not be separated), or all messages of the next leaf.
#[derive(Debug, Clone, Copy)]
struct Group {
    range: SeqRange,
    messages: usize,
    tokens: u64,
    /// Whether one of the messages may be the user's running request.
    may_be_request: bool,
}

impl Group {
    fn of(atom: &[Arc<LogEntry>], rule: RequestRule) -> Option<Self> {
        let (first, last) = (atom.first()?, atom.last()?);
        let tokens = atom.iter().map(|entry| entry.tokens);
        let may_be_request = |entry: &LogEntry| rule.looks_at(entry.seq) && is_request(entry);
        Some(Self {
            range: SeqRange::new(first.seq, last.seq)?,
            messages: atom
                .iter()
                .filter(|entry| entry.kind == EntryKind::Message)
                .count(),
            tokens: tokens.fold(0, u64::saturating_add),
            may_be_request: atom.iter().any(|entry| may_be_request(entry)),
        })
    }

    fn with(self, atom: Self) -> Self {
        Self {
            range: SeqRange::new(self.range.first, atom.range.last).unwrap_or(atom.range),
            messages: self.messages + atom.messages,
            tokens: self.tokens.saturating_add(atom.tokens),
            may_be_request: false,
        }
    }
}

/// Builder of leaves from atoms, which are groups of messages that must not be separated.
struct Leaves<'p> {
    policy: &'p DagPolicy,
    accounting: &'p dyn Accounting,
    jobs: &'p mut dyn JobSink,
    /// Messages collected for the next leaf.
    next: Option<Group>,
}

impl Leaves<'_> {
    /// Processes one step: adds an atom to the next leaf, starts the next leaf with it, or ends the run.
    fn take(&mut self, step: Step) {
        match (step, self.next) {
            (Step::Atom(atom), None) => self.next = Some(atom),
            (Step::Atom(atom), Some(next)) => {
                let fits = self.policy.fits(next.with(atom).tokens);
                // If the collected messages are too few for a leaf, the atom is added although it does not fit.
                let is_over = !fits && self.close(next);
                self.next = Some(if is_over { atom } else { next.with(atom) });
            }
            (Step::End { bridged }, next) => {
                let policy = self.policy;
                let is_enough = |next: &Group| {
                    next.messages >= policy.leaf_min_messages || policy.heavy(next.tokens)
                };
                if let Some(next) = next.filter(|next| is_enough(next) || bridged) {
                    self.close(next);
                }
                self.next = None;
            }
        }
    }

    /// Plans a leaf if its summary would save enough tokens. Returns whether the leaf was planned.
    fn close(&mut self, leaf: Group) -> bool {
        let Group {
            range,
            messages,
            tokens,
            ..
        } = leaf;
        let children = vec![Child::Messages { range }];
        let overhead = summary_overhead(self.accounting, range, 0, &children);
        let is_worth = messages > 0 && self.policy.gains(tokens, overhead);
        if is_worth {
            self.jobs.push(Job {
                kind: LEAF,
                range,
                expect: vec![Span::closed(range, SpanBody::Raw, tokens)],
                work: Work::summarize(children, 0),
                request: None,
                source_tokens: tokens,
                why: format!("{messages} messages outside the fresh tail cost {tokens} tokens"),
            });
        }
        is_worth
    }
}

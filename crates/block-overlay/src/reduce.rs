//! Reducing a list of messages in memory, for callers without a session.

use std::collections::HashSet;
use std::fmt::Debug;

use async_trait::async_trait;
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};
use turn_map::{AtomKind, Atoms, MessageView, PartView, Role, atoms};

use crate::error::{Error, Result};
use crate::message::LoopMessage;
use crate::one_liner::{SUMMARY_PREFIX, one_liner};
use crate::trim::trim_outputs;

/// How far a list of messages is reduced, and what is kept of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReductionPolicy {
    /// Maximum cost of the list, in tokens.
    pub budget: u64,
    /// Number of messages at the beginning that are kept. Default 2. More where a tool call and its
    /// results would be divided.
    pub keep_first: usize,
    /// Number of messages at the end that are kept. Default 10. More, likewise.
    pub keep_recent: usize,
    /// Maximum number of lines of a tool's output. Default 50.
    pub tool_output_max_lines: usize,
}

impl ReductionPolicy {
    /// Creates a policy with the default numbers.
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            keep_first: 2,
            keep_recent: 10,
            tool_output_max_lines: 50,
        }
    }

    /// Sets the number of messages that are kept at the beginning and at the end.
    #[must_use]
    pub fn with_kept(mut self, first: usize, recent: usize) -> Self {
        (self.keep_first, self.keep_recent) = (first, recent);
        self
    }

    /// Sets the maximum number of lines of a tool's output.
    #[must_use]
    pub fn with_tool_output_max_lines(mut self, lines: usize) -> Self {
        self.tool_output_max_lines = lines;
        self
    }
}

/// Reduces lists of messages. Object-safe, and may ask a model.
#[async_trait]
pub trait CompactionStrategy<M: LoopMessage>: Send + Sync + Debug {
    /// Returns the messages reduced to the policy's budget.
    ///
    /// # Errors
    /// [`ErrorKind::BudgetTooSmall`](crate::ErrorKind::BudgetTooSmall) where that is impossible, and those
    /// of the strategy.
    async fn compact(
        &self,
        messages: Vec<M>,
        policy: &ReductionPolicy,
        estimator: &dyn TokenEstimator,
    ) -> Result<Vec<M>>;
}

/// Reduces in three steps, without a model: see [`compact_messages`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefaultCompaction;

#[async_trait]
impl<M: LoopMessage> CompactionStrategy<M> for DefaultCompaction {
    async fn compact(
        &self,
        messages: Vec<M>,
        policy: &ReductionPolicy,
        estimator: &dyn TokenEstimator,
    ) -> Result<Vec<M>> {
        Ok(compact_messages(messages, policy, estimator)?.messages)
    }
}

/// How far a list had to be reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReductionLevel {
    /// Not at all.
    Unchanged,
    /// Tool output is cut to its first and last lines.
    Trimmed,
    /// Older answers are one line each, and the results of older tools are gone.
    Summarized,
    /// Only the beginning and the end are left.
    MiddleDropped,
    /// Only the newest messages are left.
    NewestOnly,
}

/// A reduced list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reduced<M> {
    /// The messages.
    pub messages: Vec<M>,
    /// How far the list had to be reduced.
    pub level: ReductionLevel,
    /// Cost of the messages, in tokens.
    pub tokens: u64,
    /// Number of messages that nothing stands for any more.
    pub dropped: usize,
}

/// Reduces a list until it costs at most the policy's budget, in steps:
///
/// 1. all tool output is cut to its first and last lines;
/// 2. before the recent messages each answer becomes a [one-liner](one_liner) of the user, and results of
///    tools go; what users and systems said stays;
/// 3. the first and the recent messages stay, with a message between that counts the others; where
///    that is still too much, the newest ones that fit.
///
/// Tool calls are never divided from their results.
///
/// # Errors
/// [`ErrorKind::BudgetTooSmall`](crate::ErrorKind::BudgetTooSmall) when not even the newest message, or
/// tool group, fits.
pub fn compact_messages<M: LoopMessage>(
    messages: Vec<M>,
    policy: &ReductionPolicy,
    estimator: &dyn TokenEstimator,
) -> Result<Reduced<M>> {
    let result = |messages: Vec<M>, level, dropped| Reduced {
        tokens: estimator.messages(&messages),
        messages,
        level,
        dropped,
    };
    let fits = |reduced: &Reduced<M>| reduced.tokens <= policy.budget;
    let whole = result(messages, ReductionLevel::Unchanged, 0);
    if fits(&whole) {
        return Ok(whole);
    }
    let trimmed = trim_outputs(&whole.messages, policy.tool_output_max_lines, estimator);
    let trimmed = result(trimmed, ReductionLevel::Trimmed, 0);
    if fits(&trimmed) {
        return Ok(trimmed);
    }
    let grouped = atoms(&trimmed.messages);
    let (older, dropped) = summarize_older(&trimmed.messages, &grouped, policy.keep_recent);
    let summarized = result(older, ReductionLevel::Summarized, dropped);
    if fits(&summarized) {
        return Ok(summarized);
    }
    let (ends, dropped) = drop_middle(&trimmed.messages, &grouped, policy);
    let ends = result(ends, ReductionLevel::MiddleDropped, dropped);
    if dropped > 0 && fits(&ends) {
        return Ok(ends);
    }
    let (newest, dropped) = keep_newest(&trimmed.messages, &grouped, policy.budget, estimator)?;
    Ok(result(newest, ReductionLevel::NewestOnly, dropped))
}

/// Position from which on messages are recent.
fn recent_start<M>(messages: &[M], atoms: &Atoms, keep_recent: usize) -> usize {
    let start = messages.len().saturating_sub(keep_recent);
    let cut = atoms.cut_before(start);
    match keep_recent {
        0 => atoms.settled_end().position(),
        _ => cut.min(atoms.settled_end()).position(),
    }
}

/// Older answers as one-liners; also the number of messages that are gone.
fn summarize_older<M: LoopMessage>(
    messages: &[M],
    atoms: &Atoms,
    keep_recent: usize,
) -> (Vec<M>, usize) {
    let start = recent_start(messages, atoms, keep_recent);
    let mut reduced = Vec::with_capacity(messages.len());
    let mut dropped = 0;
    for (position, message) in messages.iter().enumerate() {
        if position >= start {
            reduced.push(message.clone());
        } else if let Some(line) = one_liner(message) {
            reduced.push(M::user(format!("{SUMMARY_PREFIX}{line}")));
        } else if has_results(message) {
            dropped += 1;
        } else {
            reduced.push(message.clone());
        }
    }
    (reduced, dropped)
}

fn has_results(message: &impl MessageView) -> bool {
    let mut any = message.role() == Role::Tool;
    message.parts(&mut |part| any |= matches!(part, PartView::ToolResult { .. }));
    any
}

/// The first and the recent messages; also the number of those between.
fn drop_middle<M: LoopMessage>(
    messages: &[M],
    atoms: &Atoms,
    policy: &ReductionPolicy,
) -> (Vec<M>, usize) {
    let head = match policy.keep_first {
        0 => 0,
        first => atoms.cut_after(first.min(messages.len())).position(),
    };
    let tail = recent_start(messages, atoms, policy.keep_recent).max(head);
    let dropped = tail - head;
    let first = messages.iter().take(head).cloned();
    let mark = (dropped > 0).then(|| dropped_marker(dropped));
    let recent = messages.iter().skip(tail).cloned();
    (first.chain(mark).chain(recent).collect(), dropped)
}

fn dropped_marker<M: LoopMessage>(dropped: usize) -> M {
    M::user(format!("[… left out: {dropped} messages …]"))
}

/// The newest tool groups and messages that fit with the marker of the others. A late result, whose call
/// would be left out, goes with it.
fn keep_newest<M: LoopMessage>(
    messages: &[M],
    atoms: &Atoms,
    budget: u64,
    estimator: &dyn TokenEstimator,
) -> Result<(Vec<M>, usize)> {
    let marker = |dropped: usize| dropped_marker::<M>(dropped);
    let reserve = estimator.message(&marker(messages.len()));
    let (mut start, mut used) = (messages.len(), reserve);
    for atom in atoms.iter().rev() {
        let cost = estimator.messages(messages.get(atom.range()).unwrap_or_default());
        if used.saturating_add(cost) > budget {
            if start == messages.len() {
                let what = "the newest message, with its tool calls and results,";
                return Err(Error::budget_too_small(
                    what,
                    used.saturating_add(cost),
                    budget,
                ));
            }
            break;
        }
        (start, used) = (atom.range().start, used + cost);
    }
    let kept = atoms.iter().filter(|atom| atom.range().start >= start);
    let orphans: HashSet<usize> = kept
        .filter(|atom| atom.kind() == AtomKind::Late)
        .filter(|atom| {
            let call = |late: &turn_map::LateResult| late.call.is_some_and(|call| call >= start);
            !atom.late().iter().all(call)
        })
        .flat_map(|atom| atom.range())
        .collect();
    let dropped = start + orphans.len();
    let newest = messages.iter().enumerate().skip(start);
    let newest = newest.filter(|(position, _)| !orphans.contains(position));
    let mark = (dropped > 0).then(|| marker(dropped));
    Ok((
        mark.into_iter()
            .chain(newest.map(|(_, message)| message.clone()))
            .collect(),
        dropped,
    ))
}

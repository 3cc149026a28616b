//! Pruning that the model itself asks for: messages that no further request shows. Originals stay.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use token_estimate::TokenEstimator;
use turn_map::{Atom, AtomKind, GroupState, MessageView, Role, atoms};

use crate::message::{LoopMessage, user_speaks};

/// Messages that are pruned first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PruneOrder {
    /// The oldest. The default.
    #[default]
    OldestFirst,
    /// The newest.
    NewestFirst,
}

/// What one call of [`Pruning::prun`], [`Pruning::prun_with_memo`] or [`Pruning::revert_to`] pruned. A host
/// keeps these records and makes the [`Pruning`] of them again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneRecord {
    /// Positions of the pruned messages in the list, in order.
    pub positions: Vec<usize>,
    /// Cost of the pruned messages, in tokens. More than was asked for where a tool group is larger,
    /// less where there was no more to prune.
    pub tokens_removed: u64,
    /// What stands in the place of the first pruned message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<String>,
}

/// The messages of a list that the model pruned.
///
/// What users and systems said is never pruned; a tool call goes only together with its results, and not
/// while one is still to come. The list itself is never changed: [`apply`](Self::apply) copies what is
/// left.
///
/// ```
/// use block_overlay::Pruning;
/// use memory_model::Message;
/// use token_estimate::HeuristicEstimator;
///
/// let list = [Message::user("Find it."), Message::assistant("A dead end. ".repeat(50))];
/// let mut pruning = Pruning::default();
/// let record = pruning.prun_with_memo(&list, 10, "Looked in vain.", &HeuristicEstimator::Bytes4);
/// assert_eq!(record.positions, [1]);
/// let left = pruning.apply(&list);
/// assert_eq!(left[0], list[0]);
/// assert_eq!(left[1].text(), "[Memo] Looked in vain.");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pruning {
    /// Messages that are pruned first.
    pub order: PruneOrder,
    /// Position before which nothing is pruned: the length of what a compaction left. Default 0.
    pub from: usize,
    records: Vec<PruneRecord>,
}

/// Beginning of the message in the place of what was pruned with a memo.
pub const MEMO_PREFIX: &str = "[Memo] ";

impl Pruning {
    /// Creates a pruning that prunes in this order.
    pub fn new(order: PruneOrder) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    /// All records so far, in order.
    pub fn records(&self) -> &[PruneRecord] {
        &self.records
    }

    /// Prunes answers and tool groups until at least `tokens` tokens are gone, and returns what it pruned.
    pub fn prun<M: MessageView>(
        &mut self,
        messages: &[M],
        tokens: u64,
        estimator: &dyn TokenEstimator,
    ) -> PruneRecord {
        self.prune(messages, tokens, None, estimator)
    }

    /// Like [`prun`](Self::prun), with a memo in the place of the first message that goes.
    pub fn prun_with_memo<M: MessageView>(
        &mut self,
        messages: &[M],
        tokens: u64,
        memo: impl Into<String>,
        estimator: &dyn TokenEstimator,
    ) -> PruneRecord {
        self.prune(messages, tokens, Some(memo.into()), estimator)
    }

    /// Prunes every answer and tool group from `position` on: the model brakes and goes back to where it
    /// was then. The summary of what was tried stands in its place.
    pub fn revert_to<M: MessageView>(
        &mut self,
        messages: &[M],
        position: usize,
        summary: impl Into<String>,
        estimator: &dyn TokenEstimator,
    ) -> PruneRecord {
        let from = self.from;
        self.from = from.max(position);
        let record = self.prune(messages, u64::MAX, Some(summary.into()), estimator);
        self.from = from;
        record
    }

    fn prune<M: MessageView>(
        &mut self,
        messages: &[M],
        tokens: u64,
        memo: Option<String>,
        estimator: &dyn TokenEstimator,
    ) -> PruneRecord {
        let gone = self.gone();
        let atoms = atoms(messages);
        let mut candidates: Vec<&Atom> = atoms.iter().filter(|atom| self.may_go(atom)).collect();
        if self.order == PruneOrder::NewestFirst {
            candidates.reverse();
        }
        let mut record = PruneRecord::default();
        for atom in candidates {
            if record.tokens_removed >= tokens {
                break;
            }
            for position in atom.range().filter(|position| !gone.contains(position)) {
                let message = messages
                    .get(position)
                    .filter(|message| is_prunable(*message));
                if let Some(message) = message {
                    record.positions.push(position);
                    let removed = record
                        .tokens_removed
                        .saturating_add(estimator.message(message));
                    record.tokens_removed = removed;
                }
            }
        }
        record.positions.sort_unstable();
        if !record.positions.is_empty() {
            record.memo = memo;
            self.records.push(record.clone());
        }
        record
    }

    fn may_go(&self, atom: &Atom) -> bool {
        atom.range().start >= self.from && atom.kind() != AtomKind::Group(GroupState::Open)
    }

    fn gone(&self) -> BTreeSet<usize> {
        let positions = self
            .records
            .iter()
            .flat_map(|record| record.positions.iter().copied());
        positions.collect()
    }

    /// Returns the messages that are left, with the memos in the places of what is gone.
    pub fn apply<M: LoopMessage>(&self, messages: &[M]) -> Vec<M> {
        let gone = self.gone();
        let mut memos: Vec<(usize, &str)> = self
            .records
            .iter()
            .filter_map(|record| Some((*record.positions.first()?, record.memo.as_deref()?)))
            .collect();
        memos.sort_by_key(|(position, _)| *position);
        let mut memos = memos.into_iter().peekable();
        let mut left = Vec::with_capacity(messages.len());
        for (position, message) in messages.iter().enumerate() {
            while let Some((_, memo)) = memos.next_if(|(at, _)| *at == position) {
                left.push(M::user(format!("{MEMO_PREFIX}{memo}")));
            }
            if !gone.contains(&position) {
                left.push(message.clone());
            }
        }
        left
    }
}

fn is_prunable(message: &impl MessageView) -> bool {
    message.role() != Role::System && !message.is_note() && !user_speaks(message)
}

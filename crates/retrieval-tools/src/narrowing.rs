//! Permissions and token budgets of derived tool sets. Permissions can only be reduced.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memory_model::{Clock, Seq, SeqRange, Timestamp};

use crate::error::{Error, ErrorKind, Result};
use crate::expand::Target;

/// Restrictions for a tool set that [`Retrieval::narrow`](crate::Retrieval::narrow) derives from another one. Each
/// field that is set removes permissions. A field with `None` keeps the permissions of the original tool set.
///
/// A narrowed tool set sees a summary only if it sees all messages that the summary covers. A summary therefore never
/// reveals hidden messages.
#[derive(Debug, Clone, Default)]
pub struct Narrowing {
    /// The messages that the derived tool set may still read: a range of positions, or the messages that a summary
    /// covers. `None` keeps all messages readable.
    pub within: Option<Target>,
    /// Maximum depth of the summaries that the derived tool set may still read, in the tree of summaries. 0 keeps only
    /// summaries that were made directly of messages. `None` keeps all summaries readable.
    pub depth: Option<u32>,
    /// Token budget: maximum number of tokens of all answers together. An answer of `expand` or `recall` counts with
    /// its field `tokens`, any other answer with its text. All clones of the derived tool set, and all tool sets
    /// derived from it, share the budget. `None` sets no budget.
    pub tokens: Option<u64>,
    /// Expiry time, and the clock that gives the current time. At and after this time, every call fails. `None` sets no
    /// expiry time.
    pub until: Option<(Timestamp, Arc<dyn Clock>)>,
    /// Names of the permitted tools, such as `memory_grep`. `None` permits all tools of the original.
    pub tools: Option<BTreeSet<String>>,
}

/// Permissions and token budgets of a tool set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grant {
    /// Range of the messages that the tool set may read. `None` if it may read all.
    pub(crate) range: Option<SeqRange>,
    /// Maximum depth of the summaries that the tool set may read. `None` if it may read all.
    pub(crate) depth: Option<u32>,
    allowances: Vec<Arc<AtomicU64>>,
    ends: Vec<(Timestamp, Arc<dyn Clock>)>,
    tools: Option<BTreeSet<String>>,
}

impl Grant {
    /// Returns the permissions reduced by `by`. `range` is the range of the messages in `by.within`.
    pub(crate) fn narrowed(&self, by: &Narrowing, range: Option<SeqRange>) -> Result<Self> {
        let mut grant = self.clone();
        if let Some(range) = range {
            let seen = self.visible(range);
            grant.range = Some(seen.ok_or_else(|| {
                Error::invalid(format!(
                    "this tool set does not see messages:{}-{}: narrow it to a range that it sees",
                    range.first, range.last
                ))
            })?);
        }
        if let Some(depth) = by.depth {
            grant.depth = Some(self.depth.map_or(depth, |own| own.min(depth)));
        }
        if let Some(tokens) = by.tokens {
            grant.allowances.push(Arc::new(AtomicU64::new(tokens)));
        }
        grant.ends.extend(by.until.clone());
        if let Some(tools) = &by.tools {
            grant.tools = Some(match &self.tools {
                Some(own) => own.intersection(tools).cloned().collect(),
                None => tools.clone(),
            });
        }
        Ok(grant)
    }

    /// Returns whether the tool set may read all messages and summaries of the conversation.
    pub(crate) fn sees_all(&self) -> bool {
        self.range.is_none() && self.depth.is_none()
    }

    /// Returns the part of a range of messages that the tool set may read. `None` if it may read no message of the
    /// range.
    pub(crate) fn visible(&self, range: SeqRange) -> Option<SeqRange> {
        match self.range {
            Some(own) => own.intersect(&range),
            None => Some(range),
        }
    }

    /// Returns whether the tool set may read the message at position `seq`.
    pub(crate) fn sees(&self, seq: Seq) -> bool {
        self.range.is_none_or(|range| range.contains(seq))
    }

    /// Returns whether the tool set may read all messages in a range. It may then also read a summary of this range,
    /// unless the summary is too deep.
    pub(crate) fn covers(&self, range: &SeqRange) -> bool {
        self.range.is_none_or(|own| own.covers(range))
    }

    /// Returns whether the tool set may read a summary with this range and depth.
    pub(crate) fn sees_summary(&self, range: &SeqRange, depth: u32) -> bool {
        self.covers(range) && self.depth.is_none_or(|most| depth <= most)
    }

    /// Returns whether a tool is permitted.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }

    /// Begins an answer of a tool: reserves at most `most` tokens of the remaining budget.
    ///
    /// # Errors
    /// `Denied` for a tool that is not permitted. `Expired` at and after the expiry time. `Spent` if the budget is used
    /// up.
    pub(crate) fn begin(&self, tool: &str, most: u64) -> Result<Spending<'_>> {
        if !self.allows(tool) {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("this tool set has no {tool}: call another tool"),
            ));
        }
        for (at, clock) in &self.ends {
            if clock.now() >= *at {
                return Err(Error::new(
                    ErrorKind::Expired,
                    format!("this tool set expired at {at}: request a new one"),
                ));
            }
        }
        let mut spending = Spending {
            allowances: &self.allowances,
            taken: 0,
            used: 0,
        };
        let mut taken = most;
        for (index, allowance) in self.allowances.iter().enumerate() {
            let before = allowance.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                Some(left.saturating_sub(taken))
            });
            let got = before.unwrap_or_default().min(taken);
            // An earlier budget gave more than this one can: returns the difference.
            for earlier in self.allowances.iter().take(index) {
                earlier.fetch_add(taken - got, Ordering::AcqRel);
            }
            taken = got;
        }
        spending.taken = taken;
        if taken == 0 && most > 0 {
            return Err(Error::new(
                ErrorKind::Spent,
                "this tool set has spent all of its tokens: answer with what you have",
            ));
        }
        Ok(spending)
    }
}

/// Reserved tokens of an answer in progress. Tokens that the answer does not use are returned to the budgets.
#[derive(Debug)]
pub(crate) struct Spending<'a> {
    allowances: &'a [Arc<AtomicU64>],
    /// Number of reserved tokens: the maximum for the answer.
    pub(crate) taken: u64,
    used: u64,
}

impl Spending<'_> {
    /// Ends the answer, which has `used` tokens.
    pub(crate) fn end(mut self, used: u64) {
        self.used = used.min(self.taken);
    }
}

impl Drop for Spending<'_> {
    fn drop(&mut self) {
        for allowance in self.allowances {
            allowance.fetch_add(self.taken - self.used, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spending(tokens: u64) -> Narrowing {
        Narrowing {
            tokens: Some(tokens),
            ..Narrowing::default()
        }
    }

    #[test]
    fn tokens_are_spent_once_however_many_derive_from_a_grant() {
        let parent = Grant::default().narrowed(&spending(100), None);
        let parent = parent.unwrap();
        let child = parent.narrowed(&spending(1_000), None);
        let child = child.unwrap();
        let first = child.begin("x", 80).unwrap();
        assert_eq!(first.taken, 80);
        // No other answer can use the reserved tokens of an answer in progress.
        let second = parent.begin("x", 80).unwrap();
        assert_eq!(second.taken, 20);
        assert_eq!(parent.begin("x", 1).unwrap_err().kind(), ErrorKind::Spent);
        first.end(30);
        drop(second);
        assert_eq!(parent.begin("x", u64::MAX).unwrap().taken, 70);
        child.begin("x", 70).unwrap().end(70);
        assert_eq!(child.begin("x", 9).unwrap_err().kind(), ErrorKind::Spent);
        assert_eq!(
            Grant::default().begin("x", u64::MAX).unwrap().taken,
            u64::MAX
        );
    }
}

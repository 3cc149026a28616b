use std::ops::Range;

use token_estimate::{MessageView, Role};

use crate::message::results;
use crate::{EditableMessage, GroupingPolicy, atoms};

mod options;
mod partial;

pub use options::{SplitFn, TextSplitter, Trim, TrimStrategy};

/// A list within a budget, with what was kept of the list that it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trimmed<M> {
    /// The kept messages, in order.
    pub messages: Vec<M>,
    /// The position of each kept message in the given list.
    pub positions: Vec<usize>,
    /// Position of the message that was kept in part.
    pub partial: Option<usize>,
    /// What the kept messages cost by the counter, in tokens: at most the budget. 0 without messages.
    pub tokens: u64,
    /// Why nothing was kept, or nothing but the system message; `None` otherwise.
    pub shortfall: Option<Shortfall>,
}

/// Reason why a budget or the other choices leave nothing of a list that has messages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shortfall {
    /// The system message was to be included and alone exceeds the budget. Nothing was kept.
    SystemTooLarge {
        /// Cost of the system message, in tokens.
        tokens: u64,
    },
    /// The message or group that would be kept first exceeds the budget.
    NothingFits {
        /// Positions of its messages.
        messages: Range<usize>,
        /// Its cost, with the system message if that was to be included, in tokens.
        tokens: u64,
    },
    /// The result may start at none of the messages, or at none of those that fit.
    NoStart,
    /// The result may end at none of the messages, or at none of those that fit.
    NoEnd,
}

/// Returns the newest or the oldest messages of a list that cost at most `trim.max_tokens` together.
///
/// `counter` returns the cost of a list in tokens, and is called with lists as they would be returned:
/// `|list| estimator.messages(list)`, or `|list| list.len() as u64` to keep a number of messages. The
/// budget is never exceeded, whatever the counter is. A counter must not count more for fewer messages, or
/// less may be kept than would fit. It is called O(log messages) times.
///
/// Tool groups are kept or left out whole, unless [`Trim::grouping`] is `None`.
pub fn trim_to_budget<M: EditableMessage + Clone>(
    messages: &[M],
    trim: &Trim,
    counter: impl Fn(&[&M]) -> u64,
) -> Trimmed<M> {
    Work::new(messages, trim, counter).trim()
}

struct Work<'m, M, C> {
    messages: &'m [M],
    trim: &'m Trim,
    counter: C,
    /// Whether the message at position 0 is kept in any case.
    system: bool,
    /// What is kept or left out as a whole, without the system message.
    units: Vec<Range<usize>>,
}

/// What is kept of the units: a run of them, and a unit with a shortened message before or behind it.
struct Kept<M> {
    units: Range<usize>,
    partial: Option<Partial<M>>,
}

/// A unit whose message farthest from the other units is shortened.
struct Partial<M> {
    /// Position of the shortened message.
    at: usize,
    message: M,
    /// Positions of the other messages.
    rest: Range<usize>,
}

impl<M> Kept<M> {
    fn is_empty(&self) -> bool {
        self.units.is_empty() && self.partial.is_none()
    }
}

impl<'m, M: EditableMessage + Clone, C: Fn(&[&M]) -> u64> Work<'m, M, C> {
    fn new(messages: &'m [M], trim: &'m Trim, counter: C) -> Self {
        let units = match trim.grouping {
            Some(policy) => units(messages, policy),
            None => (0..messages.len()).map(|at| at..at + 1).collect(),
        };
        Self {
            messages,
            trim,
            counter,
            system: false,
            units,
        }
    }

    fn trim(mut self) -> Trimmed<M> {
        // On the side that is kept, the choice of an end is made first; on the other side, last.
        let mut shortfall = None;
        if self.trim.strategy == TrimStrategy::Last {
            let end = self.last_end(0..self.units.len());
            let none = end == 0 && !self.units.is_empty();
            shortfall = none.then_some(Shortfall::NoEnd);
            self.units.truncate(end);
        }
        self.take_system();
        if self.trim.strategy == TrimStrategy::First {
            let start = self.first_start(0..self.units.len());
            let none = start > 0 && start == self.units.len();
            shortfall = none.then_some(Shortfall::NoStart);
            self.units.drain(..start);
        }
        if self.system {
            let tokens = self.cost(&self.whole(0..0));
            if tokens > self.trim.max_tokens {
                self.system = false;
                return self.trimmed(None, Some(Shortfall::SystemTooLarge { tokens }));
            }
        }
        if self.units.is_empty() {
            return self.trimmed(None, shortfall);
        }
        let mut kept = self.fill();
        if kept.is_empty() {
            let first = self.near(1);
            let messages = self.units.get(first.start).cloned().unwrap_or_default();
            let tokens = self.cost(&self.whole(first));
            return self.trimmed(None, Some(Shortfall::NothingFits { messages, tokens }));
        }
        self.choose_far_end(&mut kept);
        // Only a counter that counts more for fewer messages makes this necessary.
        while !kept.is_empty() && self.cost(&kept) > self.trim.max_tokens {
            self.drop_far(&mut kept);
            self.choose_far_end(&mut kept);
        }
        let shortfall = kept.is_empty().then_some(match self.trim.strategy {
            TrimStrategy::Last => Shortfall::NoStart,
            TrimStrategy::First => Shortfall::NoEnd,
        });
        self.trimmed(Some(kept), shortfall)
    }

    /// Takes the system message out of the units, if it is to be kept.
    fn take_system(&mut self) {
        let first = self.messages.first();
        self.system = self.trim.include_system
            && self.units.first() == Some(&(0..1))
            && first.is_some_and(|first| first.role() == Role::System && !first.is_note());
        if self.system {
            self.units.remove(0);
        }
    }

    /// The first `count` units on the side that is kept.
    fn near(&self, count: usize) -> Range<usize> {
        let all = self.units.len();
        match self.trim.strategy {
            TrimStrategy::Last => all.saturating_sub(count)..all,
            TrimStrategy::First => 0..count.min(all),
        }
    }

    fn whole(&self, units: Range<usize>) -> Kept<M> {
        Kept {
            units,
            partial: None,
        }
    }

    /// Keeps as many units as fit, and part of the next one if that is allowed.
    fn fill(&self) -> Kept<M> {
        let fits = |kept: &Kept<M>| self.cost(kept) <= self.trim.max_tokens;
        let (mut low, mut high) = (0, self.units.len());
        let mut probe = high;
        while low < high {
            if fits(&self.whole(self.near(probe))) {
                low = probe;
            } else {
                high = probe - 1;
            }
            probe = low + (high - low).div_ceil(2);
        }
        let units = self.near(low);
        let next = match self.trim.strategy {
            TrimStrategy::Last => units.start.checked_sub(1),
            TrimStrategy::First => Some(units.end),
        };
        let partial = next
            .and_then(|next| self.units.get(next))
            .filter(|_| self.trim.allow_partial)
            .and_then(|unit| {
                let (at, rest) = match self.trim.strategy {
                    TrimStrategy::Last => (unit.start, unit.start + 1..unit.end),
                    TrimStrategy::First => (unit.end - 1, unit.start..unit.end - 1),
                };
                let partial = |message: M| Partial {
                    at,
                    message,
                    rest: rest.clone(),
                };
                let part = partial::shorten(self.messages.get(at)?, self.trim, |part| {
                    fits(&Kept {
                        units: units.clone(),
                        partial: Some(partial(part.clone())),
                    })
                });
                part.map(partial)
            });
        Kept { units, partial }
    }

    /// Leaves out what the result may not start with, or end with, on the side that is cut.
    fn choose_far_end(&self, kept: &mut Kept<M>) {
        let roles = match self.trim.strategy {
            TrimStrategy::Last => &self.trim.start_on,
            TrimStrategy::First => &self.trim.end_on,
        };
        if let Some(partial) = &kept.partial
            && is_of(&partial.message, roles)
        {
            return;
        }
        kept.partial = None;
        match self.trim.strategy {
            TrimStrategy::Last => kept.units.start = self.first_start(kept.units.clone()),
            TrimStrategy::First => kept.units.end = self.last_end(kept.units.clone()),
        }
    }

    fn drop_far(&self, kept: &mut Kept<M>) {
        if kept.partial.take().is_some() {
            return;
        }
        match self.trim.strategy {
            TrimStrategy::Last => kept.units.start += 1,
            TrimStrategy::First => kept.units.end -= 1,
        }
    }

    /// Index of the first of these units at which a result may start, or their end.
    fn first_start(&self, units: Range<usize>) -> usize {
        let may = |unit: &usize| {
            let first = self.units.get(*unit).map(|unit| unit.start);
            self.may_be_at_end(first, &self.trim.start_on)
        };
        units.clone().find(may).unwrap_or(units.end)
    }

    /// Index behind the last of these units at which a result may end, or their start.
    fn last_end(&self, units: Range<usize>) -> usize {
        let may = |unit: &usize| {
            let last = self.units.get(*unit).map(|unit| unit.end - 1);
            self.may_be_at_end(last, &self.trim.end_on)
        };
        units
            .clone()
            .rev()
            .find(may)
            .map_or(units.start, |unit| unit + 1)
    }

    fn may_be_at_end(&self, position: Option<usize>, roles: &[Role]) -> bool {
        let message = position.and_then(|position| self.messages.get(position));
        message.is_some_and(|message| is_of(message, roles))
    }

    /// The positions of what is kept whole, without the system message.
    fn run(&self, units: &Range<usize>) -> Range<usize> {
        match self.units.get(units.clone()) {
            Some([first, .., last]) => first.start..last.end,
            Some([unit]) => unit.clone(),
            _ => 0..0,
        }
    }

    /// The kept messages and their positions, in order.
    fn list<'k>(&'k self, kept: &'k Kept<M>) -> (Vec<usize>, Vec<&'k M>) {
        let system = if self.system { 0..1 } else { 0..0 };
        let whole = |positions: Range<usize>| {
            positions.filter_map(|at| self.messages.get(at).map(|message| (at, message)))
        };
        let run = self.run(&kept.units);
        let rest = kept.partial.as_ref().map_or(0..0, |part| part.rest.clone());
        let partial = kept.partial.iter().map(|part| (part.at, &part.message));
        let system = whole(system);
        match self.trim.strategy {
            TrimStrategy::Last => {
                let unit = partial.chain(whole(rest));
                system.chain(unit).chain(whole(run)).unzip()
            }
            TrimStrategy::First => {
                let unit = whole(rest).chain(partial);
                system.chain(whole(run)).chain(unit).unzip()
            }
        }
    }

    fn cost(&self, kept: &Kept<M>) -> u64 {
        let (_, list) = self.list(kept);
        if list.is_empty() {
            return 0;
        }
        (self.counter)(&list)
    }

    fn trimmed(&self, kept: Option<Kept<M>>, shortfall: Option<Shortfall>) -> Trimmed<M> {
        let kept = kept.unwrap_or_else(|| self.whole(0..0));
        let (positions, messages) = self.list(&kept);
        Trimmed {
            positions,
            messages: messages.into_iter().cloned().collect(),
            tokens: self.cost(&kept),
            partial: kept.partial.as_ref().map(|part| part.at),
            shortfall,
        }
    }
}

fn units<M: MessageView>(messages: &[M], policy: GroupingPolicy) -> Vec<Range<usize>> {
    let atoms = atoms(messages, policy);
    atoms.iter().map(|atom| atom.range()).collect()
}

/// Whether the message is of one of these roles, or any if there are none. A user's message with
/// results counts as a tool's, and a note as nobody's.
fn is_of(message: &impl MessageView, roles: &[Role]) -> bool {
    if roles.is_empty() {
        return true;
    }
    let role = match message.role() {
        Role::User => {
            let mut any_result = false;
            results(message, &mut |_| any_result = true);
            if any_result { Role::Tool } else { Role::User }
        }
        role => role,
    };
    !message.is_note() && roles.contains(&role)
}

use std::ops::Range;

use token_estimate::{MessageView, Role};

use crate::atoms;
use crate::message::results;

/// Options of [`trim_to_budget`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trim {
    /// Maximum cost of the kept messages, in tokens as returned by the counter.
    pub max_tokens: u64,
    /// Roles that the first kept message may have, apart from an included system message. Messages before the first one
    /// with a permitted role are left out. A user message with tool results counts as a tool message. An empty list,
    /// the default, permits any role.
    pub start_on: Vec<Role>,
    /// Roles that the last kept message may have. Messages after the last one with a permitted role are left out. An
    /// empty list, the default, permits any role.
    pub end_on: Vec<Role>,
    /// Whether a system message at position 0 is always kept. Default `false`.
    pub include_system: bool,
}

/// The messages that [`trim_to_budget`] kept, with their positions in the original list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trimmed<M> {
    /// The kept messages, in order.
    pub messages: Vec<M>,
    /// Position of each kept message in the original list.
    pub positions: Vec<usize>,
    /// Cost of the kept messages, in tokens as returned by the counter. At most the budget, and 0 if no message was
    /// kept.
    pub tokens: u64,
    /// Reason why no message was kept, or only the system message. `None` if other messages were kept, or if the list
    /// has no others.
    pub shortfall: Option<Shortfall>,
}

/// Reason why [`trim_to_budget`] kept no message, or only the system message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shortfall {
    /// The system message, which must be kept, alone exceeds the budget. No message was kept.
    SystemTooLarge {
        /// Cost of the system message, in tokens.
        tokens: u64,
    },
    /// The latest message or tool group exceeds the budget.
    NothingFits {
        /// Positions of the latest message or tool group.
        messages: Range<usize>,
        /// Cost of these messages together with the included system message, in tokens.
        tokens: u64,
    },
    /// No message that fits the budget has a role in [`Trim::start_on`].
    NoStart,
    /// No message has a role in [`Trim::end_on`].
    NoEnd,
}

/// Returns the latest messages of a list that together cost at most `trim.max_tokens`. The other options of `trim`
/// restrict the first and the last kept message.
///
/// `counter` returns the cost of a list in tokens. Examples: `|list| estimator.messages(list)`, or `|list| list.len()
/// as u64` to keep a number of messages. The counter is called O(log messages) times, with lists that may become the
/// result. The result never exceeds the budget. If the counter returns more for fewer messages, fewer messages may be
/// kept than would fit.
///
/// A tool group (a response with tool calls and the results) is kept or left out as a whole.
pub fn trim_to_budget<M: MessageView + Clone>(
    messages: &[M],
    trim: &Trim,
    counter: impl Fn(&[&M]) -> u64,
) -> Trimmed<M> {
    let is_end = |position: usize, roles: &[Role]| {
        let message = messages.get(position);
        message.is_some_and(|message| is_of(message, roles))
    };
    // Ranges of positions that are kept or left out as a whole.
    let mut units: Vec<Range<usize>> = atoms(messages).iter().map(|atom| atom.range()).collect();
    let had_units = !units.is_empty();
    let ends = |unit: &Range<usize>| is_end(unit.end - 1, &trim.end_on);
    units.truncate(units.iter().rposition(ends).map_or(0, |last| last + 1));
    let no_end = (had_units && units.is_empty()).then_some(Shortfall::NoEnd);
    let is_system = |first: &M| first.role() == Role::System && !first.is_note();
    let system = trim.include_system
        && units.first() == Some(&(0..1))
        && messages.first().is_some_and(is_system);
    if system {
        units.remove(0);
    }
    let run = |from: usize| match units.get(from..) {
        Some([first, .., last]) => first.start..last.end,
        Some([unit]) => unit.clone(),
        _ => 0..0,
    };
    let list = |system: bool, from: usize| -> (Vec<usize>, Vec<&M>) {
        let positions = (0..usize::from(system)).chain(run(from));
        positions
            .filter_map(|at| Some((at, messages.get(at)?)))
            .unzip()
    };
    let cost = |system: bool, from: usize| match list(system, from).1.as_slice() {
        [] => 0,
        list => counter(list),
    };
    let trimmed = |system: bool, from: usize, shortfall| {
        let (positions, kept) = list(system, from);
        Trimmed {
            positions,
            messages: kept.into_iter().cloned().collect(),
            tokens: cost(system, from),
            shortfall,
        }
    };
    let none = units.len();
    let tokens = cost(system, none);
    if tokens > trim.max_tokens {
        return trimmed(false, none, Some(Shortfall::SystemTooLarge { tokens }));
    }
    let Some(newest) = units.last() else {
        return trimmed(system, none, no_end);
    };
    // Index of the first unit of the longest run of units that fits.
    let fits = |from: usize| cost(system, from) <= trim.max_tokens;
    let (mut low, mut high) = (0, none);
    let mut probe = 0;
    while low < high {
        if fits(probe) {
            high = probe;
        } else {
            low = probe + 1;
        }
        probe = low + (high - low) / 2;
    }
    if high == none {
        let tokens = cost(system, none - 1);
        let messages = newest.clone();
        let shortfall = Shortfall::NothingFits { messages, tokens };
        return trimmed(system, none, Some(shortfall));
    }
    let start = |from: usize| {
        let starts = |unit: &usize| {
            let first = units.get(*unit).map_or(usize::MAX, |unit| unit.start);
            is_end(first, &trim.start_on)
        };
        (from..none).find(starts).unwrap_or(none)
    };
    let mut from = start(high);
    // Needed only for a counter that returns more for fewer messages.
    while from < none && !fits(from) {
        from = start(from + 1);
    }
    trimmed(system, from, (from == none).then_some(Shortfall::NoStart))
}

/// Returns whether the message has one of the roles; true if `roles` is empty. A user message with tool results counts
/// as a tool message. A note has no role.
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

//! Assembles a context from a list of messages without a store.

use std::sync::Arc;

use memory_model::{Accounting as _, Hash, LogEntry, Message, Part, Role, Seq};
use token_estimate::TokenEstimator;

use crate::accounting::ContextAccounting;
use crate::assemble::assemble;
use crate::context::{Context, Error};
use crate::input::{AssemblyInput, Item};
use crate::policy::{AssemblyPolicy, Budget};
use crate::preamble::Preamble;

/// Assembles a context from a list of messages, with the default policy and the default estimator. A first message that
/// is a system message with a single text is always included.
///
/// Positions in the receipt count the messages from 1, without this system message.
///
/// ```
/// use context_assembler::{Budget, assemble_messages};
/// use memory_model::Message;
///
/// let mut messages = vec![Message::system("You are a careful engineer.")];
/// messages.extend((1..=100).map(|n| Message::user(format!("Message number {n} of many."))));
/// let context = assemble_messages(&messages, Budget::tokens(400))?;
/// assert!(context.tokens <= 400);
/// assert_eq!(context.to_messages()[0], messages[0]);
/// assert_eq!(context.to_messages().last(), messages.last());
/// # Ok::<(), context_assembler::Error>(())
/// ```
///
/// # Errors
/// `BudgetTooSmall` if the system message and the latest group of messages exceed the budget: see
/// [`assemble`](fn@crate::assemble).
pub fn assemble_messages(messages: &[Message], budget: Budget) -> Result<Context, Error> {
    assemble_messages_with(
        messages,
        budget,
        &AssemblyPolicy::default(),
        token_estimate::default_estimator(),
    )
}

/// Assembles a context from a list of messages, like [`assemble_messages`], but with the given policy and estimator.
///
/// # Errors
/// The errors of [`assemble_messages`].
pub fn assemble_messages_with(
    messages: &[Message],
    budget: Budget,
    policy: &AssemblyPolicy,
    estimator: Arc<dyn TokenEstimator>,
) -> Result<Context, Error> {
    let accounting = ContextAccounting::new(estimator);
    let (system, messages) = match messages.split_first() {
        Some((first, rest)) => match (first.role, first.parts.as_slice()) {
            (Role::System, [Part::Text { text }]) => (Some(text.as_str()), rest),
            _ => (None, messages),
        },
        None => (None, messages),
    };
    let mut running: u64 = 0;
    let mut entries = Vec::with_capacity(messages.len());
    for (message, seq) in messages.iter().zip(1..) {
        let tokens = accounting.message(message);
        running = running.saturating_add(tokens);
        entries.push(LogEntry {
            seq: Seq(seq),
            message: message.clone(),
            tokens,
            running,
            // The assembly does not use the hash.
            hash: Hash::ZERO,
        });
    }
    let asks = |entry: &&LogEntry| {
        let mut parts = entry.parts.iter();
        entry.role == Role::User && parts.any(|part| matches!(part, Part::Text { .. }))
    };
    let request = entries.iter().rfind(asks).map(|entry| entry.seq);
    let input = AssemblyInput {
        view_tokens: running,
        below: Vec::new(),
        requested: request.into_iter().collect(),
        items: vec![Item::Raw(entries)],
        state: None,
        remarks: Vec::new(),
    };
    let preamble = Preamble {
        system,
        ..Preamble::default()
    };
    assemble(&input, &preamble, budget, policy, &accounting)
}

//! `context-assembler`: selects the latest messages that fit a budget.

use context_assembler::{Budget, assemble_messages};
use memory_model::Message;

pub(crate) fn run() -> crate::Result<String> {
    let mut messages = vec![Message::system("You are a careful engineer.")];
    messages.extend((1..=200).map(|n| Message::user(format!("Message number {n} of many."))));
    let context = assemble_messages(&messages, Budget::tokens(500))?;
    assert!(context.tokens <= 500);
    assert_eq!(context.to_messages().first(), messages.first());
    Ok(format!(
        "{} of {} messages, {} tokens",
        context.messages.len(),
        messages.len(),
        context.tokens
    ))
}

//! Assembled contexts as rig's messages.

use std::collections::HashMap;

use agent_memory::{
    Context, Session,
    context::{ContextMessage, MessageOrigin},
};
use agent_memory::{Seq, SeqRange};
use rig_core::completion::message::{Message as RigMessage, UserContent};

use crate::kept::Kept;
use crate::messages::message_to_rig;

/// Returns rig's messages for a context that the session assembled. Neighbouring messages of tool results become one.
///
/// What [`from_rig`](crate::from_rig) kept of messages that the context shows verbatim is put back: their log entries
/// are read for it. rig sends a provider's own items back from there, such as signed reasoning.
///
/// # Errors
/// When the store fails.
pub async fn context_to_rig(
    session: &Session,
    context: &Context,
) -> agent_memory::Result<Vec<RigMessage>> {
    let mut kept = HashMap::new();
    for range in verbatim_ranges(&context.messages) {
        let mut next = Some(range);
        while let Some(range) = next {
            let page = session.entries_in(range).await?;
            for entry in page.items {
                kept.insert(entry.seq, Kept::read(entry.message.meta.as_ref()));
            }
            next = page.next;
        }
    }
    let nothing = Kept::default();
    let mut names = HashMap::new();
    let mut messages: Vec<RigMessage> = Vec::with_capacity(context.messages.len());
    for one in &context.messages {
        let kept = position(&one.source).and_then(|seq| kept.get(&seq));
        let message = message_to_rig(
            one.role,
            one.name.as_deref(),
            &one.parts,
            kept.unwrap_or(&nothing),
            &mut names,
        );
        match (messages.last_mut(), message) {
            (Some(RigMessage::User { content: last }), RigMessage::User { content })
                if are_results(last) && are_results(&content) =>
            {
                last.extend(content);
            }
            (_, message) => messages.push(message),
        }
    }
    Ok(messages)
}

fn are_results(content: &[UserContent]) -> bool {
    let mut blocks = content.iter();
    !content.is_empty() && blocks.all(|block| matches!(block, UserContent::ToolResult(_)))
}

/// Returns the position of the one log entry that a message of a context is; `None` for anything else.
fn position(source: &MessageOrigin) -> Option<Seq> {
    match source {
        MessageOrigin::Message { first, last } | MessageOrigin::Trimmed { first, last }
            if first == last =>
        {
            Some(*first)
        }
        _ => None,
    }
}

/// Returns the ranges of neighbouring log entries that a context shows.
fn verbatim_ranges(messages: &[ContextMessage]) -> Vec<SeqRange> {
    let positions = messages.iter().map(|message| position(&message.source));
    let mut positions: Vec<Seq> = positions.flatten().collect();
    positions.sort_unstable();
    let mut ranges: Vec<(Seq, Seq)> = Vec::new();
    for seq in positions {
        match ranges.last_mut() {
            Some((_, last)) if seq <= last.next() => *last = seq,
            _ => ranges.push((seq, seq)),
        }
    }
    let ranges = ranges.into_iter();
    ranges
        .filter_map(|(first, last)| SeqRange::new(first, last))
        .collect()
}

//! A model of a store with the simplest rules, with which a store's answers are compared.

use std::collections::BTreeMap;

use memory_model::{ConversationId, Message, Span, SpanBody};
use memory_store::Erased;

/// Text of an erased message in [`Simple`].
pub(super) const GONE: &str = "(gone)";

/// Expected content of logs and views, by the simplest rules.
#[derive(Debug, Default)]
pub(super) struct Simple {
    /// Visible messages of each conversation, in order: their external ids and texts.
    pub(super) logs: BTreeMap<ConversationId, Vec<(Option<String>, String)>>,
    /// For each view of a conversation, the span body that each position has, from position 1. Positions beyond the end
    /// of the list are raw.
    pub(super) views: BTreeMap<(ConversationId, String), Vec<SpanBody>>,
}

impl Simple {
    pub(super) fn appended(&mut self, chat: ConversationId, messages: &[Message]) {
        let log = self.logs.entry(chat).or_default();
        for message in messages {
            let id = message.external_id.clone();
            if id.is_none() || log.iter().all(|(known, _)| *known != id) {
                log.push((id, message.text()));
            }
        }
    }

    pub(super) fn erased(&mut self, erased: &Erased) {
        for seen in &erased.seen_by {
            let log = self.logs.entry(seen.conversation).or_default();
            let (first, last) = (seen.range.first.0 as usize, seen.range.last.0 as usize);
            for (_, text) in &mut log[first - 1..last] {
                GONE.clone_into(text);
            }
        }
    }

    pub(super) fn published(&mut self, chat: ConversationId, view: &str, spans: &[Span]) {
        let bodies = self.views.entry((chat, view.to_owned())).or_default();
        for span in spans {
            let at = span.closed_range().expect("published spans are closed");
            bodies.resize(bodies.len().max(at.last.0 as usize), SpanBody::Raw);
            for body in &mut bodies[at.first.0 as usize - 1..at.last.0 as usize] {
                *body = span.body.clone();
            }
        }
    }
}

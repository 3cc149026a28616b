//! The beginning of a context that the next context repeats, so that a provider's prompt cache can reuse it.

use std::collections::VecDeque;

use context_assembler::{Context, ContextMessage, MessageOrigin};
use memory_model::Seq;
use serde::Serialize;

/// Tokens of contexts that the next context repeats at its beginning, so that a provider's prompt cache can reuse them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reuse {
    /// Number of tokens that the next context repeats at its beginning.
    pub kept: u64,
    /// Cost of all contexts that were followed by another context, in tokens.
    pub of: u64,
}

impl Reuse {
    /// Returns the reused share of the tokens, from 0 to 1; 1 if no context was followed by another.
    pub fn share(&self) -> f64 {
        match self.of {
            0 => 1.0,
            of => self.kept as f64 / of as f64,
        }
    }

    /// Adds the tokens of another measurement to this one.
    pub fn add(&mut self, other: Reuse) {
        self.kept += other.kept;
        self.of += other.of;
    }
}

/// Baseline without compaction: a context that is filled with the last messages.
#[derive(Debug, Default)]
pub(super) struct NewestFirst {
    /// Costs of the messages, in tokens.
    messages: VecDeque<u64>,
    tokens: u64,
}

impl NewestFirst {
    /// Adds a message, and drops the oldest messages until the context costs at most `limit` tokens. Returns the reuse
    /// of the context before.
    pub(super) fn next(&mut self, tokens: u64, limit: u64) -> Reuse {
        let mut reuse = Reuse {
            kept: self.tokens,
            of: self.tokens,
        };
        self.messages.push_back(tokens);
        self.tokens += tokens;
        while self.tokens > limit
            && let Some(oldest) = self.messages.pop_front()
        {
            self.tokens -= oldest;
            reuse.kept = 0;
        }
        reuse
    }
}

/// Tokens of contexts that the next context does not repeat, by the cause of the difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Breaks {
    /// Tokens after the position at which the next context leaves out or shortens the oldest part to fit the budget.
    pub stepped: u64,
    /// Tokens after the position of a group of messages that the next context shortens, or shortens differently, to
    /// fit the budget.
    pub shortened: u64,
    /// Tokens after the position at which the next context adds messages to the last group of messages.
    pub growing: u64,
}

/// Context that was assembled after the previous replayed message.
#[derive(Debug, Default)]
pub(super) struct Previous {
    messages: Vec<ContextMessage>,
    stepped_tokens: u64,
}

/// The reused tokens of one context, and the cause of the first difference in the next context.
#[derive(Debug)]
pub(super) struct Reused {
    pub(super) reuse: Reuse,
    cause: Option<Cause>,
}

#[derive(Debug)]
enum Cause {
    Stepped,
    Shortened,
    Growing,
}

impl Previous {
    /// Compares a context with the previous context, and stores it as the previous one.
    pub(super) fn next(&mut self, context: &Context) -> Reused {
        let same = self
            .messages
            .iter()
            .zip(&context.messages)
            .take_while(|(a, b)| a.role == b.role && a.name == b.name && a.parts == b.parts)
            .count();
        let tokens = |messages: &[ContextMessage]| messages.iter().map(|m| m.tokens).sum();
        let reuse = Reuse {
            kept: tokens(self.messages.get(..same).unwrap_or_default()),
            of: tokens(&self.messages),
        };
        let stepped = self.stepped_tokens != context.receipt.stepped_tokens;
        let newest = self.messages.last().and_then(|m| m.source.range());
        let cause = self.messages.get(same).map(|was| {
            let first = |m: &ContextMessage| m.source.range().map_or(Seq::NONE, |r| r.first);
            let trimmed = |m: &ContextMessage| matches!(m.source, MessageOrigin::Trimmed { .. });
            // The last group of the previous context continues.
            let grows = newest.is_some_and(|newest| first(was) >= newest.first);
            match context.messages.get(same) {
                Some(_) if stepped && !grows => Cause::Stepped,
                Some(is) if trimmed(is) || trimmed(was) => Cause::Shortened,
                _ => Cause::Growing,
            }
        });
        self.messages.clone_from(&context.messages);
        self.stepped_tokens = context.receipt.stepped_tokens;
        Reused { reuse, cause }
    }
}

impl Reused {
    /// Adds the tokens that were not reused to the count of their cause.
    pub(super) fn blame(&self, breaks: &mut Breaks) {
        let lost = self.reuse.of - self.reuse.kept;
        match self.cause {
            Some(Cause::Stepped) => breaks.stepped += lost,
            Some(Cause::Shortened) => breaks.shortened += lost,
            Some(Cause::Growing) => breaks.growing += lost,
            None => {}
        }
    }
}

//! The state of a conversation, as its summaries tell it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use context_assembler::{AssemblyInput, AssemblyPolicy, Item};
use extractive_summarizer::{Source, overtaken, state};
use memory_model::{Accounting, ConversationId, Seq, ViewVersion};
use memory_store::Snapshot;

use crate::session::Session;

/// Part of the room that the state may cost, and most tokens of it.
const SHARE: u64 = 6;
const MOST: u64 = 600;
/// Part of the room whose newest messages the state does not repeat.
const SHOWN: u64 = 4;
/// Tokens below which a state says too little.
const LEAST: u64 = 60;

/// Number of sessions whose states are remembered.
const REMEMBERED: usize = 256;

/// Everything that the state in contexts of a live session depends on: version of its view, number of erasures, and most
/// tokens.
type Key = (ViewVersion, u64, u64);

/// The states of the sessions in use.
#[derive(Debug, Default)]
pub(crate) struct States(Mutex<BTreeMap<ConversationId, (Key, Option<String>)>>);

impl States {
    fn get(&self, id: ConversationId, key: Key) -> Option<Option<String>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, state) = all.get(&id)?;
        (*of == key).then(|| state.clone())
    }

    fn remember(&self, id: ConversationId, key: Key, state: Option<String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED && !all.contains_key(&id) {
            all.clear();
        }
        all.insert(id, (key, state));
    }
}

impl Session {
    /// Returns the state for a context with `room` tokens. Contexts of a live session take it from the summaries alone, so
    /// that it stays as it is until others are published; a context that stands for itself takes it from all that was read.
    pub(crate) fn state(
        &self,
        snapshot: &Snapshot,
        room: u64,
        policy: &AssemblyPolicy,
        input: &AssemblyInput,
    ) -> Option<String> {
        let most = (room / SHARE).min(MOST);
        let is_summary = |item: &Item| matches!(item, Item::Summary(_));
        let is_complete = snapshot.log_tokens <= room;
        if most < LEAST || is_complete || !input.items.iter().any(is_summary) {
            return None;
        }
        if policy.steps == 0 {
            let end = snapshot.log_tokens.saturating_sub(room / SHOWN);
            return self.state_of(input, Some(end), most);
        }
        let states = &self.memory().inner.states;
        let key = (snapshot.version, snapshot.erasures, most);
        states.get(self.id(), key).unwrap_or_else(|| {
            let state = self.state_of(input, None, most);
            states.remember(self.id(), key, state.clone());
            state
        })
    }

    /// Marks in summaries what later messages replace.
    pub(crate) fn mark_overtaken(&self, input: &mut AssemblyInput) {
        let conventions = &*self.memory().inner.conventions;
        for overtaken in overtaken(&pieces(input, true), conventions) {
            for item in &mut input.items {
                if let Item::Summary(summary) = item
                    && summary.range.contains(overtaken.seq)
                    && let Some(body) = overtaken.mark(&summary.body)
                {
                    summary.body = body;
                }
            }
        }
    }

    /// Returns the state that the summaries tell, and with `end` the messages of the first so many tokens of the log.
    fn state_of(&self, input: &AssemblyInput, end: Option<u64>, most: u64) -> Option<String> {
        let pieces = pieces(input, end.is_some());
        let is_shown = |piece: &&Source<'_>| match piece {
            Source::Message(entry) => end.is_some_and(|end| entry.running > end),
            Source::Summary(_) => false,
        };
        let newest = pieces.iter().filter(is_shown);
        let newest = newest.map(|piece| piece.range().first);
        let requested = input.requested.iter().copied().filter(|_| end.is_some());
        let shown: Vec<Seq> = requested.chain(newest).collect();
        let conventions = &*self.memory().inner.conventions;
        state(
            &pieces,
            &shown,
            conventions,
            most,
            self.accounting().estimator(),
        )
    }
}

/// The summaries of a view, and its messages.
fn pieces(input: &AssemblyInput, with_messages: bool) -> Vec<Source<'_>> {
    let mut pieces: Vec<Source<'_>> = Vec::new();
    for item in &input.items {
        match item {
            Item::Summary(summary) => pieces.push(Source::from(&**summary)),
            Item::Raw(entries) | Item::Trimmed(_, entries, _) if with_messages => {
                pieces.extend(entries.iter().map(Source::from));
            }
            _ => {}
        }
    }
    pieces
}

//! The state of a conversation: its current rules, tasks and facts, derived from its summaries and messages.

use context_assembler::{AssemblyInput, AssemblyPolicy, Budget, Item, Preamble, Remark};
use extractive_summarizer::{ConversationState, Overtaken, Source};
use memory_model::conventions::AgentConventions;
use memory_model::{Accounting, LogEntry, Seq};
use memory_store::Snapshot;

use crate::assembly_input::{read_hidden_beginning, unfolded};
use crate::error::Result;
use crate::history::ViewAtVersion;
use crate::session::Session;

/// Divisor of the room. The state may cost this part of the room, but at most [`MOST`] tokens.
const SHARE: u64 = 6;
const MOST: u64 = 600;
/// Divisor of the room. The state does not repeat the last messages that cost this part of the room.
const SHOWN: u64 = 10;
/// Minimum room for a state, in tokens. With less room, no state is added.
const LEAST: u64 = 60;

/// Maximum cost of the marks around a remark, in tokens.
const MARKS: u64 = 8;

/// Room for the messages from which a state is read, in tokens. The rest is read from summaries.
const READ: u64 = 32_000;

impl ViewAtVersion {
    /// Returns the state of the conversation as text of at most `max_tokens` tokens: the first request, the user's rules
    /// in their latest form, the last requests and answers, tasks, changed files, and commands that fail. `None` if the
    /// state is empty or no line fits.
    ///
    /// The state is read from the view's summaries and from the messages after them, without a model.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn state(&self, max_tokens: u64) -> Result<Option<String>> {
        let (session, snapshot) = (self.session(), self.snapshot());
        let budget = session.scaled(Budget::tokens(READ)).await?;
        let preamble = Preamble::default();
        let policy = AssemblyPolicy::once();
        let input = session.input(snapshot, &preamble, budget, &policy).await?;
        let memory = &session.memory().inner;
        let beginning = read_hidden_beginning(&*memory.store, snapshot, &input).await?;
        let mut pieces = pieces(&input, true);
        pieces.splice(..0, beginning.iter().map(Source::from));
        let state = ConversationState::of(&pieces, &*memory.conventions);
        Ok(state.card(max_tokens, session.accounting().estimator()))
    }
}

impl Session {
    /// Adds the state to the input of a context with `room` tokens for the view, and marks sentences that later
    /// messages replace.
    ///
    /// The summaries of a live session stay unchanged, for a provider's prompt cache. The state of a live session is
    /// the list of changed rules, and stays the same until other summaries are published. `beginning` has the first
    /// messages of the log if the input does not have them.
    pub(crate) fn add_state(
        &self,
        snapshot: &Snapshot,
        room: u64,
        policy: &AssemblyPolicy,
        beginning: &[LogEntry],
        input: &mut AssemblyInput,
    ) {
        let most = (room / SHARE).min(MOST);
        let is_summary = |item: &Item| matches!(item, Item::Summary(_));
        let conventions = &*self.memory().inner.conventions;
        let estimator = self.accounting().estimator();
        if snapshot.log_tokens <= room {
            if policy.steps == 0 {
                // The context shows the whole log in any case.
                let mut left = room - snapshot.log_tokens;
                let mut remarks = remarks(input, conventions);
                remarks.retain(|remark| {
                    let rest = left.checked_sub(estimator.text(&remark.text) + MARKS);
                    rest.inspect(|rest| left = *rest).is_some()
                });
                input.remarks = remarks;
            }
            return;
        }
        let is_whole = beginning.is_empty() && !input.items.iter().any(is_summary);
        if is_whole || (most < LEAST && policy.steps > 0) {
            return;
        }
        if policy.steps > 0 {
            let states = &self.memory().inner.states;
            let key = (snapshot.version, snapshot.erasures, most);
            let known = states.lock().get(&self.id()).cloned();
            input.state = match known {
                Some((of, text)) if of == key => text,
                _ => {
                    let state = ConversationState::of(&pieces(input, false), conventions);
                    let text = state.new_rules(most, estimator);
                    states.remember(self.id(), (key, text.clone()));
                    text
                }
            };
            return;
        }
        let mut pieces = pieces(input, true);
        pieces.splice(..0, beginning.iter().map(Source::from));
        let state = ConversationState::of(&pieces, conventions);
        let end = snapshot.log_tokens.saturating_sub(room / SHOWN);
        let newest = pieces.iter().filter_map(|piece| match piece {
            Source::Message(entry) if entry.running > end => Some(entry.seq),
            _ => None,
        });
        let shown: Vec<Seq> = input.requested.iter().copied().chain(newest).collect();
        // Marks are useful even if there is too little room for the state.
        let text = (most >= LEAST).then(|| state.text(&shown, most, estimator));
        input.remarks = remarks(input, conventions);
        for overtaken in state.overtaken() {
            mark(input, overtaken);
        }
        input.state = text.flatten();
    }
}

/// Returns remarks for sentences of messages that later messages replace.
fn remarks(input: &AssemblyInput, conventions: &dyn AgentConventions) -> Vec<Remark> {
    let messages = input.items.iter().filter_map(|item| match item {
        Item::Raw(entries) | Item::Trimmed(_, entries, _) | Item::Quoted(entries) => Some(entries),
        _ => None,
    });
    let messages: Vec<Source<'_>> = messages.flatten().map(Source::from).collect();
    let state = ConversationState::of(&messages, conventions);
    let remarks = state.overtaken().iter().map(|overtaken| Remark {
        seq: overtaken.seq,
        behind: overtaken.sentence.clone(),
        text: overtaken.note(),
    });
    remarks.collect()
}

/// Marks a sentence as replaced by a later message, in the summary that covers the sentence's message.
fn mark(input: &mut AssemblyInput, overtaken: &Overtaken) {
    let summaries = input.items.iter_mut().filter_map(|item| match item {
        Item::Summary(summary) => Some(&mut **summary),
        _ => None,
    });
    let summaries = summaries.chain(&mut input.below);
    for summary in summaries.filter(|summary| summary.range.contains(overtaken.seq)) {
        if let Some(body) = overtaken.mark(&summary.body) {
            summary.body = body;
        }
    }
}

/// Returns the summaries of a view, and its messages if `with_messages`.
fn pieces(input: &AssemblyInput, with_messages: bool) -> Vec<Source<'_>> {
    let unfolded = unfolded(input);
    let mut pieces: Vec<Source<'_>> = Vec::new();
    for item in &input.items {
        match item {
            Item::Summary(summary) => {
                let of_item = unfolded.iter().map(|(it, _)| *it);
                let of_item = of_item.filter(|it| summary.range.contains(it.range.first));
                pieces.extend(of_item.map(Source::from));
            }
            Item::Raw(entries) | Item::Trimmed(_, entries, _) if with_messages => {
                pieces.extend(entries.iter().map(Source::from));
            }
            _ => {}
        }
    }
    pieces
}

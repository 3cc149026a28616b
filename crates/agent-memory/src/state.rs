//! The state of a conversation in a context, and marks at sentences that later messages replace.

use context_assembler::{AssemblyInput, AssemblyPolicy, Form, Item, Remark};
use extractive_summarizer::{Overtaken, Source, overtaken};
use memory_model::conventions::AgentConventions;
use memory_model::{Accounting, LogEntry, Seq};
use memory_store::Snapshot;

use crate::assembly_input::unfolded;
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

impl ViewAtVersion {
    /// Returns the state of the conversation as text of at most `max_tokens` tokens: the first request, the user's rules
    /// in their latest form, the last requests and answers, tasks, changed files, and commands that fail. `None` if the
    /// state is empty or no line fits.
    ///
    /// The state is read from the messages alone, without a model: it is the same whoever wrote the view's summaries.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn state(&self, max_tokens: u64) -> Result<Option<String>> {
        let (session, snapshot) = (self.session(), self.snapshot());
        let state = session.state_after(snapshot, snapshot.head).await?;
        Ok(state.card(max_tokens, session.accounting().estimator()))
    }
}

impl Session {
    /// Adds the state to the input of a context with `room` tokens for the view, and marks sentences that later messages
    /// replace. The state may cost a share of `of_state` tokens.
    ///
    /// The summaries of a live session stay unchanged, for a provider's prompt cache. The state of a live session is
    /// the list of the user's rules in the summarized messages, and stays the same until other summaries are published.
    pub(crate) async fn add_state(
        &self,
        snapshot: &Snapshot,
        (room, of_state): (u64, u64),
        policy: &AssemblyPolicy,
        input: &mut AssemblyInput,
    ) -> Result<()> {
        let most = (of_state / SHARE).min(MOST);
        let conventions = &*self.memory().inner.conventions;
        let estimator = self.accounting().estimator();
        if snapshot.log_tokens <= room {
            if policy.form == Form::Once {
                // The context shows the whole log in any case.
                let mut left = room - snapshot.log_tokens;
                let mut remarks = remarks(input, conventions);
                remarks.retain(|remark| {
                    let rest = left.checked_sub(estimator.text(&remark.text) + MARKS);
                    rest.inspect(|rest| left = *rest).is_some()
                });
                input.remarks = remarks;
            }
            return Ok(());
        }
        let summarized = input.items.iter().rev().find_map(|item| match item {
            Item::Summary(summary) => Some(summary.range.last),
            _ => None,
        });
        if policy.form.is_live() {
            if let Some(summarized) = summarized.filter(|_| most >= LEAST) {
                input.state = self.live_state(snapshot, summarized, most).await?;
            }
            return Ok(());
        }
        let hides = |item: &Item| matches!(item, Item::Omitted(_) | Item::Unread(..));
        if summarized.is_none() && !input.items.first().is_some_and(hides) {
            return Ok(());
        }
        // Marks are useful even if there is too little room for the state.
        if most >= LEAST {
            let state = self.state_after(snapshot, snapshot.head).await?;
            let end = snapshot.log_tokens.saturating_sub(of_state / SHOWN);
            let newest = messages(input).filter(|entry| entry.running > end);
            let newest = newest.map(|entry| entry.seq);
            let shown: Vec<Seq> = input.requested.iter().copied().chain(newest).collect();
            let summarized = summarized.unwrap_or(Seq::NONE);
            input.state = state.text(summarized, &shown, most, estimator);
        }
        let replaced = overtaken(&pieces(input), conventions);
        input.remarks = remarks(input, conventions);
        for overtaken in &replaced {
            mark(input, overtaken);
        }
        Ok(())
    }

    /// Returns the state of a live session with summaries up to the position `summarized`.
    async fn live_state(
        &self,
        snapshot: &Snapshot,
        summarized: Seq,
        most: u64,
    ) -> Result<Option<String>> {
        let states = &self.memory().inner.states;
        let key = (snapshot.version, snapshot.erasures, most);
        let known = states.lock().get(&self.id()).cloned();
        if let Some((_, text)) = known.filter(|(of, _)| *of == key) {
            return Ok(text);
        }
        let state = self.state_after(snapshot, summarized).await?;
        let text = state.rules_text(most, self.accounting().estimator());
        states.remember(self.id(), (key, text.clone()));
        Ok(text)
    }
}

/// Returns the messages of an input that are not in its summaries.
fn messages(input: &AssemblyInput) -> impl Iterator<Item = &LogEntry> {
    let messages = input.items.iter().filter_map(|item| match item {
        Item::Raw(entries) | Item::Trimmed(_, entries, _) => Some(entries),
        _ => None,
    });
    messages.flatten()
}

/// Returns remarks for sentences of messages that later messages replace.
fn remarks(input: &AssemblyInput, conventions: &dyn AgentConventions) -> Vec<Remark> {
    let messages = input.items.iter().filter_map(|item| match item {
        Item::Raw(entries) | Item::Trimmed(_, entries, _) | Item::Quoted(entries) => Some(entries),
        _ => None,
    });
    let messages: Vec<Source<'_>> = messages.flatten().map(Source::from).collect();
    let remarks = overtaken(&messages, conventions).into_iter();
    let remarks = remarks.map(|overtaken| Remark {
        seq: overtaken.seq,
        text: overtaken.note(),
        behind: overtaken.sentence,
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

/// Returns the summaries of a view, and its messages.
fn pieces(input: &AssemblyInput) -> Vec<Source<'_>> {
    let unfolded = unfolded(input);
    let mut pieces: Vec<Source<'_>> = Vec::new();
    for item in &input.items {
        match item {
            Item::Summary(summary) => {
                let of_item = unfolded.iter().map(|(it, _)| *it);
                let of_item = of_item.filter(|it| summary.range.contains(it.range.first));
                pieces.extend(of_item.map(Source::from));
            }
            Item::Raw(entries) | Item::Trimmed(_, entries, _) => {
                pieces.extend(entries.iter().map(Source::from));
            }
            _ => {}
        }
    }
    pieces
}

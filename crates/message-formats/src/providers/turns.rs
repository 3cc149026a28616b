//! Turns of two speakers who alternate, as Anthropic and Gemini demand.

use memory_model::{Message, Part, Role};
use serde_json::Value;

use super::fields::Facts;

/// Text of the user's message that is put before a list which starts with the assistant's.
pub const CONTINUED: &str = "(The conversation continues.)";

/// Speaker of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Model,
}

/// Turns in order; neighbours of one speaker are one turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    closed: Vec<(Speaker, Turn)>,
    open: Option<(Speaker, Turn)>,
}

#[derive(Debug, Default)]
struct Turn {
    /// Results of tools, which come first.
    results: Vec<Value>,
    others: Vec<Value>,
}

impl Turns {
    /// Adds results of tools to the user's turn.
    pub(super) fn results(&mut self, results: Vec<Value>) {
        if !results.is_empty() {
            self.turn(Speaker::User).results.extend(results);
        }
    }

    /// Adds content to a speaker's turn.
    pub(super) fn content(&mut self, speaker: Speaker, content: Vec<Value>) {
        if !content.is_empty() {
            self.turn(speaker).others.extend(content);
        }
    }

    fn turn(&mut self, speaker: Speaker) -> &mut Turn {
        if self.open.as_ref().is_some_and(|(last, _)| *last != speaker) {
            self.closed.extend(self.open.take());
        }
        let (_, turn) = self.open.get_or_insert_with(|| (speaker, Turn::default()));
        turn
    }

    /// Returns the turns' contents. A user's turn of `continued` is put first where the model's would be.
    pub(super) fn finish(self, continued: Value) -> Vec<(Speaker, Vec<Value>)> {
        let mut turns = self
            .closed
            .into_iter()
            .chain(self.open)
            .map(|(speaker, turn)| {
                let mut content = turn.results;
                content.extend(turn.others);
                (speaker, content)
            })
            .peekable();
        let model_first = turns
            .peek()
            .is_some_and(|(speaker, _)| *speaker == Speaker::Model);
        let first = model_first.then(|| (Speaker::User, vec![continued]));
        first.into_iter().chain(turns).collect()
    }
}

/// Returns a system text in the midst of a conversation, where only users and models speak.
pub(super) fn system_text(text: &str) -> String {
    format!("<system>\n{text}\n</system>")
}

/// Returns a text with the name of the participant who says it, for providers without a field for it.
pub(super) fn said_by(name: Option<&str>, text: &str) -> String {
    match name {
        Some(name) => format!("{name}: {text}"),
        None => text.to_owned(),
    }
}

/// Splits a user's content into its results and its words.
pub(super) fn split_results(parts: Vec<Part>, facts: Facts) -> Vec<Message> {
    let (results, others): (Vec<Part>, Vec<Part>) = parts
        .into_iter()
        .partition(|part| matches!(part, Part::ToolResult { .. }));
    let of = |role: Role, parts: Vec<Part>| (!parts.is_empty()).then(|| Message::new(role, parts));
    let results = of(Role::Tool, results);
    let mut messages: Vec<Message> = results.into_iter().chain(of(Role::User, others)).collect();
    if let Some(last) = messages.last_mut() {
        last.meta = facts.finish();
    }
    messages
}

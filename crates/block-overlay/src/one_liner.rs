//! One line for a turn, made without a model.

use serde::{Deserialize, Serialize};
use turn_map::{MessageView, Role};

use crate::message::{facts, push_text};

/// Beginning of every message that stands for older ones.
pub const SUMMARY_PREFIX: &str = "[Summary] ";

/// Maximum length of the words of one speaker in a one-liner, in bytes.
pub const ONE_LINER_BYTES: usize = 200;

/// Rule that decides what a turn becomes when it is compacted without a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OneLiners {
    /// One line a turn, the user's words included. The default.
    #[default]
    Turn,
    /// One line a message of the assistant: what the user said in these turns is not shown. The preset
    /// phi-core.
    AssistantMessages,
}

/// Returns what stands for a message of the assistant: its text, at most [`ONE_LINER_BYTES`] bytes
/// of it, else `[Assistant used N tool(s)]`, else `[Assistant response]`. `None` for other messages.
///
/// ```
/// use memory_model::{Message, RawJson};
///
/// let call = Message::tool_call("c1", "read", RawJson::parse("{}").unwrap());
/// let line = block_overlay::one_liner(&call);
/// assert_eq!(line.as_deref(), Some("[Assistant used 1 tool(s)]"));
/// ```
pub fn one_liner(message: &impl MessageView) -> Option<String> {
    let is_assistant = message.role() == Role::Assistant && !message.is_note();
    is_assistant.then(|| {
        let facts = facts(message, ONE_LINER_BYTES);
        assistant_line(facts.text, facts.calls)
    })
}

fn assistant_line(text: String, calls: usize) -> String {
    match (text.is_empty(), calls) {
        (false, _) => cut(text),
        (true, 0) => "[Assistant response]".to_owned(),
        (true, calls) => format!("[Assistant used {calls} tool(s)]"),
    }
}

/// The text, cut between characters to [`ONE_LINER_BYTES`] bytes.
fn cut(mut text: String) -> String {
    if text.len() > ONE_LINER_BYTES {
        let mark = '…';
        let mut end = ONE_LINER_BYTES - mark.len_utf8();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push(mark);
    }
    text
}

/// The lines of one turn, collected message by message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TurnLines {
    user: String,
    system: String,
    assistant: String,
    calls: usize,
    results: usize,
    answered: bool,
    /// A line for each message of the assistant.
    each: Vec<String>,
}

impl TurnLines {
    pub(crate) fn push(&mut self, message: &impl MessageView) {
        if message.is_note() {
            return;
        }
        let facts = facts(message, ONE_LINER_BYTES);
        let speaker = match message.role() {
            Role::Assistant => {
                self.answered = true;
                self.calls += facts.calls;
                self.each.extend(one_liner(message));
                &mut self.assistant
            }
            Role::System => &mut self.system,
            Role::User if facts.results == 0 => &mut self.user,
            _ => {
                self.results += facts.results;
                return;
            }
        };
        push_text(speaker, &facts.text, ONE_LINER_BYTES);
    }

    /// The lines that stand for the turn, each with its prefix; none for a turn of notes alone.
    pub(crate) fn lines(self, rule: OneLiners) -> Vec<String> {
        let lines = match rule {
            OneLiners::AssistantMessages => self.each,
            OneLiners::Turn => self.whole().into_iter().collect(),
        };
        let prefixed = |line: String| format!("{SUMMARY_PREFIX}{line}");
        lines.into_iter().map(prefixed).collect()
    }

    fn whole(self) -> Option<String> {
        let mut said = Vec::new();
        for (who, text) in [("System", self.system), ("User", self.user)] {
            if !text.is_empty() {
                said.push(format!("{who}: {}", cut(text)));
            }
        }
        match (self.answered, self.results) {
            (true, _) => said.push(assistant_line(self.assistant, self.calls)),
            (false, 0) => {}
            (false, results) if said.is_empty() => said.push(format!("[{results} tool result(s)]")),
            (false, _) => {}
        }
        (!said.is_empty()).then(|| said.join(" → "))
    }
}

/// Number of leading turns whose lines fit: all of them, or the most that cost at most `budget` tokens
/// together with the `reserve` for a marker of the others.
pub(crate) fn turns_that_fit(costs: &[u64], budget: u64, reserve: u64) -> usize {
    let sums = costs.iter().scan(0, |sum: &mut u64, cost| {
        *sum = sum.saturating_add(*cost);
        Some(*sum)
    });
    let total = sums.clone().last().unwrap_or(0);
    let limit = budget.saturating_sub(if total <= budget { 0 } else { reserve });
    sums.take_while(|sum| *sum <= limit).count()
}

#[cfg(test)]
mod tests {
    use memory_model::{Message, RawJson};

    use super::*;

    fn lines(messages: &[Message], rule: OneLiners) -> Vec<String> {
        let mut turn = TurnLines::default();
        messages.iter().for_each(|message| turn.push(message));
        turn.lines(rule)
    }

    #[test]
    fn a_turn_is_one_line_with_the_words_of_both() {
        let call = Message::tool_call("c", "read", RawJson::parse("{}").unwrap());
        let turn = [
            Message::user("Read\n it."),
            call,
            Message::tool_result("c", "a long text"),
            Message::assistant("Done."),
        ];
        let whole = ["[Summary] User: Read it. → Done."];
        assert_eq!(lines(&turn, OneLiners::Turn), whole);
        let each = ["[Summary] [Assistant used 1 tool(s)]", "[Summary] Done."];
        assert_eq!(lines(&turn, OneLiners::AssistantMessages), each);
        assert_eq!(
            lines(&turn[..3], OneLiners::Turn),
            ["[Summary] User: Read it. → [Assistant used 1 tool(s)]"]
        );
        assert_eq!(
            lines(&turn[2..3], OneLiners::Turn),
            ["[Summary] [1 tool result(s)]"]
        );
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let line = one_liner(&Message::assistant("ä".repeat(300))).unwrap();
        assert!(
            line.len() <= ONE_LINER_BYTES && line.ends_with('…'),
            "{line}"
        );
        let exact = "x".repeat(ONE_LINER_BYTES);
        assert_eq!(one_liner(&Message::assistant(exact.as_str())), Some(exact));
        assert_eq!(
            one_liner(&Message::assistant("")).as_deref(),
            Some("[Assistant response]")
        );
        assert_eq!(one_liner(&Message::user("Hello.")), None);
    }

    #[test]
    fn what_does_not_fit_leaves_room_for_its_marker() {
        let costs = [10, 10, 10, 10];
        assert_eq!(turns_that_fit(&costs, 40, 5), 4);
        assert_eq!(turns_that_fit(&costs, 39, 5), 3);
        assert_eq!(turns_that_fit(&costs, 34, 5), 2);
        assert_eq!(turns_that_fit(&costs, 3, 5), 0);
        assert_eq!(turns_that_fit(&[], 0, 5), 0);
    }
}

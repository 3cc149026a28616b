//! Summarizes a turn in one line, without a model.

use std::ops::Range;

use token_estimate::TokenEstimator;
use turn_map::{MessageView, PartView, Role};

use crate::turns::TurnMap;

/// Beginning of every message that is a summary.
pub(crate) const SUMMARY_PREFIX: &str = "[Summary] ";

/// Maximum length of the text of one speaker in a line, in bytes.
pub(crate) const LINE_BYTES: usize = 200;

/// Appends the words of `text` to a line until the line is longer than [`LINE_BYTES`] bytes. Such a line must be cut
/// later.
pub(crate) fn push_words(line: &mut String, text: &str) {
    for word in text.split_whitespace() {
        if line.len() > LINE_BYTES {
            return;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
}

/// Returns the line for a turn, without its prefix. It has the words of systems, users and the assistant, or the number
/// of tool calls or results. `None` if the turn has none of these, for example if it has only notes.
fn turn_line<M: MessageView>(messages: &[M]) -> Option<String> {
    let (mut system, mut user, mut assistant) = (String::new(), String::new(), String::new());
    let (mut calls, mut results, mut answered) = (0, 0, false);
    for message in messages.iter().filter(|message| !message.is_note()) {
        let (mut text, mut own_results) = (String::new(), 0);
        message.parts(&mut |part| match part {
            PartView::Text(words) => push_words(&mut text, words),
            PartView::ToolCall { .. } => calls += 1,
            PartView::ToolResult { .. } => own_results += 1,
            _ => {}
        });
        results += own_results;
        match message.role() {
            Role::Assistant => {
                answered = true;
                push_words(&mut assistant, &text);
            }
            Role::System => push_words(&mut system, &text),
            Role::User if own_results == 0 => push_words(&mut user, &text),
            _ => {}
        }
    }
    let mut said = Vec::new();
    for (speaker, text) in [("System: ", system), ("User: ", user), ("", assistant)] {
        if !text.is_empty() {
            said.push(format!("{speaker}{}", cut(text)));
        } else if answered && speaker.is_empty() {
            said.push(match calls {
                0 => "[Assistant response]".to_owned(),
                calls => format!("[Assistant used {calls} tool(s)]"),
            });
        }
    }
    if said.is_empty() && results > 0 {
        said.push(format!("[{results} tool result(s)]"));
    }
    (!said.is_empty()).then(|| said.join(" → "))
}

/// Returns the [line](turn_line) of each turn.
pub(crate) fn turn_lines<M: MessageView>(
    messages: &[M],
    turn_map: &TurnMap,
    turns: Range<usize>,
) -> Vec<Option<String>> {
    let line = |turn: usize| turn_line(messages.get(turn_map.span(turn..turn + 1))?);
    turns.map(line).collect()
}

/// Returns the cost of a line with its line break, in tokens.
pub(crate) fn line_cost(line: Option<&str>, estimator: &dyn TokenEstimator) -> u64 {
    line.map_or(0, |line| estimator.text(line).saturating_add(1))
}

/// Returns the beginning of the text, at most [`LINE_BYTES`] bytes, cut between characters.
fn cut(mut text: String) -> String {
    if text.len() > LINE_BYTES {
        let mark = '…';
        text.truncate(text.floor_char_boundary(LINE_BYTES - mark.len_utf8()));
        text.push(mark);
    }
    text
}

/// Returns the number of first lines that fit. This is all lines if they cost at most `budget` tokens. Otherwise it is
/// the largest number that costs at most `budget` together with `reserve`, the tokens of a marker for the other lines.
pub(crate) fn lines_that_fit(costs: &[u64], budget: u64, reserve: u64) -> usize {
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

    fn line(messages: &[Message]) -> String {
        turn_line(messages).unwrap_or_default()
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
        assert_eq!(line(&turn), "User: Read it. → Done.");
        let called = "User: Read it. → [Assistant used 1 tool(s)]";
        assert_eq!(line(&turn[..3]), called);
        assert_eq!(line(&turn[2..3]), "[1 tool result(s)]");
        assert_eq!(line(&[Message::assistant("")]), "[Assistant response]");
        assert_eq!(turn_line(&[] as &[Message]), None);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let long = line(&[Message::assistant("ä".repeat(300))]);
        assert!(long.len() <= LINE_BYTES && long.ends_with('…'), "{long}");
        let exact = "x".repeat(LINE_BYTES);
        assert_eq!(line(&[Message::assistant(exact.as_str())]), exact);
    }

    #[test]
    fn lines_that_do_not_fit_leave_room_for_their_marker() {
        let costs = [10, 10, 10, 10];
        assert_eq!(lines_that_fit(&costs, 40, 5), 4);
        assert_eq!(lines_that_fit(&costs, 39, 5), 3);
        assert_eq!(lines_that_fit(&costs, 34, 5), 2);
        assert_eq!(lines_that_fit(&costs, 3, 5), 0);
        assert_eq!(lines_that_fit(&[], 0, 5), 0);
    }
}

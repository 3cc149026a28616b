//! The tools to which the calls and results in a log belong.

use std::collections::VecDeque;

use memory_model::conventions::{is_memory_tool, names_tool};
use memory_model::{EntryKind, LogEntry, Part, Seq};

use sentence_model::fold::composed;

/// Number of log positions before a result that are searched for its call. If the call is farther back, the tool of the
/// result is unknown.
pub(crate) const CALL_WINDOW: u32 = 256;

/// The tool calls in a section of a log, by their ids. They give the tool of each result.
///
/// A result belongs to the call with the same id in its message, or else to the nearest earlier call with this id, at
/// most [`CALL_WINDOW`] positions back. An **echo** is a call or result of this memory's own tools
/// ([`is_memory_tool`]). It repeats earlier messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallNames {
    /// The calls, in the order of the log.
    calls: VecDeque<KnownCall>,
}

#[derive(Debug, Clone)]
struct KnownCall {
    seq: Seq,
    id: String,
    tool: String,
}

impl CallNames {
    /// Creates an empty collection.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the calls of a message. Messages may come in any order. Notes (entries that are not messages) are ignored.
    pub(crate) fn add(&mut self, entry: &LogEntry) {
        if entry.kind == EntryKind::Note {
            return;
        }
        let at = self.calls.partition_point(|call| call.seq <= entry.seq);
        let mut next = at;
        for part in &entry.message.parts {
            if let Part::ToolCall { id, name, .. } = part {
                let call = KnownCall {
                    seq: entry.seq,
                    id: id.clone(),
                    tool: name.clone(),
                };
                self.calls.insert(next, call);
                next += 1;
            }
        }
    }

    /// Removes the calls that are too far back for messages from position `seq` on.
    pub(crate) fn forget_before(&mut self, seq: Seq) {
        let first = seq.0.saturating_sub(CALL_WINDOW);
        while self.calls.pop_front_if(|call| call.seq.0 < first).is_some() {}
    }

    /// Returns the tool that a part of a message calls, or of which it is a result. `None` for other parts, and for a
    /// result of an unknown call.
    pub(crate) fn tool<'a>(&'a self, entry: &'a LogEntry, part: &'a Part) -> Option<&'a str> {
        let call_id = match part {
            Part::ToolCall { name, .. } => return Some(name),
            Part::ToolResult { call_id, .. } => call_id,
            _ => return None,
        };
        let own = entry.message.parts.iter().find_map(|part| match part {
            Part::ToolCall { id, name, .. } if id == call_id => Some(name.as_str()),
            _ => None,
        });
        own.or_else(|| {
            let first = entry.seq.0.saturating_sub(CALL_WINDOW);
            let end = self.calls.partition_point(|call| call.seq < entry.seq);
            let before = self.calls.range(..end).rev();
            let mut near = before.take_while(|call| call.seq.0 >= first);
            near.find(|call| call.id == *call_id)
                .map(|call| call.tool.as_str())
        })
    }

    /// Returns the tools that a message calls, or of which it contains results.
    pub(crate) fn tools<'a>(&'a self, entry: &'a LogEntry) -> impl Iterator<Item = &'a str> {
        let parts = entry.message.parts.iter();
        parts.filter_map(|part| self.tool(entry, part))
    }

    /// Returns whether a message calls one of these tools or contains a result of one. [`is_one_of`] compares the
    /// names.
    pub(crate) fn uses(&self, entry: &LogEntry, tools: &[String]) -> bool {
        self.tools(entry).any(|called| is_one_of(called, tools))
    }

    /// Returns whether a message contains a result of an unknown call.
    pub(crate) fn misses(&self, entry: &LogEntry) -> bool {
        let is_result = |part: &&Part| matches!(part, Part::ToolResult { .. });
        let mut results = entry.message.parts.iter().filter(is_result);
        results.any(|part| self.tool(entry, part).is_none())
    }

    /// Returns whether a part of a message is an echo: a call or result of a memory tool.
    pub(crate) fn is_echo(&self, entry: &LogEntry, part: &Part) -> bool {
        self.tool(entry, part).is_some_and(is_memory_tool)
    }

    /// Returns whether a message contains an echo: a call or result of a memory tool.
    pub(crate) fn has_echoes(&self, entry: &LogEntry) -> bool {
        self.tools(entry).any(is_memory_tool)
    }

    /// Returns whether a message contains echoes (calls or results of memory tools) and no other text.
    pub(crate) fn is_all_echo(&self, entry: &LogEntry) -> bool {
        let mut echoes = false;
        for part in &entry.message.parts {
            if self.is_echo(entry, part) {
                echoes = true;
                continue;
            }
            let mut has_text = false;
            part.visit_texts(&mut |text| has_text |= !text.trim().is_empty());
            if has_text {
                return false;
            }
        }
        echoes
    }
}

/// Returns whether a called tool is one of these tools, compared by [`names_tool`]. Unicode normal forms are ignored.
pub(crate) fn is_one_of(called: &str, tools: &[String]) -> bool {
    let called = composed(called);
    let mut tools = tools.iter();
    tools.any(|tool| names_tool(&called, &composed(tool)))
}

#[cfg(test)]
pub(crate) mod tests {
    use memory_model::{Hash, Message, RawJson, Role};

    use super::*;

    pub(crate) fn entry(seq: u32, message: Message) -> LogEntry {
        LogEntry {
            seq: Seq(seq),
            message,
            tokens: 0,
            running: 0,
            hash: Hash::ZERO,
        }
    }

    fn call(seq: u32, id: &str, tool: &str) -> LogEntry {
        let arguments = RawJson::parse("{}").unwrap();
        entry(seq, Message::tool_call(id, tool, arguments))
    }

    fn result(seq: u32, id: &str) -> LogEntry {
        entry(seq, Message::tool_result(id, "found"))
    }

    fn tool_of(calls: &CallNames, entry: &LogEntry) -> Option<String> {
        calls.tool(entry, &entry.parts[0]).map(str::to_owned)
    }

    #[test]
    fn a_result_belongs_to_the_nearest_call_before_it() {
        let all = [
            call(1, "a", "first"),
            call(3, "a", "second"),
            call(9, "a", "later"),
        ];
        let mut calls = CallNames::new();
        all.iter().rev().for_each(|entry| calls.add(entry));
        let of = |seq: u32| tool_of(&calls, &result(seq, "a"));
        assert_eq!(of(2).as_deref(), Some("first"));
        assert_eq!(of(5).as_deref(), Some("second"));
        assert_eq!(of(9).as_deref(), Some("second"));
        assert_eq!(of(9 + CALL_WINDOW).as_deref(), Some("later"));
        assert_eq!(of(10 + CALL_WINDOW), None);
        assert!(calls.misses(&result(5, "b")) && !calls.misses(&result(5, "a")));
    }

    #[test]
    fn what_is_forgotten_is_too_far_back() {
        let mut calls = CallNames::new();
        calls.add(&call(1, "a", "first"));
        calls.forget_before(Seq(1 + CALL_WINDOW));
        assert_eq!(
            tool_of(&calls, &result(1 + CALL_WINDOW, "a")).as_deref(),
            Some("first")
        );
        calls.forget_before(Seq(2 + CALL_WINDOW));
        assert_eq!(tool_of(&calls, &result(2, "a")), None);
    }

    #[test]
    fn a_message_is_an_echo_where_it_says_nothing_else() {
        let mut message = call(1, "a", "mcp__memory__memory_grep");
        let calls = CallNames::new();
        assert!(calls.is_all_echo(&message) && calls.has_echoes(&message));
        message.message.parts.insert(0, Part::text(" \n"));
        assert!(calls.is_all_echo(&message));
        message.message.parts.push(Part::text("I look it up."));
        assert!(!calls.is_all_echo(&message) && calls.has_echoes(&message));
        let mut calls = CallNames::new();
        calls.add(&message);
        assert!(calls.is_all_echo(&result(2, "a")));
        assert!(!calls.is_all_echo(&result(2, "b")));
        assert!(!calls.is_all_echo(&entry(3, Message::new(Role::User, Vec::new()))));
    }
}

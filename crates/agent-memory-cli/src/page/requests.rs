//! The requests of a person, and their topics.

use std::borrow::Cow;
use std::cmp::Reverse;

use agent_memory::model::{AgentConventions as _, EntryKind, LogEntry};
use agent_memory::transcripts::KnownAgents;
use agent_memory::{Message, Part, Role};

use super::messages::Shown;
use crate::output::clip;

/// Maximum number of characters of a topic.
pub(super) const TOPIC: usize = 200;

/// Number of requests at the beginning of a range of which one is its topic.
const REQUESTS: usize = 6;

/// Returns the texts of a user's message: the part of each that a person typed, and whether a program added to it.
fn user_texts(message: &Message) -> impl Iterator<Item = (Cow<'_, str>, bool)> {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text),
        _ => None,
    });
    texts.map(|text| {
        let text = KnownAgents.user_text(text, message.meta.as_ref());
        (text.typed, !text.injected.is_empty())
    })
}

/// Returns whether a program wrote all texts of a user's message.
pub(super) fn is_injected(message: &Message) -> bool {
    let mut texts = user_texts(message).peekable();
    texts.peek().is_some() && texts.all(|(typed, is_added)| typed.trim().is_empty() && is_added)
}

/// Returns the position and the beginning of a request that a person typed; `None` for all other entries.
pub(crate) fn request(entry: &LogEntry, shown: Shown<'_>) -> Option<(u32, String)> {
    let message = &entry.message;
    if message.kind != EntryKind::Message || message.role != Role::User {
        return None;
    }
    let topic = user_texts(message).find_map(|(typed, _)| topic(&shown(&typed)))?;
    Some((entry.seq.0, topic))
}

/// Returns the first line of a text that says something, without marks of Markdown; `None` if there is none.
pub(super) fn topic(text: &str) -> Option<String> {
    let lines = || {
        text.lines()
            .map(str::trim)
            .filter(|line| line.contains(char::is_alphanumeric))
    };
    let line = lines()
        .find(|line| !line.starts_with('#'))
        .or_else(|| lines().next())?;
    let line = line.trim_start_matches(|c: char| "#*->•` ".contains(c));
    Some(clip(line, TOPIC).into_owned())
}

/// Returns the longest of the first requests from the position `first` to `last`; `None` if there is none. `requests`
/// has the requests of the log with their positions.
pub(crate) fn asked(requests: &[(u32, String)], first: u32, last: u32) -> Option<&str> {
    let from = requests.partition_point(|(seq, _)| *seq < first);
    let requests = requests.iter().skip(from);
    let requests = requests.take_while(|(seq, _)| *seq <= last).take(REQUESTS);
    let longest = requests.min_by_key(|(_, topic)| Reverse(topic.len()));
    longest.map(|(_, topic)| topic.as_str())
}

//! Lines at the end of a session file that can be read without the lines before them.

use std::collections::HashSet;

use super::line::session_of;
use super::queue::QUEUE;
use crate::raw::RawObject;

/// Text in lines that refer to earlier lines in other ways than by `parentUuid`: lines of sub-agents and of compactions,
/// and words from the queue.
const REFERRING: [&str; 7] = [
    QUEUE,
    "\"agentId\"",
    "compact_boundary",
    "isCompactSummary",
    "queued_command",
    "rowSource\":\"hook",
    "isSidechain\":true",
];

/// Types of lines that have an id and a predecessor.
const LINKED: [&str; 4] = ["user", "assistant", "system", "attachment"];

/// Returns whether lines continue the branch that ends with the line `last`, and refer to no other line before them.
pub(super) fn continues(lines: &[u8], last: &str) -> bool {
    let Ok(text) = std::str::from_utf8(lines) else {
        return false;
    };
    let plain = |line: &str| line.replace("\": ", "\":");
    let mut known: HashSet<String> = HashSet::from([last.to_owned()]);
    let mut session = None;
    text.lines().all(|line| {
        if REFERRING.iter().any(|word| plain(line).contains(word)) {
            return false;
        }
        let Some(object) = RawObject::parse(line).filter(|object| !object.repeats()) else {
            return false;
        };
        let tag = object.string("type").unwrap_or_default();
        if !LINKED.contains(&tag.as_str()) {
            return object.get("uuid").is_none();
        }
        let own = session_of(&object);
        let is_same = own.is_some() && *session.get_or_insert_with(|| own.clone()) == own;
        let follows = object
            .id("parentUuid")
            .is_some_and(|parent| known.contains(&parent));
        let is_new = object.id("uuid").is_some_and(|uuid| known.insert(uuid));
        is_same && follows && is_new
    })
}

//! Lines at the end of a session file that can be read without the lines before them.

use std::collections::{HashMap, HashSet};

use super::line::session_of;
use super::queue::QUEUE;
use super::tree::LineKind;
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

/// Returns whether lines continue the branch that ends with the line `last`, refer to no other line before them, and take
/// no turn back.
pub(super) fn continues(lines: &[u8], last: &str) -> bool {
    let Ok(text) = std::str::from_utf8(lines) else {
        return false;
    };
    let plain = |line: &str| line.replace("\": ", "\":");
    // The line to which a turn behind each line goes back: the nearest one that is no note of the program.
    let mut anchors: HashMap<String, String> = HashMap::from([(last.to_owned(), last.to_owned())]);
    let mut followed: HashSet<String> = HashSet::new();
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
        let above = object.id("parentUuid");
        let anchor = above.and_then(|parent| anchors.get(&parent).cloned());
        let (Some(anchor), Some(uuid)) = (anchor, object.id("uuid")) else {
            return false;
        };
        let kind = LineKind::of(&object, &tag);
        let own_anchor = match kind {
            LineKind::Aside => anchor.clone(),
            _ => uuid.clone(),
        };
        let is_new = anchors.insert(uuid, own_anchor).is_none();
        let is_first = kind == LineKind::Aside || followed.insert(anchor);
        is_same && is_new && (is_first || !kind.may_begin_turn())
    })
}

//! Renders an atom of the log (messages that must stay together) as messages that providers accept. The result of every
//! call directly follows its message.

use std::collections::{HashMap, HashSet};

use memory_model::{EntryKind, LogEntry, Message, Part, RawJson, ResultContent, Role, Seq};
use serde_json::Value;
use turn_map::{Atom, LateResult};

use crate::context::MessageOrigin;
use crate::fit::{Fitted, Line, Placed, fit};
use crate::marks::{escape_marks, quoted, remark};
use crate::render::part_text;

/// Renders the entries of an atom as messages. Messages of one response are joined, calls without a result get a stub,
/// and results move to their calls. Late results, and results without a call of an assistant, become text.
///
/// `entries` are the entries of the atom, and positions are sequence numbers of the log. `shown` returns the parts of
/// an entry in the form to show, with escaped texts.
pub(crate) fn render_atom(
    atom: &Atom,
    entries: &[LogEntry],
    mut shown: impl FnMut(&LogEntry) -> Vec<Part>,
) -> Fitted {
    let mut lines: Vec<Line> = Vec::with_capacity(entries.len());
    // The response of the latest assistant message: its id, and the index of the rendered message. An atom contains at
    // most one response, or neighbouring messages without an id that tool results connect.
    let mut response: Option<(Option<&str>, usize)> = None;
    // Positions of the calls in messages of other roles than the assistant, by id.
    let mut foreign: HashMap<String, Seq> = HashMap::new();
    // Ids of the assistant's calls in the atom.
    let mut called: HashSet<&str> = HashSet::new();
    let mut late = atom.late();
    for entry in entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Message)
    {
        let here = entry.seq.0 as usize;
        let results = take_while(&mut late, |late| late.message <= here);
        let mut parts = shown(entry);
        parts.iter_mut().for_each(flatten_content);
        if entry.role != Role::Assistant {
            calls_to_text(&mut parts, entry.seq, &mut foreign);
        } else {
            called.extend(entry.parts.iter().filter_map(|part| match part {
                Part::ToolCall { id, .. } => Some(id.as_str()),
                _ => None,
            }));
        }
        let mut results: Vec<&LateResult> = results.iter().collect();
        results_to_text(&mut parts, |id| {
            late_heading(&mut results, &called, id).or_else(|| {
                let seq = foreign.get(id)?;
                Some(format!(
                    "result of the call {} in message {seq}",
                    quoted(id)
                ))
            })
        });
        let phases = Phases::of(&entry.message);
        let parts = parts.into_iter().enumerate().map(|(at, part)| Placed {
            phase: phases.of_part(at, &part),
            part,
            seq: Some(entry.seq),
        });
        if entry.role == Role::Assistant {
            let id = entry.response.as_deref();
            let joined = response.filter(|(open, _)| *open == id);
            if let Some(line) = joined.and_then(|(_, index)| lines.get_mut(index)) {
                let parts: Vec<Placed> = parts.collect();
                if id.is_some() && is_snapshot(&line.parts, &parts) {
                    line.parts.clear();
                }
                line.parts.extend(parts);
                if let MessageOrigin::Message { last, .. } = &mut line.source {
                    *last = entry.seq;
                }
                continue;
            }
            response = Some((id, lines.len()));
        }
        lines.push(Line {
            role: entry.role,
            name: entry.name.clone(),
            source: MessageOrigin::Message {
                first: entry.seq,
                last: entry.seq,
            },
            parts: parts.collect(),
            inserted: false,
        });
    }
    fit(lines)
}

/// The phases that the meta of an assistant's message keeps.
struct Phases(Value);

impl Phases {
    fn of(message: &Message) -> Self {
        let meta = message.meta.as_ref().map_or("", RawJson::as_str);
        let has_any = message.role == Role::Assistant && meta.contains("\"phase\"");
        let meta = has_any.then(|| serde_json::from_str(meta).ok()).flatten();
        Self(meta.unwrap_or_default())
    }

    /// Returns the phase of a text. The items of one answer have theirs under `blocks`. A message that was one item has
    /// its phase itself, or under `message` if it comes from a rollout.
    fn of_part(&self, at: usize, part: &Part) -> Option<String> {
        let Part::Text { .. } = part else {
            return None;
        };
        let block = self.0.get("blocks").and_then(|it| it.get(at.to_string()));
        let places = [block, Some(&self.0), self.0.get("message")];
        let mut found = places
            .into_iter()
            .flatten()
            .filter_map(|it| it.get("phase"));
        found.find_map(Value::as_str).map(str::to_owned)
    }
}

/// Whether the parts of a response contain all of its earlier parts, the last of which may have grown: some agents store a
/// response again and again while it grows.
fn is_snapshot(earlier: &[Placed], parts: &[Placed]) -> bool {
    let Some((last, before)) = earlier.split_last() else {
        return false;
    };
    let mut parts = parts.iter().map(|placed| &placed.part);
    let repeats = before.iter().all(|old| parts.next() == Some(&old.part));
    repeats
        && match (&last.part, parts.next()) {
            (Part::Text { text: old }, Some(Part::Text { text })) => text.starts_with(&**old),
            (old, part) => part == Some(old),
        }
}

/// Removes and returns the first items of a slice for which `belongs` is true.
fn take_while<'a, T>(rest: &mut &'a [T], belongs: impl FnMut(&T) -> bool) -> &'a [T] {
    let (taken, left) = rest.split_at(rest.partition_point(belongs));
    *rest = left;
    taken
}

/// Turns calls and results inside of a result into text, because they are only data there.
fn flatten_content(part: &mut Part) {
    let Part::ToolResult {
        content: ResultContent::Parts(parts),
        ..
    } = part
    else {
        return;
    };
    for part in parts {
        if matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. }) {
            let mut text = String::new();
            part_text(part, &mut text);
            *part = Part::text(text);
        }
    }
}

/// Turns the tool results for which `heading` returns a heading into text, the latest one first.
fn results_to_text(parts: &mut Vec<Part>, mut heading: impl FnMut(&str) -> Option<String>) {
    let mut newest_first = Vec::with_capacity(parts.len());
    for part in std::mem::take(parts).into_iter().rev() {
        let heading = match &part {
            Part::ToolResult { call_id, .. } => heading(call_id),
            _ => None,
        };
        match heading {
            Some(heading) => newest_first.extend(result_text(part, heading).into_iter().rev()),
            None => newest_first.push(part),
        }
    }
    newest_first.reverse();
    *parts = newest_first;
}

/// Returns the heading of a late result. If several results of a message name the same call, the first one may be its
/// real result, so the last ones are the late ones.
fn late_heading(late: &mut Vec<&LateResult>, called: &HashSet<&str>, id: &str) -> Option<String> {
    let late = late.remove(late.iter().rposition(|late| *late.id == *id)?);
    let id = quoted(&late.id);
    Some(match late.call {
        Some(call) => format!("late result of the call {id} in message {call}"),
        None if called.contains(&*late.id) => format!("a second result of the call {id}"),
        None => format!("result of the call {id}, which has one already or is not in this context"),
    })
}

/// Turns a tool result into other parts: a heading, then the result's content.
fn result_text(part: Part, mut heading: String) -> Vec<Part> {
    let Part::ToolResult {
        content, is_error, ..
    } = part
    else {
        return vec![part];
    };
    if is_error == Some(true) {
        heading.push_str(", failed");
    }
    let heading = remark(heading);
    match content {
        ResultContent::Text(text) => vec![Part::text(format!("{heading}\n{text}"))],
        ResultContent::Parts(parts) => std::iter::once(Part::text(heading)).chain(parts).collect(),
    }
}

/// Turns the calls of a message that is not the assistant's into text, because no provider accepts them. Records them
/// in `foreign`.
fn calls_to_text(parts: &mut [Part], seq: Seq, foreign: &mut HashMap<String, Seq>) {
    for part in parts {
        let Part::ToolCall {
            id,
            name,
            arguments,
        } = part
        else {
            continue;
        };
        let heading = remark(format!("call {} of the tool {}", quoted(id), quoted(name)));
        let text = format!("{heading}\n{}", escape_marks(arguments.as_str()));
        foreign.insert(std::mem::take(id), seq);
        *part = Part::text(text);
    }
}

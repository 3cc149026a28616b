//! Renders an atom of the log as messages that providers accept: the result of every call directly follows its message.

use std::collections::HashMap;

use memory_model::{EntryKind, LogEntry, Part, ResultContent, Role, Seq};
use turn_map::{Atom, LateResult};

use crate::context::MessageOrigin;
use crate::fit::{Fitted, Line, Placed, fit};
use crate::marks::{escape_marks, quoted, remark};
use crate::render::part_text;

/// An atom's entries as messages: lines of one response are joined, calls without a result get a stub, results move to
/// their calls, and late results and results without an assistant's call become text.
///
/// `entries` are the atom's entries; positions are sequence numbers. `shown` returns the parts of an entry in the form
/// to show, with their texts escaped.
pub(crate) fn render_atom(
    atom: &Atom,
    entries: &[LogEntry],
    mut shown: impl FnMut(&LogEntry) -> Vec<Part>,
) -> Fitted {
    let mut lines: Vec<Line> = Vec::with_capacity(entries.len());
    // An atom holds the lines of at most one response, or neighbouring lines without an id that results connect: the
    // id, and the index of their message.
    let mut response: Option<(Option<&str>, usize)> = None;
    // Calls in messages of other roles than the assistant.
    let mut foreign: HashMap<String, Seq> = HashMap::new();
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
        }
        let mut results: Vec<&LateResult> = results.iter().collect();
        results_to_text(&mut parts, |id| {
            late_heading(&mut results, id).or_else(|| {
                let seq = foreign.get(id)?;
                Some(format!(
                    "result of the call {} in message {seq}",
                    quoted(id)
                ))
            })
        });
        let parts = parts.into_iter().map(|part| Placed {
            part,
            seq: Some(entry.seq),
        });
        if entry.role == Role::Assistant {
            let id = entry.response.as_deref();
            let joined = response.filter(|(open, _)| *open == id);
            if let Some(line) = joined.and_then(|(_, index)| lines.get_mut(index)) {
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

/// Takes the beginning of a slice, as long as `belongs` holds.
fn take_while<'a, T>(rest: &mut &'a [T], belongs: impl FnMut(&T) -> bool) -> &'a [T] {
    let (taken, left) = rest.split_at(rest.partition_point(belongs));
    *rest = left;
    taken
}

/// Calls and results inside of a result are data: they become text.
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

/// Turns the results of a message with a heading into text, latest first.
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

/// The heading of a late result. If several results of a message name the same call, the first may answer it; the ones
/// in `late` are the last.
fn late_heading(late: &mut Vec<&LateResult>, id: &str) -> Option<String> {
    let late = late.remove(late.iter().rposition(|late| *late.id == *id)?);
    let id = quoted(&late.id);
    Some(match late.call {
        Some(call) => format!("late result of the call {id} in message {call}"),
        None => format!("result of the call {id}, which is not in this context"),
    })
}

/// A result as parts that are not results: a heading, then its content.
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

/// Turns the calls of a message that is not the assistant's into text, because no provider accepts them.
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

//! Makes messages valid for providers, with [`turn_map::sanitize`].

use memory_model::{Message, Part, ResultContent, Role, Seq};
use turn_map::{
    Edit, EditableMessage, InsertedResult, MessageView, PartView, Remedy, apply, sanitize,
};

use crate::context::{ContextMessage, MessageOrigin, MovedResult, RenamedCall};
use crate::marks::remark;

/// Maximum number of calls in a message that are compared one by one.
const FEW_CALLS: usize = 16;

/// A message on its way into a context.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) role: Role,
    pub(crate) name: Option<String>,
    pub(crate) source: MessageOrigin,
    pub(crate) parts: Vec<Placed>,
    /// Whether it was inserted for results that are missing or stood elsewhere.
    pub(crate) inserted: bool,
}

/// A part with its position in the log; `None` for parts of stubs and summaries.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) part: Part,
    pub(crate) seq: Option<Seq>,
}

/// Messages that providers accept, with the repairs.
#[derive(Debug, Default)]
pub(crate) struct Fitted {
    pub(crate) messages: Vec<ContextMessage>,
    /// Ids of the calls that got a stub.
    pub(crate) stubbed: Vec<String>,
    pub(crate) moved: Vec<MovedResult>,
    pub(crate) renamed: Vec<RenamedCall>,
}

/// Puts the results of each call right behind its message, with stubs for those that are missing,
/// in messages of their own; makes the calls' ids unique; and leaves no message without content.
pub(crate) fn fit(mut lines: Vec<Line>) -> Fitted {
    let mut fitted = Fitted::default();
    if !in_place(&lines) {
        let plan = sanitize(&lines, &remark("no result"));
        for finding in &plan.findings {
            match finding.remedy {
                Remedy::Stubbed => fitted.stubbed.push(finding.id.clone()),
                Remedy::Renamed => {
                    let place = (finding.message, finding.part);
                    fitted.renamed.extend(renamed(&lines, &plan.edits, place));
                }
                _ => {}
            }
        }
        fitted.moved = moved(&lines, &plan.edits);
        lines = apply(lines, &plan.edits);
    }
    fitted.messages = lines.into_iter().flat_map(messages_of).collect();
    fitted
}

/// Whether every call has its result directly behind its message and no result stands elsewhere. May
/// return false for messages with many calls.
fn in_place(lines: &[Line]) -> bool {
    let (mut ids, mut waiting): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in lines {
        if !waiting.is_empty() && (line.role == Role::Assistant || line.parts.is_empty()) {
            return false;
        }
        let mut only_results = matches!(line.role, Role::User | Role::Tool);
        for placed in &line.parts {
            match &placed.part {
                Part::ToolCall { id, .. } => {
                    let new = !id.is_empty() && ids.len() < FEW_CALLS && !ids.contains(&&**id);
                    if line.role != Role::Assistant || !new {
                        return false;
                    }
                    ids.push(id);
                    waiting.push(id);
                }
                Part::ToolResult { call_id, .. } => {
                    let call = waiting.iter().position(|id| id == call_id);
                    let Some(call) = call.filter(|_| only_results) else {
                        return false;
                    };
                    waiting.swap_remove(call);
                }
                _ if line.role == Role::Assistant => {}
                _ if !waiting.is_empty() => return false,
                _ => only_results = false,
            }
        }
    }
    waiting.is_empty()
}

/// The results that move, with their targets.
fn moved(lines: &[Line], edits: &[Edit]) -> Vec<MovedResult> {
    let mut moved = Vec::new();
    for edit in edits {
        let Edit::InsertResults { after, results } = edit else {
            continue;
        };
        for result in results {
            let InsertedResult::Moved { message, part } = *result else {
                continue;
            };
            let Some(result) = placed(lines, message, part) else {
                continue;
            };
            let Part::ToolResult { call_id, .. } = &result.part else {
                continue;
            };
            let calls = lines.get(*after).map_or(&[][..], |line| &line.parts);
            let call = calls.iter().find(|placed| match &placed.part {
                Part::ToolCall { id, .. } => id == call_id,
                _ => false,
            });
            if let (Some(from), Some(after)) = (result.seq, call.and_then(|call| call.seq)) {
                moved.push(MovedResult {
                    from,
                    after,
                    call_id: call_id.clone(),
                });
            }
        }
    }
    moved
}

/// The call at a place that gets another id.
fn renamed(lines: &[Line], edits: &[Edit], place: (usize, usize)) -> Option<RenamedCall> {
    let call = placed(lines, place.0, place.1)?;
    let Part::ToolCall { id, .. } = &call.part else {
        return None;
    };
    let new_id = edits.iter().find_map(|edit| match edit {
        Edit::SetId { message, part, id } if (*message, *part) == place => Some(id),
        _ => None,
    });
    Some(RenamedCall {
        message: call.seq?,
        id: id.clone(),
        new_id: new_id?.clone(),
    })
}

fn placed(lines: &[Line], message: usize, part: usize) -> Option<&Placed> {
    lines.get(message)?.parts.get(part)
}

/// A line as messages: results stand in a tool's messages of their own.
fn messages_of(line: Line) -> Vec<ContextMessage> {
    let Line {
        role,
        name,
        source,
        parts,
        inserted,
    } = line;
    let message = |role, name, source, parts| ContextMessage {
        role,
        name,
        tokens: 0,
        source,
        parts,
    };
    if inserted {
        // What moved says where it is from; a stub belongs to its call.
        let mut messages: Vec<ContextMessage> = Vec::new();
        for Placed { part, seq } in parts {
            let source = match seq {
                Some(seq) => MessageOrigin::Message {
                    first: seq,
                    last: seq,
                },
                None => source.clone(),
            };
            match messages.last_mut() {
                Some(last) if last.source == source => last.parts.push(part),
                _ => messages.push(message(Role::Tool, None, source, vec![part])),
            }
        }
        return messages;
    }
    let parts = parts.into_iter().map(|placed| placed.part);
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    let (results, mut others): (Vec<Part>, Vec<Part>) = parts.partition(is_result);
    // Providers refuse texts without content.
    others.retain(|part| !matches!(part, Part::Text { text } if text.trim().is_empty()));
    if results.is_empty() && others.is_empty() {
        others.push(Part::text(remark("empty message")));
    }
    let mut messages = Vec::with_capacity(2);
    let role = match role {
        Role::Tool => Role::User,
        role => role,
    };
    if !results.is_empty() {
        messages.push(message(Role::Tool, name.clone(), source.clone(), results));
    }
    if !others.is_empty() {
        messages.push(message(role, name, source, others));
    }
    messages
}

impl MessageView for Line {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        for placed in &self.parts {
            placed.part.view(visit);
        }
    }
}

impl EditableMessage for Line {
    type Part = Placed;

    fn take_parts(&mut self) -> Vec<Placed> {
        std::mem::take(&mut self.parts)
    }

    fn put_parts(&mut self, parts: Vec<Placed>) {
        self.parts = parts;
    }

    fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    fn results_behind(&self, parts: Vec<Placed>) -> Vec<Self> {
        vec![Self {
            role: Role::Tool,
            name: None,
            source: self.source.clone(),
            parts,
            inserted: true,
        }]
    }

    fn result_part(call_id: String, text: String) -> Placed {
        Placed {
            part: Part::ToolResult {
                call_id,
                content: ResultContent::Text(text),
                is_error: None,
            },
            seq: None,
        }
    }

    fn set_text(part: &mut Placed, text: String) {
        Message::set_text(&mut part.part, text);
    }

    fn set_id(part: &mut Placed, id: String) {
        Message::set_id(&mut part.part, id);
    }

    fn result_to_text(part: Placed, heading: String) -> Vec<Placed> {
        let seq = part.seq;
        let parts = Message::result_to_text(part.part, heading).into_iter();
        parts.map(|part| Placed { part, seq }).collect()
    }
}

//! Checks of providers' rules about calls and results.

use std::collections::{HashMap, HashSet};

use token_estimate::{MessageView, PartView, Role};

/// A call or result in a list of messages that breaks a provider's rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Position of the message that contains the call or result.
    pub message: usize,
    /// Index of the call or result among the message's parts.
    pub part: usize,
    /// Id of the call, or for a result the id of the call that the result names.
    pub id: String,
    /// The rule that is broken.
    pub rule: Rule,
}

/// A provider's rule about calls and results that a list of messages breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A tool call is in a message that is not the assistant's.
    CallByAnother,
    /// A call has an empty id.
    EmptyId,
    /// Two calls have the same id. OpenAI forbids this within one message, Anthropic within the whole list.
    DuplicateId,
    /// A call has no result directly after the message that contains it.
    Unanswered,
    /// A result answers no call. For example, the previous assistant message has no call with its id, this call already
    /// has a result, or other content is in between.
    AnswersNothing,
    /// A tool result is in a message of the assistant instead of a tool or a user.
    ResultByAssistant,
    /// A tool result comes after other content in its message.
    ResultAfterContent,
}

/// Returns the violations of OpenAI's rules for calls and results in the chat format. A message with calls must be
/// followed by exactly one result for each of its calls. A message may contain several results. Other results are
/// forbidden. Notes are ignored.
///
/// A message of a tool or a user may have other parts after its tool results. These parts are sent as a separate
/// message.
pub fn check_openai<M: MessageView>(messages: &[M]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut waiting: Vec<Item> = Vec::new();
    for turn in turns(messages, |_| None) {
        let answers = matches!(turn.role, Role::User | Role::Tool);
        if !answers || turn.items.is_empty() {
            unanswered(&mut waiting, &mut violations);
        }
        let mut ids = HashSet::new();
        for item in turn.items {
            match item.kind {
                ItemKind::Call if turn.role != Role::Assistant => {
                    violations.push(item.breaks(Rule::CallByAnother));
                }
                ItemKind::Call => {
                    if item.id.is_empty() {
                        violations.push(item.breaks(Rule::EmptyId));
                    } else if !ids.insert(item.id.clone()) {
                        violations.push(item.breaks(Rule::DuplicateId));
                    }
                    waiting.push(item);
                }
                ItemKind::Result if turn.role == Role::Assistant => {
                    violations.push(item.breaks(Rule::ResultByAssistant));
                }
                ItemKind::Result if !answers => violations.push(item.breaks(Rule::AnswersNothing)),
                ItemKind::Result => match waiting.iter().position(|call| call.id == item.id) {
                    Some(call) => drop(waiting.remove(call)),
                    None => violations.push(item.breaks(Rule::AnswersNothing)),
                },
                ItemKind::Other if answers => unanswered(&mut waiting, &mut violations),
                ItemKind::Other => {}
            }
        }
    }
    unanswered(&mut waiting, &mut violations);
    in_order(violations)
}

/// Returns the violations of Anthropic's rules for calls and results. Neighbouring messages of one role form one turn,
/// and messages of a tool count as the user's. After a turn with calls, the next turn must begin with exactly one
/// result for each call. Other results are forbidden, and no two calls in the list may have the same id. Notes are
/// ignored. System messages are ignored too, because they are sent separately.
pub fn check_anthropic<M: MessageView>(messages: &[M]) -> Vec<Violation> {
    let wire = |role| match role {
        Role::System => None,
        Role::Assistant => Some(Role::Assistant),
        Role::User | Role::Tool => Some(Role::User),
    };
    let mut violations = Vec::new();
    let mut ids: HashSet<String> = HashSet::new();
    let mut waiting: HashMap<String, Item> = HashMap::new();
    let mut unanswered_calls: Vec<Item> = Vec::new();
    for turn in turns(messages, wire) {
        match turn.role {
            Role::Assistant => {
                for item in turn.items {
                    match item.kind {
                        ItemKind::Call => {
                            if item.id.is_empty() {
                                violations.push(item.breaks(Rule::EmptyId));
                            } else if !ids.insert(item.id.clone()) {
                                violations.push(item.breaks(Rule::DuplicateId));
                            }
                            waiting.insert(item.id.clone(), item.clone());
                            unanswered_calls.push(item);
                        }
                        ItemKind::Result => violations.push(item.breaks(Rule::ResultByAssistant)),
                        ItemKind::Other => {}
                    }
                }
            }
            Role::System => {
                for item in turn.items {
                    match item.kind {
                        ItemKind::Call => violations.push(item.breaks(Rule::CallByAnother)),
                        ItemKind::Result => violations.push(item.breaks(Rule::AnswersNothing)),
                        ItemKind::Other => {}
                    }
                }
            }
            Role::User | Role::Tool => {
                let mut first = true;
                for item in turn.items {
                    match item.kind {
                        ItemKind::Call => violations.push(item.breaks(Rule::CallByAnother)),
                        ItemKind::Result if !first => {
                            violations.push(item.breaks(Rule::ResultAfterContent));
                        }
                        ItemKind::Result if waiting.remove(&item.id).is_none() => {
                            violations.push(item.breaks(Rule::AnswersNothing));
                        }
                        ItemKind::Result => {}
                        ItemKind::Other => first = false,
                    }
                }
                unanswered_calls.retain(|call| waiting.contains_key(&call.id));
                unanswered(&mut unanswered_calls, &mut violations);
                waiting.clear();
            }
        }
    }
    unanswered_calls.retain(|call| waiting.contains_key(&call.id));
    unanswered(&mut unanswered_calls, &mut violations);
    in_order(violations)
}

fn in_order(mut violations: Vec<Violation>) -> Vec<Violation> {
    violations.sort_by_key(|violation| (violation.message, violation.part));
    violations
}

fn unanswered(waiting: &mut Vec<Item>, violations: &mut Vec<Violation>) {
    violations.extend(waiting.drain(..).map(|call| call.breaks(Rule::Unanswered)));
}

#[derive(Clone, Copy)]
enum ItemKind {
    Call,
    Result,
    Other,
}

#[derive(Clone)]
struct Item {
    kind: ItemKind,
    message: usize,
    part: usize,
    id: String,
}

impl Item {
    fn breaks(&self, rule: Rule) -> Violation {
        Violation {
            message: self.message,
            part: self.part,
            id: self.id.clone(),
            rule,
        }
    }
}

struct Turn {
    role: Role,
    items: Vec<Item>,
}

/// Returns the turns of the messages as a provider receives them. Neighbouring messages form one turn if `joined`
/// returns the same role for both.
fn turns<M: MessageView>(messages: &[M], joined: impl Fn(Role) -> Option<Role>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    // Index of the latest turn that a message can join. A message that can join no turn does not end the turn.
    let mut open: Option<usize> = None;
    for (position, message) in messages.iter().enumerate() {
        if message.is_note() {
            continue;
        }
        let mut items = Vec::new();
        let mut part = 0;
        message.parts(&mut |view| {
            let (kind, id) = match view {
                PartView::ToolCall { id, .. } => (ItemKind::Call, id),
                PartView::ToolResult { call_id, .. } => (ItemKind::Result, call_id),
                _ => (ItemKind::Other, ""),
            };
            items.push(Item {
                kind,
                message: position,
                part,
                id: id.to_owned(),
            });
            part += 1;
        });
        let role = joined(message.role());
        let newest = open.and_then(|at| turns.get_mut(at));
        match (role, newest) {
            (Some(role), Some(turn)) if turn.role == role => turn.items.extend(items),
            _ => {
                if role.is_some() {
                    open = Some(turns.len());
                }
                turns.push(Turn {
                    role: role.unwrap_or(message.role()),
                    items,
                });
            }
        }
    }
    turns
}

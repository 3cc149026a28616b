use std::collections::{HashMap, HashSet, VecDeque};

use token_estimate::{MessageView, PartView, Role};

use crate::{Edit, InsertedResult, atoms};

/// A call or result that a provider would refuse, and its repair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Position of the message that contains the call or result.
    pub message: usize,
    /// Index of the call or result among the message's parts.
    pub part: usize,
    /// Id of the call or result before the repair.
    pub id: String,
    /// Reason why a provider would refuse the call or result.
    pub problem: Problem,
    /// Repair that the edits carry out.
    pub remedy: Remedy,
}

/// Reason why a provider would refuse a call or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// A result has no call, or its call is not sent to the provider.
    Orphan,
    /// A result came after its call's tool group had ended, for example after the next answer of the model.
    Late,
    /// A result is not in a message of the user or a tool directly after the message with its call.
    Misplaced,
    /// A call has no result.
    Unanswered,
    /// A call is in a message that is not the assistant's.
    CallByAnother,
    /// A call has an empty id.
    EmptyId,
    /// A call has the same id as an earlier call.
    DuplicateId,
}

/// Repair of a call or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// The call was removed from its message.
    Dropped,
    /// The tool result was turned into text.
    MadeText,
    /// The result was moved to directly follow the message with its call.
    Moved,
    /// The call had no result and got an artificial one, with the text that was given to [`sanitize`].
    Stubbed,
    /// The call and its result got a new id.
    Renamed,
}

/// Result of [`sanitize`]: the edits that repair a list of messages for a provider, and the problems that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
#[must_use]
pub struct Sanitized {
    /// Edits that repair the list; empty if the list is valid.
    pub edits: Vec<Edit>,
    /// Problems that were found, in the order of the list.
    pub findings: Vec<Finding>,
}

/// Returns the edits that repair a list for providers, and the problems that were found. After the edits,
/// [`check_openai`](crate::check_openai) and [`check_anthropic`](crate::check_anthropic) find no violations, and a
/// second call returns no edits.
///
/// Content is never lost, except for calls by other roles than the assistant, which are dropped. A call without a
/// result gets a result with the text `stub`. Late results and results without a call become text. Other results move
/// to directly follow the message with their call. Calls with an empty or duplicate id get a new id.
///
/// Calls and results are paired as in [`atoms`]. If several calls of a response have the same id, the first call gets
/// the first result. Notes are not changed. Appended messages do not change the repairs before the list's
/// [`settled_end`](crate::Atoms::settled_end), so the beginning of a repaired list stays the same. Takes O(messages +
/// parts) time.
pub fn sanitize<M: MessageView>(messages: &[M], stub: &str) -> Sanitized {
    let mut work = Work::read(messages);
    work.settle();
    work.place_results();
    work.rename();
    Sanitized {
        edits: work.edits(stub),
        findings: work.findings(),
    }
}

#[derive(Clone, Copy)]
enum Slot {
    Call(usize),
    Result(usize),
    Other,
}

struct MessageSlots {
    note: bool,
    role: Role,
    slots: Vec<Slot>,
}

struct Call {
    message: usize,
    part: usize,
    id: String,
    result: Option<usize>,
    /// Whether the call is kept: true if its message is the assistant's.
    kept: bool,
    bad_id: Option<Problem>,
    new_id: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Stays,
    Moves,
    /// The tool result becomes text, for this reason.
    Text(Problem),
}

struct CallResult {
    message: usize,
    part: usize,
    id: String,
    call: Option<usize>,
    late: bool,
    fate: Fate,
}

struct Work {
    lines: Vec<MessageSlots>,
    calls: Vec<Call>,
    answers: Vec<CallResult>,
}

impl Work {
    fn read<M: MessageView>(messages: &[M]) -> Self {
        let mut work = Self {
            lines: Vec::with_capacity(messages.len()),
            calls: Vec::new(),
            answers: Vec::new(),
        };
        for (at, message) in messages.iter().enumerate() {
            work.read_line(at, message);
        }
        work.pair(messages);
        work
    }

    fn read_line(&mut self, at: usize, message: &impl MessageView) {
        let (note, role) = (message.is_note(), message.role());
        let mut slots = Vec::new();
        if !note {
            message.parts(&mut |view| {
                let part = slots.len();
                slots.push(match view {
                    PartView::ToolCall { id, .. } => {
                        self.calls.push(Call {
                            message: at,
                            part,
                            id: id.to_owned(),
                            result: None,
                            kept: role == Role::Assistant,
                            bad_id: None,
                            new_id: None,
                        });
                        Slot::Call(self.calls.len() - 1)
                    }
                    PartView::ToolResult { call_id, .. } => {
                        self.answers.push(CallResult {
                            message: at,
                            part,
                            id: call_id.to_owned(),
                            call: None,
                            late: false,
                            fate: Fate::Stays,
                        });
                        Slot::Result(self.answers.len() - 1)
                    }
                    _ => Slot::Other,
                });
            });
        }
        self.lines.push(MessageSlots { note, role, slots });
    }

    /// Pairs calls and results, one atom at a time.
    fn pair<M: MessageView>(&mut self, messages: &[M]) {
        let mut answered = vec![false; self.calls.len()];
        // Unanswered calls of earlier atoms, by call id.
        let mut interrupted: HashMap<&str, Vec<usize>> = HashMap::new();
        for atom in &atoms(messages) {
            let slots = || {
                let lines = self.lines.get(atom.range()).unwrap_or_default();
                lines.iter().map(|line| &line.slots)
            };
            let mut waiting: HashMap<&str, VecDeque<usize>> = HashMap::new();
            let mut late = atom.late().iter();
            for slots in slots() {
                for (at, call) in calls_in(slots, &self.calls) {
                    waiting.entry(&call.id).or_default().push_back(at);
                }
                for slot in slots {
                    let Slot::Result(at) = *slot else { continue };
                    let Some(answer) = self.answers.get_mut(at) else {
                        continue;
                    };
                    let here = waiting.get_mut(answer.id.as_str());
                    answer.call = here.and_then(VecDeque::pop_front);
                    if answer.call.is_none() && late.next().is_some_and(|late| late.call.is_some())
                    {
                        let before = interrupted.get_mut(answer.id.as_str());
                        answer.call = before.and_then(Vec::pop);
                        answer.late = answer.call.is_some();
                    }
                    if let Some(answered) = answer.call.and_then(|call| answered.get_mut(call)) {
                        *answered = true;
                    }
                }
            }
            for (at, call) in slots().flat_map(|slots| calls_in(slots, &self.calls)) {
                if answered.get(at) == Some(&false) {
                    interrupted.entry(&call.id).or_default().push(at);
                }
            }
        }
    }

    /// Assigns a result to each call. Late and orphaned results become text.
    fn settle(&mut self) {
        for (at, answer) in self.answers.iter_mut().enumerate() {
            let call = answer.call.and_then(|call| self.calls.get_mut(call));
            match call.filter(|call| call.kept) {
                Some(call) if !answer.late => call.result = Some(at),
                call => {
                    answer.call = None;
                    answer.fate = Fate::Text(match call {
                        Some(_) => Problem::Late,
                        None => Problem::Orphan,
                    });
                }
            }
        }
    }

    /// Marks the tool results that must move because they do not directly follow the message with their call.
    fn place_results(&mut self) {
        for message in 0..self.lines.len() {
            let Some(line) = self.lines.get(message) else {
                continue;
            };
            let results: Vec<usize> = calls_in(&line.slots, &self.calls)
                .filter_map(|(_, call)| call.result)
                .collect();
            if results.is_empty() {
                continue;
            }
            for result in results {
                if let Some(answer) = self.answers.get_mut(result) {
                    answer.fate = Fate::Moves;
                }
            }
            self.find_in_place(message);
        }
    }

    /// Marks the results that can stay: they follow the message with their calls before any other content.
    fn find_in_place(&mut self, message: usize) {
        for line in self
            .lines
            .iter()
            .skip(message + 1)
            .filter(|line| !line.note)
        {
            if !matches!(line.role, Role::User | Role::Tool) || line.slots.is_empty() {
                return;
            }
            for slot in &line.slots {
                match *slot {
                    Slot::Other => return,
                    // The call is dropped: only calls of an assistant are kept.
                    Slot::Call(_) => {}
                    Slot::Result(at) => {
                        let Some(answer) = self.answers.get_mut(at) else {
                            return;
                        };
                        let call = answer.call.and_then(|call| self.calls.get(call));
                        match answer.fate {
                            Fate::Text(_) => return,
                            // The result belongs to a call of another message, so it moves.
                            Fate::Stays | Fate::Moves => {
                                if call.is_some_and(|call| call.message == message) {
                                    answer.fate = Fate::Stays;
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Renames calls with an empty or duplicate id, in order. A later call never changes the id of an earlier one.
    fn rename(&mut self) {
        let mut used: HashSet<String> = HashSet::new();
        let mut numbers: HashMap<String, u64> = HashMap::new();
        for call in self.calls.iter_mut().filter(|call| call.kept) {
            call.bad_id = bad_id(&call.id, &used);
            if call.bad_id.is_none() {
                used.insert(call.id.clone());
                continue;
            }
            let base = if call.id.is_empty() { "call" } else { &call.id };
            let number = numbers.entry(base.to_owned()).or_insert(1);
            call.new_id = Some(loop {
                *number += 1;
                let id = format!("{base}_{number}");
                if used.insert(id.clone()) {
                    break id;
                }
            });
        }
    }

    fn new_id(&self, call: Option<usize>) -> Option<&String> {
        self.calls.get(call?)?.new_id.as_ref()
    }

    fn edits(&self, stub: &str) -> Vec<Edit> {
        let mut edits = Vec::new();
        for (message, line) in self.lines.iter().enumerate() {
            if !line.slots.is_empty() {
                self.edit_line(message, line, stub, &mut edits);
            }
        }
        edits
    }

    fn edit_line(&self, message: usize, line: &MessageSlots, stub: &str, edits: &mut Vec<Edit>) {
        let (mut left, mut results, mut texts) = (0, 0, 0);
        let mut gone: Vec<usize> = Vec::new();
        let mut inserted: Vec<InsertedResult> = Vec::new();
        for (part, slot) in line.slots.iter().enumerate() {
            let new_id = match *slot {
                Slot::Call(at) => self.new_id(Some(at)),
                Slot::Result(at) => {
                    self.new_id(self.answers.get(at).and_then(|answer| answer.call))
                }
                Slot::Other => None,
            };
            edits.extend(new_id.cloned().map(|id| Edit::SetId { message, part, id }));
            match *slot {
                Slot::Other => left += 1,
                Slot::Call(at) => {
                    let Some(call) = self.calls.get(at) else {
                        continue;
                    };
                    if call.kept {
                        left += 1;
                        inserted.extend(self.inserted(call, stub));
                    } else {
                        gone.push(part);
                    }
                }
                Slot::Result(at) => {
                    let Some(answer) = self.answers.get(at) else {
                        continue;
                    };
                    match answer.fate {
                        Fate::Moves => {}
                        Fate::Stays => (left, results) = (left + 1, results + 1),
                        Fate::Text(problem) => {
                            (left, texts) = (left + 1, texts + 1);
                            edits.push(Edit::ResultToText {
                                message,
                                part,
                                heading: heading(&answer.id, problem),
                            });
                        }
                    }
                }
            }
        }
        if left == 0 {
            edits.push(Edit::DropMessage { message });
        } else {
            let gone = gone.into_iter();
            edits.extend(gone.map(|part| Edit::DropPart { message, part }));
            if line.role == Role::Tool && texts > 0 && results == 0 {
                let role = Role::User;
                edits.push(Edit::SetRole { message, role });
            }
        }
        if !inserted.is_empty() {
            edits.push(Edit::InsertResults {
                after: message,
                results: inserted,
            });
        }
    }

    /// Returns the result to insert after a kept call; `None` if the call needs none.
    fn inserted(&self, call: &Call, stub: &str) -> Option<InsertedResult> {
        let Some(result) = call.result else {
            return Some(InsertedResult::Stub {
                call_id: call.new_id.as_ref().unwrap_or(&call.id).clone(),
                text: stub.to_owned(),
            });
        };
        let answer = self.answers.get(result)?;
        (answer.fate == Fate::Moves).then_some(InsertedResult::Moved {
            message: answer.message,
            part: answer.part,
        })
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for call in &self.calls {
            let (message, part) = (call.message, call.part);
            let mut find = |problem, remedy| {
                findings.push(Finding {
                    message,
                    part,
                    id: call.id.clone(),
                    problem,
                    remedy,
                });
            };
            if !call.kept {
                find(Problem::CallByAnother, Remedy::Dropped);
            } else if call.result.is_none() {
                find(Problem::Unanswered, Remedy::Stubbed);
            }
            if let Some(problem) = call.bad_id {
                find(problem, Remedy::Renamed);
            }
        }
        for answer in &self.answers {
            let (problem, remedy) = match answer.fate {
                Fate::Stays => continue,
                Fate::Moves => (Problem::Misplaced, Remedy::Moved),
                Fate::Text(problem) => (problem, Remedy::MadeText),
            };
            findings.push(Finding {
                message: answer.message,
                part: answer.part,
                id: answer.id.clone(),
                problem,
                remedy,
            });
        }
        findings.sort_by_key(|finding| (finding.message, finding.part));
        findings
    }
}

fn bad_id(id: &str, used: &HashSet<String>) -> Option<Problem> {
    if id.is_empty() {
        Some(Problem::EmptyId)
    } else {
        used.contains(id).then_some(Problem::DuplicateId)
    }
}

fn heading(id: &str, problem: Problem) -> String {
    let id = id.escape_debug();
    match problem {
        Problem::Late => format!("[Late result of call {id}]"),
        _ => format!("[Result without a call: {id}]"),
    }
}

fn calls_in<'a>(
    slots: &'a [Slot],
    calls: &'a [Call],
) -> impl Iterator<Item = (usize, &'a Call)> + 'a {
    slots.iter().filter_map(|slot| match slot {
        Slot::Call(at) => Some((*at, calls.get(*at)?)),
        _ => None,
    })
}

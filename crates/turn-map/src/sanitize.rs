use std::collections::{HashMap, HashSet, VecDeque};

use token_estimate::{MessageView, PartView, Role};

use crate::{Edit, GroupingPolicy, InsertedResult, atoms};

mod policy;

pub use policy::{
    CallIdPolicy, Finding, LateResultPolicy, MisplacedResultPolicy, OrphanPolicy, Problem, Remedy,
    SanitizePolicy, Sanitized, UnansweredCallPolicy,
};

/// Returns the edits that repair a list so that [`check_openai`](crate::check_openai) and
/// [`check_anthropic`](crate::check_anthropic) find no violations, with the problems that were found.
/// A repaired list needs no edits.
///
/// Calls and results pair as in [`atoms`]; of several calls with one id in a response the first gets the
/// first result. Notes stay where they are. Unless late results move, appended messages change nothing
/// before the list's [`settled_end`](crate::Atoms::settled_end), so an unchanged beginning stays
/// the same bytes. O(messages + parts), unless the policy drops messages.
pub fn sanitize<M: MessageView>(messages: &[M], policy: &SanitizePolicy) -> Sanitized {
    let mut work = Work::read(messages, policy);
    loop {
        work.judge_calls();
        work.judge_ids();
        if !work.place_results() {
            break;
        }
    }
    work.rename();
    Sanitized {
        edits: work.edits(),
        findings: work.findings(),
    }
}

#[derive(Clone, Copy)]
enum Slot {
    Call(usize),
    Result(usize),
    Other,
}

struct Line {
    note: bool,
    role: Role,
    slots: Vec<Slot>,
    dropped: bool,
}

struct Call {
    message: usize,
    part: usize,
    id: String,
    result: Option<usize>,
    kept: bool,
    problem: Option<Problem>,
    bad_id: Option<Problem>,
    new_id: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Stays,
    Moves,
    Text,
    Dropped,
}

struct Answer {
    message: usize,
    part: usize,
    id: String,
    call: Option<usize>,
    late: bool,
    fate: Fate,
    problem: Option<Problem>,
}

struct Work<'a> {
    policy: &'a SanitizePolicy,
    lines: Vec<Line>,
    calls: Vec<Call>,
    answers: Vec<Answer>,
}

impl<'a> Work<'a> {
    fn read<M: MessageView>(messages: &[M], policy: &'a SanitizePolicy) -> Self {
        let mut work = Self {
            policy,
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
                        let by_another = role != Role::Assistant;
                        self.calls.push(Call {
                            message: at,
                            part,
                            id: id.to_owned(),
                            result: None,
                            kept: !by_another,
                            problem: by_another.then_some(Problem::CallByAnother),
                            bad_id: None,
                            new_id: None,
                        });
                        Slot::Call(self.calls.len() - 1)
                    }
                    PartView::ToolResult { call_id, .. } => {
                        self.answers.push(Answer {
                            message: at,
                            part,
                            id: call_id.to_owned(),
                            call: None,
                            late: false,
                            fate: Fate::Stays,
                            problem: None,
                        });
                        Slot::Result(self.answers.len() - 1)
                    }
                    _ => Slot::Other,
                });
            });
        }
        self.lines.push(Line {
            note,
            role,
            slots,
            dropped: false,
        });
    }

    /// Pairs calls and results atom by atom.
    fn pair<M: MessageView>(&mut self, messages: &[M]) {
        let mut answered = vec![false; self.calls.len()];
        // Unanswered calls of the atoms before, by id.
        let mut interrupted: HashMap<&str, Vec<usize>> = HashMap::new();
        for atom in &atoms(messages, GroupingPolicy::default()) {
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
        self.settle();
    }

    /// Decides about orphans and late results.
    fn settle(&mut self) {
        for (at, answer) in self.answers.iter_mut().enumerate() {
            let call = answer.call.and_then(|call| self.calls.get_mut(call));
            match call.filter(|call| call.kept) {
                None => orphan(answer, self.policy),
                Some(call) => {
                    if answer.late {
                        answer.problem = Some(Problem::Late);
                    }
                    match self.policy.late {
                        LateResultPolicy::Text | LateResultPolicy::Drop if answer.late => {
                            answer.call = None;
                            answer.fate = match self.policy.late {
                                LateResultPolicy::Text => Fate::Text,
                                _ => Fate::Dropped,
                            };
                        }
                        _ => call.result = Some(at),
                    }
                }
            }
        }
    }

    /// Drops a call and makes its result an orphan.
    fn strip(&mut self, at: usize, problem: Option<Problem>) {
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        call.kept = false;
        call.problem = problem;
        let result = call.result.take();
        if let Some(answer) = result.and_then(|result| self.answers.get_mut(result)) {
            orphan(answer, self.policy);
        }
    }

    /// Decides about calls without a result.
    fn judge_calls(&mut self) {
        for at in 0..self.calls.len() {
            let Some(call) = self.calls.get_mut(at) else {
                continue;
            };
            if !call.kept || call.result.is_some() {
                continue;
            }
            match self.policy.unanswered {
                UnansweredCallPolicy::Stub => call.problem = Some(Problem::Unanswered),
                UnansweredCallPolicy::Strip => call.kept = false,
                UnansweredCallPolicy::DropMessage => {
                    let message = call.message;
                    let Some(line) = self.lines.get_mut(message) else {
                        continue;
                    };
                    line.dropped = true;
                    for at in call_places(&line.slots).collect::<Vec<_>>() {
                        let result = self.calls.get(at).and_then(|call| call.result);
                        let problem = match result {
                            Some(_) => Problem::InDroppedMessage,
                            None => Problem::Unanswered,
                        };
                        self.strip(at, Some(problem));
                    }
                }
            }
            if let Some(call) = self.calls.get_mut(at).filter(|call| call.problem.is_none()) {
                call.problem = Some(Problem::Unanswered);
            }
        }
    }

    /// Drops calls with an invalid id, if that is the policy.
    fn judge_ids(&mut self) {
        if self.policy.ids != CallIdPolicy::Strip {
            return;
        }
        let mut used: HashSet<String> = HashSet::new();
        for at in 0..self.calls.len() {
            let Some(call) = self.calls.get_mut(at).filter(|call| call.kept) else {
                continue;
            };
            call.bad_id = bad_id(&call.id, &used);
            if call.bad_id.is_some() {
                self.strip(at, None);
            } else {
                used.insert(call.id.clone());
            }
        }
    }

    /// Decides about results that do not stand behind their call's message. Returns whether a call lost
    /// its result.
    fn place_results(&mut self) -> bool {
        let mut lost = false;
        for message in 0..self.lines.len() {
            let waiting: Vec<(usize, usize)> = match self.lines.get(message) {
                Some(line) => calls_in(&line.slots, &self.calls)
                    .filter(|(_, call)| call.kept)
                    .filter_map(|(at, call)| Some((at, call.result?)))
                    .collect(),
                None => continue,
            };
            if waiting.is_empty() {
                continue;
            }
            for (_, result) in &waiting {
                if let Some(answer) = self.answers.get_mut(*result) {
                    answer.fate = Fate::Moves;
                }
            }
            self.find_in_place(message);
            for (call, result) in waiting {
                let Some(answer) = self.answers.get_mut(result) else {
                    continue;
                };
                if answer.fate == Fate::Stays {
                    answer.problem = None;
                    continue;
                }
                let problem = if answer.late {
                    Problem::Late
                } else {
                    Problem::Misplaced
                };
                answer.problem = Some(problem);
                if !answer.late && self.policy.misplaced == MisplacedResultPolicy::Drop {
                    answer.fate = Fate::Dropped;
                    answer.call = None;
                    lost = true;
                    if let Some(call) = self.calls.get_mut(call) {
                        call.result = None;
                    }
                }
            }
        }
        lost
    }

    /// Keeps the results in place that stand behind a message's calls before anything else.
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
                    // Dropped: only an assistant's calls are kept.
                    Slot::Call(_) => {}
                    Slot::Result(at) => {
                        let Some(answer) = self.answers.get_mut(at) else {
                            return;
                        };
                        let call = answer.call.and_then(|call| self.calls.get(call));
                        match answer.fate {
                            Fate::Text => return,
                            Fate::Dropped => {}
                            // Results of other messages' calls move.
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

    /// Renames calls with an invalid id, in order, so that no later call changes an earlier id.
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

    fn edits(&self) -> Vec<Edit> {
        let mut edits = Vec::new();
        for (message, line) in self.lines.iter().enumerate() {
            if !line.slots.is_empty() {
                self.edit_line(message, line, &mut edits);
            }
        }
        edits
    }

    fn edit_line(&self, message: usize, line: &Line, edits: &mut Vec<Edit>) {
        let (mut left, mut results, mut texts) = (0, 0, 0);
        let mut stripped = None;
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
                        inserted.extend(self.inserted(call));
                    } else {
                        stripped = stripped.or(Some(part));
                        gone.push(part);
                    }
                }
                Slot::Result(at) => {
                    let Some(answer) = self.answers.get(at) else {
                        continue;
                    };
                    match answer.fate {
                        Fate::Moves => {}
                        Fate::Dropped => gone.push(part),
                        Fate::Stays => (left, results) = (left + 1, results + 1),
                        Fate::Text => {
                            (left, texts) = (left + 1, texts + 1);
                            if !line.dropped {
                                let heading = heading(answer);
                                edits.push(Edit::ResultToText {
                                    message,
                                    part,
                                    heading,
                                });
                            }
                        }
                    }
                }
            }
        }
        let placeholder = stripped
            .filter(|_| line.role == Role::Assistant && !self.policy.placeholder.is_empty());
        match placeholder {
            _ if line.dropped => edits.push(Edit::DropMessage { message }),
            None if left == 0 => edits.push(Edit::DropMessage { message }),
            Some(part) if left == 0 => {
                let text = self.policy.placeholder.clone();
                edits.push(Edit::Replace {
                    message,
                    part,
                    text,
                });
                gone.retain(|other| *other != part);
                edits.extend(
                    gone.into_iter()
                        .map(|part| Edit::DropPart { message, part }),
                );
            }
            _ => {
                edits.extend(
                    gone.into_iter()
                        .map(|part| Edit::DropPart { message, part }),
                );
                if line.role == Role::Tool && texts > 0 && results == 0 {
                    let role = Role::User;
                    edits.push(Edit::SetRole { message, role });
                }
            }
        }
        if !inserted.is_empty() {
            edits.push(Edit::InsertResults {
                after: message,
                results: inserted,
            });
        }
    }

    /// The result to insert behind a kept call, if any.
    fn inserted(&self, call: &Call) -> Option<InsertedResult> {
        let Some(result) = call.result else {
            return Some(InsertedResult::Stub {
                call_id: call.new_id.as_ref().unwrap_or(&call.id).clone(),
                text: self.policy.stub.clone(),
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
            let mut find = |problem: Option<Problem>, remedy| {
                findings.extend(problem.map(|problem| Finding {
                    message: call.message,
                    part: call.part,
                    id: call.id.clone(),
                    problem,
                    remedy: if call.kept { remedy } else { Remedy::Dropped },
                }));
            };
            find(call.problem, Remedy::Stubbed);
            find(call.bad_id, Remedy::Renamed);
        }
        for answer in &self.answers {
            let dropped = self
                .lines
                .get(answer.message)
                .is_some_and(|line| line.dropped);
            findings.extend(answer.problem.map(|problem| Finding {
                message: answer.message,
                part: answer.part,
                id: answer.id.clone(),
                problem,
                remedy: match answer.fate {
                    Fate::Moves => Remedy::Moved,
                    Fate::Text if !dropped => Remedy::MadeText,
                    _ => Remedy::Dropped,
                },
            }));
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

fn orphan(answer: &mut Answer, policy: &SanitizePolicy) {
    answer.call = None;
    answer.problem = Some(Problem::Orphan);
    answer.fate = match policy.orphans {
        OrphanPolicy::Text => Fate::Text,
        OrphanPolicy::Drop => Fate::Dropped,
    };
}

fn heading(answer: &Answer) -> String {
    let id = answer.id.escape_debug();
    match answer.problem {
        Some(Problem::Late) => format!("[Late result of call {id}]"),
        _ => format!("[Result without a call: {id}]"),
    }
}

fn call_places(slots: &[Slot]) -> impl Iterator<Item = usize> + '_ {
    slots.iter().filter_map(|slot| match slot {
        Slot::Call(at) => Some(*at),
        _ => None,
    })
}

fn calls_in<'a>(
    slots: &'a [Slot],
    calls: &'a [Call],
) -> impl Iterator<Item = (usize, &'a Call)> + 'a {
    call_places(slots).filter_map(|at| Some((at, calls.get(at)?)))
}

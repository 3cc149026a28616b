use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use token_estimate::{MessageView, Role};

use crate::message::{calls, has_calls, results, user_speaks};
use crate::{Atom, Atoms, LateResult, UnansweredCall};
use groups::Groups;

mod groups;

/// Groups messages that arrive one by one into [`Atom`]s: runs of messages that must stay together.
///
/// The builder keeps three things in memory: the settled atoms that were not [drained](Self::drain_settled), the
/// unanswered calls of ended tool groups, and the messages of the atoms that can still change. Adding takes O(1) time
/// for each message, call and result.
///
/// Begin at the start of a log or at a [`Cut`](crate::Cut). If the first message is inside of a tool group, the results
/// of this group become orphaned results.
#[derive(Debug, Clone)]
pub struct AtomBuilder {
    /// Responses that can still get results, oldest first: the latest response, and the neighbouring messages with
    /// calls before it that have no response id either.
    responses: VecDeque<Response>,
    /// Whether the latest message, without notes, is an assistant's message with calls and without a response id. If
    /// the next message is another such message, the open groups stay open.
    after_line: bool,
    /// Number of responses removed from the front of `responses`, which is the ordinal of the first response there.
    dropped: u64,
    /// Whether the latest response may get further messages.
    running: bool,
    /// Id of the latest response. Valid while `running` is true.
    running_id: String,
    groups: Groups,
    /// The latest call without a result for each call id. Empty while [`scans`](Self::scans) returns true.
    waiting: HashMap<Arc<str>, CallAt>,
    /// Positions of the calls that have no result and are in ended groups, for each call id, the latest last.
    interrupted: HashMap<Arc<str>, Vec<usize>>,
    /// Empty buffer to reuse for the calls of the next response.
    spare: Vec<Call>,
}

/// Maximum number of calls up to which the calls of a single open response are searched one by one instead of hashed.
/// Most responses have few calls, and searching is twice as fast for them.
const FEW_CALLS: usize = 8;
/// Maximum capacity of the buffer that is kept for the next response, in calls.
const MOST_SPARE: usize = 64;

/// Location of a call: the ordinal of its response, and the index of the call in the response.
#[derive(Debug, Clone, Copy)]
struct CallAt {
    response: u64,
    index: usize,
}

#[derive(Debug, Clone)]
struct Response {
    start: usize,
    calls: Vec<Call>,
    waiting: usize,
    /// Whether the response can still get messages or tool results, so that its group must stay open.
    holds: bool,
}

#[derive(Debug, Clone)]
struct Call {
    id: Arc<str>,
    message: usize,
    answered: bool,
    /// An older call with the same id that also waits for its result.
    shadows: Option<CallAt>,
}

/// Returns the [`Atom`]s of a list of messages: runs of messages that must stay together. The first message has
/// position 0.
#[must_use]
pub fn atoms<M: MessageView>(messages: impl IntoIterator<Item = M>) -> Atoms {
    let mut builder = AtomBuilder::starting_at(0);
    messages
        .into_iter()
        .for_each(|message| builder.push(&message));
    builder.finish()
}

impl AtomBuilder {
    /// Creates a builder. The first message that is added has the position `position`, such as its position in a log.
    pub fn starting_at(position: usize) -> Self {
        Self {
            responses: VecDeque::new(),
            after_line: false,
            dropped: 0,
            running: false,
            running_id: String::new(),
            groups: Groups::starting_at(position),
            waiting: HashMap::new(),
            interrupted: HashMap::new(),
            spare: Vec::new(),
        }
    }

    /// Adds the next message.
    pub fn push(&mut self, message: &impl MessageView) {
        let note = message.is_note();
        let position = self.groups.push(note);
        if !note {
            let (calling, assistant) = (has_calls(message), message.role() == Role::Assistant);
            let line = calling && assistant && message.response().is_none();
            let is_next_line = std::mem::replace(&mut self.after_line, line) && line;
            if calling || assistant {
                self.respond(message.response(), is_next_line, position);
                calls(message, &mut |id| self.call(id, position));
            } else if self.running && user_speaks(message) {
                self.end_run_if_answered();
            }
            results(message, &mut |id| self.result(id, position));
            self.release(self.newest());
        }
        self.groups.settle();
    }

    /// Returns the position of the next message to add.
    pub fn position(&self) -> usize {
        self.groups.next()
    }

    /// Removes and returns the settled atoms, which further messages cannot change. A later call of
    /// [`finish`](Self::finish) returns only the other atoms.
    pub fn drain_settled(&mut self) -> std::vec::Drain<'_, Atom> {
        self.groups.drain_settled()
    }

    /// Returns the atoms of all messages that were added, except for drained atoms.
    #[must_use]
    pub fn finish(mut self) -> Atoms {
        let responses = std::mem::take(&mut self.responses);
        for response in responses.iter().filter(|response| response.waiting > 0) {
            if let Some(group) = self.groups.of(response.start) {
                group.open = true;
                group.unanswered.extend(response.unanswered());
            }
        }
        self.groups.finish()
    }

    /// Returns the ordinal of the latest response, or of the next one if there is none.
    fn newest(&self) -> u64 {
        self.dropped + self.responses.len().saturating_sub(1) as u64
    }

    fn response(&mut self, ordinal: u64) -> Option<&mut Response> {
        let index = usize::try_from(ordinal.checked_sub(self.dropped)?).ok()?;
        self.responses.get_mut(index)
    }

    /// Adds a message to the latest response if the ids are equal. Otherwise begins a new response.
    fn respond(&mut self, id: Option<&str>, is_next_line: bool, position: usize) {
        if self.running
            && id == Some(&*self.running_id)
            && let Some(newest) = self.responses.back()
        {
            self.groups.extend(newest.start, position);
            return;
        }
        let before = self.newest();
        self.running = false;
        self.release(before);
        self.groups.open(position);
        self.running = id.is_some();
        // The buffer is reused, because most messages belong to a response.
        self.running_id.clear();
        self.running_id.push_str(id.unwrap_or_default());
        if !is_next_line {
            while !self.responses.is_empty() {
                self.close_oldest();
            }
        } else if self.scans() {
            self.stop_scanning();
        }
        self.responses.push_back(Response {
            start: position,
            calls: std::mem::take(&mut self.spare),
            waiting: 0,
            holds: true,
        });
    }

    /// Removes the oldest response. Its calls without a result become interrupted.
    fn close_oldest(&mut self) {
        let Some(mut response) = self.responses.pop_front() else {
            return;
        };
        let ordinal = self.dropped;
        self.dropped += 1;
        for call in response.calls.iter().filter(|call| !call.answered) {
            if !self.waiting.is_empty()
                && self
                    .waiting
                    .get(&call.id)
                    .is_some_and(|at| at.response == ordinal)
            {
                self.waiting.remove(&call.id);
            }
            let interrupted = self.interrupted.entry(Arc::clone(&call.id));
            interrupted.or_default().push(call.message);
        }
        if response.holds
            && let Some(group) = self.groups.of(response.start)
        {
            group.holds -= 1;
            group.unanswered.extend(response.unanswered());
            response.holds = false;
        }
    }

    /// Returns whether calls without a result are searched one by one, in the only open response.
    fn scans(&self) -> bool {
        let few = |response: &Response| response.calls.len() <= FEW_CALLS;
        self.responses.len() <= 1 && self.responses.back().is_none_or(few)
    }

    /// Returns the latest call with this id that waits for its result.
    fn waiting_call(&self, id: &str) -> Option<CallAt> {
        if !self.scans() {
            return self.waiting.get(id).copied();
        }
        let mut calls = self.responses.back()?.calls.iter();
        let index = calls.rposition(|call| !call.answered && *call.id == *id)?;
        Some(CallAt {
            response: self.newest(),
            index,
        })
    }

    /// Moves the calls that wait for results into the map, because there are too many to search one by one.
    fn stop_scanning(&mut self) {
        let ordinal = self.newest();
        let Some(response) = self.responses.back_mut() else {
            return;
        };
        for (index, call) in response.calls.iter_mut().enumerate() {
            if !call.answered {
                let at = CallAt {
                    response: ordinal,
                    index,
                };
                call.shadows = self.waiting.insert(Arc::clone(&call.id), at);
            }
        }
    }

    /// Adds a call to the latest response.
    fn call(&mut self, id: &str, position: usize) {
        let ordinal = self.newest();
        let id: Arc<str> = id.into();
        let scanned = self.scans();
        let shadows = if scanned {
            None
        } else {
            self.waiting.get(&id).copied()
        };
        let Some(response) = self.responses.back_mut() else {
            return;
        };
        let at = CallAt {
            response: ordinal,
            index: response.calls.len(),
        };
        response.waiting += 1;
        response.calls.push(Call {
            id: Arc::clone(&id),
            message: position,
            answered: false,
            shadows,
        });
        let start = response.start;
        if !scanned {
            self.waiting.insert(id, at);
        } else if !self.scans() {
            self.stop_scanning();
        }
        if let Some(group) = self.groups.of(start) {
            group.has_calls = true;
        }
    }

    /// Adds a result to the group of its call. If no call waits for it, records it as a late result of its message.
    fn result(&mut self, id: &str, position: usize) {
        let Some(at) = self.waiting_call(id) else {
            let call = self.interrupted_call(id);
            self.groups.late(LateResult {
                message: position,
                id: id.into(),
                call,
            });
            return;
        };
        let dropped = self.dropped;
        let Some(response) = self.response(at.response) else {
            return;
        };
        let start = response.start;
        response.waiting -= 1;
        let shadowed = response.calls.get_mut(at.index).and_then(|call| {
            call.answered = true;
            call.shadows.filter(|older| older.response >= dropped)
        });
        if !self.waiting.is_empty() {
            match (shadowed, self.waiting.get_mut(id)) {
                (Some(older), Some(newest)) => *newest = older,
                _ => drop(self.waiting.remove(id)),
            }
        }
        self.groups.extend(start, position);
        self.release(at.response);
    }

    /// Removes and returns the position of the latest interrupted call with this id.
    fn interrupted_call(&mut self, id: &str) -> Option<usize> {
        let calls = self.interrupted.get_mut(id)?;
        let newest = calls.pop();
        if calls.is_empty() {
            self.interrupted.remove(id);
        }
        newest
    }

    /// Ends the latest response if all its calls have results. Called when the user speaks.
    fn end_run_if_answered(&mut self) {
        if self
            .responses
            .back()
            .is_some_and(|newest| newest.waiting == 0)
        {
            self.running = false;
        }
    }

    /// Lets the group of a response close, if the response cannot get more messages or tool results.
    fn release(&mut self, ordinal: u64) {
        let running = self.running && ordinal == self.newest();
        let Some(response) = self.response(ordinal) else {
            return;
        };
        if response.holds && response.waiting == 0 && !running {
            response.holds = false;
            let (start, calls) = (response.start, std::mem::take(&mut response.calls));
            if let Some(group) = self.groups.of(start) {
                group.holds -= 1;
            }
            if calls.capacity() <= MOST_SPARE {
                self.spare = calls;
                self.spare.clear();
            }
        }
    }
}

impl Response {
    fn unanswered(&self) -> impl Iterator<Item = UnansweredCall> + '_ {
        self.calls
            .iter()
            .filter(|call| !call.answered)
            .map(|call| UnansweredCall {
                message: call.message,
                id: (&*call.id).into(),
            })
    }
}

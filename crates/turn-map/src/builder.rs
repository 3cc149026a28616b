use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use token_estimate::{MessageView, Role};

use crate::message::{calls, has_calls, results, user_speaks};
use crate::{Atom, Atoms, GroupingPolicy, LateResult, UnansweredCall};
use groups::Groups;

mod groups;

/// Builds atoms from messages that arrive one by one.
///
/// Beside the settled atoms that were not [drained](Self::drain_settled), it holds what can still
/// change (the newest responses that the [`GroupingPolicy`] keeps open and what came after the first
/// of them that waits) and the interrupted calls without a late result. Time is O(1) a message,
/// call and result.
///
/// Begin at the start of a log or at a cut. Begun inside of a group, its results are orphans.
#[derive(Debug, Clone)]
pub struct AtomBuilder {
    /// Responses that can still take results, oldest first, in at most `most_batches` batches.
    responses: VecDeque<Response>,
    most_batches: usize,
    /// Number of batches in `responses`.
    batches: usize,
    /// Whether the newest message that is no note is an assistant's with calls and without a response
    /// id: another one directly after it is in its batch.
    after_line: bool,
    /// Number of responses dropped from the front of `responses`: the ordinal of its first.
    dropped: u64,
    /// Whether the newest response may get further lines.
    running: bool,
    /// Id of the newest response, while `running`.
    running_id: String,
    groups: Groups,
    /// The newest waiting call of each id. Empty while [`scans`](Self::scans).
    waiting: HashMap<Arc<str>, CallAt>,
    /// The interrupted calls of each id that no late result answered, by position, newest last.
    interrupted: HashMap<Arc<str>, Vec<usize>>,
    /// Empty buffer for the calls of the next response.
    spare: Vec<Call>,
}

/// Maximum number of calls of the only open response that are searched one by one rather than hashed:
/// most responses have a few, and that is twice as fast.
const FEW_CALLS: usize = 8;
/// Maximum capacity of the buffer that is kept for the next response, in calls.
const MOST_SPARE: usize = 64;

/// A call, by its response's ordinal and its place there.
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
    /// Whether it keeps its group open.
    holds: bool,
    /// Whether it is in one batch with the response before it: a batch closes as a whole.
    in_batch: bool,
}

#[derive(Debug, Clone)]
struct Call {
    id: Arc<str>,
    message: usize,
    answered: bool,
    /// An older waiting call of the same id.
    shadows: Option<CallAt>,
}

/// Partitions messages into atoms. Position 0 is the first message.
#[must_use]
pub fn atoms<M: MessageView>(
    messages: impl IntoIterator<Item = M>,
    policy: GroupingPolicy,
) -> Atoms {
    let mut builder = AtomBuilder::new(policy);
    messages
        .into_iter()
        .for_each(|message| builder.push(&message));
    builder.finish()
}

impl AtomBuilder {
    /// Creates a builder whose first message has position 0.
    pub fn new(policy: GroupingPolicy) -> Self {
        Self::starting_at(0, policy)
    }

    /// Creates a builder whose first message has this position, such as its position in a log.
    pub fn starting_at(position: usize, policy: GroupingPolicy) -> Self {
        let further = usize::try_from(policy.responses).unwrap_or(usize::MAX);
        Self {
            responses: VecDeque::new(),
            most_batches: further.saturating_add(1),
            batches: 0,
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
            let in_batch = std::mem::replace(&mut self.after_line, line) && line;
            if calling || assistant {
                self.respond(message.response(), in_batch, position);
                calls(message, &mut |id| self.call(id, position));
            } else if self.running && user_speaks(message) {
                self.end_run_if_answered();
            }
            results(message, &mut |id| self.result(id, position));
            self.release(self.newest());
        }
        self.groups.settle();
    }

    /// Position of the next message.
    pub fn position(&self) -> usize {
        self.groups.next()
    }

    /// Removes and returns the settled atoms, which no further message can change.
    /// [`finish`](Self::finish) then returns the rest.
    pub fn drain_settled(&mut self) -> std::vec::Drain<'_, Atom> {
        self.groups.drain_settled()
    }

    /// Returns the atoms of all messages that were pushed and not drained.
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

    /// The ordinal of the newest response, or of the one to come while there is none.
    fn newest(&self) -> u64 {
        self.dropped + self.responses.len().saturating_sub(1) as u64
    }

    fn response(&mut self, ordinal: u64) -> Option<&mut Response> {
        let index = usize::try_from(ordinal.checked_sub(self.dropped)?).ok()?;
        self.responses.get_mut(index)
    }

    /// Adds a line of the newest response, or begins a response.
    fn respond(&mut self, id: Option<&str>, in_batch: bool, position: usize) {
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
        // One buffer for all: most messages belong to a response.
        self.running_id.clear();
        self.running_id.push_str(id.unwrap_or_default());
        if in_batch && self.scans() {
            self.stop_scanning();
        }
        self.responses.push_back(Response {
            start: position,
            calls: std::mem::take(&mut self.spare),
            waiting: 0,
            holds: true,
            in_batch,
        });
        self.batches += usize::from(!in_batch);
        if self.batches > self.most_batches {
            self.batches -= 1;
            self.close_oldest();
            while self.responses.front().is_some_and(|next| next.in_batch) {
                self.close_oldest();
            }
        }
    }

    /// Closes the oldest response: its waiting calls are interrupted.
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

    /// Whether waiting calls are searched in the only open response.
    fn scans(&self) -> bool {
        let few = |response: &Response| response.calls.len() <= FEW_CALLS;
        self.most_batches == 1 && self.responses.len() <= 1 && self.responses.back().is_none_or(few)
    }

    /// The newest waiting call of an id.
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

    /// Hashes the waiting calls, which are too many to search one by one.
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

    /// Adds a call to the newest response.
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

    /// Adds a result to its call's group, or as a late one to its message.
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

    /// Removes and returns the newest interrupted call of an id.
    fn interrupted_call(&mut self, id: &str) -> Option<usize> {
        let calls = self.interrupted.get_mut(id)?;
        let newest = calls.pop();
        if calls.is_empty() {
            self.interrupted.remove(id);
        }
        newest
    }

    /// Ends the newest response, because the user speaks, if it has all its results.
    fn end_run_if_answered(&mut self) {
        if self
            .responses
            .back()
            .is_some_and(|newest| newest.waiting == 0)
        {
            self.running = false;
        }
    }

    /// Stops holding the group of a response that cannot grow any more.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{lines, shown};
    use crate::{AtomKind, GroupState};

    fn partition(script: &str) -> String {
        within(0, script)
    }

    fn within(responses: u32, script: &str) -> String {
        shown(&atoms(
            lines(script),
            GroupingPolicy::default().with_responses(responses),
        ))
    }

    #[test]
    fn plain_messages_are_alone() {
        assert_eq!(partition("s u a u n a"), "P0 P1 P2 P3 N4 P5");
    }

    #[test]
    fn a_call_and_its_results_are_one_atom_whoever_brings_them() {
        assert_eq!(partition("u a+x t-x a"), "P0 G1-2 P3");
        assert_eq!(partition("u a+x u-x a"), "P0 G1-2 P3");
        // Call and result in one message.
        assert_eq!(partition("u a+x-x a"), "P0 G1 P2");
    }

    #[test]
    fn results_come_in_any_order_and_in_any_number_of_messages() {
        assert_eq!(partition("a+x+y+z t-z t-x-y u"), "G0-2 P3");
        assert_eq!(partition("a+x+y u-y u u-x u"), "G0-3 P4");
    }

    #[test]
    fn what_stands_between_call_and_result_is_inside() {
        assert_eq!(partition("u a+x u s n t-x u"), "P0 G1-5 P6");
        // What comes after the last result is outside.
        assert_eq!(partition("a+x t-x s u"), "G0-1 P2 P3");
    }

    #[test]
    fn the_lines_of_a_response_are_one_atom() {
        assert_eq!(partition("u a/r a/r a/s"), "P0 P1-2 | P3");
        // Use, result, use, result.
        assert_eq!(partition("a/r a/r+x u-x a/r+y u-y u"), "G0-4 P5");
        assert_eq!(partition("a/r+x u u-x a/r+y u-y a/s u"), "G0-4 P5 P6");
        // Messages without a response id are responses of their own.
        assert_eq!(partition("a a u"), "P0 P1 P2");
    }

    #[test]
    fn a_person_ends_a_response_that_has_its_results() {
        assert_eq!(partition("a/r u a/r u"), "P0 P1 P2 P3");
        assert_eq!(partition("a/r+x u-x u a/r+y u-y u"), "G0-1 P2 G3-4 P5");
        // Not one that waits, and notes and system messages are no person.
        assert_eq!(partition("a/r+x u a/r+y u-x u-y u"), "G0-4 P5");
        assert_eq!(partition("a/r+x u-x n s a/r u"), "G0-4 P5");
    }

    #[test]
    fn a_call_without_result_is_interrupted_by_the_next_response() {
        assert_eq!(partition("u a+x u a u"), "P0 I1 P2 P3 P4");
        let found = atoms(lines("a+x+y+z t-y a"), GroupingPolicy::default());
        let group = &found.as_slice()[0];
        assert_eq!(group.kind(), AtomKind::Group(GroupState::Interrupted));
        assert_eq!(group.range(), 0..2);
        let calls: Vec<_> = group
            .unanswered()
            .iter()
            .map(|c| (c.message, &*c.id))
            .collect();
        assert_eq!(calls, [(0, "x"), (0, "z")]);
    }

    #[test]
    fn a_late_result_is_alone_and_points_to_its_call() {
        assert_eq!(partition("u a+x a t-x u"), "P0 I1 P2 L3 P4");
        let found = atoms(lines("u a+x a t-x t-x t-y"), GroupingPolicy::default());
        let late: Vec<_> = found.iter().flat_map(|atom| atom.late()).collect();
        let late: Vec<_> = late.iter().map(|l| (l.message, &*l.id, l.call)).collect();
        // The second result for x and the one for y answer nothing: orphans.
        assert_eq!(late, [(3, "x", Some(1)), (4, "x", None), (5, "y", None)]);
    }

    #[test]
    fn a_late_result_inside_of_a_group_stays_there() {
        assert_eq!(partition("a+x a a+y t-x t-y u"), "I0 P1 G2-4 P5");
        assert_eq!(partition("a+x a a+y t-x-y u"), "I0 P1 G2-3 P4");
        let found = atoms(lines("a+x a a+y t-x-y u"), GroupingPolicy::default());
        assert_eq!(found.as_slice()[2].late()[0].call, Some(0));
        // A response that brings a late result itself.
        assert_eq!(partition("a+x a-x u"), "I0 L1 P2");
    }

    #[test]
    fn neighbouring_lines_that_call_are_one_group_when_results_show_it() {
        assert_eq!(partition("a+x a+y t-x t-y u"), "G0-3 P4");
        assert_eq!(partition("a+x a+y t-y t-x u"), "G0-3 P4");
        assert_eq!(partition("u a+x a+y t-x-y a"), "P0 G1-3 P4");
        assert_eq!(partition("a+x a+y+z a+w t-w u t-z t-x a"), "I0-6 P7");
        // Notes do not separate them.
        assert_eq!(partition("a+x n a+y t-x n t-y u"), "G0-5 P6");
        // One id for both.
        assert_eq!(partition("a+x a+x t-x t-x u"), "G0-3 P4");
        // More than are looked through one by one.
        let calls: String = (0..20).map(|n| format!("a+{n} ")).collect();
        let results: String = (0..20).map(|n| format!("t-{n} ")).collect();
        assert_eq!(partition(&format!("{calls}{results}u")), "G0-39 P40");
        // Without a result that shows it, each line is a response of its own.
        assert_eq!(partition("a+x a+y t-y u a"), "I0 G1-2 P3 P4");
        assert_eq!(partition("a+w a+x a+y t-x a"), "I0 I1-3 P4");
        // Whatever else is said separates them, and so does a response id.
        for between in ["u", "s", "a", "t-o"] {
            let found = partition(&format!("a+x {between} a+y t-x t-y u"));
            assert_eq!(found.split(' ').nth(2), Some("G2-4"), "{between}: {found}");
        }
        assert_eq!(partition("a/r+x a/s+y t-x t-y u"), "I0 G1-3 P4");
        assert_eq!(partition("a/r+x a+y t-x t-y u"), "I0 G1-3 P4");
        assert_eq!(partition("a+x a/r+y t-x t-y u"), "I0 G1-3 P4");
        // At the head all of them are open.
        assert_eq!(partition("u a+x a+y"), "P0 | O1 O2");
        assert_eq!(partition("u a+x a+y t-x"), "P0 | O1-3");
        assert_eq!(partition("u a+x a+y t-y"), "P0 | O1 G2-3");
    }

    #[test]
    fn each_late_result_finds_a_call_of_its_id() {
        let calls = |script: &str| -> Vec<Option<usize>> {
            let atoms = atoms(lines(script), GroupingPolicy::default());
            let late = atoms.iter().flat_map(|atom| atom.late());
            late.map(|late| late.call).collect()
        };
        assert_eq!(calls("a+x a+x a t-x t-x"), [Some(1), Some(0)]);
        assert_eq!(
            calls("a+x u a+x u a+x+x a t-x-x t-x t-x t-x"),
            [Some(4), Some(4), Some(2), Some(0), None]
        );
        assert_eq!(calls("a+x a t-x a+x a t-x t-x"), [Some(0), Some(3), None]);
    }

    #[test]
    fn a_reused_id_belongs_to_the_nearest_call_that_waits() {
        assert_eq!(partition("a+x t-x a+x t-x u"), "G0-1 G2-3 P4");
        // The first x was never answered; the third result answers it, late.
        let found = atoms(lines("a+x u a+x t-x u t-x"), GroupingPolicy::default());
        assert_eq!(shown(&found), "I0 P1 G2-3 P4 L5");
        assert_eq!(found.as_slice()[4].late()[0].call, Some(0));
        // Twice in one response: two results are due.
        assert_eq!(partition("a+x+x t-x u t-x u"), "G0-3 P4");
        assert_eq!(partition("a+x+x t-x a"), "I0-1 P2");
        // A result before its call answers nothing.
        assert_eq!(partition("t-x a+x u"), "L0 | O1 P2");
    }

    #[test]
    fn only_the_head_is_open_and_unsettled() {
        assert_eq!(partition("u a+x"), "P0 | O1");
        assert_eq!(partition("u a+x+y t-x u"), "P0 | O1-2 P3");
        assert_eq!(partition("a+x u a+y"), "I0 P1 | O2");
        // Answered, but the response may go on; without an id it cannot.
        assert_eq!(partition("u a/r+x t-x"), "P0 | G1-2");
        assert_eq!(partition("u a+x t-x"), "P0 G1-2");
        assert_eq!(partition("u a/r"), "P0 | P1");
        assert_eq!(partition("u a"), "P0 P1");
        let found = atoms(lines("a+x+y t-y"), GroupingPolicy::default());
        let waiting: Vec<_> = found.as_slice()[0]
            .unanswered()
            .iter()
            .map(|c| &*c.id)
            .collect();
        assert_eq!(waiting, ["x"]);
        assert_eq!(found.settled_end(), found.start());
    }

    #[test]
    fn a_wider_grouping_lets_responses_pass() {
        assert_eq!(within(1, "a+x a t-x u"), "G0-2 P3");
        assert_eq!(within(1, "a+x a a t-x u"), "I0 P1 P2 L3 P4");
        assert_eq!(within(2, "a+x a a t-x u"), "G0-3 P4");
        assert_eq!(within(u32::MAX, "a+x a a a u t-x u"), "G0-5 P6");
        // Interleaved groups become one atom.
        assert_eq!(within(1, "a+x a+y t-x t-y u"), "G0-3 P4");
        assert_eq!(within(1, "a+x u a+y t-x t-y u"), "G0-4 P5");
        // Nested ones too; a neighbour stays apart.
        assert_eq!(within(1, "a+x a+y t-y t-x a+z t-z u"), "G0-3 G4-5 P6");
        // Within its allowance a group is open, and so is everything behind its call.
        assert_eq!(within(1, "u a+x u a u"), "P0 | O1 P2 P3 P4");
        assert_eq!(within(1, "a+x+w u a+y t-x a t-y u"), "I0-5 P6");
        // Neighbouring lines that call count as one response.
        assert_eq!(within(1, "a+x a+y a+z u a+w t-w t-x a"), "I0-6 P7");
        assert_eq!(within(1, "a+x a+x t-x t-x u"), "G0-3 P4");
    }

    #[test]
    fn calls_of_others_and_notes_do_no_harm() {
        // Whoever calls responds.
        assert_eq!(partition("u+x t-x a"), "G0-1 P2");
        let mut messages = lines("a+x n-x t-x u");
        messages[1].calls.push("y".to_owned());
        assert_eq!(
            shown(&atoms(&messages, GroupingPolicy::default())),
            "G0-2 P3"
        );
        let found = atoms(&messages, GroupingPolicy::default());
        assert_eq!(found.as_slice()[0].messages(), 2);
    }

    #[test]
    fn draining_takes_what_is_settled_and_nothing_else() {
        let messages = lines("u a+x t-x u a+y u");
        let mut builder = AtomBuilder::starting_at(100, GroupingPolicy::default());
        let mut drained = Vec::new();
        for message in &messages {
            builder.push(message);
            drained.extend(builder.drain_settled());
        }
        assert_eq!(builder.position(), 106);
        let ranges: Vec<_> = drained.iter().map(Atom::range).collect();
        assert_eq!(ranges, [100..101, 101..103, 103..104]);
        let rest = builder.finish();
        assert_eq!(shown(&rest), "| O104 P105");
        assert_eq!(rest.range(), 104..106);
        assert_eq!(rest.atom_of(105).map(Atom::range), Some(105..106));
        assert_eq!(rest.atom_of(103), None);
    }
}

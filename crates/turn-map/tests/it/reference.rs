//! A simple implementation of the rules in quadratic time, to compare with the builder.

use std::ops::Range;

use proptest::prelude::*;
use turn_map::Role;

use crate::parts::{Msg, call, result};

/// Few ids, so that ids are reused, and calls are answered late, twice or not at all.
fn ids(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d"]), 0..=most)
        .prop_map(|ids| ids.into_iter().map(str::to_owned).collect())
}

fn message() -> impl Strategy<Value = Msg> {
    let turn = prop::option::of(0..3_u64);
    let response = prop::option::of(prop::sample::select(vec!["r", "s"]));
    let kind = prop_oneof![
        3 => (Just((Role::Assistant, false)), ids(3), ids(0)),
        1 => (Just((Role::Assistant, false)), ids(1), ids(1)),
        3 => (prop::sample::select(vec![(Role::Tool, false), (Role::User, false)]), ids(0), ids(2)),
        2 => (Just((Role::User, false)), ids(0), ids(0)),
        1 => (prop::sample::select(vec![(Role::System, false), (Role::User, true)]), ids(1), ids(1)),
    ];
    (kind, turn, response).prop_map(|(((role, note), calls, results), turn, response)| {
        let calls = calls.into_iter().map(call);
        let parts = calls.chain(results.into_iter().map(result));
        Msg {
            note,
            turn,
            response: response.map(str::to_owned),
            ..Msg::new(role, parts.collect())
        }
    })
}

pub(crate) fn conversation() -> impl Strategy<Value = Vec<Msg>> {
    prop::collection::vec(message(), 0..40)
}

#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) atoms: Vec<Range<usize>>,
    /// Positions of calls and of their results.
    pub(crate) pairs: Vec<(usize, usize)>,
    /// Positions of late results, with the position of the interrupted call if there is one.
    pub(crate) late: Vec<(usize, Option<usize>)>,
    /// Positions of unanswered calls.
    pub(crate) unanswered: Vec<usize>,
}

struct Call {
    id: String,
    message: usize,
    response: usize,
    batch: usize,
    answered: bool,
    answered_late: bool,
}

fn is_line(message: &Msg) -> bool {
    message.role == Role::Assistant
        && message.response.is_none()
        && message.calls().next().is_some()
}

pub(crate) fn reference(messages: &[Msg]) -> Reference {
    let mut groups: Vec<Range<usize>> = Vec::new(); // one a response
    let mut calls: Vec<Call> = Vec::new();
    // Neighbouring assistant messages with calls and without a response id are one batch, which ends as a whole. The
    // transcript does not show whether they are one response or several.
    let mut batches = 0;
    let mut before_was_line = false;
    let mut run: Option<String> = None;
    let (mut pairs, mut late) = (Vec::new(), Vec::new());
    for (position, message) in messages.iter().enumerate() {
        if message.note {
            continue;
        }
        if message.role == Role::Assistant || message.calls().next().is_some() {
            let line = is_line(message);
            if run.is_some() && run == message.response {
                groups.last_mut().unwrap().end = position + 1;
            } else {
                groups.push(position..position + 1);
                run.clone_from(&message.response);
                batches += usize::from(!(line && before_was_line));
            }
            calls.extend(message.calls().map(|id| Call {
                id: id.clone(),
                message: position,
                response: groups.len() - 1,
                batch: batches,
                answered: false,
                answered_late: false,
            }));
        } else if message.role == Role::User && message.results().next().is_none() {
            let newest = groups.len().wrapping_sub(1);
            if !calls
                .iter()
                .any(|call| call.response == newest && !call.answered)
            {
                run = None;
            }
        }
        before_was_line = is_line(message);
        for id in message.results() {
            let open = |call: &Call| call.batch >= batches;
            let waits = |call: &&mut Call| call.id == *id && !call.answered;
            if let Some(call) = calls.iter_mut().rev().filter(waits).find(|call| open(call)) {
                call.answered = true;
                pairs.push((call.message, position));
                groups[call.response].end = position + 1;
            } else {
                // Each result answers one call, the nearest one first.
                let call = calls
                    .iter_mut()
                    .filter(|call| call.id == *id && !call.answered && !open(call))
                    .filter(|call| !call.answered_late)
                    .max_by_key(|call| (call.response, call.message));
                late.push((position, call.as_ref().map(|call| call.message)));
                if let Some(call) = call {
                    call.answered_late = true;
                }
            }
        }
    }
    let mut atoms: Vec<Range<usize>> = Vec::new();
    for position in 0..messages.len() {
        let joined = groups
            .iter()
            .any(|group| group.start < position && position < group.end);
        match atoms.last_mut() {
            Some(last) if joined => last.end = position + 1,
            _ => atoms.push(position..position + 1),
        }
    }
    let unanswered = calls
        .iter()
        .filter(|c| !c.answered)
        .map(|c| c.message)
        .collect();
    Reference {
        atoms,
        pairs,
        late,
        unanswered,
    }
}

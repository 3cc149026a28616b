//! Outcomes of calls: errors, refusals, answers, reports.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::conventions::{AgentConventions, Rejection, ToolAction};
use memory_model::{Seq, SeqRange};

use crate::item::{COMMAND, Gathered, Item, Kind, PASTED, TYPED, TYPED_BYTES};
use crate::text::{clip, squeeze, verbatim};
use crate::tool_call::{Call, RESULT_BYTES, command, errors, is_exit_code, last_lines};

/// Beginning of the line of a call that the user refused.
pub(crate) const REFUSAL: &str = "(refused ";

/// Number of characters of a call's questions that an answer holds if it repeats them.
const ASKED_CHARS: usize = 20;

/// Number of different commands whose outputs end with the same line, from which the line is no outcome.
const NOISE: usize = 3;

/// The calls so far, and those whose results are awaited.
pub(crate) struct Calls<'a> {
    pub(crate) conventions: &'a dyn AgentConventions,
    /// Awaited calls by id, each with the index of its item.
    pub(crate) open: BTreeMap<&'a str, (usize, Call)>,
    /// Indices of the items of the current run of calls.
    pub(crate) group: Vec<usize>,
    /// Index of the last item with the state of a task list.
    pub(crate) tasks: Option<usize>,
    /// Paths in which calls searched, with the number of the piece.
    pub(crate) searched: Vec<(String, usize)>,
    /// Whether a call failed and nobody has said anything since.
    pub(crate) trouble: bool,
    /// Texts with which programs reported refusals.
    pub(crate) refusals: BTreeSet<String>,
    /// Indices of items whose outcome is a line of an output, with the output's last lines.
    pub(crate) outputs: Vec<(usize, Vec<String>)>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(conventions: &'a dyn AgentConventions) -> Self {
        Self {
            conventions,
            open: BTreeMap::new(),
            group: Vec::new(),
            tasks: None,
            searched: Vec::new(),
            trouble: false,
            refusals: BTreeSet::new(),
            outputs: Vec::new(),
        }
    }
}

/// Replaces outcomes that end the outputs of several commands by the line before them.
pub(crate) fn telling_ends(gathered: &mut Gathered, outputs: &[(usize, Vec<String>)]) {
    let mut commands: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (at, ends) in outputs {
        let Some(item) = gathered.items.get(*at) else {
            continue;
        };
        let command = item.lines.first().map_or("", |line| command(line));
        let head: Vec<&str> = command.split(' ').take(2).collect();
        for line in ends {
            let ended = commands.entry(line).or_default();
            ended.insert(head.join(" "));
        }
    }
    let noise = |line: &String| {
        let ended = commands.get(line.as_str());
        ended.is_some_and(|ended| ended.len() >= NOISE)
    };
    for (at, ends) in outputs {
        if let Some(item) = gathered.items.get_mut(*at)
            && ends.first().is_some_and(&noise)
        {
            item.outcome = ends
                .iter()
                .find(|line| !noise(line))
                .cloned()
                .into_iter()
                .collect();
        }
    }
}

/// Notes at each failed command which later call ran the same command without an error.
pub(crate) fn resolve(items: &mut [Item]) {
    let mut later: BTreeMap<String, Seq> = BTreeMap::new();
    for item in items.iter_mut().rev() {
        let [line] = item.lines.as_slice() else {
            continue;
        };
        match item.kind {
            Kind::Act if item.runs() && item.weight > 0 => {
                later.insert(format!("{COMMAND} {line}"), item.range.first);
            }
            Kind::Error => item.later = item.later.or(later.get(line).copied()),
            _ => {}
        }
    }
}

/// The outcome of a command: its whole output if that is short, else the last line; and the last lines
/// from which it was chosen.
fn outcome(text: &str) -> (Vec<String>, Vec<String>) {
    let text = text.trim();
    let mut ends = Vec::new();
    if let Some(line) = text.lines().take(200).find(|line| is_commit(line)) {
        return (vec![squeeze(line)], ends);
    }
    let lines: Vec<String> = if text.len() < 160 && text.lines().count() <= 3 {
        let lines = text.lines().map(squeeze);
        lines.filter(|line| !line.is_empty()).collect()
    } else {
        ends = last_lines(text);
        ends.first().cloned().into_iter().collect()
    };
    (lines, ends)
}

/// Whether a line tells of a commit: `[main 1a2b3c4] Subject`.
fn is_commit(line: &str) -> bool {
    let inside = line
        .strip_prefix('[')
        .and_then(|line| line.split_once("] "));
    let id = inside.and_then(|(inside, _)| inside.rsplit_once(' '));
    id.is_some_and(|(_, id)| id.len() >= 7 && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Adds the result of a call.
pub(crate) fn result(
    gathered: &mut Gathered,
    calls: &mut Calls<'_>,
    range: SeqRange,
    call_id: &str,
    text: &str,
    failed: bool,
) {
    let call = calls.open.get(call_id);
    let told = call.map(|(_, call)| &call.told);
    let outcome = calls.conventions.tool_result(told, text, failed);
    let text: &str = &outcome.text;
    if let Some((at, call)) = call
        && call.is(ToolAction::AskUser)
        && !failed
    {
        // The answers name the questions.
        let begins: String = call.about.chars().take(ASKED_CHARS).collect();
        if let Some(act) = gathered.items.get_mut(*at)
            && text.contains(&begins)
        {
            act.weight = 0;
        }
        let said = verbatim(text, RESULT_BYTES, RESULT_BYTES);
        let mut item = Item::new(range, Kind::User, "User", 90).with_lines(said);
        if item.bytes() > TYPED_BYTES {
            item.weight = PASTED;
        }
        gathered.push(item);
        return;
    }
    let output = match call {
        Some((_, call)) if call.is(ToolAction::RunCommand) && !failed => errors(text),
        _ => Vec::new(),
    };
    if failed || !output.is_empty() {
        calls.trouble = match outcome.rejection {
            Some(rejection) => refusal(gathered, call, range, rejection, &mut calls.refusals),
            None => error(gathered, call, range, text, output),
        };
        return;
    }
    let Some((at, call)) = call else { return };
    if let Some(ends) = succeeded(gathered, *at, call, text) {
        calls.outputs.push((*at, ends));
    }
}

/// Adds the outcome of a call that did not fail. Returns the last lines of the output from which it was
/// chosen.
fn succeeded(gathered: &mut Gathered, at: usize, call: &Call, text: &str) -> Option<Vec<String>> {
    let item = gathered.items.get_mut(at)?;
    let all = |text: &str| verbatim(text, RESULT_BYTES, RESULT_BYTES);
    let short = text.len() < 200 && text.lines().count() <= 2;
    let mut last = None;
    if call.is(ToolAction::Delegate) {
        item.outcome = all(text);
    } else if call.is(ToolAction::RunCommand) && (!call.looks || short) {
        // What a look showed is no outcome, unless it is short.
        let (outcome, ends) = outcome(text);
        item.outcome = outcome;
        last = Some(ends);
    }
    let told = item.outcome.len() > 3 || (text.len() < 160 && !item.outcome.is_empty());
    if !call.is(ToolAction::UpdateTasks) && !told {
        item.detail.extend(all(text));
    }
    last
}

/// A call, named as in `Read: a.rs` or `$ ls`.
fn about(call: Option<&(usize, Call)>) -> String {
    match call {
        Some((_, call)) if call.about.is_empty() => call.name.clone(),
        Some((_, call)) if call.label() == COMMAND => format!("{COMMAND} {}", call.about),
        Some((_, call)) => format!("{}: {}", call.name, call.about),
        None => "a tool".to_owned(),
    }
}

/// Adds a call that the user refused, with its changes and the user's reason. Returns whether there is
/// a reason.
fn refusal(
    gathered: &mut Gathered,
    call: Option<&(usize, Call)>,
    range: SeqRange,
    Rejection { notice, reason }: Rejection<'_>,
    seen: &mut BTreeSet<String>,
) -> bool {
    let mut refused = clip(&about(call), 240);
    if let Some((_, call)) = call
        && !call.changed.is_empty()
    {
        refused.push_str(&format!(" → {}", clip(&call.changed.join(" | "), 160)));
    }
    let mut lines = vec![format!("{REFUSAL}{refused})")];
    lines.extend(verbatim(reason, RESULT_BYTES, RESULT_BYTES));
    let told = lines.len() > 1;
    let file = call.and_then(|(_, call)| call.path());
    let mut item = Item::new(range, Kind::User, "User", TYPED).with_lines(lines);
    item.file = file.map(str::to_owned);
    gathered.push(item);
    if let Some((at, _)) = call
        && let Some(act) = gathered.items.get_mut(*at)
    {
        // The refusal names the call; a plan or the like is told, too.
        match act.lines.len() > 2 {
            true => act.outcome = vec!["refused by the user".to_owned()],
            false => act.weight = 0,
        }
    }
    // The words in which a program reports it tell something once.
    if seen.insert(squeeze(notice)) {
        let name = call.map_or("a tool", |(_, call)| &call.name);
        let mut item = Item::new(range, Kind::Error, "Error", 5).with_lines(vec![name.to_owned()]);
        item.outcome = verbatim(notice, RESULT_BYTES, RESULT_BYTES);
        gathered.items.push(item);
    }
    told
}

/// Adds a call that failed or whose output reports errors. Returns whether it is more than a search
/// without hits.
fn error(
    gathered: &mut Gathered,
    call: Option<&(usize, Call)>,
    range: SeqRange,
    text: &str,
    output: Vec<String>,
) -> bool {
    let all = || verbatim(text, RESULT_BYTES, RESULT_BYTES);
    // A search that finds nothing fails, too, and says nothing.
    let says = |line: &&str| !line.trim().is_empty() && !is_exit_code(line);
    let looks = call.is_some_and(|(_, call)| call.looks);
    let miss = output.is_empty() && looks && text.lines().filter(says).count() == 0;
    let weight = match output.is_empty() {
        true if miss => 12,
        true if looks => 28,
        true => 40,
        false => 34,
    };
    let mut item = Item::new(range, Kind::Error, "Error", weight).with_lines(vec![about(call)]);
    if output.is_empty() {
        item.outcome = all();
    } else {
        item.outcome = output;
        item.detail = all();
    }
    if let Some((at, call)) = call
        && let Some(act) = gathered.items.get_mut(*at)
    {
        // The error names the call; the call need not be told twice.
        act.weight = 0;
        item.detail.splice(0..0, std::mem::take(&mut act.detail));
        item.file = call.path().map(str::to_owned);
    }
    gathered.items.push(item);
    !miss
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_known_by_their_id() {
        assert!(is_commit("[feat/x 9643da7] fix(cache): y"));
        assert!(is_commit("[main (root-commit) 9643da7] x"));
        assert!(!is_commit("[lint] 0 issues") && !is_commit("[x later] y"));
    }
}

//! What came of calls: outcomes, errors, refusals, answers, reports.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::SeqRange;

use crate::item::{Gathered, Item, Kind, PASTED, TYPED, TYPED_BYTES};
use crate::text::{clip, squeeze, verbatim};
use crate::tool_call::{Call, RESULT_BYTES, command, errors, is_exit_code, last_lines};

/// Begins the line of a call that the user refused.
pub(crate) const REFUSAL: &str = "(refused ";

/// Answers that hold so many characters of a call's questions hold the questions.
const ASKED_CHARS: usize = 20;

/// A line that ends the outputs of so many different commands is no outcome.
const NOISE: usize = 3;

/// How a tool's result says that the user refused the call (Claude Code's words), and what comes
/// before the user's reason.
const REFUSED: &str = "The user doesn't want to";
const REASON: &str = "the user said:";

/// What Claude Code says around a user's answers.
const ANSWERED: &str = "User has answered your questions: ";
const ANSWERED_END: &str = ". You can now continue with the user's answers in mind.";
const NOTES: &str = "\" user notes: ";

/// What is known of the calls while their results are awaited.
#[derive(Default)]
pub(crate) struct Calls<'a> {
    /// By id: the item, and what it does.
    pub(crate) open: BTreeMap<&'a str, (usize, Call)>,
    /// The items of the present run of calls.
    pub(crate) group: Vec<usize>,
    /// The last item that tells the state of a list of tasks.
    pub(crate) tasks: Option<usize>,
    /// Something went wrong and nobody has said anything since.
    pub(crate) trouble: bool,
    /// In which words refusals were reported.
    pub(crate) refusals: BTreeSet<String>,
    /// Items whose outcome is a line of some output, and that output's last lines.
    pub(crate) outputs: Vec<(usize, Vec<String>)>,
}

/// Where a line ends the outputs of several commands it says nothing of any of them: the line
/// before it does.
pub(crate) fn telling_ends(found: &mut Gathered, outputs: &[(usize, Vec<String>)]) {
    let mut commands: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (at, ends) in outputs {
        let Some(item) = found.items.get(*at) else {
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
        if let Some(item) = found.items.get_mut(*at)
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

/// How a command ended: all it said when that is short, else its last line; and the last lines
/// that this was chosen from.
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
    match lines.first() {
        Some(line) if line.starts_with("(no output") => (Vec::new(), Vec::new()),
        _ => (lines, ends),
    }
}

/// Whether a line tells of a commit: `[main 1a2b3c4] Subject`.
fn is_commit(line: &str) -> bool {
    let inside = line
        .strip_prefix('[')
        .and_then(|line| line.split_once("] "));
    let id = inside.and_then(|(inside, _)| inside.rsplit_once(' '));
    id.is_some_and(|(_, id)| id.len() >= 7 && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// What came of a call.
pub(crate) fn result(
    found: &mut Gathered,
    calls: &mut Calls<'_>,
    range: SeqRange,
    call_id: &str,
    text: &str,
    failed: bool,
) {
    let call = calls.open.get(call_id);
    if let Some((at, call)) = call
        && call.asks
        && !failed
    {
        // The answers name the questions.
        let begins: String = call.about.chars().take(ASKED_CHARS).collect();
        if let Some(act) = found.items.get_mut(*at)
            && text.contains(&begins)
        {
            act.weight = 0;
        }
        let said = verbatim(&answers(text), RESULT_BYTES, RESULT_BYTES);
        let mut item = Item::new(range, Kind::User, "User", 90).with_lines(said);
        if item.bytes() > TYPED_BYTES {
            item.weight = PASTED;
        }
        found.push(item);
        return;
    }
    let output = match call {
        Some((_, call)) if call.command && !failed => errors(text),
        _ => Vec::new(),
    };
    if failed || !output.is_empty() {
        let refused = failed && text.contains(REFUSED);
        calls.trouble = match refused {
            true => refusal(found, call, range, text, &mut calls.refusals),
            false => error(found, call, range, text, output),
        };
        return;
    }
    let Some((at, call)) = call else { return };
    let Some(item) = found.items.get_mut(*at) else {
        return;
    };
    let all = |text: &str| verbatim(text, RESULT_BYTES, RESULT_BYTES);
    if call.delegates {
        item.outcome = all(report(text));
    } else if call.command && (!call.looks || (text.len() < 200 && text.lines().count() <= 2)) {
        // What a look showed is no outcome, unless it is short.
        let (outcome, ends) = outcome(text);
        item.outcome = outcome;
        calls.outputs.push((*at, ends));
    }
    let told = item.outcome.len() > 3 || (text.len() < 160 && !item.outcome.is_empty());
    if !call.tasks && !told {
        item.detail.extend(all(text));
    }
}

/// A call, named as in `Bash: ls`.
fn about(call: Option<&(usize, Call)>) -> String {
    match call {
        Some((_, call)) if call.about.is_empty() => call.name.clone(),
        Some((_, call)) => format!("{}: {}", call.name, call.about),
        None => "a tool".to_owned(),
    }
}

/// A call that the user refused: with what it would have changed, and the user's reason. Whether
/// there is one.
fn refusal(
    found: &mut Gathered,
    call: Option<&(usize, Call)>,
    range: SeqRange,
    text: &str,
    seen: &mut BTreeSet<String>,
) -> bool {
    // The notice is told with its last words, the reason by itself.
    let reason = text.split_once(REASON).map_or("", |(_, reason)| reason);
    let notice = text.strip_suffix(reason).unwrap_or(text);
    let mut refused = clip(&about(call), 240);
    if let Some((_, call)) = call
        && !call.changed.is_empty()
    {
        refused.push_str(&format!(" → {}", clip(&call.changed.join(" | "), 160)));
    }
    let mut lines = vec![format!("{REFUSAL}{refused})")];
    lines.extend(verbatim(reason, RESULT_BYTES, RESULT_BYTES));
    let told = lines.len() > 1;
    let file = call.and_then(|(_, call)| call.files.first());
    let mut item = Item::new(range, Kind::User, "User", TYPED).with_lines(lines);
    item.file = file.map(|(path, _)| path.clone());
    found.push(item);
    if let Some((at, _)) = call
        && let Some(act) = found.items.get_mut(*at)
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
        found.items.push(item);
    }
    told
}

/// A call that failed, or whose output reports errors. Whether that is trouble.
fn error(
    found: &mut Gathered,
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
        found.name(text);
    } else {
        item.outcome = output;
        item.detail = all();
    }
    if let Some((at, call)) = call
        && let Some(act) = found.items.get_mut(*at)
    {
        // The error names the call; the call need not be told twice.
        act.weight = 0;
        item.detail.splice(0..0, std::mem::take(&mut act.detail));
        item.file = call.files.first().map(|(path, _)| path.clone());
    }
    found.items.push(item);
    !miss
}

/// The user's answers without what the program says around them (Claude Code's words), and without
/// notes that say the answer again.
fn answers(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix(ANSWERED).unwrap_or(text);
    let mut rest = text.strip_suffix(ANSWERED_END).unwrap_or(text);
    let mut out = String::with_capacity(rest.len());
    while let Some((before, notes)) = rest.split_once(NOTES) {
        out.push_str(before);
        out.push('"');
        let answer = before.rsplit_once("=\"").map_or("", |(_, answer)| answer);
        rest = match notes.strip_prefix(answer) {
            Some(after) if !answer.is_empty() => after,
            _ => {
                out.push_str(NOTES.trim_start_matches('"'));
                notes
            }
        };
    }
    out.push_str(rest);
    out
}

/// What an agent reports, without what the program adds (Claude Code's words).
fn report(text: &str) -> &str {
    let mut text = text.trim_end();
    for mark in ["\n<usage>", "\nagentId: "] {
        if let Some((before, after)) = text.rsplit_once(mark)
            && after.len() < 400
        {
            text = before.trim_end();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_ends_where_the_program_begins() {
        assert_eq!(
            report("All done.\nagentId: a1\n<usage>1</usage>"),
            "All done."
        );
        assert_eq!(report("All done.\n<usage>1</usage>"), "All done.");
        assert_eq!(report("<usage> is a tag"), "<usage> is a tag");
        let long = format!("See:\nagentId: {}", "x".repeat(400));
        assert_eq!(report(&long), long);
    }

    #[test]
    fn notes_that_say_something_else_are_told() {
        assert_eq!(
            answers("\"A?\"=\"x\" user notes: y, \"B?\"=\"z\" user notes: z"),
            "\"A?\"=\"x\" user notes: y, \"B?\"=\"z\""
        );
    }

    #[test]
    fn commits_are_known_by_their_id() {
        assert!(is_commit("[feat/x 9643da7] fix(cache): y"));
        assert!(is_commit("[main (root-commit) 9643da7] x"));
        assert!(!is_commit("[lint] 0 issues") && !is_commit("[x later] y"));
    }
}

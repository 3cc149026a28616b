//! Reads a source and gathers the items of an extract, each with a weight. An item is a candidate line, such as a
//! message, a call or an error.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::conventions::{AgentConventions, Shell, ToolAction};
use memory_model::{EntryKind, LogEntry, Part, ResultContent, Role, SeqRange};

use crate::item::{
    Gathered, INJECTED, INJECTED_LABEL, INSTRUCTIONS, Item, Kind, PASTED, PASTED_LABEL, TYPED,
    TYPED_BYTES,
};
use crate::listing::split_listing;
use crate::paragraphs::unwrapped;
use crate::parse;
use crate::ran::Ran;
use crate::results::{self, Calls};
use crate::shell;
use crate::source::Source;
use crate::standing;
use crate::tasks;
use crate::text::{clip, is_decision, is_nod, is_step, sentences, squeeze, verbatim};
use crate::tool_call::Call;
use sentence_model::is_unspaced;

/// Length below which a user's line may be an answer that is unclear without the question, in characters. A character
/// of a script with short words, such as Chinese, counts as three.
const ANSWER: usize = 32;
/// Maximum length of the question that is added to a user's short answer, in characters.
const ANSWERED: usize = 160;

/// Minimum length of messages that count as written by a program if they begin alike, in bytes.
const TEMPLATE_BYTES: usize = 300;
/// Length of the common beginning of a program's long messages, in characters. It is longer than a phrase such as `Glad
/// to hear that. Now,`.
const TEMPLATE_BEGIN: usize = 64;

/// Maximum number of bytes that are read at the start of a text. For a user's text the maximum is twice as large.
const HEAD_BYTES: usize = 96 * 1024;
/// Maximum number of bytes that are read at the end of a text. For a user's text the maximum is twice as large.
const TAIL_BYTES: usize = 32 * 1024;

/// Gathers the items (candidate lines of an extract) from the messages and summaries to summarize.
pub(crate) fn gather(source: &[Source<'_>], conventions: &dyn AgentConventions) -> Gathered {
    let mut gathered = Gathered::default();
    add(&mut gathered, source, conventions);
    gathered.forgotten = standing::apply(&mut gathered.items);
    gathered
}

/// Adds the items (candidate lines) of further messages and summaries. Users' messages are not separated into rules and other
/// sentences yet.
pub(crate) fn add(
    gathered: &mut Gathered,
    source: &[Source<'_>],
    conventions: &dyn AgentConventions,
) {
    let finals = final_replies(source);
    let mut calls = Calls::new(conventions);
    known_tasks(gathered, &mut calls, 0);
    for (piece, last_word) in source.iter().zip(finals) {
        match piece {
            Source::Summary(summary) => {
                end_group(gathered, &mut calls.group);
                let begin = gathered.items.len();
                parse::summary(gathered, summary, conventions);
                known_tasks(gathered, &mut calls, begin);
            }
            Source::Message(entry) if entry.kind == EntryKind::Message => {
                gathered.messages += 1;
                message(gathered, &mut calls, entry, last_word);
            }
            Source::Message(_) => {}
        }
    }
    end_group(gathered, &mut calls.group);
    add_searched(gathered, std::mem::take(&mut calls.searched));
    demote_templates(gathered);
    results::telling_ends(gathered, &calls.outputs);
    results::usual(&mut gathered.items, &calls.usual);
    results::resolve(&mut gathered.items, &calls.passed);
    results::undone(&mut gathered.items);
}

/// Continues the task lists in the items (candidate lines) from index `begin` on, which come from an earlier summary.
fn known_tasks(gathered: &mut Gathered, calls: &mut Calls<'_>, begin: usize) {
    for at in begin..gathered.items.len() {
        let item = gathered.items.get(at);
        let item = item.filter(|item| item.kind == Kind::Act && !item.runs());
        let list = item.and_then(|item| item.lines.first());
        if let Some(list) = list.filter(|line| tasks::is_list(line)) {
            let all = calls.board.read(list).then(|| calls.board.line());
            results::tasks(gathered, &mut calls.tasks, at, all);
        }
    }
}

/// Adds the paths in which calls searched, except paths of files that are already known by a longer path.
fn add_searched(gathered: &mut Gathered, searched: Vec<(String, usize)>) {
    let ends = |path: &String| {
        let ends = path.match_indices('/');
        let ends = ends.filter_map(|(at, _)| path.get(at + 1..));
        ends.map(str::to_owned).collect::<Vec<_>>()
    };
    let known: BTreeSet<String> = gathered.files.keys().flat_map(ends).collect();
    for (path, place) in searched {
        if !known.contains(&path) {
            gathered.file_at(&path, 0, 1, place);
        }
    }
}

/// Lowers the weight of long messages that begin alike, because a program wrote them.
fn demote_templates(gathered: &mut Gathered) {
    let beginning = |item: &Item| {
        let first = item.lines.first();
        let is_long = item.weight == TYPED && item.bytes() > TEMPLATE_BYTES;
        let long = item.kind == Kind::User && (is_long || item.is_pasted());
        first
            .filter(|_| long)
            .map(|first| clip(first, TEMPLATE_BEGIN))
    };
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for item in &gathered.items {
        if let Some(begin) = beginning(item) {
            *counts.entry(begin).or_default() += 1;
        }
    }
    for item in &mut gathered.items {
        if beginning(item).is_some_and(|begin| counts.get(&begin).is_some_and(|n| *n > 1)) {
            item.weight = PASTED;
        }
    }
}

/// Ends a run of consecutive calls, and raises the weight of its first and last call.
fn end_group(gathered: &mut Gathered, group: &mut Vec<usize>) {
    for at in [group.first(), group.last()].into_iter().flatten() {
        if let Some(item) = gathered.items.get_mut(*at)
            && item.weight > 2
        {
            item.weight += 10;
        }
    }
    group.clear();
}

/// Returns for each piece of the source whether its assistant's text is the last one before the user's turn.
fn final_replies(source: &[Source<'_>]) -> Vec<bool> {
    let mut users_turn = true;
    let mut finals: Vec<bool> = source
        .iter()
        .rev()
        .map(|piece| {
            let Source::Message(entry) = piece else {
                users_turn = true;
                return false;
            };
            let uses_tools = entry
                .parts
                .iter()
                .any(|part| matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. }));
            match entry.role {
                _ if entry.kind == EntryKind::Note => false,
                _ if uses_tools => {
                    users_turn = false;
                    false
                }
                Role::User => {
                    users_turn = true;
                    false
                }
                _ => users_turn,
            }
        })
        .collect();
    finals.reverse();
    finals
}

fn message<'a>(
    gathered: &mut Gathered,
    calls: &mut Calls<'a>,
    entry: &'a LogEntry,
    last_word: bool,
) {
    let mut said = String::new();
    for part in &entry.parts {
        match part {
            Part::Text { text } => {
                if !said.is_empty() {
                    said.push('\n');
                }
                said.push_str(text);
            }
            Part::Image(_) | Part::File(_) => {
                gathered.images += 1;
                if entry.role == Role::User {
                    said.push_str("\n[image or file]");
                }
            }
            _ => {}
        }
    }
    // An assistant's text comes before its calls, because it announces them. A user's text comes after the results.
    if entry.role == Role::Assistant {
        speech(gathered, calls, entry, &said, last_word);
    }
    let range = SeqRange::single(entry.seq);
    let folder = calls.conventions.working_folder(entry.meta.as_ref());
    for part in &entry.parts {
        match part {
            Part::ToolCall {
                id,
                name,
                arguments,
            } => {
                let mut told = calls.conventions.tool_use(name, arguments.as_str());
                if let Some(folder) = &folder {
                    for file in &mut told.files {
                        file.path = shell::joined(folder, &file.path);
                    }
                }
                let used = Call::new(name, told);
                named_paths(gathered, calls, &used, folder.as_deref());
                call(gathered, calls, range, id, used);
            }
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => {
                if let ResultContent::Parts(parts) = content {
                    let media = |part: &&Part| matches!(part, Part::Image(_) | Part::File(_));
                    gathered.images += parts.iter().filter(media).count() as u64;
                }
                results::result(
                    gathered,
                    calls,
                    range,
                    call_id,
                    &content.text(),
                    *is_error == Some(true),
                );
            }
            _ => {}
        }
    }
    if entry.role != Role::Assistant {
        speech(gathered, calls, entry, &said, last_word);
    }
}

/// Adds the text of a message.
fn speech(
    gathered: &mut Gathered,
    calls: &mut Calls<'_>,
    entry: &LogEntry,
    said: &str,
    last_word: bool,
) {
    if said.trim().is_empty() {
        return;
    }
    end_group(gathered, &mut calls.group);
    let range = SeqRange::single(entry.seq);
    let trouble = std::mem::take(&mut calls.trouble);
    match entry.role {
        Role::User => user(gathered, calls.conventions, entry, said),
        Role::Assistant => reply(gathered, range, said, last_word, trouble),
        Role::System | Role::Tool => {
            let (label, weight) = match entry.role {
                Role::System => ("System", 30),
                _ => ("Tool", 8),
            };
            let lines = verbatim(said, HEAD_BYTES, TAIL_BYTES);
            gathered.push(Item::new(range, Kind::Note, label, weight).with_lines(lines));
        }
    }
}

fn user(gathered: &mut Gathered, conventions: &dyn AgentConventions, entry: &LogEntry, said: &str) {
    let range = SeqRange::single(entry.seq);
    let all = |text: &str| verbatim(&unwrapped(text), 2 * HEAD_BYTES, 2 * TAIL_BYTES);
    let text = conventions.user_text(said, entry.meta.as_ref());
    for block in &text.injected {
        let label = match conventions.is_instructions(block) {
            true => INSTRUCTIONS,
            false => INJECTED_LABEL,
        };
        let item = Item::new(range, Kind::Injected, label, INJECTED);
        gathered.push(item.with_lines(all(block)));
    }
    let (typed, listing) = split_listing(&text.typed);
    if !listing.is_empty() {
        let item = Item::new(range, Kind::Injected, PASTED_LABEL, INJECTED);
        gathered.push(item.with_lines(all(&listing)));
    }
    if typed.trim().is_empty() {
        return;
    }
    let label = match &entry.name {
        Some(name) => format!("User {}", squeeze(name)),
        None => "User".to_owned(),
    };
    let weight = match typed.len() > TYPED_BYTES || text.is_document {
        true => PASTED,
        false => TYPED,
    };
    let mut lines = all(&typed);
    if let [line] = lines.as_mut_slice() {
        let length = |c: char| if is_unspaced(c) { 3 } else { 1 };
        if line.chars().map(length).sum::<usize>() < ANSWER
            && let Some(answered) = answered(gathered, line)
        {
            line.push_str(&answered);
        }
    }
    gathered.push(Item::new(range, Kind::User, &label, weight).with_lines(lines));
}

/// Returns the words that a user's short line answers: the last question in the assistant's message before, or its last sentence,
/// and the option that the line names by a number or a letter. Alone, `yes, the second one` does not show the user's wish.
fn answered(gathered: &Gathered, answer: &str) -> Option<String> {
    let reply = gathered.items.last();
    let is_before = gathered.gap != gathered.items.len();
    let reply = reply.filter(|item| item.kind == Kind::Reply && is_before)?;
    let said = sentences(&reply.lines.join("\n"));
    let question = said.iter().rfind(|said| said.ends_with(['?', '？']));
    // An announced step does not count, because a consent to it is not informative.
    let sentence = || question.or(said.last().filter(|said| !is_step(said)));
    let said = match (option(answer, &reply.lines), question) {
        // The question may not be about the list.
        (Some(option), Some(question)) => {
            let question = clip(&squeeze(question), ANSWERED / 2);
            format!("{question} {}", clip(&squeeze(option), ANSWERED / 2))
        }
        (Some(option), None) => clip(&squeeze(option), ANSWERED),
        (None, _) => clip(&squeeze(sentence()?), ANSWERED),
    };
    Some(format!(" (to [{}] {said})", reply.range.last))
}

/// Returns the line of a list that an answer such as `2`, `b)` or `option 2` names.
fn option<'r>(answer: &str, lines: &'r [String]) -> Option<&'r str> {
    let is_mark = |text: &str| {
        let is_letter = text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_letter || matches!(text.len(), 1..=2) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut words = answer.split_whitespace();
    let last = words
        .next_back()?
        .trim_matches(|c: char| !c.is_alphanumeric());
    if words.count() > 1 || !is_mark(last) {
        return None;
    }
    let marked = |line: &&String| {
        let text = line.trim_start_matches(|c: char| !c.is_alphanumeric());
        let (mark, rest) = text.split_at_checked(last.len()).unwrap_or(("", ""));
        let is_option = mark.eq_ignore_ascii_case(last);
        let behind = rest.strip_prefix(['.', ')', ':', '：', '、', '）']);
        is_option && behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_alphanumeric()))
    };
    let indent = |line: &&String| line.len() - line.trim_start().len();
    // Of lists in lists the outer one counts, and of lists one after another the last.
    let outer = lines.iter().rev().filter(marked).min_by_key(indent);
    outer.map(|line| line.trim())
}

fn reply(gathered: &mut Gathered, range: SeqRange, said: &str, last_word: bool, trouble: bool) {
    let said = &*unwrapped(said);
    let all = sentences(said);
    let weight = if is_nod(&all) || (!last_word && all.iter().all(|said| is_step(said))) {
        1
    } else if last_word {
        75
    } else if trouble && (all.len() > 1 || !said.trim_end().ends_with([':', '：'])) {
        // After a failure: the cause of the error, and the next attempt.
        48
    } else if all.iter().any(|sentence| is_decision(sentence)) {
        45
    } else if all.first().is_some_and(|s| s.ends_with([':', '：'])) {
        // A text that ends with a colon announces the call that follows.
        3
    } else if all.len() < 2 {
        2
    } else {
        10
    };
    let lines = verbatim(said, HEAD_BYTES, TAIL_BYTES);
    gathered.push(Item::new(range, Kind::Reply, "Assistant", weight).with_lines(lines));
}

/// Records the path in which a call searches, and the files that a command names. `folder` is the folder in which the
/// calls of the message run.
fn named_paths(gathered: &mut Gathered, calls: &mut Calls<'_>, call: &Call, folder: Option<&str>) {
    if call.is(ToolAction::Search) {
        let (pattern, path) = match call.about.rsplit_once(" in ") {
            Some((pattern, path)) => (pattern, path),
            None => (&*call.about, ""),
        };
        if !pattern.is_empty() {
            gathered.searches.push(pattern.to_owned());
        }
        if call.told.files.is_empty() && path.contains('/') && !path.contains(' ') {
            let path = path.trim_end_matches('/');
            let path = shell::joined(folder.unwrap_or(""), path);
            calls.searched.push((path, gathered.uses));
        }
    }
    if call.is(ToolAction::RunCommand) {
        let patterns = shell::patterns(&call.about);
        gathered.searches.extend(patterns.map(str::to_owned));
        let (cd, command) = shell::split_cd(&call.about);
        let base = match (&call.told.shell, folder) {
            _ if cd == shell::BEFORE => None,
            (Shell::In(folder), _) => Some(&**folder),
            (_, Some(folder)) => Some(folder),
            (Shell::New, None) => Some(""),
            // A `cd` of an earlier call may still apply.
            _ => None,
        };
        for path in shell::files(command) {
            let path = path.strip_prefix("./").unwrap_or(path);
            let path = match base {
                Some(base) => shell::joined(&shell::joined(base, &cd), path),
                None if cd.starts_with('/') => shell::joined(&cd, path),
                None => path.to_owned(),
            };
            calls.searched.push((path, gathered.uses));
        }
    }
}

fn call<'a>(
    gathered: &mut Gathered,
    calls: &mut Calls<'a>,
    range: SeqRange,
    id: &'a str,
    mut call: Call,
) {
    gathered.calls += 1;
    for file in &call.told.files {
        let changed = u32::from(file.changed);
        gathered.file(&file.path, changed, 1 - changed);
    }
    let weight = match () {
        () if call.is(ToolAction::AskUser) => 2,
        () if call.about.is_empty() => 5,
        () if !call.text.is_empty() => 45,
        () if !call.changed.is_empty() => 26,
        // The result of the call shows the list of tasks.
        () if call.is(ToolAction::ChangeTask) => 2,
        () if call.lasting => 42,
        () if call.looks => 6,
        () if !call.told.files.is_empty() => 12,
        () if call.is(ToolAction::RunCommand) => 24,
        () => 28,
    };
    if call.is(ToolAction::RunCommand) {
        gathered.ran.extend(Ran::listed(&call.about));
    }
    let lines = match call.text.is_empty() {
        true => vec![call.about.clone()],
        false => std::mem::take(&mut call.text),
    };
    let mut item = Item::new(range, Kind::Act, call.label(), weight).with_lines(lines);
    item.file = call.path().map(str::to_owned);
    item.outcome.clone_from(&call.changed);
    if !call.tells_all() {
        item.detail = std::mem::take(&mut call.detail);
    }
    gathered.items.push(item);
    let at = gathered.items.len() - 1;
    if call.is(ToolAction::UpdateTasks) {
        results::tasks(gathered, &mut calls.tasks, at, None);
    } else {
        calls.group.push(at);
    }
    calls.open.insert(id, (at, call));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_its_option() {
        let lines = [
            "There are two ways:",
            "1. **In the reader**, for all programs.",
            "2) In the table.",
            "- **B.** Later.",
            "   2. Inner.",
            "1.5 s faster.",
            "20. No.",
        ];
        let lines = lines.map(str::to_owned);
        let of = |answer: &str| option(answer, &lines);
        assert_eq!(of("2"), Some("2) In the table."));
        assert_eq!(
            of("option 1."),
            Some("1. **In the reader**, for all programs.")
        );
        assert_eq!(of("b)"), Some("- **B.** Later."));
        for answer in ["yes", "3", "a", "in 2 of them", "20 files", ""] {
            assert_eq!(of(answer), None, "{answer}");
        }
    }
}

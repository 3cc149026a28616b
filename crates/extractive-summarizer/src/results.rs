//! Outcomes of tool calls: errors, refusals, answers, reports.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use memory_model::conventions::{AgentConventions, Rejection, ToolAction};
use memory_model::{Seq, SeqRange};

use crate::failure::{self, is_exit_code};
use crate::item::{ASKED, COMMAND, Gathered, Item, Kind, PASTED, TASKS, TYPED, TYPED_BYTES};
use crate::parts::LISTED;
use crate::shell::{Does, command};
use crate::tasks::Board;
use crate::text::{clip, squeeze, verbatim, window};
use crate::tool_call::{Call, RESULT_BYTES, errors, last_lines};

/// Beginning of the line of a call that the user refused.
pub(crate) const REFUSAL: &str = "(refused ";

/// Outcome of a call that was interrupted.
pub(crate) const INTERRUPTED: &str = "interrupted";
/// Weight of a failed use of a file that a later call repeated without an error.
const MENDED: u32 = 5;
/// Weight of a failed command that only looks at something.
pub(crate) const LOOKED: u32 = 12;
/// Number of first lines of an output that may be a program's greeting.
const USUAL: usize = 8;

/// Number of characters of a question. An answer that contains them repeats the question.
const ASKED_CHARS: usize = 20;

/// Number of different commands with the same last line of output. From this number on, the line does not count as an
/// outcome.
const NOISE: usize = 3;

/// State of the tool calls read so far.
pub(crate) struct Calls<'a> {
    pub(crate) conventions: &'a dyn AgentConventions,
    /// Calls by call id, each with the index of its item (candidate line).
    pub(crate) open: BTreeMap<&'a str, (usize, Call)>,
    /// Indices of the items (candidate lines) of the current run of calls.
    pub(crate) group: Vec<usize>,
    /// Index of the last item (candidate line) with the state of a task list.
    pub(crate) tasks: Option<usize>,
    /// Task list that the agent changes task by task.
    pub(crate) board: Board,
    /// Paths in which calls searched or that commands name, each with the number of uses of files before.
    pub(crate) searched: Vec<(String, usize)>,
    /// First lines of the outputs of successful commands.
    pub(crate) usual: BTreeSet<String>,
    /// Tests that passed, each with the position of the message that reports it.
    pub(crate) passed: BTreeMap<String, Seq>,
    /// Whether a call failed and no text has followed yet.
    pub(crate) trouble: bool,
    /// Texts in which programs reported refusals.
    pub(crate) refusals: BTreeSet<String>,
    /// Indices of items (candidate lines) with a line of output as their outcome, each with the last lines of the
    /// output.
    pub(crate) outputs: Vec<(usize, Vec<String>)>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(conventions: &'a dyn AgentConventions) -> Self {
        Self {
            conventions,
            open: BTreeMap::new(),
            group: Vec::new(),
            tasks: None,
            board: Board::default(),
            searched: Vec::new(),
            usual: BTreeSet::new(),
            passed: BTreeMap::new(),
            trouble: false,
            refusals: BTreeSet::new(),
            outputs: Vec::new(),
        }
    }
}

/// Replaces each outcome that ends the outputs of several commands by an earlier line, or removes it if there is none.
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

/// Removes lines from errors if the outputs of successful commands have them, too.
pub(crate) fn usual(items: &mut [Item], usual: &BTreeSet<String>) {
    let errors = items.iter_mut().filter(|item| item.kind == Kind::Error);
    for item in errors.filter(|_| !usual.is_empty()) {
        item.outcome = failure::lines(std::mem::take(&mut item.outcome), usual);
    }
}

/// Records at each failed call the later call that resolved it: a command that did at least the same without an error,
/// the passing of the same tests, or a successful use of the same file. Lowers the weight of resolved uses of files.
pub(crate) fn resolve(items: &mut [Item], passed: &BTreeMap<String, Seq>) {
    let mut ran: BTreeMap<String, Vec<(Seq, Does)>> = BTreeMap::new();
    let mut used: BTreeMap<String, Seq> = BTreeMap::new();
    for item in items.iter_mut().rev() {
        let seq = item.range.first;
        let line = item.lines.first().map_or("", String::as_str);
        match item.kind {
            Kind::Act if item.weight == 0 || is_interrupted(item) => {}
            Kind::Act if item.runs() => {
                let does = Does::of(line);
                let programs: BTreeSet<&str> = does.programs().collect();
                for program in programs {
                    let runs = ran.entry(program.to_owned()).or_default();
                    runs.push((seq, does.clone()));
                }
            }
            Kind::Act => {
                let path = item.file.as_deref().unwrap_or(line);
                used.insert(name(path).to_owned(), seq);
            }
            Kind::Error if item.later.is_none() => {
                let line = line
                    .split_once(' ')
                    .map_or("", |(label, line)| match label {
                        COMMAND => line,
                        _ => "",
                    });
                item.later = match line.is_empty() {
                    true => file_of(item).and_then(|path| used.get(name(path)).copied()),
                    false => mended(&Does::of(line), &ran).or_else(|| all_passed(item, passed)),
                };
                if line.is_empty() && item.later.is_some() {
                    item.weight = item.weight.min(MENDED);
                }
            }
            _ => {}
        }
    }
}

/// Returns the first later run that resolves a failed command. Runs of each program in `ran` are latest first.
fn mended(failed: &Does, ran: &BTreeMap<String, Vec<(Seq, Does)>>) -> Option<Seq> {
    let runs = failed
        .programs()
        .last()
        .and_then(|program| ran.get(program));
    let mut runs = runs.into_iter().flatten().rev();
    runs.find(|(_, does)| does.makes_good(failed))
        .map(|(seq, _)| *seq)
}

/// Returns the position of the message in which the last of an error's failed tests passed, if all of them passed
/// later.
fn all_passed(item: &Item, passed: &BTreeMap<String, Seq>) -> Option<Seq> {
    let lines = item.outcome.iter();
    let tests: Vec<(&str, bool)> = lines.flat_map(|line| failure::tests(line)).collect();
    let failed = tests.iter().filter(|(_, passed)| !passed);
    let later = failed.map(|(name, _)| {
        passed
            .get(*name)
            .copied()
            .filter(|seq| *seq > item.range.first)
    });
    later.collect::<Option<Vec<Seq>>>()?.into_iter().max()
}

/// Returns the file of a failed call that runs no command; `None` if the call has no file.
fn file_of(item: &Item) -> Option<&str> {
    let line = item.lines.first()?;
    let told = || line.split_once(": ").map(|(_, path)| path);
    let path = item.file.as_deref().or_else(told)?;
    (!path.contains(' ') && path.contains(['/', '.'])).then_some(path)
}

/// Returns the last component of a path.
fn name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn is_interrupted(item: &Item) -> bool {
    item.outcome.first().is_some_and(|line| line == INTERRUPTED)
}

/// Lowers the weight of edits that a later edit reverts.
pub(crate) fn undone(items: &mut [Item]) {
    let mut open: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    let mut undone = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let (Kind::Act, Some(file), [from, to, ..]) =
            (item.kind, &item.file, item.outcome.as_slice())
        else {
            continue;
        };
        let (Some(from), Some(to)) = (from.strip_prefix("- "), to.strip_prefix("+ ")) else {
            continue;
        };
        let key = |from: &str, to: &str| (file.clone(), from.to_owned(), to.to_owned());
        match open.remove(&key(to, from)) {
            Some(before) => undone.extend([before, at]),
            None => {
                open.insert(key(from, to), at);
            }
        }
    }
    for at in undone {
        if let Some(item) = items.get_mut(at) {
            item.weight = item.weight.min(LISTED);
        }
    }
}

/// Returns a text without the tag that encloses all of it.
fn untagged(text: &str) -> &str {
    let inside = || {
        let (tag, rest) = text.trim().strip_prefix('<')?.split_once('>')?;
        let rest = rest
            .strip_suffix('>')?
            .strip_suffix(tag)?
            .strip_suffix("</")?;
        (!tag.is_empty() && !tag.contains([' ', '<', '/'])).then_some(rest.trim())
    };
    inside().unwrap_or(text)
}

/// Returns the outcome of a command: the line that reports a commit, otherwise the whole output if that is short,
/// otherwise the last line. In the last case, the second value has the last lines, from which the outcome was chosen.
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

/// Returns whether a line reports a commit: `[main 1a2b3c4] Subject`.
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
    let text = untagged(&outcome.text);
    if let Some((_, call)) = call.filter(|_| outcome.is_error || outcome.is_interrupted) {
        for file in &call.told.files {
            let changed = u32::from(file.changed);
            gathered.unused(&file.path, changed, 1 - changed);
        }
    }
    if outcome.is_interrupted {
        if let Some(act) = call.and_then(|(at, _)| gathered.items.get_mut(*at)) {
            act.outcome = vec![INTERRUPTED.to_owned()];
            act.weight = act.weight.min(LISTED);
        }
        return;
    }
    let failed = outcome.is_error;
    if let Some((at, call)) = call
        && call.is(ToolAction::AskUser)
        && !failed
    {
        // If the answers repeat the questions, the call is not printed.
        let begins: String = call.about.chars().take(ASKED_CHARS).collect();
        let begins = begins.split(['?', '？']).next().unwrap_or("");
        if let Some(act) = gathered.items.get_mut(*at)
            && text.contains(begins)
        {
            act.weight = 0;
        }
        let said = verbatim(text, RESULT_BYTES, RESULT_BYTES);
        let mut item = Item::new(range, Kind::User, ASKED, 90).with_lines(said);
        if item.bytes() > TYPED_BYTES {
            item.weight = PASTED;
        }
        gathered.push(item);
        return;
    }
    let output = match call {
        // The output of a command that only looks at something is other people's text.
        Some((_, call)) if call.is(ToolAction::RunCommand) && !failed && !call.looks => {
            errors(text)
        }
        _ => Vec::new(),
    };
    if call.is_some_and(|(_, call)| call.is(ToolAction::RunCommand)) {
        let (head, tail) = window(text, RESULT_BYTES, RESULT_BYTES);
        let tests = [head, tail].into_iter().flat_map(failure::tests);
        let passed = tests.filter(|(_, passed)| *passed);
        let passed = passed.map(|(name, _)| (name.to_owned(), range.first));
        calls.passed.extend(passed);
    }
    if failed || !output.is_empty() {
        calls.trouble = match outcome.rejection {
            Some(rejection) => refusal(gathered, call, range, rejection, &mut calls.refusals),
            None => error(gathered, call, range, text, output),
        };
        return;
    }
    let Some((at, call)) = call else { return };
    if call.is(ToolAction::RunCommand) {
        let lines = text.lines().take(USUAL);
        let lines = lines.map(|line| squeeze(window(line, 400, 0).0));
        calls
            .usual
            .extend(lines.filter(|line| failure::tells(line) > 0));
    }
    if let Some(change) = &call.told.task {
        let created = calls.conventions.created_task(&call.told, text);
        if let Some(id) = change.id.as_deref().or(created) {
            calls.board.apply(change, id);
        }
        let list = calls.board.line();
        tasks(gathered, &mut calls.tasks, *at, Some(list));
        return;
    }
    if let Some(ends) = succeeded(gathered, *at, call, text) {
        calls.outputs.push((*at, ends));
    }
}

/// Marks an item (a candidate line) as the current state of the task list. The item with the previous state is no
/// longer printed.
pub(crate) fn tasks(
    gathered: &mut Gathered,
    newest: &mut Option<usize>,
    at: usize,
    list: Option<String>,
) {
    if let Some(old) = newest.filter(|old| *old != at)
        && let Some(old) = gathered.items.get_mut(old)
    {
        old.weight = 0;
    }
    *newest = Some(at);
    if let Some(item) = gathered.items.get_mut(at) {
        if let Some(list) = list {
            item.lines = vec![list];
            item.detail.clear();
        }
        item.weight = TASKS;
    }
}

/// Adds the outcome of a successful call. Returns the last lines of the output from which the outcome was chosen.
fn succeeded(gathered: &mut Gathered, at: usize, call: &Call, text: &str) -> Option<Vec<String>> {
    let item = gathered.items.get_mut(at)?;
    let all = |text: &str| verbatim(text, RESULT_BYTES, RESULT_BYTES);
    let short = text.len() < 200 && text.lines().count() <= 2;
    let mut last = None;
    if call.is(ToolAction::Delegate) {
        item.outcome = all(text);
    } else if call.is(ToolAction::RunCommand) && (!call.looks || short) {
        // The output of a command that only looks at something is an outcome only if it is short.
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

/// Returns the label and subject of a call: `Read: a.rs` or `$ ls`.
fn about(call: Option<&(usize, Call)>) -> String {
    match call {
        Some((_, call)) if call.about.is_empty() => call.name.clone(),
        Some((_, call)) if call.label() == COMMAND => format!("{COMMAND} {}", call.about),
        Some((_, call)) => format!("{}: {}", call.name, call.about),
        None => "a tool".to_owned(),
    }
}

/// Adds a call that the user refused, with the intended changes and the user's reason. Returns whether the user gave a
/// reason.
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
        // The refusal line names the call. A plan or a similar text is printed, too.
        match act.lines.len() > 2 {
            true => act.outcome = vec!["refused by the user".to_owned()],
            false => act.weight = 0,
        }
    }
    // A program's fixed words about a refusal are informative only once.
    if seen.insert(squeeze(notice)) {
        let name = call.map_or("a tool", |(_, call)| &call.name);
        let mut item = Item::new(range, Kind::Error, "Error", 5).with_lines(vec![name.to_owned()]);
        item.outcome = verbatim(notice, RESULT_BYTES, RESULT_BYTES);
        gathered.items.push(item);
    }
    told
}

/// Adds a call that failed or that reports errors in its output. Returns false for a search without hits.
fn error(
    gathered: &mut Gathered,
    call: Option<&(usize, Call)>,
    range: SeqRange,
    text: &str,
    output: Vec<String>,
) -> bool {
    // Text that was overwritten on a line (`\r`) counts as a separate line.
    let text = &*match text.contains('\r') {
        true => Cow::Owned(text.replace('\r', "\n")),
        false => Cow::Borrowed(text),
    };
    let all = || verbatim(text, RESULT_BYTES, RESULT_BYTES);
    // A search without hits also fails, but has no message.
    let says = |line: &&str| !line.trim().is_empty() && !is_exit_code(line);
    let looks = call.is_some_and(|(_, call)| call.looks);
    let miss = output.is_empty() && looks && text.lines().filter(says).count() == 0;
    let runs = call.is_some_and(|(_, call)| call.is(ToolAction::RunCommand));
    let weight = match output.is_empty() {
        true if miss => 2,
        true if looks && runs => LOOKED,
        true if looks => 28,
        true => 40,
        false => 34,
    };
    let mut item = Item::new(range, Kind::Error, "Error", weight).with_lines(vec![about(call)]);
    if output.is_empty() {
        item.outcome = failure::lines(all(), &BTreeSet::new());
    } else {
        item.outcome = output;
        item.detail = all();
    }
    if let Some((at, call)) = call
        && let Some(act) = gathered.items.get_mut(*at)
    {
        // The error line names the call, so the call is not printed again.
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

    #[test]
    fn a_tag_around_all_of_a_text_goes() {
        assert_eq!(
            untagged("<error>No such <file>.</error>"),
            "No such <file>."
        );
        for text in [
            "a <b>c</b>",
            "<p>a</p><p>b</p>x",
            "<a href=x>b</a>",
            "<>x</>",
        ] {
            assert_eq!(untagged(text), text);
        }
    }

    #[test]
    fn an_edit_that_is_undone_is_demoted_with_what_undoes_it() {
        let edit = |n: u32, from: &str, to: &str| {
            let mut item = Item::new(SeqRange::single(Seq(n)), Kind::Act, "Edit", 26);
            item.file = Some("a.rs".to_owned());
            item.outcome = vec![format!("- {from}"), format!("+ {to}")];
            item
        };
        let mut items = [edit(1, "a", "b"), edit(2, "c", "d"), edit(3, "b", "a")];
        undone(&mut items);
        assert_eq!(items.map(|item| item.weight), [LISTED, 26, LISTED]);
    }
}

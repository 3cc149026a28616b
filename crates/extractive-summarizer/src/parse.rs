//! Reading of summaries as sources of an extract: lines of an earlier extract, or prose of a model.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use memory_model::conventions::{AgentConventions, ToolAction};
use memory_model::{Seq, SeqRange};

use crate::cut::CUT_NOTE;
use crate::folders::{BELOW, IN_FOLDER};
use crate::frame::{self, EXPAND, FILES, HEADER};
use crate::item::{
    ASKED, COMMAND, Gathered, INJECTED, INJECTED_LABEL, INSTRUCTIONS, Item, Kind, LONG, PASTED,
    PASTED_LABEL, TYPED,
};
use crate::later::Later;
use crate::ledger;
use crate::print::{ARROW, DETAIL, MENDED, MORE};
use crate::ran::Ran;
use crate::results::LOOKED;
use crate::shell::is_look;
use crate::source::SummarySource;
use crate::tasks;
use crate::text::{is_decision, is_directive, is_nod, is_step};
use crate::tool_call::is_lasting;
use crate::wrap::joined;

/// Adds the lines of a summary to the gathered material.
pub(crate) fn summary(
    gathered: &mut Gathered,
    summary: &SummarySource<'_>,
    conventions: &dyn AgentConventions,
) {
    let (mut stated, mut shown_calls) = (None::<frame::Counts>, 0);
    let extract = is_extract(summary.text);
    let begin = gathered.items.len();
    let (mut listed, mut failed, mut cd) = (Vec::new(), Vec::new(), String::new());
    let mut first = true;
    let mut open: Option<Item> = None;
    let mut told = BTreeMap::new();
    let mut root = String::new();
    let lines: Vec<Cow<'_, str>> = match extract {
        true => joined(summary.text).into_iter().map(Cow::Owned).collect(),
        false => summary.text.lines().map(Cow::Borrowed).collect(),
    };
    for full in &lines {
        let full: &str = full;
        let line = full.trim();
        if let Some(item) = &mut open
            && full.starts_with(MORE)
        {
            more(item, full);
            continue;
        }
        gathered.items.extend(open.take());
        if extract && line.starts_with(HEADER) {
            stated = stated.or(frame::counts(line));
        }
        if line.starts_with(HEADER) || line == CUT_NOTE {
            continue;
        }
        if let Some(rest) = line.strip_prefix(FILES) {
            files(&mut told, &root, rest);
        } else if let Some(folder) = line.strip_prefix(BELOW) {
            root = folder.trim_end_matches(':').to_owned();
        } else if let Some((folder, rest)) = in_folder(line) {
            let folder = match folder.starts_with('/') {
                true => folder.to_owned(),
                false => format!("{root}{folder}"),
            };
            files(&mut told, &folder, rest);
        } else if let Some(ran) = ledger::read_ran(line, &mut cd).filter(|_| extract) {
            listed.extend(ran);
        } else if let Some((seq, call, says)) = ledger::read_failed(line).filter(|_| extract) {
            failed.push((seq, call.to_owned(), says.to_owned()));
        } else if let Some(rest) = line.strip_prefix(EXPAND) {
            if !extract {
                let topics = rest.trim().trim_end_matches('.').split(", ");
                gathered.topics.extend(topics.map(str::to_owned));
            }
        } else if let Some(item) = extract_line(line, summary.range, conventions) {
            if item.kind == Kind::Act {
                shown_calls += 1;
            }
            open = Some(item);
        } else if line.chars().any(char::is_alphanumeric) {
            let telling = is_decision(line) || is_directive(line);
            let weight = 40 + if telling { 15 } else { 0 } + if first { 10 } else { 0 };
            let said = line.trim_start_matches(['-', '*', '•', ' ']);
            gathered.push(
                Item::new(summary.range, Kind::Note, "", weight).with_lines(vec![said.to_owned()]),
            );
        }
        first = false;
    }
    gathered.items.extend(open);
    commands(gathered, begin, listed);
    failures(gathered, begin, summary.range, failed);
    // A summary shows only some of its calls and errors, but gives their number.
    let stated = stated.unwrap_or(frame::Counts {
        messages: summary.range.len(),
        calls: shown_calls,
        ..frame::Counts::default()
    });
    let shown = gathered.items.iter().skip(begin);
    let shown = shown.filter(|item| item.kind == Kind::Error).count() as u64;
    gathered.messages += stated.messages;
    gathered.calls += stated.calls;
    gathered.images += stated.images;
    gathered.unlisted_errors += stated.errors.saturating_sub(shown);
    // Lists have the latest entry first.
    let mut told: Vec<(String, Told)> = told.into_iter().collect();
    told.sort_by_key(|(_, told)| Reverse(told.place));
    for (path, told) in told {
        gathered.file(&path, told.changed, told.read);
    }
}

/// Adds the commands in a ledger (a list of commands in an earlier extract), and the commands of the items from index
/// `begin` on that the ledger lacks.
fn commands(gathered: &mut Gathered, begin: usize, listed: Vec<Ran>) {
    let heads: BTreeSet<&str> = listed.iter().map(|ran| ran.head.as_str()).collect();
    let items = gathered.items.iter().skip(begin);
    let lines = items.filter_map(|item| {
        let line = item.lines.first()?;
        match item.kind {
            Kind::Act if item.runs() => Some(line.as_str()),
            Kind::Error => line.strip_prefix(COMMAND)?.strip_prefix(' '),
            _ => None,
        }
    });
    // A shortened line is no whole command.
    let whole = lines.filter(|line| !line.starts_with('…'));
    let others: Vec<Ran> = whole
        .filter_map(Ran::listed)
        .filter(|ran| !heads.contains(ran.head.as_str()))
        .collect();
    gathered.ran.extend(listed);
    gathered.ran.extend(others);
}

/// Adds the failures in a ledger (a list of failures in an earlier extract) that are not among the items from index
/// `begin` on.
fn failures(
    gathered: &mut Gathered,
    begin: usize,
    within: SeqRange,
    listed: Vec<(Seq, String, String)>,
) {
    let errors = gathered.items.iter().enumerate().skip(begin);
    let errors = errors.filter(|(_, item)| item.kind == Kind::Error);
    let told: BTreeMap<Seq, usize> = errors.map(|(at, item)| (item.range.first, at)).collect();
    for (seq, call, says) in listed {
        let range = SeqRange::single(seq);
        let (says, later) = without_mended(&says);
        if let Some(item) = told.get(&seq).and_then(|at| gathered.items.get_mut(*at)) {
            complete(item, says);
            continue;
        }
        if !within.covers(&range) {
            continue;
        }
        // The ledger names a tool with its file, and a command without the label of commands.
        let file = says.split_once(": ").map(|(file, _)| file);
        let is_file = |file: &str| !file.contains(' ') && file.contains(['/', '.', '…']);
        let (line, says) = match file.filter(|file| !call.contains(' ') && is_file(file)) {
            Some(file) => (
                format!("{call}: {file}"),
                says.get(file.len() + 2..).unwrap_or(""),
            ),
            None => (format!("{COMMAND} {call}"), says),
        };
        let weight = if is_look(&format!("{call} ")) {
            LOOKED
        } else {
            36
        };
        let mut item = Item::new(range, Kind::Error, "Error", weight).with_lines(vec![line]);
        item.outcome = says.split(" | ").map(str::to_owned).collect();
        item.later = later;
        gathered.items.push(item);
    }
}

/// Replaces a shortened line of an error by its longer form in a ledger.
fn complete(item: &mut Item, says: &str) {
    let first = says.split(" | ").next().unwrap_or(says);
    let cut = item.outcome.iter_mut().find(|line| {
        let begin = line.strip_suffix('…');
        begin.is_some_and(|begin| begin.len() < first.len() && first.starts_with(begin))
    });
    if let Some(line) = cut {
        first.clone_into(line);
    }
}

/// Returns whether a text is an extract and not prose of a model.
fn is_extract(text: &str) -> bool {
    text.starts_with(HEADER)
        || text
            .strip_prefix('[')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Adds a continuation line of an earlier extract to the item that it continues.
fn more(item: &mut Item, line: &str) {
    // The continuation is more informative than the announcement in the first line.
    if item.kind == Kind::Reply {
        item.weight = item.weight.max(25);
    }
    if let Some(line) = line.strip_prefix(DETAIL)
        && matches!(item.kind, Kind::Act | Kind::Error)
    {
        item.detail.push(line.to_owned());
        return;
    }
    let line = line.strip_prefix(MORE).unwrap_or(line).to_owned();
    match item.outcome.is_empty() {
        true => item.lines.push(line),
        false => item.outcome.push(line),
    }
}

/// Parses a line of an extract: `[12] User: text`. The mark of a list may precede it.
fn extract_line(line: &str, within: SeqRange, conventions: &dyn AgentConventions) -> Option<Item> {
    let rest = line.strip_prefix("- ").unwrap_or(line);
    let rest = rest.strip_prefix('[')?;
    let (range, rest) = rest.split_once("] ")?;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let range = SeqRange::new(Seq(first.parse().ok()?), Seq(last.parse().ok()?))?;
    if !within.covers(&range) {
        return None;
    }
    let (label, text) = match rest.split_once(": ") {
        _ if rest.starts_with("$ ") => rest.split_once(' ')?,
        Some((label, text)) if !label.contains(' ') || label.starts_with("User ") => (label, text),
        _ => ("", rest),
    };
    let (is_long, label) = match label.strip_suffix(LONG) {
        Some(label) if label.starts_with("User") => (true, label),
        _ => (false, label),
    };
    let telling = is_decision(text) || is_directive(text) || text.len() > 120;
    let action = conventions.tool_use(label, "").action;
    let looked = matches!(action, ToolAction::Read | ToolAction::Search);
    let (kind, weight) = match label {
        "" | "System" => (Kind::Note, 40),
        "User" => (Kind::User, if is_long { PASTED } else { TYPED }),
        INJECTED_LABEL | INSTRUCTIONS | PASTED_LABEL => (Kind::Injected, INJECTED),
        // Answers to questions get the same weight as in messages.
        ASKED => (Kind::User, 90),
        _ if label.starts_with("User ") => (Kind::User, if is_long { PASTED } else { TYPED }),
        "Assistant" if text.ends_with([':', '：']) => (Kind::Reply, 3),
        "Assistant" if is_nod(&[text.to_owned()]) || is_step(text) => (Kind::Reply, 1),
        "Assistant" => (Kind::Reply, if telling { 60 } else { 25 }),
        "Error"
            if text
                .strip_prefix(COMMAND)
                .is_some_and(|line| is_look(line.trim_start())) =>
        {
            (Kind::Error, LOOKED)
        }
        "Error" => (Kind::Error, 36),
        COMMAND if is_lasting(text) => (Kind::Act, 42),
        _ => (Kind::Act, if looked { 6 } else { 25 }),
    };
    let (text, outcome) = match kind {
        Kind::Act if tasks::is_list(text) => (text, ""),
        Kind::Act | Kind::Error => text.split_once(ARROW).unwrap_or((text, "")),
        _ => (text, ""),
    };
    let refused = kind == Kind::Error
        && conventions
            .tool_result(None, outcome, true)
            .rejection
            .is_some();
    let weight = if refused { 5 } else { weight };
    let (text, later, instead) = match kind {
        Kind::Error => {
            let (text, later) = without_mended(text);
            (text, later, None)
        }
        Kind::User => match Later::read(text).filter(|(_, later)| !later.in_part) {
            Some((said, later)) => (said, Some(later.seq), later.value),
            None => (text, None, None),
        },
        _ => (text, None, None),
    };
    let mut item = Item::new(range, kind, label, weight).with_lines(vec![text.to_owned()]);
    (item.later, item.instead) = (later, instead);
    if !outcome.is_empty() {
        item.outcome = outcome.split(" | ").map(str::to_owned).collect();
    }
    Some(item)
}

/// Splits off the note that names a later call: returns the error's text without it, and the position in the note.
fn without_mended(text: &str) -> (&str, Option<Seq>) {
    let (begins, ends) = MENDED;
    let note = text.strip_suffix(ends).and_then(|rest| {
        let (about, seq) = rest.rsplit_once(begins)?;
        Some((about, Seq(seq.parse().ok()?)))
    });
    note.map_or((text, None), |(about, seq)| (about, Some(seq)))
}

/// Parses a line of files in a folder into the folder and the list.
fn in_folder(line: &str) -> Option<(&str, &str)> {
    let (base, list) = line.strip_prefix(IN_FOLDER)?.split_once(": ")?;
    base.ends_with('/').then_some((base, list))
}

/// Use of one file, as the lists of a summary give it.
struct Told {
    /// Number of files before it in the lists.
    place: usize,
    changed: u32,
    read: u32,
}

/// Adds the files of a `Files` line of any writer: all words that look like paths. If two lines name a file, the larger
/// numbers count.
fn files<'a>(told: &mut BTreeMap<String, Told>, mut base: &'a str, rest: &'a str) {
    let mut rest = rest.trim();
    if let Some(under) = rest.strip_prefix("(under ")
        && let Some((path, after)) = under.split_once(") ")
    {
        (base, rest) = (path, after);
    }
    for section in rest.split("; ") {
        let (changed, list) = match section.split_once(' ') {
            Some(("changed", list)) => (true, list),
            Some(("read", list)) => (false, list),
            _ => (false, section),
        };
        for path in list.split(", ") {
            let (path, times) = path.split_once(" ×").unwrap_or((path, "1"));
            let times = times.trim_end_matches('.').parse().unwrap_or(1);
            let path = path.trim().trim_matches('`');
            if path.contains(' ') || !path.contains(['/', '.', '\\']) {
                continue;
            }
            let path = match path.starts_with('/') {
                true => path.to_owned(),
                false => format!("{base}{path}"),
            };
            let (changes, reads) = if changed { (times, 0) } else { (0, times) };
            let place = told.len();
            let figures = told.entry(path).or_insert(Told {
                place,
                changed: 0,
                read: 0,
            });
            figures.changed = figures.changed.max(changes);
            figures.read = figures.read.max(reads);
        }
    }
}

#[cfg(test)]
mod tests {
    use memory_model::conventions::GenericConventions;

    use super::*;
    use crate::item::LAST_WORD;

    #[test]
    fn a_command_that_changed_something_that_lasts_weighs_more_than_another() {
        let within = SeqRange::single(Seq(5));
        let weight = |line: &str| {
            let item = extract_line(line, within, &GenericConventions);
            item.map_or(0, |item| item.weight)
        };
        let (commit, check) = (
            weight("[5] $ git commit -am \"x\""),
            weight("[5] $ cargo check"),
        );
        assert!(commit > check && commit < LAST_WORD);
    }
}

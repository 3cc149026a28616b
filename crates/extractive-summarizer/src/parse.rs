//! Reads summaries as sources: the lines of an extract, or the prose of a model.

use memory_model::conventions::{AgentConventions, ToolAction};
use memory_model::{Seq, SeqRange};

use crate::cut::{CHAR_CUT_NOTE, CUT_NOTE};
use crate::frame::{EXPAND, FILES, HEADER, NAMES};
use crate::item::{Gathered, INJECTED, Item, Kind, TYPED};
use crate::print::{ARROW, DETAIL, MORE};
use crate::source::SummarySource;
use crate::status::{ASKED, STAND};
use crate::text::{is_decision, is_directive};

/// Adds the lines of a summary.
pub(crate) fn summary(
    gathered: &mut Gathered,
    summary: &SummarySource<'_>,
    conventions: &dyn AgentConventions,
) {
    gathered.messages += summary.range.len();
    let extract = summary.text.starts_with(HEADER);
    let mut first = true;
    let mut open: Option<Item> = None;
    for full in summary.text.lines() {
        let line = full.trim();
        if let Some(item) = &mut open
            && full.starts_with(MORE)
        {
            gathered.name(line);
            more(item, full);
            continue;
        }
        gathered.items.extend(open.take());
        // Where things stood is told by the items, too.
        let stood = extract && (line.starts_with(ASKED) || line.starts_with(STAND));
        if stood || line.starts_with(HEADER) || line == CUT_NOTE || line == CHAR_CUT_NOTE {
            continue;
        }
        if let Some(rest) = line.strip_prefix(FILES) {
            files(gathered, rest);
        } else if let Some(rest) = line.strip_prefix(NAMES) {
            for name in rest.split(", ") {
                gathered.name(&format!("`{}`", name.trim()));
            }
        } else if let Some(rest) = line.strip_prefix(EXPAND) {
            if !extract {
                let topics = rest.trim().trim_end_matches('.').split(", ");
                gathered.topics.extend(topics.map(str::to_owned));
            }
        } else if let Some(item) = extract_line(line, summary.range, conventions) {
            gathered.name(line);
            if item.kind == Kind::Act {
                gathered.calls += 1;
            }
            open = Some(item);
        } else if line.chars().any(char::is_alphanumeric) {
            gathered.name(line);
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
}

/// Adds a further line to an item.
fn more(item: &mut Item, line: &str) {
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

/// Parses a line of an extract: `- [12] User: text`.
fn extract_line(line: &str, within: SeqRange, conventions: &dyn AgentConventions) -> Option<Item> {
    let rest = line.strip_prefix("- [")?;
    let (range, rest) = rest.split_once("] ")?;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let range = SeqRange::new(Seq(first.parse().ok()?), Seq(last.parse().ok()?))?;
    if !within.covers(&range) {
        return None;
    }
    let (label, text) = match rest.split_once(": ") {
        Some((label, text)) if !label.contains(' ') || label.starts_with("User ") => (label, text),
        _ => ("", rest),
    };
    let telling = is_decision(text) || is_directive(text) || text.len() > 120;
    let action = conventions.tool_use(label, "").action;
    let looked = matches!(action, ToolAction::Read | ToolAction::Search);
    let (kind, weight) = match label {
        "" | "System" => (Kind::Note, 40),
        "User" => (Kind::User, TYPED),
        "Injected" => (Kind::Injected, INJECTED),
        _ if label.starts_with("User ") => (Kind::User, TYPED),
        "Assistant" if text.ends_with([':', '：']) => (Kind::Reply, 3),
        "Assistant" => (Kind::Reply, if telling { 60 } else { 25 }),
        "Error" => (Kind::Error, 36),
        _ => (Kind::Act, if looked { 6 } else { 25 }),
    };
    let (text, outcome) = match kind {
        Kind::Act | Kind::Error => text.split_once(ARROW).unwrap_or((text, "")),
        _ => (text, ""),
    };
    let mut item = Item::new(range, kind, label, weight).with_lines(vec![text.to_owned()]);
    if !outcome.is_empty() {
        item.outcome = outcome.split(" | ").map(str::to_owned).collect();
    }
    Some(item)
}

/// Adds the files of a `Files` line: of any writer's line, what looks like a path.
fn files(gathered: &mut Gathered, rest: &str) {
    let mut rest = rest.trim();
    let mut base = "";
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
            gathered.file(&path, changes, reads);
        }
    }
}

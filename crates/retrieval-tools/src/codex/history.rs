//! Codex's tools for the history of a conversation.

use std::fmt::Write as _;

use memory_model::conventions::names_tool;
use memory_model::{EntryKind, LogEntry, Part, Role, Seq, SeqRange, SpanBody};
use memory_search::{HitOrder, SearchMode, SearchScope};
use memory_store::{LogRead, Order, read_spans};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ITEM_CHARS, LIMIT, or_default};
use crate::arguments::{Arguments, Reach};
use crate::error::{Error, ErrorKind, Result};
use crate::expand::Target;
use crate::grep::GrepArgs;
use crate::noting::rows_that_fit;
use crate::recall::{DEFAULT_BUDGET, Passage, RecallArgs};
use crate::requests::{Calls, List, listed_at};
use crate::retrieval::Retrieval;
use crate::room::longest;
use crate::text::{clip, fenced, go_on, on_one_line, short};
use crate::tool::{Call, ToolAnswer};

/// Default maximum length of an item that is read, in characters.
const READ_CHARS: usize = 20_000;

/// Filters of items.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ItemFilter {
    /// Maximum number of items; 20 if not given.
    limit: usize,
    /// Whether the last item comes first; false if not given.
    recent_first: bool,
    /// Only items of this role.
    #[schemars(with = "Option<String>", extend("enum" = ["system", "user", "assistant", "tool"]))]
    role: Option<Role>,
    /// Only calls of this tool and their results.
    tool_name: Option<String>,
    /// The namespace of tool_name, such as the name of a server.
    tool_namespace: Option<String>,
    /// Only items of this window, such as messages:1-40.
    window_id: Option<String>,
    /// Maximum characters of each item; 400 if not given.
    max_chars_per_item: usize,
    /// The cursor of an earlier answer, to go on after it; the other arguments stay the same.
    cursor: Option<String>,
}

impl ItemFilter {
    fn limit(&self) -> usize {
        or_default(self.limit, LIMIT)
    }

    fn chars(&self) -> usize {
        or_default(self.max_chars_per_item, ITEM_CHARS)
    }

    /// Returns the name of the tool to find, with its namespace.
    fn tool(&self) -> Result<Option<String>> {
        match (&self.tool_namespace, &self.tool_name) {
            (Some(space), Some(tool)) => {
                let space = space.trim_start_matches("mcp__").trim_end_matches('_');
                Ok(Some(format!("{space}__{tool}")))
            }
            (None, tool) => Ok(tool.clone()),
            (Some(_), None) => Err(Error::invalid(
                "tool_namespace is given without tool_name: give both, or tool_name alone",
            )),
        }
    }

    /// Returns the range of the window.
    fn window(&self) -> Result<Option<SeqRange>> {
        let Some(id) = &self.window_id else {
            return Ok(None);
        };
        match id.parse() {
            Ok(Target::Messages(range)) => Ok(Some(range)),
            _ => Err(Error::invalid(format!(
                "there is no window {}: take a window_id from {}, such as messages:1-40",
                short(id),
                WindowsArgs::NAME
            ))),
        }
    }
}

/// Arguments of `history_list_windows`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct WindowsArgs {
    /// Maximum number of windows; 20 if not given.
    limit: usize,
    /// Whether the last window comes first; false if not given.
    recent_first: bool,
}

impl Arguments for WindowsArgs {
    const NAME: &'static str = "history_list_windows";
    const TITLE: &'static str = "List the windows of the history";
    const DESCRIPTION: &'static str = "List the windows of the whole conversation. A window is a part of it that the \
        present context shows in one way: by one summary, word for word, or not at all. Its window_id, such as \
        messages:1-40, names its items.";
    const REACH: Reach = Reach::Agent;
}

impl Call for WindowsArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let Some(seen) = tools.visible().await? else {
            return Ok(ToolAnswer::of_text(
                "The conversation has no items.\n".to_owned(),
            ));
        };
        let spans = match tools.lineage_view().await? {
            Some(view) => {
                let snapshot = tools.store.snapshot(tools.conversation, &view).await?;
                read_spans(&*tools.store, &snapshot, Some(seen)).await?
            }
            None => Vec::new(),
        };
        let mut windows = Vec::new();
        for span in &spans {
            let last = span.range.last.unwrap_or(seen.last);
            let range = SeqRange::new(span.range.first, last);
            windows.extend(range.map(|range| (range, Some(&span.body))));
        }
        if windows.is_empty() {
            windows.push((seen, None));
        }
        let count = windows.len();
        if self.recent_first {
            windows.reverse();
        }
        let rows = windows.into_iter().take(or_default(self.limit, LIMIT));
        let rows = rows.map(|(range, body)| {
            let form = match body {
                Some(SpanBody::Summary { id, .. }) => format!("as summary {id}"),
                Some(SpanBody::Omitted) => "not at all".to_owned(),
                _ => "word for word".to_owned(),
            };
            let (first, last, items) = (range.first, range.last, range.len());
            format!("messages:{first}-{last}: {items} items, shown {form}\n")
        });
        let head = format!("Windows: {count}\n");
        Ok(ToolAnswer::of_text(rows_that_fit(tools, head, count, rows)))
    }
}

/// Arguments of `history_list_items`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ItemsArgs {
    #[serde(flatten)]
    filter: ItemFilter,
}

impl Arguments for ItemsArgs {
    const NAME: &'static str = "history_list_items";
    const TITLE: &'static str = "List the items of the history";
    const DESCRIPTION: &'static str = "List the messages, tool calls and results of the whole conversation, or of a \
        window, with the beginning of each. [12] is the item with item_id 12.";
    const REACH: Reach = Reach::Agent;
}

impl Call for ItemsArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let filter = &self.filter;
        let (tool, window) = (filter.tool()?, filter.window()?);
        let question = format!(
            "{} {:?}",
            Self::NAME,
            (filter.recent_first, filter.role, &tool, window)
        );
        let position = tools.position(&question, filter.cursor.as_deref(), listed_at);
        let position = position.await?;
        let range = match window {
            Some(window) => Some(tools.part_of(window).await?),
            None => tools.visible().await?,
        };
        let limits = tools.limits();
        let mut list = List {
            order: match filter.recent_first {
                true => Order::NewestFirst,
                false => Order::OldestFirst,
            },
            limit: filter.limit().min(limits.hits.max(1)),
            room: tools.room(limits.answer_tokens.max(1)).without(8),
            messages: Vec::new(),
            stopped: false,
        };
        let text_of = |entry: &LogEntry, calls: &Calls| {
            let is_asked = entry.kind != EntryKind::Note
                && filter.role.is_none_or(|role| role == entry.role)
                && tool.as_ref().is_none_or(|tool| uses(entry, calls, tool));
            is_asked.then(|| beginning(entry, filter.chars()))
        };
        let next = tools.list(&mut list, range, position, &text_of).await?;
        let mut out = list.lines();
        let end = match tools.list_cursor(&question, next).await? {
            Some(cursor) => go_on("There are more:", list.stopped, &cursor),
            None if out.is_empty() => "There are no such items".to_owned(),
            None => "These are all items".to_owned(),
        };
        let _ = writeln!(
            out,
            "{end}. [n] is item n; {} reads all of it.",
            ReadItemArgs::NAME
        );
        Ok(ToolAnswer::of_text(out))
    }
}

/// Returns whether a message calls a tool or contains a result of it.
fn uses(entry: &LogEntry, calls: &Calls, tool: &str) -> bool {
    entry.message.parts.iter().any(|part| match part {
        Part::ToolCall { name, .. } => names_tool(name, tool),
        Part::ToolResult { call_id, .. } => {
            let name = calls.get(call_id);
            name.is_some_and(|name| names_tool(name, tool))
        }
        _ => false,
    })
}

/// Returns the beginning of a message on one line.
fn beginning(entry: &LogEntry, chars: usize) -> String {
    let mut out = String::new();
    let mut left = chars.saturating_add(1);
    entry.visit_texts(&mut |text| {
        let before = out.len();
        out.extend(text.chars().take(left));
        left -= out.get(before..).unwrap_or_default().chars().count();
        out.push(' ');
    });
    clip(&on_one_line(&out), chars)
}

/// Arguments of `history_read_item`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["item_id"]))]
pub(crate) struct ReadItemArgs {
    /// The item, such as 12.
    item_id: Option<u32>,
    /// The window of the item. It is not needed: an item_id is unique.
    #[serde(rename = "window_id")]
    _window_id: Option<String>,
    /// Number of characters to leave out at the beginning; 0 if not given.
    offset_chars: usize,
    /// Maximum characters; 20000 if not given.
    limit_chars: usize,
}

impl Arguments for ReadItemArgs {
    const NAME: &'static str = "history_read_item";
    const TITLE: &'static str = "Read an item of the history";
    const DESCRIPTION: &'static str =
        "Read a message, tool call or result of the whole conversation word for word.";
    const REACH: Reach = Reach::Agent;
}

impl Call for ReadItemArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let seq = self.item_id.map(Seq).filter(|seq| *seq > Seq::NONE);
        let seq = seq.ok_or_else(|| {
            Error::invalid("item_id is required: give the number of an item, such as 12")
        })?;
        let range = tools.part_of(SeqRange::single(seq)).await?;
        let read = LogRead::new(range);
        let page = tools.store.read(tools.conversation, &read).await?;
        let entry = page.items.into_iter().next();
        let entry = entry.filter(|entry| entry.kind != EntryKind::Note);
        let entry = entry.ok_or_else(|| {
            let message = format!(
                "item {seq} is no message: list them with {}",
                ItemsArgs::NAME
            );
            Error::new(ErrorKind::NotFound, message)
        })?;
        let (role, whole) = (entry.role, Passage::of_entry(entry, Vec::new(), 1.0).text);
        let count = whole.chars().count();
        let from = self.offset_chars.min(count);
        let asked = or_default(self.limit_chars, READ_CHARS);
        let text: String = whole.chars().skip(from).take(asked).collect();
        let room = tools.room(tools.limits().expand_tokens.max(1)).without(8);
        let written = |text: &str| {
            let mut out = String::new();
            fenced(&mut out, text);
            out
        };
        let end = match room.holds(&written(&text)) {
            true => text.len(),
            false => longest(&text, |cut| room.holds(&written(cut))),
        };
        let text = text.get(..end).unwrap_or_default();
        let to = from + text.chars().count();
        let mut out = format!("item {seq} {role}, characters {from} to {to} of {count}:\n");
        out.push_str(&written(text));
        if to < count {
            let _ = writeln!(out, "There is more: offset_chars {to} goes on.");
        }
        Ok(ToolAnswer::of_text(out))
    }
}

/// Arguments of `history_search_contents`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["query"]))]
pub(crate) struct SearchArgs {
    /// The text to find exactly as it is written; upper and lower case count.
    #[schemars(extend("format" = "text"))]
    query: String,
    #[serde(flatten)]
    filter: ItemFilter,
}

impl Arguments for SearchArgs {
    const NAME: &'static str = "history_search_contents";
    const TITLE: &'static str = "Search the history";
    const DESCRIPTION: &'static str = "Find a text in the whole conversation exactly as it is written. Without such a \
        text, answers with the passages that fit the query best, and says so.";
    const REACH: Reach = Reach::Agent;
}

impl Call for SearchArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let filter = &self.filter;
        if self.query.is_empty() {
            return Err(Error::invalid("query is required: give some text to find"));
        }
        let window = filter.window()?;
        let asked = GrepArgs {
            mode: SearchMode::Regex,
            scope: SearchScope::Messages,
            roles: filter.role.into_iter().collect(),
            tools: filter.tool()?.into_iter().collect(),
            first: window.map(|window| window.first),
            last: window.map(|window| window.last),
            order: match filter.recent_first {
                true => HitOrder::Newest,
                false => HitOrder::Oldest,
            },
            limit: filter.limit(),
            cursor: filter.cursor.clone(),
            ..GrepArgs::new(exactly(&self.query))
        };
        let mut found = tools.answer_grep(&asked, false).await?;
        for hit in &mut found.hits {
            hit.snippet = clip(&hit.snippet, filter.chars());
        }
        if !found.hits.is_empty() || !found.complete || filter.cursor.is_some() {
            return Ok(ToolAnswer::of_text(found.to_text()));
        }
        // The lines around the passages take a part of the room.
        let recall = RecallArgs {
            budget: tools.room(DEFAULT_BUDGET).without(8).text,
            ..RecallArgs::query(self.query.as_str())
        };
        let recalled = tools.recall(recall).await?;
        let found = match recalled.passages.is_empty() {
            true => String::new(),
            false => format!(
                "Passages that fit it best, without the filters; they do not have it word for word:\n{}",
                recalled.to_text()
            ),
        };
        Ok(ToolAnswer::of_text(format!(
            "No item has this text exactly (upper and lower case count).\n{found}"
        )))
    }
}

/// Characters with a meaning in a regular expression. Behind a backslash others have one, such as `<` for the beginning of
/// a word.
const META: &str = r"\.+*?()|[]{}^$#&-~";

/// Returns a regular expression that matches only this text.
fn exactly(text: &str) -> String {
    let mut out = String::from("(?-i:");
    for c in text.chars() {
        if META.contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_text_matches_itself_alone() {
        let every = (0..=127_u8).map(char::from).collect::<String>();
        let each = every.chars().map(String::from);
        for text in each.chain([every.clone(), "<state>".into(), "\\<é 🌊".into()]) {
            let exactly = regex::Regex::new(&exactly(&text)).unwrap();
            let around = format!("xx{text}yy");
            let found = exactly.find(&around).map(|found| found.as_str());
            assert_eq!(found, Some(text.as_str()));
            let other = text.to_uppercase();
            assert!(other == text || !exactly.is_match(&other), "{text:?}");
        }
    }
}

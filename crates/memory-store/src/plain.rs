//! A log as rows of the older memory engine's tables, and the figures that its summaries carry.
//!
//! One message becomes a row for its text or its blocks, one for each reasoning, one for each tool call and one for
//! each tool result. Notes and messages without content become none.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{
    EntryKind, LogEntry, Part, RawJson, ResultContent, Role, SeqRange, Summary, SummaryId,
};
use serde::Serialize;

/// What a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RowKind {
    /// The text parts of a message, joined by newlines.
    Text,
    /// A list of blocks, as JSON: text, images, files, unknown parts.
    Multimodal,
    /// A model's reasoning.
    Thinking,
    /// A tool call, as `{"id", "tool", "args"}`.
    ToolCall,
    /// A tool result, as `{"id", "tool", "result", "error"?}`.
    ToolResult,
}

impl RowKind {
    /// The name in the column `event_type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Multimodal => "multimodal",
            Self::Thinking => "thinking",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct PlainRow<'a> {
    /// What it holds.
    pub kind: RowKind,
    /// Whose it is: `tool` for results, `assistant` for calls, else the message's.
    pub role: Role,
    /// The content.
    pub content: String,
    /// Its share of the message's cost, in tokens; the shares of a message's rows add up to its cost.
    pub tokens: u64,
    /// The message's parts that it was made from.
    pub parts: Vec<&'a Part>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    tool: &'a str,
    args: &'a RawJson,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<&'a Vec<Part>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<bool>,
}

/// Names of tools by the ids of their calls.
pub type ToolNames = BTreeMap<String, String>;

/// The rows of a log entry. `tools` remembers the names of called tools for the results that follow.
///
/// # Errors
/// When a part cannot be written as JSON.
pub fn plain_rows<'a>(
    entry: &'a LogEntry,
    tools: &mut ToolNames,
) -> Result<Vec<PlainRow<'a>>, serde_json::Error> {
    let message = &entry.message;
    let mut rows: Vec<PlainRow<'a>> = Vec::new();
    if message.kind == EntryKind::Note {
        return Ok(rows);
    }
    let row = |kind, role, content, parts| PlainRow {
        kind,
        role,
        content,
        tokens: 0,
        parts,
    };
    let mut said: Vec<&Part> = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { .. } | Part::Image(_) | Part::File(_) | Part::Unknown { .. } => {
                said.push(part);
            }
            Part::Reasoning { text, .. } => {
                rows.push(row(
                    RowKind::Thinking,
                    message.role,
                    text.clone(),
                    vec![part],
                ));
            }
            Part::ToolCall {
                id,
                name,
                arguments,
            } => {
                tools.insert(id.clone(), name.clone());
                let call = Call {
                    id,
                    tool: name,
                    args: arguments,
                };
                let content = serde_json::to_string(&call)?;
                rows.push(row(RowKind::ToolCall, Role::Assistant, content, vec![part]));
            }
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => {
                let blocks = match content {
                    ResultContent::Parts(parts)
                        if parts.iter().any(|part| !matches!(part, Part::Text { .. })) =>
                    {
                        Some(parts)
                    }
                    _ => None,
                };
                let answer = Answer {
                    id: call_id,
                    tool: tools.get(call_id).map_or("", String::as_str),
                    result: blocks.is_none().then(|| content.text().into_owned()),
                    blocks,
                    error: is_error.filter(|failed| *failed),
                };
                let content = serde_json::to_string(&answer)?;
                rows.push(row(RowKind::ToolResult, Role::Tool, content, vec![part]));
            }
        }
    }
    let texts: Option<Vec<&str>> = said
        .iter()
        .map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let thoughts = rows
        .iter()
        .take_while(|row| row.kind == RowKind::Thinking)
        .count();
    match texts {
        Some(texts) if texts.is_empty() => {}
        Some(texts) => {
            let text = texts.join("\n");
            rows.insert(thoughts, row(RowKind::Text, message.role, text, said));
        }
        None => {
            let blocks = serde_json::to_string(&said)?;
            rows.insert(
                thoughts,
                row(RowKind::Multimodal, message.role, blocks, said),
            );
        }
    }
    share(entry.tokens, &mut rows);
    Ok(rows)
}

/// Shares a message's cost among its rows by their bytes; what is left over goes to the first.
fn share(tokens: u64, rows: &mut [PlainRow<'_>]) {
    let bytes: u128 = rows.iter().map(|row| row.content.len() as u128).sum();
    let mut left = tokens;
    for row in rows.iter_mut() {
        let part = (u128::from(tokens) * row.content.len() as u128).checked_div(bytes);
        row.tokens = u64::try_from(part.unwrap_or(0)).unwrap_or(0);
        left = left.saturating_sub(row.tokens);
    }
    if let Some(first) = rows.first_mut() {
        first.tokens = first.tokens.saturating_add(left);
    }
}

/// What the older engine's tables say of a summary beside its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeFigures {
    /// The rows of its sources that are messages; its sources that are summaries and all that those count.
    pub descendant_count: u64,
    /// What these rows cost; what these summaries cost with all that those count. In tokens.
    pub descendant_token_count: u64,
    /// What all the messages cost that it stands for, in tokens.
    pub source_message_token_count: u64,
}

/// Summaries in an order in which each comes after its sources, else in the order given.
pub fn sources_first<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> Vec<&'a Summary> {
    let given: Vec<&Summary> = summaries.into_iter().collect();
    let by_id: BTreeMap<&SummaryId, &Summary> = given
        .iter()
        .map(|summary| (&summary.id, *summary))
        .collect();
    let (mut ordered, mut entered) = (Vec::new(), BTreeSet::new());
    // A summary is pushed twice: to enter its sources, and to be placed after them.
    let mut todo: Vec<(&Summary, bool)> = given.iter().rev().map(|one| (*one, false)).collect();
    while let Some((summary, sources_done)) = todo.pop() {
        if sources_done {
            ordered.push(summary);
        } else if entered.insert(&summary.id) {
            todo.push((summary, true));
            let sources: Vec<&SummaryId> = summary.source_summaries().collect();
            let sources = sources.iter().rev().filter_map(|id| by_id.get(id));
            todo.extend(sources.map(|source| (*source, false)));
        }
    }
    ordered
}

/// The figures of summaries. `summaries` must hold all that those were made from; `rows` tells how many rows the
/// messages of a range have, and what they cost in tokens.
pub fn node_figures<'a>(
    summaries: impl IntoIterator<Item = &'a Summary>,
    rows: impl Fn(SeqRange) -> (u64, u64),
) -> BTreeMap<SummaryId, NodeFigures> {
    let ordered = sources_first(summaries);
    let costs: BTreeMap<&SummaryId, u64> = ordered
        .iter()
        .map(|summary| (&summary.id, summary.tokens))
        .collect();
    let mut figures: BTreeMap<SummaryId, NodeFigures> = BTreeMap::new();
    for summary in ordered {
        let mut sum = NodeFigures::default();
        for source in &summary.sources {
            let Some(id) = source.summary() else {
                let (count, tokens) = rows(source.range());
                sum.descendant_count += count;
                sum.descendant_token_count += tokens;
                sum.source_message_token_count += tokens;
                continue;
            };
            let below = figures.get(id).copied().unwrap_or_default();
            let cost = costs.get(id).copied().unwrap_or(0);
            sum.descendant_count += below.descendant_count + 1;
            sum.descendant_token_count += below.descendant_token_count + cost;
            sum.source_message_token_count += below.source_message_token_count;
        }
        figures.insert(summary.id.clone(), sum);
    }
    figures
}

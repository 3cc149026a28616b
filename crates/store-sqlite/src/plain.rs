//! Export into a plain database, with the tables of an older memory engine.

mod hashed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use memory_model::{
    Child, ConversationId, EntryKind, LogEntry, Part, RawJson, ResultContent, Role, Seq, SeqRange,
    SpanBody, Summary, SummaryFigures, SummaryId, Timestamp, ViewName,
};
use memory_store::{
    Conversation, ConversationRef, Erasures, Error, ErrorKind, LogRead, Origin, Result, Store,
    read_spans,
};
use serde::Serialize;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite};

use crate::error::failed;
use crate::files::create_new;

const SCHEMA: &str = include_str!("plain.sql");

/// Numbers of rows that [`write_plain`] wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlainExport {
    /// Number of conversations written.
    pub conversations: u64,
    /// Number of rows written to the table of messages. A message may have several rows.
    pub messages: u64,
    /// Number of summaries written.
    pub summaries: u64,
}

/// Names of the called tools, by the ids of their calls.
type ToolNames = BTreeMap<String, String>;

/// A row that was written to the table `messages`.
struct MessageRow {
    /// Position of the log entry from which the row was made.
    entry: Seq,
    id: i64,
    /// Number of the row among all rows that the conversation shows, from 1.
    seq: i64,
    tokens: u64,
}

/// Rows that were written for one conversation's own log.
#[derive(Default)]
struct OwnLog {
    rows: Vec<MessageRow>,
    tools: ToolNames,
}

/// Exports conversations into a new database at `path`, with plain tables that any SQL program can read. Ancestors that
/// share messages with a fork among them are exported too. The table `context_items` has the content of the view
/// `view`. For a conversation without this view it has the raw messages.
///
/// The file must not exist. Only its owner can read and write the new file.
///
/// # Errors
/// `Io` if the file exists or cannot be written, and any error of reading the store.
pub async fn write_plain<S: Store + ?Sized>(
    store: &S,
    conversations: &[ConversationId],
    view: &ViewName,
    path: &Path,
    now: Timestamp,
) -> Result<PlainExport> {
    let place = path.display().to_string();
    create_new(path).map_err(|source| {
        let message = format!("{place} cannot be created: name a file that does not exist yet");
        Error::new(ErrorKind::Io, message).with_source(source)
    })?;
    let written = write_into(store, conversations, view, path, now).await;
    if written.is_err() {
        // All rows are written in one transaction, so the file is empty. If it cannot be removed, the first error is
        // still the one to report.
        let _ = std::fs::remove_file(path);
    }
    written
}

async fn write_into<S: Store + ?Sized>(
    store: &S,
    conversations: &[ConversationId],
    view: &ViewName,
    path: &Path,
    now: Timestamp,
) -> Result<PlainExport> {
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true);
    let mut db = connect.connect().await.map_err(failed)?;
    let mut tx = db.begin().await.map_err(failed)?;
    let mut writer = Plain {
        store,
        db: &mut tx,
        view,
        written: PlainExport::default(),
        own: BTreeMap::new(),
        summaries: BTreeMap::new(),
    };
    sqlx::raw_sql(SCHEMA)
        .execute(&mut *writer.db)
        .await
        .map_err(failed)?;
    let insert = sqlx::query("insert into schema_migrations values (1, ?)").bind(now.0);
    writer.run(insert).await?;
    // Parents have lower numbers than their forks.
    let mut wanted: BTreeSet<ConversationId> = conversations.iter().copied().collect();
    let mut waiting: Vec<ConversationId> = conversations.to_vec();
    while let Some(id) = waiting.pop() {
        if let Origin::Fork { parent, .. } = writer.look_up(id).await?.origin
            && wanted.insert(parent)
        {
            waiting.push(parent);
        }
    }
    for id in wanted {
        let found = writer.look_up(id).await?;
        writer.conversation(&found).await?;
    }
    let written = writer.written;
    tx.commit().await.map_err(failed)?;
    db.close().await.map_err(failed)?;
    Ok(written)
}

struct Plain<'a, S: ?Sized> {
    store: &'a S,
    db: &'a mut SqliteConnection,
    view: &'a ViewName,
    written: PlainExport,
    own: BTreeMap<ConversationId, OwnLog>,
    /// Figures and costs, in tokens, of the summaries that were written. A fork may have made a summary that its
    /// ancestor made too.
    summaries: BTreeMap<SummaryId, (SummaryFigures, u64)>,
}

impl<S: Store + ?Sized> Plain<'_, S> {
    async fn look_up(&self, id: ConversationId) -> Result<Conversation> {
        let found = self.store.conversation(&ConversationRef::Id(id)).await?;
        found.ok_or_else(|| memory_store::implementors::no_conversation(id))
    }

    async fn run(&mut self, query: Query<'_, Sqlite, SqliteArguments>) -> Result<()> {
        query.execute(&mut *self.db).await.map_err(failed)?;
        Ok(())
    }

    async fn conversation(&mut self, found: &Conversation) -> Result<()> {
        let meta = found.meta.as_ref();
        let meta =
            meta.and_then(|meta| serde_json::from_str::<serde_json::Value>(meta.as_str()).ok());
        let channel = meta.as_ref().and_then(|meta| meta.get("channel")?.as_str());
        let insert = sqlx::query("insert into conversations values (?, ?, ?, ?, ?, ?, ?)")
            .bind(i64::from(found.id.0))
            .bind(found.key.as_str())
            .bind(found.title.as_deref())
            .bind(channel)
            .bind(i64::from(found.archived))
            .bind(found.updated_at.0)
            .bind(found.created_at.0);
        self.run(insert).await?;
        self.written.conversations += 1;
        let erasures = self.store.erasures(found.id).await?;
        self.hashed_log(found, &erasures).await?;
        self.log(found, &erasures).await?;
        self.summaries(found, &erasures).await?;
        self.hashed_views(found).await?;
        self.context(found).await
    }

    async fn log(&mut self, found: &Conversation, erasures: &Erasures) -> Result<()> {
        let first = found.own_first();
        let shared = SeqRange::new(Seq::FIRST, first.prev());
        let shared = shared.and_then(|range| self.rows(found, range).last());
        let mut seq = shared.map_or(0, |row| row.seq);
        let mut own = OwnLog::default();
        if let Origin::Fork { parent, .. } = found.origin
            && let Some(parent) = self.own.get(&parent)
        {
            own.tools.clone_from(&parent.tools);
        }
        let mut rest = SeqRange::new(first, found.head);
        while let Some(range) = rest {
            let page = self.store.read(found.id, &LogRead::new(range)).await?;
            for entry in &page.items {
                self.hashed_entry(found, entry, erasures).await?;
                let rows = plain_rows(entry, &mut own.tools).map_err(|source| {
                    let message = format!("entry {} of {} is no JSON", entry.seq, found.key);
                    Error::new(ErrorKind::Corrupt, message).with_source(source)
                })?;
                for row in rows {
                    seq += 1;
                    self.written.messages += 1;
                    let id = int(self.written.messages);
                    let insert =
                        sqlx::query("insert into messages values (?, ?, ?, ?, ?, ?, ?, ?)")
                            .bind(id)
                            .bind(i64::from(found.id.0))
                            .bind(seq)
                            .bind(row.role.as_str())
                            .bind(row.kind)
                            .bind(row.content)
                            .bind(int(row.tokens))
                            .bind(entry.message.created_at.known().map(|at| at.0));
                    self.run(insert).await?;
                    for (ordinal, part) in (0_i64..).zip(row.parts) {
                        self.part(id, ordinal, part, &own.tools).await?;
                    }
                    own.rows.push(MessageRow {
                        entry: entry.seq,
                        id,
                        seq,
                        tokens: row.tokens,
                    });
                }
            }
            rest = page.next;
        }
        self.own.insert(found.id, own);
        Ok(())
    }

    async fn part(&mut self, row: i64, ordinal: i64, part: &Part, tools: &ToolNames) -> Result<()> {
        let (mut text, mut call, mut name) = (None, None, None);
        let (mut input, mut output) = (None, None);
        let kind = match part {
            Part::Text { text: said } => {
                text = Some(said);
                "text"
            }
            Part::Reasoning { text: thought, .. } => {
                text = Some(thought);
                "reasoning"
            }
            Part::ToolCall {
                id,
                name: tool,
                arguments,
            } => {
                (call, name, input) = (Some(id), Some(tool), Some(arguments.as_str()));
                "tool"
            }
            Part::ToolResult {
                call_id, content, ..
            } => {
                (call, name, output) = (Some(call_id), tools.get(call_id), Some(content.text()));
                "tool"
            }
            Part::Image(_) | Part::File(_) | Part::Unknown { .. } => "text",
        };
        let whole = serde_json::to_string(part).map_err(|source| {
            Error::new(ErrorKind::Corrupt, "a part cannot be written as JSON").with_source(source)
        })?;
        let insert = sqlx::query(
            "insert into message_parts (message_id, part_type, ordinal, text_content, tool_call_id, tool_name, \
             tool_input, tool_output, metadata) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        );
        let insert = insert
            .bind(row)
            .bind(kind)
            .bind(ordinal)
            .bind(text)
            .bind(call)
            .bind(name)
            .bind(input)
            .bind(output)
            .bind(whole);
        self.run(insert).await
    }

    /// Returns the rows of a range of messages that a conversation sees.
    fn rows(
        &self,
        found: &Conversation,
        range: SeqRange,
    ) -> impl DoubleEndedIterator<Item = &MessageRow> {
        let parts = found.segments.iter().filter_map(move |segment| {
            let part = segment.up_to(found.head)?.intersect(&range)?;
            let rows = &self.own.get(&segment.source)?.rows;
            let from = rows.partition_point(|row| row.entry < part.first);
            let to = rows.partition_point(|row| row.entry <= part.last);
            rows.get(from..to)
        });
        parts.flatten()
    }

    async fn summaries(&mut self, found: &Conversation, erasures: &Erasures) -> Result<()> {
        let mut seen: Vec<Summary> = Vec::new();
        let mut after: Option<SummaryId> = None;
        loop {
            let page = self
                .store
                .summary_log(found.id, after.as_ref(), 256)
                .await?;
            seen.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for summary in sources_first(&seen) {
            if !self.summaries.contains_key(&summary.id) {
                self.summary(found, summary).await?;
                let is_erased = erasures.summaries.contains(&summary.id);
                self.hashed_summary(summary, is_erased).await?;
            }
        }
        Ok(())
    }

    async fn summary(&mut self, found: &Conversation, summary: &Summary) -> Result<()> {
        let mut of = SummaryFigures::default();
        let mut messages = Vec::new();
        for source in &summary.sources {
            match source {
                _ if summary.is_context(source) => {}
                Child::Messages { range } => {
                    for row in self.rows(found, *range) {
                        of.add_message(1, row.tokens);
                        messages.push(row.id);
                    }
                }
                Child::Summary { id, .. } => {
                    let (below, tokens) = self.summaries.get(id).copied().unwrap_or_default();
                    of.add_summary(&below, tokens);
                }
            }
        }
        let insert =
            sqlx::query("insert into summaries values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                .bind(summary.id.as_str())
                .bind(i64::from(found.id.0))
                .bind(summary.kind())
                .bind(i64::from(summary.depth))
                .bind(summary.text())
                .bind(int(summary.tokens))
                .bind(summary.earliest_at.known().map(|at| at.0))
                .bind(summary.latest_at.known().map(|at| at.0))
                .bind(int(of.descendant_count))
                .bind(int(of.descendant_token_count))
                .bind(int(of.source_message_token_count))
                .bind(summary.created_at.0);
        self.run(insert).await?;
        self.written.summaries += 1;
        let figures = (of, summary.tokens);
        self.summaries.insert(summary.id.clone(), figures);
        for (ordinal, message) in (0_i64..).zip(messages) {
            let insert = sqlx::query("insert into summary_messages values (?, ?, ?)");
            let insert = insert.bind(summary.id.as_str()).bind(message).bind(ordinal);
            self.run(insert).await?;
        }
        for (ordinal, source) in (0_i64..).zip(&summary.sources) {
            if let Some(id) = source.summary() {
                let insert = sqlx::query("insert into summary_parents values (?, ?, ?)");
                let insert = insert.bind(summary.id.as_str()).bind(id.as_str());
                self.run(insert.bind(ordinal)).await?;
            }
        }
        Ok(())
    }

    async fn context(&mut self, found: &Conversation) -> Result<()> {
        let snapshot = self.store.snapshot(found.id, self.view).await?;
        let mut items: Vec<(i64, Option<i64>, Option<SummaryId>)> = Vec::new();
        // Ordinals rise, even if a summary covers messages without rows.
        let mut last = 0;
        for span in read_spans(self.store, &snapshot, found.range()).await? {
            let Some(covered) = span.range.up_to(found.head) else {
                continue;
            };
            let mut rows = self.rows(found, covered);
            match span.body {
                SpanBody::Raw | SpanBody::Trimmed(_) => {
                    for row in rows {
                        last = row.seq.max(last + 1);
                        items.push((last, Some(row.id), None));
                    }
                }
                SpanBody::Summary { id, .. } => {
                    last = rows.next().map_or(0, |row| row.seq).max(last + 1);
                    items.push((last, None, Some(id)));
                }
                SpanBody::Omitted => {}
            }
        }
        for (ordinal, message, summary) in items {
            let insert = sqlx::query("insert into context_items values (?, ?, ?, ?, ?)")
                .bind(i64::from(found.id.0))
                .bind(ordinal)
                .bind(message.map_or("summary", |_| "message"))
                .bind(message)
                .bind(summary.map(|id| id.as_str().to_owned()));
            self.run(insert).await?;
        }
        Ok(())
    }
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A row for the table `messages` that has no id yet.
struct PlainRow<'a> {
    kind: &'static str,
    role: Role,
    content: String,
    /// Share of the message's cost, in tokens. The shares of all rows of a message add up to its cost.
    tokens: u64,
    parts: Vec<&'a Part>,
}

#[derive(Serialize)]
struct ToolCallRow<'a> {
    id: &'a str,
    tool: &'a str,
    args: &'a RawJson,
}

#[derive(Serialize)]
struct ToolAnswer<'a> {
    id: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<&'a Vec<Part>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<bool>,
}

/// Returns the rows of a log entry: one for its text or its blocks, and one for each reasoning, tool call and tool
/// result. Notes and messages without content have no rows. `tools` collects the names of called tools, for the results
/// of these calls.
fn plain_rows<'a>(
    entry: &'a LogEntry,
    tools: &mut ToolNames,
) -> serde_json::Result<Vec<PlainRow<'a>>> {
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
                rows.push(row("thinking", message.role, text.clone(), vec![part]));
            }
            Part::ToolCall {
                id,
                name,
                arguments,
            } => {
                tools.insert(id.clone(), name.clone());
                let content = serde_json::to_string(&ToolCallRow {
                    id,
                    tool: name,
                    args: arguments,
                })?;
                rows.push(row("tool_call", Role::Assistant, content, vec![part]));
            }
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => {
                let is_text = |part: &Part| matches!(part, Part::Text { .. });
                let blocks = match content {
                    ResultContent::Parts(parts) if !parts.iter().all(is_text) => Some(parts),
                    _ => None,
                };
                let content = serde_json::to_string(&ToolAnswer {
                    id: call_id,
                    tool: tools.get(call_id).map_or("", String::as_str),
                    result: blocks.is_none().then(|| content.text().into_owned()),
                    blocks,
                    error: is_error.filter(|failed| *failed),
                })?;
                rows.push(row("tool_result", Role::Tool, content, vec![part]));
            }
        }
    }
    if !said.is_empty() {
        let texts: Option<Vec<&str>> = said
            .iter()
            .map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let (kind, content) = match texts {
            Some(texts) => ("text", texts.join("\n")),
            None => ("multimodal", serde_json::to_string(&said)?),
        };
        let thoughts = rows.iter().take_while(|row| row.kind == "thinking").count();
        rows.insert(thoughts, row(kind, message.role, content, said));
    }
    // The cost is divided in proportion to the bytes of the rows. The remainder is added to the first row.
    let bytes: u128 = rows.iter().map(|row| row.content.len() as u128).sum();
    let mut left = entry.tokens;
    for row in &mut rows {
        let share = (u128::from(entry.tokens) * row.content.len() as u128).checked_div(bytes);
        row.tokens = u64::try_from(share.unwrap_or(0)).unwrap_or(0);
        left = left.saturating_sub(row.tokens);
    }
    if let Some(first) = rows.first_mut() {
        first.tokens = first.tokens.saturating_add(left);
    }
    Ok(rows)
}

/// Returns the summaries in an order in which each comes after its sources. Otherwise the given order is kept.
fn sources_first(given: &[Summary]) -> Vec<&Summary> {
    let by_id: BTreeMap<&SummaryId, &Summary> =
        given.iter().map(|summary| (&summary.id, summary)).collect();
    let (mut ordered, mut entered) = (Vec::new(), BTreeSet::new());
    // Each summary is pushed twice: first to visit its sources, then to be placed after them.
    let mut todo: Vec<(&Summary, bool)> = given.iter().rev().map(|one| (one, false)).collect();
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

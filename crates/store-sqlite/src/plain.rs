//! A plain database with the tables of the older memory engine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use memory_model::{
    Child, ConversationId, Part, Seq, SeqRange, SpanBody, Summary, SummaryId, Timestamp, ViewName,
};
use memory_store::plain::{PlainRow, ToolNames, node_figures, plain_rows, sources_first};
use memory_store::{
    Conversation, ConversationRef, Error, ErrorKind, LogRead, Order, Origin, Result, Store,
};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::error::failed;

const SCHEMA: &str = include_str!("plain.sql");

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlainExport {
    /// Conversations.
    pub conversations: u64,
    /// Rows of messages.
    pub messages: u64,
    /// Summaries.
    pub summaries: u64,
}

/// The rows of one conversation's own log.
struct OwnRows {
    /// The first position of the log.
    first: Seq,
    /// For each position, and for the one after the last, how many rows there are before it: here and in what the
    /// conversation shares.
    before: Vec<u64>,
    /// For the same positions, what all rows before cost, in tokens.
    cost: Vec<u64>,
    /// The id of the row that `before` counts up to at the first position.
    first_id: i64,
    tools: ToolNames,
}

impl OwnRows {
    fn at<T: Copy>(&self, list: &[T], seq: Seq) -> Option<T> {
        let index = seq.0.checked_sub(self.first.0)?;
        list.get(index as usize).copied()
    }
}

/// Writes conversations, with all the ancestors that forks among them share, into a new database at `path`. `view` is the
/// view that `context_items` shows; a conversation without it shows its messages.
///
/// The file must not exist. It can be read and written by its owner alone.
///
/// # Errors
/// `Io` when the file exists or cannot be written; as the store's.
pub async fn write_plain<S: Store + ?Sized>(
    store: &S,
    conversations: &[ConversationId],
    view: &ViewName,
    path: &Path,
    now: Timestamp,
) -> Result<PlainExport> {
    let place = path.display().to_string();
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path).map_err(|source| {
        let message = format!("{place} cannot be created: name a file that does not exist yet");
        Error::new(ErrorKind::Io, message).with_source(source)
    })?;
    let written = write_into(store, conversations, view, path, now).await;
    if written.is_err() {
        // It holds nothing: all rows come in one transaction. That it stays behind is the lesser failure.
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
        summaries: BTreeSet::new(),
        last_id: 0,
    };
    sqlx::raw_sql(SCHEMA)
        .execute(&mut *writer.db)
        .await
        .map_err(failed)?;
    sqlx::query("insert into schema_migrations values (1, ?)")
        .bind(now.0)
        .execute(&mut *writer.db)
        .await
        .map_err(failed)?;
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
    own: BTreeMap<ConversationId, OwnRows>,
    /// Those that are written: an ancestor's may have been made again in a fork.
    summaries: BTreeSet<SummaryId>,
    last_id: i64,
}

impl<S: Store + ?Sized> Plain<'_, S> {
    async fn look_up(&self, id: ConversationId) -> Result<Conversation> {
        let found = self.store.conversation(&ConversationRef::Id(id)).await?;
        found.ok_or_else(|| memory_store::implementors::no_conversation(id))
    }

    async fn conversation(&mut self, found: &Conversation) -> Result<()> {
        let facts = found
            .meta
            .as_ref()
            .and_then(|meta| serde_json::from_str::<serde_json::Value>(meta.as_str()).ok());
        let channel = facts
            .as_ref()
            .and_then(|facts| facts.get("channel")?.as_str());
        sqlx::query("insert into conversations values (?, ?, ?, ?, ?, ?, ?)")
            .bind(i64::from(found.id.0))
            .bind(found.key.as_str())
            .bind(found.title.as_deref())
            .bind(channel)
            .bind(i64::from(found.archived))
            .bind(found.updated_at.0)
            .bind(found.created_at.0)
            .execute(&mut *self.db)
            .await
            .map_err(failed)?;
        self.written.conversations += 1;
        self.log(found).await?;
        self.summaries(found).await?;
        self.context(found).await
    }

    async fn log(&mut self, found: &Conversation) -> Result<()> {
        let first = found.own_first();
        let shared = self.rows_before(found, first);
        let mut own = OwnRows {
            first,
            before: vec![shared.0],
            cost: vec![shared.1],
            first_id: self.last_id + 1,
            tools: match found.origin {
                Origin::Fork { parent, .. } => self.own.get(&parent).map(|own| own.tools.clone()),
                Origin::Root | Origin::Spawn { .. } => None,
            }
            .unwrap_or_default(),
        };
        let (mut before, mut cost) = shared;
        let mut rest = SeqRange::new(first, found.head);
        while let Some(range) = rest {
            let page = self.store.read(found.id, &LogRead::new(range)).await?;
            for entry in &page.items {
                let rows = plain_rows(entry, &mut own.tools).map_err(|source| {
                    let message = format!("entry {} of {} is no JSON", entry.seq, found.key);
                    Error::new(ErrorKind::Corrupt, message).with_source(source)
                })?;
                for row in &rows {
                    before += 1;
                    cost += row.tokens;
                    self.row(found.id, before, entry.message.created_at, row, &own.tools)
                        .await?;
                }
                own.before.push(before);
                own.cost.push(cost);
            }
            rest = page.next;
        }
        self.own.insert(found.id, own);
        Ok(())
    }

    async fn row(
        &mut self,
        conversation: ConversationId,
        seq: u64,
        at: Timestamp,
        row: &PlainRow<'_>,
        tools: &ToolNames,
    ) -> Result<()> {
        self.last_id += 1;
        self.written.messages += 1;
        sqlx::query("insert into messages values (?, ?, ?, ?, ?, ?, ?, ?)")
            .bind(self.last_id)
            .bind(i64::from(conversation.0))
            .bind(int(seq))
            .bind(row.role.as_str())
            .bind(row.kind.as_str())
            .bind(row.content.as_str())
            .bind(int(row.tokens))
            .bind(at.0)
            .execute(&mut *self.db)
            .await
            .map_err(failed)?;
        for (ordinal, part) in (0_i64..).zip(&row.parts) {
            let (mut text, mut call, mut name) = (None, None, None);
            let (mut input, mut output) = (None, None);
            let kind = match part {
                Part::Text { text: said } => {
                    text = Some(said.clone());
                    "text"
                }
                Part::Reasoning { text: thought, .. } => {
                    text = Some(thought.clone());
                    "reasoning"
                }
                Part::ToolCall {
                    id,
                    name: tool,
                    arguments,
                } => {
                    (call, name) = (Some(id.clone()), Some(tool.clone()));
                    input = Some(arguments.as_str().to_owned());
                    "tool"
                }
                Part::ToolResult {
                    call_id, content, ..
                } => {
                    (call, name) = (Some(call_id.clone()), tools.get(call_id).cloned());
                    output = Some(content.text().into_owned());
                    "tool"
                }
                Part::Image(_) | Part::File(_) | Part::Unknown { .. } => "text",
            };
            let whole = serde_json::to_string(part).map_err(|source| {
                Error::new(ErrorKind::Corrupt, "a part cannot be written as JSON")
                    .with_source(source)
            })?;
            sqlx::query(
                "insert into message_parts (message_id, part_type, ordinal, text_content, tool_call_id, tool_name, \
                 tool_input, tool_output, metadata) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(self.last_id)
            .bind(kind)
            .bind(ordinal)
            .bind(text)
            .bind(call)
            .bind(name)
            .bind(input)
            .bind(output)
            .bind(whole)
            .execute(&mut *self.db)
            .await
            .map_err(failed)?;
        }
        Ok(())
    }

    /// How many rows a conversation shows before a position, and what they cost in tokens.
    fn rows_before(&self, found: &Conversation, seq: Seq) -> (u64, u64) {
        // The position itself, or the one after the last of a segment.
        let holds = |segment: &&memory_store::Segment| {
            segment.first <= seq && segment.last.is_none_or(|last| seq <= last.next())
        };
        let segment = found.segments.iter().find(holds);
        let own = segment.and_then(|segment| self.own.get(&segment.source));
        own.and_then(|own| Some((own.at(&own.before, seq)?, own.at(&own.cost, seq)?)))
            .unwrap_or_default()
    }

    /// The rows of a range of messages: how many, and what they cost.
    fn rows(&self, found: &Conversation, range: SeqRange) -> (u64, u64) {
        let (from, to) = (
            self.rows_before(found, range.first),
            self.rows_before(found, range.last.next()),
        );
        (to.0.saturating_sub(from.0), to.1.saturating_sub(from.1))
    }

    /// The ids of the rows of a range of messages, each with its seq.
    fn row_ids(&self, found: &Conversation, range: SeqRange) -> Vec<(i64, u64)> {
        let mut ids = Vec::new();
        for segment in &found.segments {
            let last = segment.last.unwrap_or(found.head);
            let Some(part) = SeqRange::new(segment.first, last).and_then(|s| s.intersect(&range))
            else {
                continue;
            };
            let Some(own) = self.own.get(&segment.source) else {
                continue;
            };
            let shared = own.before.first().copied().unwrap_or(0);
            let (Some(from), Some(to)) = (
                own.at(&own.before, part.first),
                own.at(&own.before, part.last.next()),
            ) else {
                continue;
            };
            ids.extend((from..to).map(|row| (own.first_id + int(row - shared), row + 1)));
        }
        ids
    }

    async fn summaries(&mut self, found: &Conversation) -> Result<()> {
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
        let figures = node_figures(&seen, |range| self.rows(found, range));
        for summary in sources_first(&seen) {
            if !self.summaries.insert(summary.id.clone()) {
                continue;
            }
            self.written.summaries += 1;
            let of = figures.get(&summary.id).copied().unwrap_or_default();
            sqlx::query("insert into summaries values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                .bind(summary.id.as_str())
                .bind(i64::from(found.id.0))
                .bind(summary.kind())
                .bind(i64::from(summary.depth))
                .bind(summary.text())
                .bind(int(summary.tokens))
                .bind(summary.earliest_at.0)
                .bind(summary.latest_at.0)
                .bind(int(of.descendant_count))
                .bind(int(of.descendant_token_count))
                .bind(int(of.source_message_token_count))
                .bind(summary.created_at.0)
                .execute(&mut *self.db)
                .await
                .map_err(failed)?;
            let mut messages = 0_i64;
            for (ordinal, source) in (0_i64..).zip(&summary.sources) {
                match source {
                    Child::Messages { range } => {
                        for (id, _) in self.row_ids(found, *range) {
                            sqlx::query("insert into summary_messages values (?, ?, ?)")
                                .bind(summary.id.as_str())
                                .bind(id)
                                .bind(messages)
                                .execute(&mut *self.db)
                                .await
                                .map_err(failed)?;
                            messages += 1;
                        }
                    }
                    Child::Summary { id, .. } => {
                        sqlx::query("insert into summary_parents values (?, ?, ?)")
                            .bind(summary.id.as_str())
                            .bind(id.as_str())
                            .bind(ordinal)
                            .execute(&mut *self.db)
                            .await
                            .map_err(failed)?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn context(&mut self, found: &Conversation) -> Result<()> {
        let snapshot = self.store.snapshot(found.id, self.view).await?;
        let Some(mut range) = found.range() else {
            return Ok(());
        };
        // Ordinals rise, also where a summary stands for messages without rows.
        let mut last = 0;
        loop {
            let page = self
                .store
                .spans(&snapshot, range, Order::OldestFirst, 1024)
                .await?;
            for span in &page.items {
                let Some(covered) = span.range.up_to(found.head) else {
                    continue;
                };
                match &span.body {
                    SpanBody::Raw | SpanBody::Trimmed(_) => {
                        for (id, seq) in self.row_ids(found, covered) {
                            last = seq.max(last + 1);
                            sqlx::query(
                                "insert into context_items values (?, ?, 'message', ?, null)",
                            )
                            .bind(i64::from(found.id.0))
                            .bind(int(last))
                            .bind(id)
                            .execute(&mut *self.db)
                            .await
                            .map_err(failed)?;
                        }
                    }
                    SpanBody::Summary { id, .. } => {
                        let (before, _) = self.rows_before(found, covered.first);
                        last = (before + 1).max(last + 1);
                        sqlx::query("insert into context_items values (?, ?, 'summary', null, ?)")
                            .bind(i64::from(found.id.0))
                            .bind(int(last))
                            .bind(id.as_str())
                            .execute(&mut *self.db)
                            .await
                            .map_err(failed)?;
                    }
                    SpanBody::Omitted => {}
                }
            }
            match page.next {
                Some(next) => range = next,
                None => return Ok(()),
            }
        }
    }
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

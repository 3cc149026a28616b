//! `stats`: shows the size of the database and the number of stored objects.

use std::collections::{BTreeMap, BTreeSet};

use agent_memory::Memory;
use agent_memory::store::ConversationFilter;
use serde::Serialize;

use super::sessions::shown;
use super::verify::unwiped;
use crate::app::App;
use crate::output::{bytes, count, number, percent, table};

#[derive(Debug, Serialize)]
struct StatsReport {
    database: String,
    bytes: u64,
    conversations: u64,
    messages: u64,
    tokens: u64,
    summaries: u64,
    views: Vec<ViewTotals>,
    parts: Parts,
    /// Number of long texts that are stored once, and of messages with one of them.
    texts: u64,
    uses_of_texts: u64,
    /// Number of summaries by the tier that wrote them.
    tiers: BTreeMap<String, u64>,
    /// Number of entries by month, by the time in the source.
    months: BTreeMap<String, u64>,
    /// Start time of an erasure that was interrupted, so that erased words may still be in the database's files. `None`
    /// if no erasure was interrupted.
    pending_wipe: Option<String>,
}

/// Bytes of the parts of the database.
#[derive(Debug, Serialize)]
struct Parts {
    log: u64,
    summaries: u64,
    views: u64,
    search: u64,
    other: u64,
}

/// Totals over the views with one name in all conversations.
#[derive(Debug, Default, Serialize)]
struct ViewTotals {
    name: String,
    conversations: u64,
    spans: u64,
    /// Total cost of the conversations' logs, in tokens.
    log_tokens: u64,
    tokens: u64,
}

pub(crate) async fn run(app: &mut App) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let mut answer = database(app, &memory).await?;
    add_sessions(&mut answer, &memory).await?;
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    print(app, &answer)
}

/// Returns the size of the database. Its sessions are not counted yet.
async fn database(app: &App, memory: &Memory) -> anyhow::Result<StatsReport> {
    let place = app.place()?;
    let usage = memory.store().usage().await;
    let usage = usage.map_err(agent_memory::Error::from)?;
    // Of a server, the tables alone belong to the database.
    let size = match place.file() {
        Some(_) => place.bytes(),
        None => usage.log + usage.summaries + usage.views + usage.search + usage.other,
    };
    let pending_wipe = memory.store().pending_wipe().await?;
    Ok(StatsReport {
        database: place.name(),
        bytes: size,
        conversations: 0,
        messages: 0,
        tokens: 0,
        summaries: 0,
        views: Vec::new(),
        parts: Parts {
            log: usage.log,
            summaries: usage.summaries,
            views: usage.views,
            search: usage.search,
            other: usage.other,
        },
        texts: usage.texts,
        uses_of_texts: usage.uses_of_texts,
        tiers: usage.tiers,
        months: usage.months,
        pending_wipe: pending_wipe.map(|at| at.to_string()),
    })
}

/// Adds the numbers of all sessions.
async fn add_sessions(answer: &mut StatsReport, memory: &Memory) -> anyhow::Result<()> {
    let mut views: BTreeMap<String, ViewTotals> = BTreeMap::new();
    let mut summaries = BTreeSet::new();
    let mut filter = ConversationFilter::default();
    filter.archived = true;
    for info in memory.sessions(&filter).await? {
        let conversation = &info.conversation;
        answer.conversations += 1;
        // The entries of a fork begin after the part that it shares with its parent.
        let shared = u64::from(conversation.own_first().prev().0);
        answer.messages += u64::from(conversation.head.0).saturating_sub(shared);
        let before = memory
            .store()
            .running(conversation.id, &[conversation.own_first().prev()])
            .await?;
        let before = before.first().copied().unwrap_or_default();
        answer.tokens += conversation.tokens.saturating_sub(before);
        for view in &info.views {
            let name = view.name.to_string();
            let all = views.entry(name.clone()).or_default();
            all.name = name;
            all.conversations += 1;
            all.spans += view.spans;
            all.log_tokens += conversation.tokens;
            all.tokens += shown(conversation.tokens, view.saved);
        }
        let mut after = None;
        loop {
            let store = memory.store();
            let page = store.summary_log(conversation.id, after.as_ref(), 256);
            let page = page.await?;
            // A fork also lists the summaries of the part that it shares with its parent.
            let ids = page.items.into_iter().map(|summary| summary.id);
            summaries.extend(ids.map(|id| (conversation.family, id)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    answer.summaries = summaries.len() as u64;
    answer.views = views.into_values().collect();
    Ok(())
}

fn print(app: &mut App, answer: &StatsReport) -> anyhow::Result<()> {
    let row = |name: &str, text: String, more: String| vec![name.to_owned(), text, more];
    let parts = &answer.parts;
    let each = |part: u64, of: u64, what: &str| match of {
        0 => String::new(),
        of => format!("{} {what}", bytes(part / of)),
    };
    let rows = vec![
        row("size", bytes(answer.bytes), String::new()),
        row(
            "  log",
            bytes(parts.log),
            each(parts.log, answer.messages, "an entry"),
        ),
        row(
            "  search index",
            bytes(parts.search),
            each(parts.search, answer.messages, "an entry"),
        ),
        row(
            "  summaries",
            bytes(parts.summaries),
            each(parts.summaries, answer.summaries, "a summary"),
        ),
        row("  views", bytes(parts.views), String::new()),
        row("  other", bytes(parts.other), String::new()),
        row("sessions", number(answer.conversations), String::new()),
        row("log entries", number(answer.messages), by(&answer.months)),
        row("tokens", number(answer.tokens), String::new()),
        row("summaries", number(answer.summaries), by(&answer.tiers)),
        row(
            "texts stored once",
            number(answer.texts),
            format!("used {} times", number(answer.uses_of_texts)),
        ),
    ];
    app.out.line(&format!("database {}", answer.database))?;
    app.out.text(&table(&rows))?;
    for view in &answer.views {
        app.out.line(&format!(
            "view {}: {} compacted from {} to {} tokens ({}) in {}",
            view.name,
            count(view.conversations, "session", "sessions"),
            number(view.log_tokens),
            number(view.tokens),
            percent(view.tokens, view.log_tokens),
            count(view.spans, "span", "spans"),
        ))?;
    }
    if let Some(since) = &answer.pending_wipe {
        app.out.line(&unwiped(since))?;
    }
    Ok(())
}

/// Returns numbers with their names: `2026-02 12, 2026-03 573`.
fn by(numbers: &BTreeMap<String, u64>) -> String {
    let numbers = numbers.iter();
    let numbers = numbers.map(|(name, n)| format!("{name} {}", number(*n)));
    numbers.collect::<Vec<_>>().join(", ")
}

//! `erase` and `delete`: erase words of a session permanently, and record the erasure and its reason.

use std::time::Duration;

use agent_memory::{
    Seq, SeqRange, Session,
    store::{Erased, ErasedRange, PurgeReport},
};
use serde::Serialize;

use crate::app::App;
use crate::args::{Delete, Erase};
use crate::error::{Failure, Kind};
use crate::kept::KeptTranscripts;
use crate::output::{count, note};

#[derive(Debug, Serialize)]
struct EraseReport {
    session: String,
    erased: bool,
    entries: u64,
    summaries: u64,
    drafts: u64,
    logs: Vec<SessionRange>,
    seen_by: Vec<SessionRange>,
    copies: Vec<SessionRange>,
    /// Number, cost and age of the erased archived messages. `None` without `--archived`.
    #[serde(skip_serializing_if = "Option::is_none")]
    archived: Option<Archived>,
    /// Number of kept transcripts that were removed because they may have the words.
    #[serde(skip_serializing_if = "is_zero")]
    transcripts: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Number, cost in tokens, and earliest and latest time of the archived messages that are at least as old as requested.
/// A message is archived if contexts show a summary in its place, or omit it.
#[derive(Debug, Serialize)]
struct Archived {
    messages: u64,
    tokens: u64,
    oldest: Option<String>,
    newest: Option<String>,
}

impl From<&PurgeReport> for Archived {
    fn from(report: &PurgeReport) -> Self {
        Self {
            messages: report.messages,
            tokens: report.tokens,
            oldest: report.oldest.map(|at| at.to_string()),
            newest: report.newest.map(|at| at.to_string()),
        }
    }
}

/// A range of positions in a session.
#[derive(Debug, Serialize)]
struct SessionRange {
    session: String,
    first: u32,
    last: u32,
}

impl From<&ErasedRange> for SessionRange {
    fn from(range: &ErasedRange) -> Self {
        Self {
            session: range.key.to_string(),
            first: range.range.first.0,
            last: range.range.last.0,
        }
    }
}

pub(crate) async fn erase(app: &mut App, args: &Erase) -> anyhow::Result<()> {
    let memory = app.open_to_change().await?;
    let session = app.session_to_erase(&memory, &args.session).await?;
    if args.archived || args.older_than.is_some() {
        return purge(app, &session, args).await;
    }
    let from = args.from.unwrap_or_default();
    let Some(range) = SeqRange::new(Seq(from), Seq(args.to.unwrap_or(from))) else {
        let text = format!("entries {from}-{} are not a range", args.to.unwrap_or(from));
        return Err(Failure::new(Kind::Invalid, text)
            .hint("--from is at least 1 and --to is not before it")
            .into());
    };
    let erased = session
        .erase(range, reason(args.dry_run, &args.reason))
        .await?;
    let copies = remove_copies(app, &session, &erased, args.dry_run).await?;
    print(app, &session, &erased, None, copies, args.dry_run)
}

/// Erases the archived messages, which contexts do not show verbatim, and prints their number, cost and times.
async fn purge(app: &mut App, session: &Session, args: &Erase) -> anyhow::Result<()> {
    let age = Duration::from_secs(u64::from(args.older_than.unwrap_or(0)) * 24 * 60 * 60);
    let purged = session
        .purge(age, reason(args.dry_run, &args.reason))
        .await?;
    let archived = Archived::from(&purged);
    let copies = remove_copies(app, session, &purged.erased, args.dry_run).await?;
    print(
        app,
        session,
        &purged.erased,
        Some(archived),
        copies,
        args.dry_run,
    )
}

/// Returns the reason of an erasure; `None` for a dry run.
fn reason(dry_run: bool, reason: &Option<String>) -> Option<&str> {
    (!dry_run).then(|| reason.as_deref().unwrap_or_default())
}

pub(crate) async fn delete(app: &mut App, args: &Delete) -> anyhow::Result<()> {
    let memory = app.open_to_change().await?;
    let session = app.session_to_erase(&memory, &args.session).await?;
    let erased = session.delete(reason(args.dry_run, &args.reason)).await?;
    let copies = remove_copies(app, &session, &erased, args.dry_run).await?;
    print(app, &session, &erased, None, copies, args.dry_run)
}

/// Removes the kept transcripts that may have the erased words. Returns their number.
async fn remove_copies(
    app: &App,
    session: &Session,
    erased: &Erased,
    dry_run: bool,
) -> anyhow::Result<u64> {
    if dry_run || erased.entries == 0 {
        return Ok(0);
    }
    let conversation = session.info().await?.conversation;
    KeptTranscripts::of(app)?
        .remove(session.memory(), &conversation)
        .await
}

fn print(
    app: &mut App,
    session: &Session,
    erased: &Erased,
    archived: Option<Archived>,
    transcripts: u64,
    dry_run: bool,
) -> anyhow::Result<()> {
    let answer = EraseReport {
        session: session.key().to_string(),
        erased: !dry_run,
        entries: erased.entries,
        summaries: erased.summaries,
        drafts: erased.drafts,
        logs: erased.logs.iter().map(SessionRange::from).collect(),
        seen_by: erased.seen_by.iter().map(SessionRange::from).collect(),
        copies: erased.copies.iter().map(SessionRange::from).collect(),
        archived,
        transcripts,
    };
    if answer.erased
        && let Some(places) = session.memory().store().erasure_note()
    {
        note(places);
    }
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    print_text(app, &answer)
}

fn print_text(app: &mut App, answer: &EraseReport) -> anyhow::Result<()> {
    if let Some(archived) = &answer.archived {
        let times = match (&archived.oldest, &archived.newest) {
            (Some(oldest), Some(newest)) => format!(", from {oldest} to {newest}"),
            _ => String::new(),
        };
        app.out.line(&format!(
            "archived: {}, {}{times}",
            count(archived.messages, "message", "messages"),
            count(archived.tokens, "token", "tokens"),
        ))?;
    }
    let done = match answer.erased {
        true => "erased",
        false => "would erase",
    };
    app.out.line(&format!(
        "{done} {}, {} and {} of prepared work",
        count(answer.entries, "entry", "entries"),
        count(answer.summaries, "summary", "summaries"),
        count(answer.drafts, "piece", "pieces"),
    ))?;
    // Sessions that showed only erased words are not affected.
    let any = answer.entries > 0 || answer.summaries > 0;
    for SessionRange {
        session,
        first,
        last,
    } in answer.seen_by.iter().filter(|_| any)
    {
        app.out
            .line(&format!("{session} shows them: entries {first}-{last}"))?;
    }
    for SessionRange {
        session,
        first,
        last,
    } in &answer.copies
    {
        app.out.line(&format!(
            "{session} has copies of them between entries {first} and {last}, which stay: erase them there too"
        ))?;
    }
    if any {
        app.out.line(
            "positions, sizes, ids and hashes stay: a guess of a short text can be checked against its hash",
        )?;
    }
    if answer.transcripts > 0 {
        app.out.line(&format!(
            "removed {} of the session and its forks; the agent's own files are not changed",
            count(answer.transcripts, "kept transcript", "kept transcripts")
        ))?;
    }
    if answer.erased && answer.summaries > 0 {
        app.out
            .line("run `compact` again: spans of erased summaries show their messages")?;
    }
    if !answer.erased {
        app.out.line(
            "the database did not change: give --reason instead of --dry-run to erase for ever",
        )?;
    }
    Ok(())
}

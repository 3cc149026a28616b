//! What was said before the messages of a summary: context for a model that would otherwise see a segment from the middle
//! of a task without knowing the task.

use std::borrow::Cow;
use std::collections::BTreeSet;

use compaction_plan::Job;
use memory_model::{LogEntry, Part, Purpose, Seq, SeqRange};
use memory_store::read_entries;
use summarize_escalation::prompt::speaker;

use crate::environment::Compaction;
use crate::error::Result;

/// Number of log entries that are read first. Each later page has twice as many.
const PAGE: u32 = 32;
/// Number of log entries before a segment after which the search ends with the page that reaches it.
const FURTHEST: u32 = 992;

/// Returns the job with the messages that a model should read before a summary of messages: see [`before`]. A job that
/// has context of its own is unchanged, and so is every job if the summarizer asks no model.
pub(crate) async fn with_before<'j>(
    env: &Compaction<'_>,
    job: Cow<'j, Job>,
) -> Result<Cow<'j, Job>> {
    let asked = job.request.as_ref();
    // The beginning of a turn has the summary of what was before beside it.
    let has_context = asked.is_some_and(|asked| {
        asked.previous.is_some() || !asked.before.is_empty() || asked.purpose != Purpose::Replace
    });
    let of_messages = || {
        let mut sources = job.sources().iter();
        job.depth() == Some(0) && sources.all(|source| source.summary().is_none())
    };
    if env.summarizer.provisional() || has_context || !of_messages() {
        return Ok(job);
    }
    let before = before(env, job.range.first).await?;
    if before.is_empty() {
        return Ok(job);
    }
    let mut job = job.into_owned();
    job.request.get_or_insert_default().before = before;
    Ok(Cow::Owned(job))
}

/// Returns the positions of the last words of the user and of the assistant before a position, in order. They are words
/// of the log and not of a summary: a summary made from another one would have to be erased with it, and so on with
/// each later one.
async fn before(env: &Compaction<'_>, first: Seq) -> Result<Vec<SeqRange>> {
    let mut found: [Option<Seq>; 2] = [None; 2];
    let (mut end, mut rows) = (first.prev(), PAGE);
    while found.contains(&None)
        && first.0.saturating_sub(end.0) <= FURTHEST
        && let Some(range) = SeqRange::new(Seq(end.0.saturating_sub(rows - 1).max(1)), end)
        && end >= Seq::FIRST
    {
        let page = read_entries(env.store, env.conversation, range).await?;
        for entry in page.iter().rev() {
            let place = match speaker(entry, env.conventions) {
                Some("user") => &mut found[0],
                Some("assistant") if has_text(entry) => &mut found[1],
                _ => continue,
            };
            place.get_or_insert(entry.seq);
        }
        (end, rows) = (range.first.prev(), rows * 2);
    }
    let found: BTreeSet<Seq> = found.into_iter().flatten().collect();
    Ok(found.into_iter().map(SeqRange::single).collect())
}

fn has_text(entry: &LogEntry) -> bool {
    let is_text = |part: &Part| matches!(part, Part::Text { text } if !text.trim().is_empty());
    entry.parts.iter().any(is_text)
}

//! Context of a summary: the last words of the user and of the assistant before its messages. Without them, a model that
//! summarizes the middle of a task does not know the task.

use std::borrow::Cow;
use std::collections::BTreeSet;

use compaction_plan::Job;
use memory_model::conventions::AgentConventions;
use memory_model::{EntryKind, LogEntry, Part, Purpose, Role, Seq, SeqRange};
use memory_store::{ERASED, read_entries};

use crate::environment::Compaction;
use crate::error::Result;

/// Number of log entries that are read first. Each later page has twice as many.
const PAGE: u32 = 32;
/// Number of log entries before a segment after which the search ends with the page that reaches it.
const FURTHEST: u32 = 992;
/// Number of bytes of the user's words that usually name the task. Messages before the last one are added until they
/// have as many.
const TELLING: usize = 120;
/// Maximum number of messages of the user.
const MOST_SAID: usize = 4;

/// Returns the job with its context, if it summarizes messages: see [`before`]. A job that already has context is
/// unchanged. If the summarizer calls no model, every job is unchanged.
pub(crate) async fn with_before<'j>(
    env: &Compaction<'_>,
    job: Cow<'j, Job>,
) -> Result<Cow<'j, Job>> {
    let asked = job.request.as_ref();
    // A view shows the summary of the history beside the beginning of a turn.
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

/// Returns the positions of the last messages of the user and of the assistant before a position, in order. If the user's
/// last message is short, earlier ones are added.
///
/// The context does not contain the summary before. An erasure would then erase all later summaries of the chain.
async fn before(env: &Compaction<'_>, first: Seq) -> Result<Vec<SeqRange>> {
    let (mut said, mut answered): (Vec<Seq>, Option<Seq>) = (Vec::new(), None);
    let mut words = 0;
    let (mut end, mut rows) = (first.prev(), PAGE);
    while (answered.is_none() || is_short(&said, words))
        && first.0.saturating_sub(end.0) <= FURTHEST
        && let Some(range) = SeqRange::new(Seq(end.0.saturating_sub(rows - 1).max(1)), end)
        && end >= Seq::FIRST
    {
        let page = read_entries(env.store, env.conversation, range).await?;
        for entry in page.iter().rev() {
            match entry.role {
                Role::User if is_short(&said, words) => {
                    let typed = typed(entry, env.conventions);
                    words += typed;
                    said.extend((typed > 0).then_some(entry.seq));
                }
                Role::Assistant if answered.is_none() => {
                    answered = texts(entry).next().map(|_| entry.seq);
                }
                _ => {}
            }
        }
        (end, rows) = (range.first.prev(), rows * 2);
    }
    let found: BTreeSet<Seq> = said.into_iter().chain(answered).collect();
    Ok(found.into_iter().map(SeqRange::single).collect())
}

/// Returns whether messages of the user say too little to tell a task, such as `go on`.
fn is_short(said: &[Seq], words: usize) -> bool {
    words < TELLING && said.len() < MOST_SAID
}

/// Returns the number of bytes that the user typed in a message.
fn typed(entry: &LogEntry, conventions: &dyn AgentConventions) -> usize {
    let typed = texts(entry).map(|text| conventions.user_text(text, entry.meta.as_ref()));
    typed.map(|text| text.typed.trim().len()).sum()
}

/// Returns the texts of a message that are neither blank nor erased.
fn texts(entry: &LogEntry) -> impl Iterator<Item = &str> {
    let is_message = entry.kind == EntryKind::Message;
    let texts = entry.parts.iter().filter_map(move |part| match part {
        Part::Text { text } if is_message => Some(text.as_str()),
        _ => None,
    });
    texts.filter(|text| !text.trim().is_empty() && *text != ERASED)
}

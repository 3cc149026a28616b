//! The sources of summaries: the messages and summaries to summarize.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compaction_plan::{Job, JobSource};
use memory_model::{
    Child, EntryKind, Hash, LogEntry, Part, Seq, SeqRange, SourceHasher, Summary, SummaryFigures,
    SummaryId, Timestamp,
};
use memory_store::read_entries;
use summarize_escalation::Source;

use crate::environment::Compaction;
use crate::error::Result;

/// Log entries by position.
pub(crate) type Entries = BTreeMap<Seq, Arc<LogEntry>>;

/// Messages and summaries to summarize in one summary, in order.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Messages before the job's range, which the summarizer reads as context.
    before: Vec<Arc<LogEntry>>,
    entries: Vec<Arc<LogEntry>>,
    summaries: Vec<Summary>,
}

impl Sources {
    /// Returns the sources as input of the summarizer, in the order that the job sets.
    pub(crate) fn pieces(&self, job: &Job) -> Vec<Source<'_>> {
        let stored = self.stored(job).into_iter();
        let piece = |source| match source {
            JobSource::Entry(entry) => Source::from(entry),
            JobSource::Summary(summary) => Source::from(summary),
        };
        stored.map(piece).collect()
    }

    /// Returns the messages before the job's range, as context for the summarizer.
    pub(crate) fn before(&self) -> Vec<Source<'_>> {
        let before = self.before.iter();
        before.map(|entry| Source::from(&**entry)).collect()
    }

    /// Returns the sources as stored entries and summaries, in the order that the job sets.
    pub(crate) fn stored(&self, job: &Job) -> Vec<JobSource<'_>> {
        let mut stored = Vec::with_capacity(self.entries.len() + self.summaries.len());
        let (mut entries, mut summaries) = (self.entries.iter(), self.summaries.iter());
        for source in job.sources() {
            match source {
                Child::Messages { range } => {
                    let some = entries.by_ref().take(range.len() as usize);
                    stored.extend(some.map(|entry| JobSource::Entry(entry)));
                }
                Child::Summary { .. } => stored.extend(summaries.next().map(JobSource::Summary)),
            }
        }
        stored
    }

    /// Returns the summaries among the sources.
    pub(crate) fn summaries(&self) -> &[Summary] {
        &self.summaries
    }

    /// Returns the cost of the messages before the job's range, in tokens.
    pub(crate) fn before_tokens(&self) -> u64 {
        let before = self.before.iter().map(|entry| entry.tokens);
        before.fold(0, u64::saturating_add)
    }

    /// Returns the cost of all messages and summaries to summarize, in tokens.
    pub(crate) fn tokens(&self) -> u64 {
        let messages = self.entries.iter().map(|entry| entry.tokens);
        let summaries = self.summaries.iter().map(|summary| summary.tokens);
        messages.chain(summaries).fold(0, u64::saturating_add)
    }

    pub(crate) fn hash(&self, job: &Job) -> Hash {
        let mut hasher = SourceHasher::new();
        self.before
            .iter()
            .for_each(|entry| hasher.message(entry.hash));
        let (mut entries, mut summaries) = (self.entries.iter(), self.summaries.iter());
        for source in job.sources() {
            match source {
                Child::Messages { range } => entries
                    .by_ref()
                    .take(range.len() as usize)
                    .for_each(|entry| hasher.message(entry.hash)),
                Child::Summary { .. } => {
                    if let Some(summary) = summaries.next() {
                        hasher.summary(summary.hash);
                    }
                }
            }
        }
        hasher.finish()
    }

    /// Returns the earliest and the latest time of the sources. Ignores sources without a time.
    pub(crate) fn times(&self) -> (Timestamp, Timestamp) {
        let entries = self.entries.iter().map(|e| (e.created_at, e.created_at));
        let summaries = self.summaries.iter().map(|s| (s.earliest_at, s.latest_at));
        let times: Vec<_> = entries.chain(summaries).collect();
        let earliest = times.iter().filter_map(|(earliest, _)| earliest.known());
        let latest = times.iter().filter_map(|(_, latest)| latest.known());
        let (earliest, latest) = (earliest.min(), latest.max());
        (earliest.unwrap_or_default(), latest.unwrap_or_default())
    }

    /// Returns the number and the cost of the messages that a summary of these sources covers. `None` if this is not
    /// known for a source, or if the sources do not cover the range of the job exactly.
    pub(crate) fn figures(&self, job: &Job) -> Option<SummaryFigures> {
        let mut next = job.range.first;
        for source in job.sources().iter().map(Child::range) {
            if source.first != next {
                return None;
            }
            next = source.last.next();
        }
        if next != job.range.last.next() {
            return None;
        }
        let mut figures = SummaryFigures::default();
        for entry in &self.entries {
            if entry.kind == EntryKind::Message {
                figures.add_message(rows(&entry.parts), entry.tokens);
            }
        }
        for summary in &self.summaries {
            figures.add_summary(&summary.figures()?, summary.tokens);
        }
        Some(figures)
    }
}

/// Reads the messages and summaries that each job summarizes. Returns `None` for a job with missing sources, which
/// means that another writer was first. Ranges of messages in `entries` and summaries in `made` are not read again. All
/// others are read together for all jobs.
pub(crate) async fn read_sources(
    env: &Compaction<'_>,
    jobs: &[&Job],
    entries: &Entries,
    made: &BTreeMap<SummaryId, Summary>,
) -> Result<Vec<Option<Sources>>> {
    let named = || jobs.iter().flat_map(|job| job.sources());
    let ranges = named().filter(|source| source.summary().is_none());
    let before = jobs.iter().flat_map(|job| job.before().iter().copied());
    let missing = ranges.map(Child::range).chain(before);
    let missing = missing.filter(|range| entries_in(entries, *range).is_none());
    let mut read = Entries::new();
    for range in joined(missing.collect()) {
        let found = read_entries(env.store, env.conversation, range).await?;
        read.extend(found.into_iter().map(|entry| (entry.seq, Arc::new(entry))));
    }
    let ids = named().filter_map(Child::summary);
    let asked: BTreeSet<&SummaryId> = ids.filter(|id| !made.contains_key(*id)).collect();
    let asked: Vec<SummaryId> = asked.into_iter().cloned().collect();
    let stored = match asked.is_empty() {
        true => Vec::new(),
        false => env.store.summaries(env.conversation, &asked).await?,
    };
    let stored = stored.into_iter().flatten();
    let stored: BTreeMap<SummaryId, Summary> = stored.map(|s| (s.id.clone(), s)).collect();
    let summary = |id: &SummaryId| made.get(id).or_else(|| stored.get(id)).cloned();
    let of_job = |job: &&Job| {
        let messages = |range| entries_in(entries, range).or_else(|| entries_in(&read, range));
        let mut sources = Sources::default();
        for range in job.before() {
            sources.before.extend(messages(*range)?);
        }
        for source in job.sources() {
            match source {
                Child::Summary { id, .. } => sources.summaries.push(summary(id)?),
                Child::Messages { range } => sources.entries.extend(messages(*range)?),
            }
        }
        Some(sources)
    };
    Ok(jobs.iter().map(of_job).collect())
}

/// Returns the entries in a range; `None` if some are missing.
fn entries_in(entries: &Entries, range: SeqRange) -> Option<Vec<Arc<LogEntry>>> {
    let found = entries.range(range.first..=range.last);
    let found: Vec<_> = found.map(|(_, entry)| Arc::clone(entry)).collect();
    (found.len() as u64 == range.len()).then_some(found)
}

/// Returns the ranges in ascending order. Adjacent ranges are joined.
fn joined(mut ranges: Vec<SeqRange>) -> Vec<SeqRange> {
    ranges.sort_unstable();
    let mut joined: Vec<SeqRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.first <= last.last.next() => {
                let end = last.last.max(range.last);
                *last = SeqRange::new(last.first, end).unwrap_or(range);
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns the number of rows for a message in the tables of an older memory engine: one for its text or its blocks,
/// and one for each reasoning, tool call and tool result.
fn rows(parts: &[Part]) -> u64 {
    let apart = |part: &&Part| {
        matches!(
            part,
            Part::Reasoning { .. } | Part::ToolCall { .. } | Part::ToolResult { .. }
        )
    };
    let said = |part: &Part| match part {
        Part::Text { text } => !text.is_empty(),
        part => !apart(&part),
    };
    parts.iter().filter(apart).count() as u64 + u64::from(parts.iter().any(said))
}

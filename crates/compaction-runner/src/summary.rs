//! From what a summarizer wrote to a summary that is shorter than its sources.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use compaction_plan::Job;
use memory_model::{
    Child, EntryKind, Hash, LogEntry, Part, RawJson, Recipe, SeqRange, SourceHasher, Summary,
    SummaryBody, SummaryFigures, SummaryId, Timestamp,
};
use serde::{Deserialize, Serialize};
use summarize_escalation::{OnGrowth, Source, cut_to_tokens};

use crate::error::Result;
use crate::report::Cause;
use crate::run::Compaction;

/// What a summarizer wrote, as it is kept until it is published.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(crate) body: SummaryBody,
    pub(crate) tier: String,
    pub(crate) model: Option<String>,
    pub(crate) provisional: bool,
    pub(crate) recipe: Recipe,
    /// How it came about: see [`Outcome::meta`](summarize_escalation::Outcome::meta).
    #[serde(default)]
    pub(crate) meta: Option<RawJson>,
    /// Why the model did not write it.
    #[serde(default)]
    pub(crate) cause: Option<Cause>,
}

/// What a job's sources hold, in their order.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    entries: Vec<Cow<'a, LogEntry>>,
    summaries: Vec<Summary>,
}

impl Sources<'_> {
    /// The pieces in the order of the job's sources.
    pub(crate) fn pieces(&self, job: &Job) -> Vec<Source<'_>> {
        let mut pieces = Vec::with_capacity(self.entries.len() + self.summaries.len());
        let (mut entries, mut summaries) = (self.entries.iter(), self.summaries.iter());
        for source in job.sources() {
            match source {
                Child::Messages { range } => {
                    let some = entries.by_ref().take(range.len() as usize);
                    pieces.extend(some.map(|entry| Source::from(entry.as_ref())));
                }
                Child::Summary { .. } => pieces.extend(summaries.next().map(Source::from)),
            }
        }
        pieces
    }

    /// Cost of all pieces, in tokens.
    fn tokens(&self) -> u64 {
        let messages = self.entries.iter().map(|entry| entry.tokens);
        let summaries = self.summaries.iter().map(|summary| summary.tokens);
        messages.chain(summaries).fold(0, u64::saturating_add)
    }

    pub(crate) fn hash(&self, job: &Job) -> Hash {
        let mut hasher = SourceHasher::new();
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
}

impl Compaction<'_> {
    /// From what was written to a summary that is shorter than its sources, rendered; `None` when it
    /// cannot be.
    pub(crate) fn summary_of(
        &self,
        job: &Job,
        sources: &Sources<'_>,
        source_hash: Hash,
        written: Written,
    ) -> Option<Summary> {
        let (earliest_at, latest_at) = times(sources);
        let depth = job.depth()?;
        let (made_from, recipe) = (job.sources().to_vec(), written.recipe);
        let mut summary = Summary {
            children: job.children().to_vec(),
            rendering: self.accounting.rendering(),
            source_tokens: sources.tokens(),
            provisional: written.provisional,
            tier: written.tier,
            model: written.model,
            meta: with_figures(written.meta, figures(job, sources)),
            earliest_at,
            latest_at,
            created_at: self.clock.now(),
            ..Summary::new(
                job.range,
                depth,
                made_from,
                source_hash,
                recipe,
                written.body,
            )
        };
        self.sign(&mut summary);
        // The ladder counted the text; escaping may have made it longer.
        while self.ladder.on_growth == OnGrowth::NextTier && summary.tokens >= summary.source_tokens
        {
            summary.body = self.shorter(&summary)?.into();
            self.sign(&mut summary);
        }
        Some(summary)
    }

    /// As much of a summary's text as would fit if all of it rendered alike, and at least an eighth
    /// less; `None` when nothing is left.
    fn shorter(&self, summary: &Summary) -> Option<String> {
        let text = self.accounting.text(summary.text());
        let share = u128::from(text) * u128::from(summary.source_tokens)
            / u128::from(summary.tokens.max(1));
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        let limit = share.min(text.saturating_sub((text / 8).max(1)));
        let cut = cut_to_tokens(summary.text(), limit, self.accounting.estimator())?;
        (!cut.is_empty() && cut.len() < summary.text().len()).then_some(cut)
    }

    /// Sets a summary's hash and id, and then its cost: the id is rendered, and counts.
    fn sign(&self, summary: &mut Summary) {
        summary.seal();
        summary.tokens = self.accounting.summary(summary);
    }

    /// The messages and summaries of each job; `None` for a job of which some are gone, which only a
    /// lost race explains. Reads the messages that are not among `entries`, and the summaries that
    /// are not among `made`, of all jobs together.
    pub(crate) async fn sources<'e>(
        &self,
        jobs: &[&Job],
        entries: &'e [LogEntry],
        made: &BTreeMap<SummaryId, Summary>,
    ) -> Result<Vec<Option<Sources<'e>>>> {
        let named = || jobs.iter().flat_map(|job| job.sources());
        let ranges = named().filter(|source| source.summary().is_none());
        let missing = ranges.map(Child::range);
        let missing = missing.filter(|range| entries_in(entries, *range).is_none());
        let mut read = Vec::new();
        for range in joined(missing.collect()) {
            read.extend(self.read(range).await?);
        }
        let ids = named().filter_map(Child::summary);
        let asked: BTreeSet<&SummaryId> = ids.filter(|id| !made.contains_key(*id)).collect();
        let asked: Vec<SummaryId> = asked.into_iter().cloned().collect();
        let stored = match asked.is_empty() {
            true => Vec::new(),
            false => self.store.summaries(self.conversation, &asked).await?,
        };
        let stored = stored.into_iter().flatten();
        let stored: BTreeMap<SummaryId, Summary> = stored.map(|s| (s.id.clone(), s)).collect();
        let summary = |id: &SummaryId| made.get(id).or_else(|| stored.get(id)).cloned();
        let of_job = |job: &&Job| {
            let mut sources = Sources {
                entries: Vec::new(),
                summaries: Vec::new(),
            };
            for source in job.sources() {
                match source {
                    Child::Summary { id, .. } => sources.summaries.push(summary(id)?),
                    Child::Messages { range } => match entries_in(entries, *range) {
                        Some(found) => sources.entries.extend(found.iter().map(Cow::Borrowed)),
                        None => {
                            let found = entries_in(&read, *range)?.iter().cloned();
                            sources.entries.extend(found.map(Cow::Owned));
                        }
                    },
                }
            }
            Some(sources)
        };
        Ok(jobs.iter().map(of_job).collect())
    }
}

/// The entries of a range; `None` when some of them are not there.
fn entries_in(entries: &[LogEntry], range: SeqRange) -> Option<&[LogEntry]> {
    let first = entries.partition_point(|entry| entry.seq < range.first);
    let last = entries.partition_point(|entry| entry.seq <= range.last);
    let found = entries.get(first..last)?;
    (found.len() as u64 == range.len()).then_some(found)
}

/// Ranges in rising order, those that touch each other as one.
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

/// The earliest and the latest time of the sources; those without a time do not count.
fn times(sources: &Sources<'_>) -> (Timestamp, Timestamp) {
    let entries = sources.entries.iter().map(|e| (e.created_at, e.created_at));
    let summaries = sources
        .summaries
        .iter()
        .map(|s| (s.earliest_at, s.latest_at));
    entries
        .chain(summaries)
        .filter(|(_, latest)| *latest != Timestamp::default())
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        .unwrap_or_default()
}

/// How much of the log a summary of these sources stands for; `None` when one of them does not say,
/// or when they are not a partition of what it covers.
fn figures(job: &Job, sources: &Sources<'_>) -> Option<SummaryFigures> {
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
    for entry in &sources.entries {
        if entry.kind == EntryKind::Message {
            figures.add_message(rows(&entry.parts), entry.tokens);
        }
    }
    for summary in &sources.summaries {
        figures.add_summary(&summary.figures()?, summary.tokens);
    }
    Some(figures)
}

/// Number of rows that a message has in the older memory engine's tables: one for its text or its
/// blocks, and one for each reasoning, tool call and tool result.
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

/// How a summary came about, with its figures.
fn with_figures(meta: Option<RawJson>, figures: Option<SummaryFigures>) -> Option<RawJson> {
    let Some(figures) = figures else { return meta };
    let fields = meta.as_ref().map(RawJson::as_str).unwrap_or("{}");
    let mut fields: BTreeMap<String, serde_json::Value> = serde_json::from_str(fields).ok()?;
    fields.insert("figures".to_owned(), serde_json::to_value(figures).ok()?);
    RawJson::from_value(&fields).ok().or(meta)
}

//! Erasing old messages that contexts no longer show.

use std::time::Duration;

use memory_model::{EntryKind, Seq, SeqRange, SpanBody, Timestamp};
use memory_store::Erased;

use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;

/// Report of a purge: the messages that were erased, or that a dry run would erase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgeReport {
    /// Ranges of messages that were or would be erased, in order.
    pub ranges: Vec<SeqRange>,
    /// Number of messages in the ranges, without notes.
    pub messages: u64,
    /// Cost of the messages in the ranges, in tokens.
    pub tokens: u64,
    /// Time of the oldest message in the ranges; `None` if no message has a known time.
    pub oldest: Option<Timestamp>,
    /// Time of the latest message in the ranges; `None` if no message has a known time.
    pub newest: Option<Timestamp>,
    /// Number of erased entries, and of erased summaries that were made from them, summed over the ranges. In a dry
    /// run, a summary that covers two ranges is counted twice.
    pub erased: Erased,
}

impl Session {
    /// Erases archived messages permanently if they are at least as old as `min_age`. A `min_age` of zero erases all
    /// archived messages. A message is archived if the session's view shows a summary in its place or omits it. The age
    /// of a message without a time is unknown, so that it is erased only if `min_age` is zero.
    ///
    /// Each range is erased as by [`Session::erase`]: the erasure is recorded with its reason, the summaries that were
    /// made from the messages are erased too, and [`Session::verify`] still finds no violation. If `reason` is `None`,
    /// the session is unchanged, and the report lists the messages that would be erased.
    ///
    /// # Errors
    /// `Invalid` if the reason is blank, and the errors of [`Session::erase`]. Ranges that were erased before the error
    /// stay erased.
    pub async fn purge<'a>(
        &self,
        min_age: Duration,
        reason: impl Into<Option<&'a str>>,
    ) -> Result<PurgeReport> {
        let reason = reason.into();
        if reason.is_some_and(|reason| reason.trim().is_empty()) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("give a reason for the purge of the session {}", self.key()),
            ));
        }
        let mut report = self.archived(min_age).await?;
        for range in report.ranges.clone() {
            let erased = self.erase(range, reason).await?;
            add(&mut report.erased, erased);
        }
        Ok(report)
    }

    /// Returns the messages that are archived, at least as old as `min_age`, and not erased yet.
    async fn archived(&self, min_age: Duration) -> Result<PurgeReport> {
        let now = self.memory().inner.clock.now();
        let age = i64::try_from(min_age.as_micros()).unwrap_or(i64::MAX);
        let latest = Timestamp(now.0.saturating_sub(age));
        let (head, erasures) = (self.snapshot().await?.head, self.erasures().await?);
        let mut report = PurgeReport::default();
        for span in self.spans().await? {
            let mut rest = match span.body {
                SpanBody::Summary { .. } | SpanBody::Omitted => span.range.up_to(head),
                _ => None,
            };
            while let Some(range) = rest {
                let page = self.entries_in(range).await?;
                for entry in &page.items {
                    let at = entry.created_at.known();
                    let is_old = age == 0 || at.is_some_and(|at| at <= latest);
                    if !is_old || erasures.covers(entry.seq) {
                        continue;
                    }
                    extend(&mut report.ranges, entry.seq);
                    if entry.kind == EntryKind::Message {
                        report.messages += 1;
                        report.tokens = report.tokens.saturating_add(entry.tokens);
                        report.oldest = report.oldest.into_iter().chain(at).min();
                        report.newest = report.newest.max(at);
                    }
                }
                rest = page.next;
            }
        }
        Ok(report)
    }
}

/// Adds a position to ascending ranges: extends the last range, or starts a new one.
fn extend(ranges: &mut Vec<SeqRange>, seq: Seq) {
    let before = ranges.pop_if(|last| last.last.next() == seq);
    let first = before.map_or(seq, |range| range.first);
    ranges.extend(SeqRange::new(first, seq));
}

fn add(sum: &mut Erased, erased: Erased) {
    sum.logs.extend(erased.logs);
    sum.seen_by.extend(erased.seen_by);
    sum.entries += erased.entries;
    sum.summaries += erased.summaries;
    sum.drafts += erased.drafts;
}

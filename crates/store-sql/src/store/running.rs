//! Running sums: the cost of a log up to a position, in tokens.

use std::collections::BTreeMap;

use memory_model::Seq;
use memory_store::Result;

use super::log::Log;
use super::pages::batched;
use crate::batch::Batch;
use crate::executor::Executor;
use crate::message;
use crate::row::Columns;

/// Running sums that were read, by the row keys of their entries.
#[derive(Debug, Default)]
pub(super) struct RunningSums(BTreeMap<i64, u64>);

impl RunningSums {
    /// Reads running sums from database rows, which the SQL statements of [`push_running`] return. Each row has the key
    /// of an entry and the cost of the log up to this entry, in tokens.
    pub(super) fn new<'r, R: Columns + 'r>(rows: impl Iterator<Item = &'r R>) -> Result<Self> {
        let sum = |row: &R| Ok((row.int(0)?, crate::to_count("running tokens", row.int(1)?)?));
        rows.map(sum).collect::<Result<_>>().map(Self)
    }

    /// Reads the running sums at the positions `at` from the database, except sums that are already in memory.
    pub(super) async fn read(
        &mut self,
        on: &mut impl Executor,
        log: &Log,
        at: &[Seq],
    ) -> Result<()> {
        let is_missing = |seq: &Seq| key(log, *seq).is_some_and(|key| !self.0.contains_key(&key));
        let missing: Vec<Seq> = at.iter().copied().filter(is_missing).collect();
        let mut batch = Batch::default();
        push_running(&mut batch, log, &missing);
        if batch.statements().is_empty() {
            return Ok(());
        }
        let answers = on.all_of_batch(batch).await?;
        self.0.extend(Self::new(answers.iter().flatten())?.0);
        Ok(())
    }

    /// Returns the cost of all entries of the log up to position `seq`, inclusive, in tokens. Returns 0 if this sum was
    /// not read before.
    pub(super) fn at(&self, log: &Log, seq: Seq) -> u64 {
        match seq {
            Seq::NONE => 0,
            seq if seq >= log.head => log.tokens,
            seq => {
                let key = key(log, seq);
                key.and_then(|key| self.0.get(&key)).copied().unwrap_or(0)
            }
        }
    }
}

/// Adds SQL statements to a batch that read the running sums at the positions `at`. [`RunningSums::new`] reads the rows
/// that the statements return.
pub(super) fn push_running(batch: &mut Batch, log: &Log, at: &[Seq]) {
    let mut keys: Vec<i64> = at.iter().filter_map(|seq| key(log, *seq)).collect();
    keys.sort_unstable();
    keys.dedup();
    for keys in batched(&keys) {
        batch.push(message::running(log.family, &keys));
    }
}

/// Returns the running sums at the positions `at` of a log, in the same order.
pub(super) async fn running_at(on: &mut impl Executor, log: &Log, at: &[Seq]) -> Result<Vec<u64>> {
    let mut sums = RunningSums::default();
    sums.read(on, log, at).await?;
    Ok(at.iter().map(|seq| sums.at(log, *seq)).collect())
}

/// Returns the row key of the entry at a position, with which its running sum is read. Returns `None` if the sum is
/// known without reading.
fn key(log: &Log, seq: Seq) -> Option<i64> {
    if seq == Seq::NONE || seq >= log.head {
        return None;
    }
    let mut segments = log.segments.iter();
    let segment = segments.find(|s| s.first <= seq && s.last.is_none_or(|last| seq <= last))?;
    Some(crate::packed(segment.source.0, seq.0))
}

//! Reading of logs.

use std::ops::ControlFlow;

use memory_model::{ConversationId, LogEntry, Seq, SeqRange};
use memory_store::{LogRead, Order, Page, Result};
use sea_query::SelectStatement;

use super::SqlStore;
use super::known_facts::KnownFacts;
use super::log::Log;
use crate::error::corrupt;
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::message::{self, POSITIONS};
use crate::pack::Facts;
use crate::row::Columns;

/// Number of packed bytes above which the row of an entry is read by a separate SQL statement, so that little is read
/// ahead.
const LARGEST: i64 = 32 << 10;

impl<D: Database> SqlStore<D> {
    pub(super) async fn read_log(
        &self,
        id: ConversationId,
        read: &LogRead,
    ) -> Result<Page<LogEntry>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let reaches = |head, _| read.range.last <= head;
        let Log {
            family,
            mut segments,
            head,
            ..
        } = self.log(on, id, reaches).await?;
        let Some(range) = SeqRange::new(read.range.first, read.range.last.min(head)) else {
            return Ok(Page::complete(Vec::new()));
        };
        if read.order == Order::NewestFirst {
            segments.reverse();
        }
        let mut rows = Rows::new(read);
        let parts = segments.iter().filter_map(|segment| {
            let own = segment.up_to(head)?;
            Some((segment.source, range.intersect(&own)?))
        });
        let parts = parts.flat_map(|(source, part)| LogPart::of(family, source, read, part));
        for part in parts {
            self.read_part(on, &part, &mut rows).await?;
            if rows.is_full() {
                break;
            }
        }
        let next = match rows.items.last() {
            Some(last) if rows.is_full() => read.rest_of(range, last.seq),
            _ => None,
        };
        Ok(Page {
            items: rows.items,
            next,
        })
    }

    /// Reads a part of a conversation's own log until the page is full.
    async fn read_part(
        &self,
        on: &mut impl Executor,
        part: &LogPart<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let statement = part.statement(rows.free(), LARGEST);
        let before = rows.items.len();
        let mut facts = self.remembered_facts(part.source);
        loop {
            let mut lacking = None;
            on.each(&statement, |row| {
                lacking = lacking_facts(row, facts.as_ref())?;
                if lacking.is_some() {
                    return Ok(ControlFlow::Break(()));
                }
                rows.add(row, facts.as_ref())?;
                Ok(match rows.is_full() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
            })
            .await?;
            let Some(revision) = lacking else {
                break;
            };
            rows.truncate(before);
            facts = Some(self.facts_from(on, part, revision).await?);
        }
        self.read_large(on, part, rows, before, facts).await
    }

    /// Reads the large entries one by one until the page is full. The answer does not contain their bytes. The rows of
    /// this part of the log begin at index `from`.
    async fn read_large(
        &self,
        on: &mut impl Executor,
        part: &LogPart<'_>,
        rows: &mut Rows,
        from: usize,
        mut facts: Option<Facts>,
    ) -> Result<()> {
        let large = std::mem::take(&mut rows.large);
        if large.is_empty() {
            return Ok(());
        }
        let sizes = rows.sizes.split_off(from);
        rows.bytes = rows.sizes.iter().sum();
        for (index, mut size) in (from..).zip(sizes) {
            if large.binary_search(&index).is_ok()
                && let Some(item) = rows.items.get_mut(index)
            {
                let whole = part.entry(item.seq);
                while let Some(row) = on.first(&whole).await? {
                    if let Some(revision) = lacking_facts(&row, facts.as_ref())? {
                        facts = Some(self.facts_from(on, part, revision).await?);
                        continue;
                    }
                    (*item, size) = message::entry(&row, facts.as_ref())?;
                    break;
                }
            }
            rows.sizes.push(size);
            rows.bytes = rows.bytes.saturating_add(size);
            if rows.bytes >= rows.max_bytes {
                rows.items.truncate(index + 1);
                break;
            }
        }
        Ok(())
    }

    /// Reads the facts of a conversation (the texts with which its entries are compressed), for an entry that was
    /// compressed with the given revision of them. If the stored revision is later, words were erased meanwhile, and
    /// the caller must read the entry again.
    async fn facts_from(
        &self,
        on: &mut impl Executor,
        part: &LogPart<'_>,
        revision: i64,
    ) -> Result<Facts> {
        let source = part.source;
        let found = self.facts_of(on, part.family, source).await?;
        let found = found.filter(|facts| facts.revision() >= revision);
        let facts = found.ok_or_else(|| {
            let what = format!("the facts of conversation {source}");
            corrupt(what, format!("revision {revision} is missing"))
        })?;
        let known = KnownFacts {
            facts: Some(facts.clone()),
            ..KnownFacts::default()
        };
        self.remember_facts(source, known);
        Ok(facts)
    }
}

/// Returns the revision of the conversation's facts with which the entry in a row was compressed. Returns `None` if it
/// was compressed without facts, or if `facts` has that revision.
fn lacking_facts(row: &impl Columns, facts: Option<&Facts>) -> Result<Option<i64>> {
    let needed = message::needed_facts(row)?;
    Ok(needed.filter(|needed| facts.is_none_or(|facts| facts.revision() != *needed)))
}

/// Entries of a conversation's own log that one SQL statement reads: a range, or the entries at given positions.
enum EntryStatement<'r> {
    Range(SeqRange),
    Only(&'r [Seq]),
}

/// A part of a conversation's own log that one SQL statement reads.
struct LogPart<'r> {
    family: Family,
    source: ConversationId,
    places: EntryStatement<'r>,
    order: Order,
}

impl<'r> LogPart<'r> {
    /// Divides a part of a conversation's own log into the parts that single SQL statements read.
    fn of(family: Family, source: ConversationId, read: &'r LogRead, part: SeqRange) -> Vec<Self> {
        let places: Vec<EntryStatement<'_>> = match (read.only_in(part), read.order) {
            (None, _) => vec![EntryStatement::Range(part)],
            (Some(only), Order::OldestFirst) => {
                only.chunks(POSITIONS).map(EntryStatement::Only).collect()
            }
            (Some(only), Order::NewestFirst) => {
                only.rchunks(POSITIONS).map(EntryStatement::Only).collect()
            }
        };
        let part = |places| Self {
            family,
            source,
            places,
            order: read.order,
        };
        places.into_iter().map(part).collect()
    }

    fn statement(&self, limit: u64, largest: i64) -> SelectStatement {
        let order = match self.order {
            Order::OldestFirst => sea_query::Order::Asc,
            Order::NewestFirst => sea_query::Order::Desc,
        };
        let (family, source) = (self.family, self.source.0);
        match self.places {
            EntryStatement::Range(range) => {
                message::range(family, source, range, order, limit, largest)
            }
            EntryStatement::Only(only) => {
                message::positions(family, source, only, order, limit, largest)
            }
        }
    }

    /// Builds the SQL statement that reads one entry of any size.
    fn entry(&self, seq: Seq) -> SelectStatement {
        let order = sea_query::Order::Asc;
        message::range(
            self.family,
            self.source.0,
            SeqRange::single(seq),
            order,
            1,
            i64::MAX,
        )
    }
}

/// Database rows of the entries of a page while the page is read.
struct Rows {
    items: Vec<LogEntry>,
    /// Size of each row, in bytes.
    sizes: Vec<u64>,
    /// Indices of the large rows. The answer does not contain their bytes.
    large: Vec<usize>,
    /// Sum of `sizes`, in bytes.
    bytes: u64,
    max_rows: usize,
    max_bytes: u64,
}

impl Rows {
    fn new(read: &LogRead) -> Self {
        Self {
            items: Vec::new(),
            sizes: Vec::new(),
            large: Vec::new(),
            bytes: 0,
            max_rows: read.max_rows.max(1),
            max_bytes: read.max_bytes,
        }
    }

    /// Returns the number of rows that the page still has room for.
    fn free(&self) -> u64 {
        let free = self.max_rows.saturating_sub(self.items.len());
        u64::try_from(free).unwrap_or(u64::MAX).min(1 << 32)
    }

    /// Returns whether the page is full: it has at least one row, and has reached its limit of rows or bytes.
    fn is_full(&self) -> bool {
        let full = self.items.len() >= self.max_rows || self.bytes >= self.max_bytes;
        full && !self.items.is_empty()
    }

    fn add(&mut self, row: &impl Columns, facts: Option<&Facts>) -> Result<()> {
        let (entry, mut size) = message::entry(row, facts)?;
        let packed = message::size(row)?;
        if packed > LARGEST {
            self.large.push(self.items.len());
            // The packed size is not more than the real size.
            size = u64::try_from(packed).unwrap_or(0);
        }
        self.sizes.push(size);
        self.bytes = self.bytes.saturating_add(size);
        self.items.push(entry);
        Ok(())
    }

    /// Removes all rows after the first `len`.
    fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
        self.sizes.truncate(len);
        self.large.retain(|index| *index < len);
        self.bytes = self.sizes.iter().sum();
    }
}

//! Reads in pages: of a log, and of other lists.

use memory_model::{Seq, SeqRange};

/// One page of a longer list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C = SeqRange> {
    /// Items of the page, in the requested order.
    pub items: Vec<T>,
    /// Argument for the call that reads the next page. `None` on the last page.
    pub next: Option<C>,
}

impl<T, C> Page<T, C> {
    /// Creates a page with all items, without a next page.
    pub fn complete(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// Order in which entries or spans are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By rising position: the oldest entry first.
    #[default]
    OldestFirst,
    /// By falling position: the latest entry first.
    NewestFirst,
}

/// Arguments for reading a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRead {
    /// Positions to read. Positions beyond the end of the log are ignored.
    pub range: SeqRange,
    /// Positions of the range to read, in rising order. `None` reads all positions of the range.
    pub only: Option<Vec<Seq>>,
    /// Order in which the entries are read.
    pub order: Order,
    /// Maximum number of entries in a page.
    pub max_rows: usize,
    /// Number of bytes of messages at which a page ends. A page has at least one entry, even if the entry is larger.
    pub max_bytes: u64,
}

impl LogRead {
    /// Creates the arguments for reading a range oldest first, in pages of at most 1,024 entries or 8 MiB.
    pub fn new(range: SeqRange) -> Self {
        Self {
            range,
            only: None,
            order: Order::OldestFirst,
            max_rows: 1024,
            max_bytes: 8 << 20,
        }
    }

    /// Creates the arguments for reading the entries at these positions, oldest first, in pages of at most 1,024
    /// entries or 8 MiB. Returns `None` if there are no positions.
    pub fn at(positions: impl IntoIterator<Item = Seq>) -> Option<Self> {
        let mut only: Vec<Seq> = positions.into_iter().collect();
        only.sort_unstable();
        only.dedup();
        let range = SeqRange::new(*only.first()?, *only.last()?)?;
        Some(Self {
            only: Some(only),
            ..Self::new(range)
        })
    }

    /// Sets the order to newest first.
    pub fn newest_first(mut self) -> Self {
        self.order = Order::NewestFirst;
        self
    }

    /// Sets the maximum number of entries in a page.
    pub fn with_max_rows(mut self, rows: usize) -> Self {
        self.max_rows = rows;
        self
    }

    /// Returns the positions of [`only`](Self::only) that lie in the range `part`. Returns `None` if the read has no
    /// such list and reads all positions.
    pub fn only_in(&self, part: SeqRange) -> Option<&[Seq]> {
        let only = self.only.as_deref()?;
        let begin = only.partition_point(|seq| *seq < part.first);
        let end = only.partition_point(|seq| *seq <= part.last);
        Some(only.get(begin..end).unwrap_or_default())
    }

    /// Returns the part of the range `part` that is left to read after a page that ended at position `last`. Returns
    /// `None` if no position is left.
    pub fn rest_of(&self, part: SeqRange, last: Seq) -> Option<SeqRange> {
        let rest = rest_of(part, self.order, last);
        rest.filter(|rest| self.only_in(*rest).is_none_or(|only| !only.is_empty()))
    }
}

/// Returns the part of `range` that is left to read after a page in this order that ended at position `last`. Returns
/// `None` if no position is left.
pub fn rest_of(range: SeqRange, order: Order, last: Seq) -> Option<SeqRange> {
    match order {
        Order::OldestFirst => SeqRange::new(last.next(), range.last),
        Order::NewestFirst => SeqRange::new(range.first, last.prev()),
    }
}

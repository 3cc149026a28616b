//! Reads parts of a log that begin at an atom.

use std::collections::VecDeque;

use compaction_plan::Tail;
use memory_model::{ConversationId, EntryKind, LogEntry, Part, Role, Seq, SeqRange};
use memory_store::{LogRead, Result, Store};
use turn_map::AtomBuilder;

/// Number of entries that the first step reads; usually enough.
const FIRST_PAGE: usize = 8;
/// Number of entries that the second step reads. Each later step reads twice as many, up to `LARGEST`.
const PAGE: usize = 64;
const LARGEST: usize = 1_024;
/// Number of entries to read back for an open call if no later entry names it. A result after that is a late result.
/// The page that reaches this number is read whole.
const FURTHEST: usize = 968;

/// Returns the number of entries that the step after one of `rows` reads.
fn next_page(rows: usize) -> usize {
    (rows * 2).clamp(PAGE, LARGEST)
}

/// Reads the last entries of a log, oldest first: at least as many messages and tokens as `tail` requires, or the whole
/// log if it is shorter. The entries begin at the beginning of an atom. They include a model response that may still
/// get tool results.
///
/// The number of entries read depends on `tail` and on the length of the oldest of these atoms, not on the length of
/// the log.
///
/// # Errors
/// The errors of reading the store.
pub async fn newest_entries<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    head: Seq,
    tail: Tail,
) -> Result<Vec<LogEntry>> {
    let mut newest_first: Vec<LogEntry> = Vec::new();
    let (mut found, mut tokens) = (0, 0_u64);
    let enough = |found, tokens| found >= tail.messages.max(1) && tokens >= tail.tokens;
    // One page usually holds the tail and the rest of its oldest atom.
    let rows = tail.messages.saturating_add(FIRST_PAGE).min(LARGEST);
    let mut pages = NewestFirst::new(SeqRange::new(Seq::FIRST, head), rows);
    while !enough(found, tokens) && pages.fill(store, conversation).await? {
        while !enough(found, tokens)
            && let Some(entry) = pages.buffer.pop_front()
        {
            found += usize::from(entry.kind == EntryKind::Message);
            tokens = tokens.saturating_add(entry.tokens);
            newest_first.push(entry);
        }
    }
    if let Some(oldest) = newest_first.last().map(|entry| entry.seq)
        && oldest > Seq::FIRST
    {
        let mut back = Back::new(pages);
        let mut first = true;
        let reach = newest_first
            .iter()
            .rev()
            .find_map(|entry| reach(entry, &mut first));
        match reach {
            // The last response is among them, and the entries before them are settled.
            Some(Reach::None) => {}
            Some(Reach::Response) => {
                while back.step(store, conversation).await? {}
                newest_first.extend(back.into_entries());
            }
            Some(Reach::Neighbour) => {
                back.neighbours = true;
                while back.step(store, conversation).await? {}
                newest_first.extend(back.into_entries());
            }
            // Nobody responds. The response before may still wait for its results.
            None => {
                while back.step(store, conversation).await?
                    && (back.neighbours || back.entries.len() < FURTHEST)
                {}
                let mut earlier = back.into_entries();
                if waits(newest_first.iter().chain(&earlier), oldest) {
                    newest_first.append(&mut earlier);
                }
            }
        }
    }
    newest_first.reverse();
    Ok(newest_first)
}

/// Returns the nearest position at or before `seq` that is known to be the beginning of an atom. The result is not
/// before `floor`, which must be the beginning of an atom.
///
/// # Errors
/// The errors of reading the store.
pub async fn atom_start<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    floor: Seq,
    seq: Seq,
) -> Result<Seq> {
    let Some(range) = SeqRange::new(floor, seq.prev()) else {
        return Ok(seq.max(floor));
    };
    let mut back = Back::new(NewestFirst::new(Some(range), FIRST_PAGE));
    // The response is usually near. If not, later entries may show that there is none to find.
    if back.step(store, conversation).await? {
        let begins = match reach_from(store, conversation, seq).await? {
            Reach::None => true,
            Reach::Response => false,
            Reach::Neighbour => back.newest().is_some_and(|newest| !is_line(newest)),
        };
        if begins {
            return Ok(seq);
        }
    }
    while back.step(store, conversation).await? {}
    Ok(back.start().unwrap_or(seq))
}

/// Whether the atoms of these entries, newest first, can still change before `seq`.
fn waits<'e>(newest_first: impl DoubleEndedIterator<Item = &'e LogEntry>, seq: Seq) -> bool {
    let mut oldest_first = newest_first.rev().peekable();
    let Some(first) = oldest_first.peek().map(|entry| entry.seq) else {
        return false;
    };
    let mut builder = AtomBuilder::starting_at(first.0 as usize);
    oldest_first.for_each(|entry| builder.push(entry));
    builder.finish().settled_end().position() < seq.0 as usize
}

/// The part of the log before some entries that may belong to the same atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// No part.
    None,
    /// The response before them.
    Response,
    /// The message before them, if it is a line that calls without a response id.
    Neighbour,
}

/// Finds the part of the log before `seq` that may belong to one atom with the entries from `seq` on.
async fn reach_from<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    seq: Seq,
) -> Result<Reach> {
    let mut rest = SeqRange::new(seq, Seq(u32::MAX - 1));
    let mut rows = FIRST_PAGE;
    let mut first = true;
    while let Some(range) = rest {
        let read = LogRead::new(range).with_max_rows(rows);
        let page = store.read(conversation, &read).await?;
        let found = page.items.iter().find_map(|entry| reach(entry, &mut first));
        if let Some(reach) = found {
            return Ok(reach);
        }
        rest = page.next;
        rows = next_page(rows);
    }
    Ok(Reach::None)
}

/// Finds the part of the log before this entry, or before the first of its entries, that may belong to one atom with
/// it. Returns `None` if the next entry decides. `first` says whether only notes were before this entry.
fn reach(entry: &LogEntry, first: &mut bool) -> Option<Reach> {
    if entry.kind != EntryKind::Message {
        return None;
    }
    let first = std::mem::replace(first, false);
    if responds(entry) {
        // A line of a response may belong to the lines before it. A response without an id ends everything before it,
        // unless it is one of neighbouring lines with calls.
        return Some(match entry.response {
            Some(_) => Reach::Response,
            None if first && is_line(entry) => Reach::Neighbour,
            None => Reach::None,
        });
    }
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    entry.parts.iter().any(is_result).then_some(Reach::Response)
}

/// Whether an entry is an assistant's line with calls and without a response id. Neighbouring lines of this kind may be
/// one response.
fn is_line(entry: &LogEntry) -> bool {
    has_calls(entry)
        && entry.kind == EntryKind::Message
        && entry.role == Role::Assistant
        && entry.response.is_none()
}

/// Whether an entry is a line of a response by the rules of atoms.
fn responds(entry: &LogEntry) -> bool {
    if entry.kind != EntryKind::Message {
        return false;
    }
    has_calls(entry) || entry.role == Role::Assistant
}

fn has_calls(entry: &LogEntry) -> bool {
    let is_call = |part: &Part| matches!(part, Part::ToolCall { .. });
    entry.parts.iter().any(is_call)
}

/// Reads a log page by page, newest entries first.
#[derive(Debug)]
struct NewestFirst {
    /// Range that is not read yet.
    rest: Option<SeqRange>,
    /// Number of entries of the next page.
    rows: usize,
    /// Entries that were read and not examined yet, newest first.
    buffer: VecDeque<LogEntry>,
}

impl NewestFirst {
    fn new(rest: Option<SeqRange>, rows: usize) -> Self {
        Self {
            rest,
            rows,
            buffer: VecDeque::new(),
        }
    }

    /// Reads a page unless entries of the last one are left. Returns whether there are any entries.
    async fn fill<S: Store + ?Sized>(
        &mut self,
        store: &S,
        conversation: ConversationId,
    ) -> Result<bool> {
        if self.buffer.is_empty()
            && let Some(range) = self.rest.take()
        {
            let read = LogRead::new(range).newest_first().with_max_rows(self.rows);
            let page = store.read(conversation, &read).await?;
            self.rows = next_page(self.rows);
            self.rest = page.next;
            self.buffer.extend(page.items);
        }
        Ok(!self.buffer.is_empty())
    }
}

/// A walk back to the first line of the last response, or of the last neighbouring lines with calls and without a
/// response id. It always ends at the beginning of an atom.
#[derive(Debug)]
struct Back {
    pages: NewestFirst,
    /// Examined entries, newest first.
    entries: Vec<LogEntry>,
    /// Number of `entries` up to the oldest known line of the response.
    keep: usize,
    /// Id of the response, once a line of it was found.
    response: Option<String>,
    /// Whether the oldest examined message has calls and no response id, so that the one before it may be its
    /// neighbour.
    neighbours: bool,
}

impl Back {
    fn new(pages: NewestFirst) -> Self {
        Self {
            pages,
            entries: Vec::new(),
            keep: 0,
            response: None,
            neighbours: false,
        }
    }

    /// Returns the latest message that was examined.
    fn newest(&self) -> Option<&LogEntry> {
        let message = |entry: &&LogEntry| entry.kind == EntryKind::Message;
        self.entries.iter().find(message)
    }

    /// Examines one page. Returns whether there are more.
    async fn step<S: Store + ?Sized>(
        &mut self,
        store: &S,
        conversation: ConversationId,
    ) -> Result<bool> {
        self.pages.fill(store, conversation).await?;
        while let Some(entry) = self.pages.buffer.pop_front() {
            let line = responds(&entry);
            let neighbour = is_line(&entry);
            if self.neighbours {
                if entry.kind == EntryKind::Message && !neighbour {
                    // Another message: the entries after it begin an atom.
                    return Ok(false);
                }
            } else if line && self.keep > 0 && entry.response != self.response {
                // An earlier response: the entries after it begin an atom.
                return Ok(false);
            }
            self.neighbours |= neighbour;
            let alone = line && entry.response.is_none() && !neighbour;
            if line {
                self.response.clone_from(&entry.response);
            }
            self.entries.push(entry);
            if line {
                self.keep = self.entries.len();
            }
            if alone {
                return Ok(false);
            }
        }
        Ok(self.pages.rest.is_some())
    }

    /// Returns the first position of the response; `None` if there is none.
    fn start(&self) -> Option<Seq> {
        let oldest = self.keep.checked_sub(1)?;
        self.entries.get(oldest).map(|entry| entry.seq)
    }

    /// Returns the entries from the response's first line on, newest first.
    fn into_entries(mut self) -> Vec<LogEntry> {
        self.entries.truncate(self.keep);
        self.entries
    }
}

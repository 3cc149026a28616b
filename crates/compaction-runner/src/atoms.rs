//! Reads parts of a log that begin with a whole atom: a run of entries that belong together.

use std::collections::VecDeque;

use compaction_plan::Tail;
use memory_model::{ConversationId, EntryKind, LogEntry, Part, Role, Seq, SeqRange};
use memory_store::{LogRead, Result, Store};
use turn_map::AtomBuilder;

/// Number of log entries in the first page, which is read from the end of the log. This is usually enough.
const FIRST_PAGE: usize = 8;
/// Number of log entries in the second page. Each later page has twice as many, up to `LARGEST`.
const PAGE: usize = 64;
const LARGEST: usize = 1_024;
/// Maximum number of entries to read back in search of an open tool call that no later entry names. A result after more
/// entries is a late result. The page that reaches this number is read whole.
const FURTHEST: usize = 968;

/// Returns the number of log entries in the page after a page of `rows` entries.
fn next_page(rows: usize) -> usize {
    (rows * 2).clamp(PAGE, LARGEST)
}

/// Reads the last entries of a log, oldest first. `tail` sets the minimum number of messages and tokens. A shorter log
/// is returned as a whole. The entries begin with a whole atom: a message with tool calls and its results are not
/// separated. They include the latest model response if it may still get tool results.
///
/// The number of entries read depends on `tail` and on the length of the first atom, not on the length of the log.
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
    // One page usually contains the tail and the rest of its oldest atom.
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
            // The last response is among the read entries, and the entries before them are settled.
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
            // None of the read entries is a response. The response before them may still wait for tool results.
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

/// Returns the nearest position at or before `seq` at which an atom is known to begin. An atom is a run of entries that
/// belong together, such as a message with tool calls and its results. The result is not before `floor`, which must be
/// the beginning of an atom.
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
    // The response is usually near. If it is not, the entries from `seq` on may show that no search is needed.
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

/// Returns whether later entries can still change the atoms before `seq`. `newest_first` are the last entries of the
/// log, latest first, also from `seq` on.
fn waits<'e>(newest_first: impl DoubleEndedIterator<Item = &'e LogEntry>, seq: Seq) -> bool {
    let mut oldest_first = newest_first.rev().peekable();
    let Some(first) = oldest_first.peek().map(|entry| entry.seq) else {
        return false;
    };
    let mut builder = AtomBuilder::starting_at(first.0 as usize);
    oldest_first.for_each(|entry| builder.push(entry));
    builder.finish().settled_end().position() < seq.0 as usize
}

/// Part of the log before some entries that may belong to the same atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// No earlier entry belongs to the atom.
    None,
    /// The earlier entries of the same model response belong to the atom. They have the same response id.
    Response,
    /// The message directly before may belong to the atom: it does if it has tool calls and no response id.
    Neighbour,
}

/// Returns the part of the log before `seq` that may be in one atom with the entries from `seq` on.
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

/// Returns the part of the log before `entry` that may be in one atom with it. `None` if the next entry decides.
/// `first` says whether only notes precede the entry.
fn reach(entry: &LogEntry, first: &mut bool) -> Option<Reach> {
    if entry.kind != EntryKind::Message {
        return None;
    }
    let first = std::mem::replace(first, false);
    if responds(entry) {
        // A message of a response may belong to the messages before it. A response without an id ends everything before
        // it, unless the messages before it are also calls without a response id.
        return Some(match entry.response {
            Some(_) => Reach::Response,
            None if first && is_line(entry) => Reach::Neighbour,
            None => Reach::None,
        });
    }
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    entry.parts.iter().any(is_result).then_some(Reach::Response)
}

/// Returns whether an entry is an assistant's message with calls and without a response id. Neighbouring messages of
/// this kind may be one response.
fn is_line(entry: &LogEntry) -> bool {
    has_calls(entry)
        && entry.kind == EntryKind::Message
        && entry.role == Role::Assistant
        && entry.response.is_none()
}

/// Returns whether an entry is part of a model response: a message with calls, or an assistant's message.
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

/// Reads a log page by page, from the latest entry back.
#[derive(Debug)]
struct NewestFirst {
    /// Range of the log that was not read yet.
    rest: Option<SeqRange>,
    /// Number of entries to read in the next page.
    rows: usize,
    /// Entries that were read and not yet examined, latest first.
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

    /// Reads a page if no unexamined entries are left. Returns whether there are any.
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

/// A search back to the first message of the last response, or of the last neighbouring messages with calls and without
/// a response id. The search always ends at the beginning of an atom.
#[derive(Debug)]
struct Back {
    pages: NewestFirst,
    /// Examined entries, latest first.
    entries: Vec<LogEntry>,
    /// Number of examined entries up to the oldest known message of the response.
    keep: usize,
    /// Id of the response; `None` until one of its messages is found.
    response: Option<String>,
    /// Whether the oldest examined message has calls and no response id, so that the message before it may belong to
    /// it.
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

    /// Returns the latest examined message.
    fn newest(&self) -> Option<&LogEntry> {
        let message = |entry: &&LogEntry| entry.kind == EntryKind::Message;
        self.entries.iter().find(message)
    }

    /// Examines one page. Returns whether the search must continue.
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
                    // The message is not part of the response: the entries after it begin an atom.
                    return Ok(false);
                }
            } else if line && self.keep > 0 && entry.response != self.response {
                // The message is part of an earlier response: the entries after it begin an atom.
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

    /// Returns the position of the first message of the response; `None` if there is no response.
    fn start(&self) -> Option<Seq> {
        let oldest = self.keep.checked_sub(1)?;
        self.entries.get(oldest).map(|entry| entry.seq)
    }

    /// Returns the entries from the response's first message on, latest first.
    fn into_entries(mut self) -> Vec<LogEntry> {
        self.entries.truncate(self.keep);
        self.entries
    }
}

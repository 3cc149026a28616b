//! Reading a log in pieces that begin at an atom.

use memory_model::{ConversationId, EntryKind, LogEntry, Role, Seq, SeqRange};
use memory_store::{LogRead, Result, Store};
use turn_map::{AtomBuilder, HullPolicy, TurnMessage};

/// How many entries the first step reads; each further one reads twice as many, up to `LARGEST`.
const PAGE: usize = 64;
const LARGEST: usize = 1_024;
/// How far back an open call is looked for when nothing since then names it, in entries. Its
/// result, should it ever come, is then a late one. The first four pages.
const FURTHEST: usize = 960;

/// The newest entries of a log, oldest first: at least `messages` messages (notes not counted) if
/// there are so many, beginning at an atom, and a response that may still get results among them.
///
/// What it reads depends on `messages` and on how long the oldest of these atoms is, not on how
/// long the log is.
///
/// # Errors
/// As reading the store.
pub async fn newest_entries<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    head: Seq,
    messages: usize,
) -> Result<Vec<LogEntry>> {
    let mut newest_first: Vec<LogEntry> = Vec::new();
    let mut found = 0;
    let mut rest = SeqRange::new(Seq::FIRST, head);
    // One page, unless there are notes among the newest entries.
    let mut rows = messages.max(8);
    while let Some(range) = rest {
        if found >= messages.max(1) {
            break;
        }
        let read = LogRead::new(range).newest_first().with_max_rows(rows);
        rows = rows.max((rows.saturating_mul(2)).min(LARGEST));
        let page = store.read(conversation, &read).await?;
        found += page
            .items
            .iter()
            .filter(|entry| entry.kind == EntryKind::Message)
            .count();
        newest_first.extend(page.items);
        rest = page.next;
    }
    if let Some(oldest) = newest_first.last().map(|entry| entry.seq)
        && let Some(range) = SeqRange::new(Seq::FIRST, oldest.prev())
    {
        let mut back = Back::new(range);
        match newest_first.iter().rev().find_map(reaches_back) {
            // The newest response is among them, and what is before them is over.
            Some(false) => {}
            Some(true) => {
                while back.step(store, conversation).await? {}
                newest_first.extend(back.into_entries());
            }
            // Nobody responds. The response before may still wait for its results.
            None => {
                while back.step(store, conversation).await? && back.entries.len() < FURTHEST {}
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

/// The nearest position at or before `seq` that is known to begin an atom, no further back than
/// `floor`, which begins one.
///
/// # Errors
/// As reading the store.
pub async fn atom_start<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    floor: Seq,
    seq: Seq,
) -> Result<Seq> {
    let Some(range) = SeqRange::new(floor, seq.prev()) else {
        return Ok(seq.max(floor));
    };
    let mut back = Back::new(range);
    // Mostly the response is near. If not, what comes after may tell that there is none to find.
    if back.step(store, conversation).await? && begins_atom(store, conversation, seq).await? {
        return Ok(seq);
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
    let mut builder = AtomBuilder::starting_at(first.0 as usize, HullPolicy::default());
    oldest_first.for_each(|entry| builder.push(entry));
    builder.finish().settled_end().position() < seq.0 as usize
}

/// Whether nothing from `seq` on belongs to a response before it.
async fn begins_atom<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    seq: Seq,
) -> Result<bool> {
    let mut rest = SeqRange::new(seq, Seq(u32::MAX - 1));
    let mut rows = PAGE;
    while let Some(range) = rest {
        let read = LogRead::new(range).with_max_rows(rows);
        let page = store.read(conversation, &read).await?;
        if let Some(reaches) = page.items.iter().find_map(reaches_back) {
            return Ok(!reaches);
        }
        rest = page.next;
        rows = (rows * 2).min(LARGEST);
    }
    Ok(true)
}

/// Whether an entry may belong to a response before it: yes, no, or that depends on the next.
fn reaches_back(entry: &LogEntry) -> Option<bool> {
    if responds(entry) {
        // A line of a response may go on with it; a response by itself ends all before.
        return Some(entry.response.is_some());
    }
    let mut any = false;
    if entry.kind == EntryKind::Message {
        TurnMessage::results(entry, &mut |_| any = true);
    }
    any.then_some(true)
}

/// Whether an entry is a line of a response, as the atoms see it.
fn responds(entry: &LogEntry) -> bool {
    if entry.kind != EntryKind::Message {
        return false;
    }
    let mut calls = false;
    TurnMessage::calls(entry, &mut |_| calls = true);
    calls || entry.role == Role::Assistant
}

/// A walk back to the first line of the newest response, which always begins an atom.
#[derive(Debug)]
struct Back {
    rest: Option<SeqRange>,
    rows: usize,
    /// What was read, newest first.
    entries: Vec<LogEntry>,
    /// How many of `entries` there are up to the oldest known line of the response.
    keep: usize,
    /// The response's id, once a line of it was found.
    response: Option<String>,
}

impl Back {
    fn new(range: SeqRange) -> Self {
        Self {
            rest: Some(range),
            rows: PAGE,
            entries: Vec::new(),
            keep: 0,
            response: None,
        }
    }

    /// Reads one page; whether there is more to look at.
    async fn step<S: Store + ?Sized>(
        &mut self,
        store: &S,
        conversation: ConversationId,
    ) -> Result<bool> {
        let Some(range) = self.rest.take() else {
            return Ok(false);
        };
        let read = LogRead::new(range).newest_first().with_max_rows(self.rows);
        let page = store.read(conversation, &read).await?;
        self.rows = (self.rows * 2).min(LARGEST);
        for entry in page.items {
            let line = responds(&entry);
            if line && self.keep > 0 && entry.response != self.response {
                // An earlier response: what came after it begins an atom.
                return Ok(false);
            }
            let alone = line && entry.response.is_none();
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
        self.rest = page.next;
        Ok(self.rest.is_some())
    }

    /// Where the response begins; `None` when there is none.
    fn start(&self) -> Option<Seq> {
        let oldest = self.keep.checked_sub(1)?;
        self.entries.get(oldest).map(|entry| entry.seq)
    }

    /// The entries from the response's first line on, newest first.
    fn into_entries(mut self) -> Vec<LogEntry> {
        self.entries.truncate(self.keep);
        self.entries
    }
}

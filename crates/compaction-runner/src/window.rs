//! Reading a log in pieces that begin at an atom.

use memory_model::{ConversationId, EntryKind, LogEntry, Role, Seq, SeqRange};
use memory_store::{LogRead, Result, Store};
use turn_map::TurnMessage;

/// How many entries one step back reads.
const PAGE: usize = 64;
/// How far back the beginning of a group is looked for, in entries. A group that is longer is
/// begun in its middle; its earlier results then look like late ones, which is safe.
const FURTHEST: usize = 4_096;

/// The newest entries of a log, oldest first: at least `messages` messages (notes not counted) if
/// there are so many, beginning at an atom.
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
    while let Some(range) = rest {
        if found >= messages.max(1) {
            break;
        }
        let want = messages.max(1).saturating_sub(found).max(8);
        let read = LogRead::new(range).newest_first().with_max_rows(want);
        let page = store.read(conversation, &read).await?;
        found += page
            .items
            .iter()
            .filter(|entry| entry.kind == EntryKind::Message)
            .count();
        newest_first.extend(page.items);
        rest = page.next;
    }
    let Some(oldest) = newest_first.last().map(|entry| entry.seq) else {
        return Ok(Vec::new());
    };
    let mut earlier = before_within_atom(store, conversation, Seq::FIRST, oldest).await?;
    newest_first.append(&mut earlier);
    newest_first.reverse();
    Ok(newest_first)
}

/// A position at or shortly before `seq` where an atom begins, no further back than `floor`, which
/// begins one.
///
/// # Errors
/// As reading the store.
pub async fn atom_start<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    floor: Seq,
    seq: Seq,
) -> Result<Seq> {
    if seq <= floor {
        return Ok(seq.max(floor));
    }
    let earlier = before_within_atom(store, conversation, floor, seq).await?;
    Ok(earlier.last().map_or(seq, |entry| entry.seq))
}

/// The entries before `seq` that may belong to the same atom, newest first: back to the beginning
/// of the response before it, which always begins an atom.
async fn before_within_atom<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    floor: Seq,
    seq: Seq,
) -> Result<Vec<LogEntry>> {
    let mut earlier: Vec<LogEntry> = Vec::new();
    let mut rest = SeqRange::new(floor, seq.prev());
    let mut response: Option<Option<String>> = None;
    while let Some(range) = rest {
        let read = LogRead::new(range).newest_first().with_max_rows(PAGE);
        let page = store.read(conversation, &read).await?;
        for entry in page.items {
            let calls = {
                let mut any = false;
                entry.calls(&mut |_| any = true);
                any
            };
            let responds =
                entry.kind == EntryKind::Message && (entry.role == Role::Assistant || calls);
            if responds {
                match &response {
                    // A response by itself, or the newest line of one.
                    None => response = Some(entry.response.clone()),
                    // An earlier response: what came after it begins an atom.
                    Some(newer) if newer.is_none() || *newer != entry.response => {
                        return Ok(trim_to_response(earlier));
                    }
                    Some(_) => {}
                }
            }
            earlier.push(entry);
            if earlier.len() >= FURTHEST {
                return Ok(trim_to_response(earlier));
            }
        }
        rest = page.next;
    }
    // The floor was reached, and it begins an atom.
    Ok(earlier)
}

/// Drops what is older than the first line of the newest response.
fn trim_to_response(mut newest_first: Vec<LogEntry>) -> Vec<LogEntry> {
    let keep = newest_first
        .iter()
        .rposition(|entry| entry.kind == EntryKind::Message && entry.role == Role::Assistant)
        .map_or(0, |index| index + 1);
    newest_first.truncate(keep);
    newest_first
}

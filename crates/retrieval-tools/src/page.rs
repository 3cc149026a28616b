//! Fills one answer of `expand` up to its maximum number of tokens.

use memory_model::{Accounting, LogEntry, Seq, Summary};

use crate::cursor::foreign;
use crate::describe::content;
use crate::error::Result;
use crate::expand::{
    ExpandAnswer, ExpandCursor, ExpandedChild, ExpandedMessage, ExpandedSummary, MAX_CHILDREN,
    Piece,
};
use crate::piece::{CutParts, Payload};
use crate::room::Room;

/// Section of a message or summary (an item) that an answer contains: the whole item, or a piece of it.
struct ItemPart {
    from: usize,
    to: usize,
    tokens: u64,
    /// Number of tokens of the whole item. `None` if the section is the whole item.
    of_tokens: Option<u64>,
}

/// An answer of `expand` in progress. A method that adds an item returns `None`, or the position of the rest if the
/// answer is full.
pub(crate) struct Page<'a> {
    pub(crate) accounting: &'a dyn Accounting,
    /// Room for the written items.
    pub(crate) room: Room<'a>,
    pub(crate) cap: u64,
    /// Position at which the answer begins. Its offset and tokens become 0 after the first item.
    pub(crate) start: ExpandCursor,
    pub(crate) answer: ExpandAnswer,
}

impl Page<'_> {
    /// Adds a message, or the piece of it that fits.
    pub(crate) fn message(&mut self, entry: &LogEntry) -> Result<Option<ExpandCursor>> {
        let payload = Payload::of_message(&entry.message, self.accounting);
        self.add(entry.seq, &payload, entry.tokens, &|take, cap| {
            let mut out = ExpandedMessage {
                seq: entry.seq,
                external_id: entry.message.external_id.clone(),
                role: entry.message.role,
                name: entry.message.name.clone(),
                created_at: entry.message.created_at,
                tokens: take.tokens,
                parts: Vec::new(),
                clipped: take.of_tokens.is_some(),
                pointer: None,
                piece: None,
                left_out_bytes: 0,
            };
            let Some(of_tokens) = take.of_tokens else {
                out.parts.clone_from(&entry.message.parts);
                return ExpandedChild::Message(out);
            };
            let piece = (take.from, take.to);
            let cut = CutParts::new(&payload, &entry.message.parts, piece, cap);
            out.parts = cut.parts;
            out.pointer = Some(format!("message:{}", entry.seq));
            out.left_out_bytes = cut.left_out;
            out.piece = Some(Piece {
                offset: take.from,
                bytes: take.to - take.from,
                of: payload.len(),
                of_tokens,
                path: cut.path,
                at: cut.at,
                open: cut.open,
            });
            ExpandedChild::Message(out)
        })
    }

    /// Adds a summary, or the piece of it that fits.
    pub(crate) fn summary(&mut self, summary: &Summary) -> Result<Option<ExpandCursor>> {
        let payload = Payload::of_text(content(summary));
        let total = payload.len();
        let (first, last) = (summary.range.first, summary.range.last);
        self.add(first, &payload, summary.tokens, &|take, _| {
            let clipped = (take.from, take.to) != (0, total);
            ExpandedChild::Summary(ExpandedSummary {
                summary_id: summary.id.clone(),
                depth: summary.depth,
                first,
                last,
                tokens: take.tokens,
                content: payload.slice(take.from, take.to).to_owned(),
                clipped,
                pointer: clipped.then(|| summary.id.to_string()),
                piece: clipped.then(|| Piece {
                    offset: take.from,
                    bytes: take.to - take.from,
                    of: total,
                    of_tokens: take.of_tokens.unwrap_or(take.tokens),
                    path: Vec::new(),
                    at: take.from,
                    open: take.to < total,
                }),
            })
        })
    }

    /// Adds an item. If the first item of an answer is too large, adds a piece of it.
    fn add(
        &mut self,
        seq: Seq,
        payload: &Payload<'_>,
        stored: u64,
        written: &dyn Fn(&ItemPart, u64) -> ExpandedChild,
    ) -> Result<Option<ExpandCursor>> {
        let start = ExpandCursor { seq, ..self.start };
        (self.start.offset, self.start.of_tokens) = (0, 0);
        let mut cap = self.cap;
        let first = self.answer.children.is_empty();
        loop {
            let Some(take) = self.take(&start, payload, stored, cap)? else {
                return Ok(Some(ExpandCursor::at(seq)));
            };
            let child = written(&take, cap);
            let mut text = String::new();
            child.write(&mut text);
            // The smallest possible piece is always included, so that each answer makes progress.
            if !self.room.take(&text) && (cap > 1 || !first) {
                if !first {
                    return Ok(Some(ExpandCursor::at(seq)));
                }
                cap = (cap.min(take.tokens) / 2).max(1);
                continue;
            }
            self.answer.tokens = self.answer.tokens.saturating_add(take.tokens);
            self.answer.children.push(child);
            let of_tokens = take.of_tokens.filter(|_| take.to < payload.len());
            return Ok(of_tokens.map(|of_tokens| ExpandCursor {
                seq,
                offset: take.to,
                of_tokens,
            }));
        }
    }

    /// Decides how much of an item to take. Returns `None` if the item is not the first of the answer and does not fit
    /// whole. `stored` is the item's number of tokens in a context. For a long item, only a few times `cap` tokens are
    /// counted. The whole item is counted once, for its first piece.
    fn take(
        &self,
        start: &ExpandCursor,
        payload: &Payload<'_>,
        stored: u64,
        cap: u64,
    ) -> Result<Option<ItemPart>> {
        let (from, total) = (start.offset, payload.len());
        let first = self.answer.children.is_empty();
        // Reading counts at least the tokens in a context: some rules count reasoning as 0.
        let whole = || {
            payload
                .cost(self.accounting, (0, total), u64::MAX)
                .max(stored)
        };
        let take = |to: usize, tokens: u64, of_tokens: Option<u64>| {
            Ok(Some(ItemPart {
                from,
                to,
                tokens,
                of_tokens,
            }))
        };
        if from == 0 {
            let left = cap.saturating_sub(self.answer.tokens);
            let room = stored <= left && (first || self.answer.children.len() < MAX_CHILDREN);
            if room && payload.fit(self.accounting, 0, left) == total {
                let tokens = whole();
                if tokens <= left {
                    return take(total, tokens, None);
                }
            }
            if !first {
                return Ok(None);
            }
        } else if !payload.may_begin(from) {
            return Err(foreign(&start.to_string()));
        }
        let to = payload.fit(self.accounting, from, cap);
        let tokens = payload.cost(self.accounting, (from, to), cap);
        // A message may be too large only because of its overhead. All of it then fits as text.
        let all = payload.cost(self.accounting, (from, to), u64::MAX) == tokens;
        if from == 0 && to == total && all {
            return take(to, tokens, None);
        }
        let of_tokens = match start.of_tokens {
            0 => whole(),
            known => known,
        };
        take(to, tokens, Some(of_tokens))
    }
}

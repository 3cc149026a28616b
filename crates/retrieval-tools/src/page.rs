//! Filling one answer of `expand` up to its cap.

use memory_model::{Accounting, LogEntry, Seq, Summary};

use crate::cursor::foreign;
use crate::describe::content;
use crate::error::Result;
use crate::expand::{
    ExpandCursor, ExpandPolicy, ExpandedChild, ExpandedMessage, ExpandedSummary, MAX_CHILDREN,
    OversizedPolicy, Piece,
};
use crate::piece::{Payload, cut_parts};

/// Whether an answer goes on.
pub(crate) enum Step {
    /// There is room for more.
    Next,
    /// It ends here; the rest begins at the cursor.
    Stop(ExpandCursor),
}

/// How much of an item an answer takes.
enum Take {
    Whole {
        tokens: u64,
    },
    Piece {
        from: usize,
        to: usize,
        tokens: u64,
        of_tokens: u64,
    },
    Nothing,
}

/// An answer under way.
pub(crate) struct Page<'a> {
    pub(crate) accounting: &'a dyn Accounting,
    pub(crate) policy: ExpandPolicy,
    pub(crate) cap: u64,
    /// The host's limit for an item that is given over the cap.
    pub(crate) ceiling: u64,
    /// Where the first item goes on; at no offset from the second item on.
    pub(crate) start: ExpandCursor,
    pub(crate) tokens: u64,
    pub(crate) children: Vec<ExpandedChild>,
}

impl Page<'_> {
    /// Adds a message.
    pub(crate) fn message(&mut self, entry: LogEntry) -> Result<Step> {
        let payload = Payload::of_message(&entry.message, self.accounting);
        let total = payload.len();
        let take = self.take(entry.seq, &payload, entry.tokens)?;
        let cap = self.media_cap();
        let cut = match &take {
            Take::Piece { from, to, .. } => {
                Some(cut_parts(&payload, &entry.message.parts, (*from, *to), cap))
            }
            _ => None,
        };
        let step = self.step(entry.seq, &take, total);
        let (tokens, span) = match take {
            Take::Nothing => return Ok(step),
            Take::Whole { tokens } => (tokens, None),
            Take::Piece {
                from,
                to,
                tokens,
                of_tokens,
            } => (tokens, Some((from, to, of_tokens))),
        };
        let mut out = ExpandedMessage {
            seq: entry.seq,
            external_id: entry.message.external_id,
            role: entry.message.role,
            name: entry.message.name,
            created_at: entry.message.created_at,
            tokens,
            parts: Vec::new(),
            clipped: false,
            pointer: None,
            piece: None,
            left_out_bytes: 0,
        };
        match span.zip(cut) {
            None => out.parts = entry.message.parts,
            Some(((from, to, of_tokens), cut)) => {
                out.parts = cut.parts;
                out.clipped = true;
                out.pointer = Some(format!("message:{}", entry.seq));
                out.left_out_bytes = cut.left_out;
                out.piece = Some(Piece {
                    offset: from,
                    bytes: to - from,
                    of: total,
                    of_tokens,
                    path: cut.path,
                    at: cut.at,
                    open: cut.open,
                });
            }
        }
        self.push(tokens, ExpandedChild::Message(out));
        Ok(step)
    }

    /// Adds a summary.
    pub(crate) fn summary(&mut self, summary: &Summary) -> Result<Step> {
        let text = content(summary);
        let payload = Payload::of_text(text);
        let total = payload.len();
        let (first, last) = (summary.range.first, summary.range.last);
        let take = self.take(first, &payload, summary.tokens)?;
        let step = self.step(first, &take, total);
        let (tokens, from, to, of_tokens) = match take {
            Take::Nothing => return Ok(step),
            Take::Whole { tokens } => (tokens, 0, total, tokens),
            Take::Piece {
                from,
                to,
                tokens,
                of_tokens,
            } => (tokens, from, to, of_tokens),
        };
        let clipped = (from, to) != (0, total);
        let out = ExpandedSummary {
            summary_id: summary.id.clone(),
            depth: summary.depth,
            first,
            last,
            tokens,
            content: payload.slice(from, to).to_owned(),
            clipped,
            pointer: clipped.then(|| summary.id.to_string()),
            piece: clipped.then(|| Piece {
                offset: from,
                bytes: to - from,
                of: total,
                of_tokens,
                path: Vec::new(),
                at: from,
                open: to < total,
            }),
        };
        self.push(tokens, ExpandedChild::Summary(out));
        Ok(step)
    }

    fn push(&mut self, tokens: u64, child: ExpandedChild) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.children.push(child);
    }

    /// What one image or file may cost before it is left out.
    fn media_cap(&self) -> u64 {
        match self.policy.oversized {
            OversizedPolicy::Clip => self.cap,
            OversizedPolicy::Whole => self.ceiling,
        }
    }

    /// Decides how much of an item to take. `stored` is what it costs in a context. Counts no more
    /// of a long item than a few caps; the whole of it once, for its first piece.
    fn take(&mut self, seq: Seq, payload: &Payload<'_>, stored: u64) -> Result<Take> {
        let from = std::mem::take(&mut self.start.offset);
        let known = std::mem::take(&mut self.start.of_tokens);
        let total = payload.len();
        let first = self.children.is_empty();
        let entire = self.policy.oversized == OversizedPolicy::Whole;
        // What is read costs at least what it costs in a context: some rules count reasoning 0.
        let whole = || {
            let read = payload.cost(self.accounting, (0, total), u64::MAX);
            read.max(stored)
        };
        if from == 0 {
            let left = match first && entire {
                true => self.ceiling,
                false => self.cap.saturating_sub(self.tokens),
            };
            let room = stored <= left && (first || self.children.len() < MAX_CHILDREN);
            if room && payload.fit(self.accounting, 0, left) == total {
                let tokens = whole();
                if tokens <= left {
                    return Ok(Take::Whole { tokens });
                }
            }
            if !first {
                return Ok(Take::Nothing);
            }
        } else if !payload.may_begin(from) {
            let position = ExpandCursor {
                seq,
                offset: from,
                of_tokens: known,
            };
            return Err(foreign(&position.to_string()));
        }
        let cap = if entire { self.ceiling } else { self.cap };
        let to = payload.fit(self.accounting, from, cap);
        let tokens = payload.cost(self.accounting, (from, to), self.media_cap());
        // The overhead of a message can be what made it too large: then all of it fits as text.
        let all = payload.cost(self.accounting, (from, to), u64::MAX) == tokens;
        if from == 0 && to == total && all {
            return Ok(Take::Whole { tokens });
        }
        let of_tokens = match known {
            0 => whole(),
            known => known,
        };
        Ok(Take::Piece {
            from,
            to,
            tokens,
            of_tokens,
        })
    }

    fn step(&self, seq: Seq, take: &Take, total: usize) -> Step {
        match take {
            Take::Nothing => Step::Stop(ExpandCursor {
                seq,
                offset: 0,
                of_tokens: 0,
            }),
            Take::Piece { to, of_tokens, .. } if *to < total => Step::Stop(ExpandCursor {
                seq,
                offset: *to,
                of_tokens: *of_tokens,
            }),
            _ => Step::Next,
        }
    }
}

//! Filling one answer of `expand` up to its cap.

use memory_model::{Accounting, LogEntry, Seq, SeqRange, Summary};

use crate::cursor::foreign;
use crate::describe::content;
use crate::error::Result;
use crate::expand::{
    ExpandCursor, ExpandPolicy, Expanded, ExpandedMessage, ExpandedSummary, MAX_CHILDREN,
    Oversized, Piece,
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
    Whole { tokens: u64 },
    Piece { from: usize, to: usize, tokens: u64 },
    Nothing,
}

/// An answer under way.
pub(crate) struct Page<'a> {
    pub(crate) accounting: &'a dyn Accounting,
    pub(crate) policy: ExpandPolicy,
    pub(crate) cap: u64,
    /// Bytes of the first item that earlier answers gave.
    pub(crate) offset: usize,
    pub(crate) tokens: u64,
    pub(crate) children: Vec<Expanded>,
}

impl Page<'_> {
    /// Adds a message.
    pub(crate) fn message(&mut self, entry: LogEntry) -> Result<Step> {
        let payload = Payload::of_message(&entry.message, self.accounting);
        let total = payload.len();
        // What is read costs at least what it costs in a context: some rules count reasoning 0.
        let whole = self.accounting.message(&entry.message).max(payload.cost(
            self.accounting,
            (0, total),
            u64::MAX,
        ));
        let take = self.take(entry.seq, &payload, whole)?;
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
            Take::Piece { from, to, tokens } => (tokens, Some((from, to))),
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
            Some(((from, to), cut)) => {
                out.parts = cut.parts;
                out.clipped = true;
                out.pointer = Some(format!("message:{}", entry.seq));
                out.left_out_bytes = cut.left_out;
                out.piece = Some(Piece {
                    offset: from,
                    bytes: to - from,
                    of: total,
                    of_tokens: whole,
                    path: cut.path,
                    at: cut.at,
                    open: cut.open,
                });
            }
        }
        self.push(tokens, Expanded::Message(out));
        Ok(step)
    }

    /// Adds a summary.
    pub(crate) fn summary(&mut self, summary: &Summary) -> Result<Step> {
        let text = content(summary);
        let payload = Payload::of_text(text);
        let total = payload.len();
        let whole = self.accounting.summary(summary).max(payload.cost(
            self.accounting,
            (0, total),
            u64::MAX,
        ));
        let SeqRange { first, last } = summary.range;
        let take = self.take(first, &payload, whole)?;
        let step = self.step(first, &take, total);
        let (tokens, from, to) = match take {
            Take::Nothing => return Ok(step),
            Take::Whole { tokens } => (tokens, 0, total),
            Take::Piece { from, to, tokens } => (tokens, from, to),
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
                of_tokens: whole,
                path: Vec::new(),
                at: from,
                open: to < total,
            }),
        };
        self.push(tokens, Expanded::Summary(out));
        Ok(step)
    }

    fn push(&mut self, tokens: u64, child: Expanded) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.children.push(child);
    }

    /// What one image or file may cost before it is left out.
    fn media_cap(&self) -> u64 {
        match self.policy.oversized {
            Oversized::Clip => self.cap,
            Oversized::Whole => u64::MAX,
        }
    }

    /// Decides how much of an item to take.
    fn take(&mut self, seq: Seq, payload: &Payload<'_>, whole: u64) -> Result<Take> {
        let from = std::mem::take(&mut self.offset);
        let total = payload.len();
        let first = self.children.is_empty();
        let entire = self.policy.oversized == Oversized::Whole;
        if from == 0 {
            let left = self.cap.saturating_sub(self.tokens);
            if (whole <= left && self.children.len() < MAX_CHILDREN) || (first && entire) {
                return Ok(Take::Whole { tokens: whole });
            }
            if !first {
                return Ok(Take::Nothing);
            }
        } else if !payload.may_begin(from) {
            return Err(foreign(&ExpandCursor { seq, offset: from }.to_string()));
        }
        let to = if entire {
            total
        } else {
            payload.fit(self.accounting, from, self.cap)
        };
        let tokens = payload.cost(self.accounting, (from, to), self.media_cap());
        // The overhead of a message can be what made it too large: then all of it fits as text.
        let all = payload.cost(self.accounting, (from, to), u64::MAX) == tokens;
        Ok(if from == 0 && to == total && all {
            Take::Whole { tokens }
        } else {
            Take::Piece { from, to, tokens }
        })
    }

    fn step(&self, seq: Seq, take: &Take, total: usize) -> Step {
        match take {
            Take::Nothing => Step::Stop(ExpandCursor { seq, offset: 0 }),
            Take::Piece { to, .. } if *to < total => Step::Stop(ExpandCursor { seq, offset: *to }),
            _ => Step::Next,
        }
    }
}

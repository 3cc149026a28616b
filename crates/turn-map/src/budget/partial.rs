//! Part of a message: some of its parts, or some of the text of one.

use token_estimate::{MessageView, PartView};

use super::options::{Trim, TrimStrategy};
use crate::{Edit, EditableMessage, apply};

/// What may become of a part.
enum Slot {
    /// A part that may be left out, with its text if that can be split.
    Content(Option<String>),
    Result(String),
    Call,
}

/// Returns the largest part of a message that fits, at the end that joins what is kept: parts, or,
/// where not even one fits, pieces of the text of the nearest part. `None` when nothing fits.
pub(super) fn shorten<M: EditableMessage + Clone>(
    message: &M,
    trim: &Trim,
    fits: impl Fn(&M) -> bool,
) -> Option<M> {
    if message.is_note() {
        return None;
    }
    let slots = slots(message);
    let mut content: Vec<usize> = Vec::new();
    let mut results: Vec<usize> = Vec::new();
    for (part, slot) in slots.iter().enumerate() {
        match slot {
            Slot::Content(_) => content.push(part),
            Slot::Result(_) => results.push(part),
            Slot::Call => {}
        }
    }
    // From the part that is kept first to the one that is left out first.
    if trim.strategy == TrimStrategy::Last {
        content.reverse();
    }
    for kept in (1..content.len()).rev() {
        let edits = dropped(&content, kept);
        let part = edited(message, &edits).filter(|part| fits(part));
        if part.is_some() {
            return part;
        }
    }
    let split = match (content.as_slice(), results.as_slice()) {
        ([nearest, ..], _) => *nearest,
        ([], [result]) => *result,
        _ => return None,
    };
    let (Slot::Content(Some(text)) | Slot::Result(text)) = slots.get(split)? else {
        return None;
    };
    let mut pieces = trim.text_splitter.split(text);
    pieces.retain(|piece| !piece.is_empty());
    let with = |count: usize| -> Option<M> {
        let text = match trim.strategy {
            TrimStrategy::First => pieces.get(..count)?.concat(),
            TrimStrategy::Last => pieces.get(pieces.len().checked_sub(count)?..)?.concat(),
        };
        let mut edits = dropped(&content, 1);
        edits.push(Edit::SetText {
            message: 0,
            part: split,
            text,
        });
        edited(message, &edits).filter(|part| fits(part))
    };
    let (mut low, mut high, mut best) = (0, pieces.len(), None);
    while low < high {
        let probe = low + (high - low).div_ceil(2);
        match with(probe) {
            Some(part) => (low, best) = (probe, Some(part)),
            None => high = probe - 1,
        }
    }
    best
}

fn slots(message: &impl MessageView) -> Vec<Slot> {
    let mut slots = Vec::new();
    message.parts(&mut |part| {
        slots.push(match part {
            PartView::ToolCall { .. } => Slot::Call,
            PartView::ToolResult { .. } => Slot::Result(part.text().into_owned()),
            PartView::Text(text) => Slot::Content(Some(text.to_owned())),
            _ => Slot::Content(None),
        });
    });
    slots
}

/// The edits that leave out all but the first of these parts.
fn dropped(content: &[usize], kept: usize) -> Vec<Edit> {
    let parts = content.iter().skip(kept);
    parts
        .map(|part| Edit::DropPart {
            message: 0,
            part: *part,
        })
        .collect()
}

/// Returns the message with these edits of its parts.
fn edited<M: EditableMessage + Clone>(message: &M, edits: &[Edit]) -> Option<M> {
    apply(vec![message.clone()], edits).pop()
}

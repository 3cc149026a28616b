//! Limits on pictures and bytes of a request: replaces the oldest pictures and files by remarks.

use memory_model::{Accounting, Media, MediaSource, Part, ResultContent};

use crate::accounting::cost;
use crate::blocks::Block;
use crate::context::{ContextMessage, MessageOrigin};
use crate::degrade::{no_text, part_cost, pointer, total};

/// Maximum number of pictures in a context, and maximum size of its pictures and files together, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MediaLimits {
    pub(crate) pictures: Option<usize>,
    pub(crate) bytes: Option<u64>,
}

impl MediaLimits {
    /// Returns limits that omit pictures in steps of half of the maximum, so that the beginning of a context rarely
    /// changes. `shown` is the number of pictures without a limit.
    fn in_steps(self, shown: usize) -> Self {
        let pictures = self.pictures.map(|most| {
            let step = (most / 2).max(1);
            let left_out = shown.saturating_sub(most).div_ceil(step) * step;
            shown.saturating_sub(left_out)
        });
        Self { pictures, ..self }
    }
}

/// Replaces each of the oldest pictures and files that exceed the limits by a remark. Returns their number. In a context
/// of a live session, pictures are replaced in steps.
pub(crate) fn limit_media(
    blocks: &mut [Block<'_>],
    mut limits: MediaLimits,
    is_live: bool,
    accounting: &dyn Accounting,
) -> usize {
    if is_live {
        let messages = blocks.iter().flat_map(|block| &block.fitted.messages);
        let mut shown = 0;
        for part in messages.flat_map(|message| &message.parts) {
            visit(part, &mut |part| {
                shown += usize::from(matches!(part, Part::Image(_)))
            });
        }
        limits = limits.in_steps(shown);
    }
    let mut left = limits;
    let mut replaced = 0;
    // The pictures of the request that is being worked on go last.
    let (requested, others): (Vec<_>, Vec<_>) = blocks
        .iter_mut()
        .rev()
        .partition(|block| block.is_requested);
    for block in requested.into_iter().chain(others) {
        let before = replaced;
        for message in block.fitted.messages.iter_mut().rev() {
            let pointer = pointer(message);
            let here = replaced;
            for part in message.parts.iter_mut().rev() {
                replace(part, &pointer, &mut left, &mut replaced);
            }
            if replaced > here {
                message.tokens = cost(accounting, message);
            }
        }
        if replaced > before {
            block.tokens = total(&block.fitted.messages);
        }
    }
    replaced
}

/// Replaces the oldest pictures and files of a block by remarks until the others cost at most `most` tokens. Returns the
/// cost of the others.
pub(crate) fn limit_media_tokens(
    block: &mut Block<'_>,
    most: u64,
    accounting: &dyn Accounting,
) -> u64 {
    let mut left = most;
    let mut is_full = false;
    for message in block.fitted.messages.iter_mut().rev() {
        let (role, pointer) = (message.role, pointer(message));
        let mut changed = false;
        for part in message.parts.iter_mut().rev() {
            if !matches!(part, Part::Image(_) | Part::File(_)) {
                continue;
            }
            match left.checked_sub(part_cost(role, part, accounting)) {
                Some(rest) if !is_full => left = rest,
                _ => {
                    *part = Part::text(no_text(part, &pointer));
                    (is_full, changed) = (true, true);
                }
            }
        }
        if changed {
            message.tokens = cost(accounting, message);
            if let MessageOrigin::Message { first, last } = message.source {
                message.source = MessageOrigin::Trimmed { first, last };
            }
        }
    }
    block.tokens = total(&block.fitted.messages);
    most - left
}

/// Replaces a part, or parts inside of a tool result, if they exceed the remaining limits.
fn replace(part: &mut Part, pointer: &str, left: &mut MediaLimits, replaced: &mut usize) {
    let (is_picture, media) = match part {
        Part::Image(media) => (true, media),
        Part::File(media) => (false, media),
        Part::ToolResult {
            content: ResultContent::Parts(parts),
            ..
        } => {
            for part in parts.iter_mut().rev() {
                replace(part, pointer, left, replaced);
            }
            return;
        }
        _ => return,
    };
    let pictures = match left.pictures {
        Some(pictures) if is_picture => pictures.checked_sub(1).map(Some),
        pictures => Some(pictures),
    };
    let bytes = match left.bytes {
        Some(bytes) => bytes.checked_sub(media_bytes(media)).map(Some),
        None => Some(None),
    };
    match pictures.zip(bytes) {
        Some((pictures, bytes)) => *left = MediaLimits { pictures, bytes },
        None => {
            // If a picture is omitted, all pictures that go before it are omitted too.
            match pictures {
                None => left.pictures = Some(0),
                Some(_) => left.bytes = Some(0),
            }
            *part = Part::text(no_text(part, pointer));
            *replaced += 1;
        }
    }
}

/// Calls `found` with each part, including parts inside of results.
fn visit(part: &Part, found: &mut impl FnMut(&Part)) {
    match part {
        Part::ToolResult {
            content: ResultContent::Parts(parts),
            ..
        } => parts.iter().for_each(|part| visit(part, found)),
        part => found(part),
    }
}

fn media_bytes(media: &Media) -> u64 {
    let (MediaSource::Data(text) | MediaSource::Url(text)) = &media.source;
    text.len() as u64
}

/// Returns the size of messages as JSON, and of the pictures and files in them, in bytes.
pub(crate) fn bytes(messages: &[ContextMessage]) -> (u64, u64) {
    let (mut all, mut media) = (0_u64, 0_u64);
    for part in messages.iter().flat_map(|message| &message.parts) {
        let json = serde_json::to_vec(part).map_or(0, |json| json.len() as u64);
        all = all.saturating_add(json);
        visit(part, &mut |part| {
            if let Part::Image(one) | Part::File(one) = part {
                media = media.saturating_add(media_bytes(one));
            }
        });
    }
    (all, media)
}

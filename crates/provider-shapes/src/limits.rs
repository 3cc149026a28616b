//! Limits of providers on the pictures, documents and bytes of a request, and lists of messages within them.

mod dimensions;
mod media_list;
mod omission;
mod remark;
mod size;
mod table;

use std::borrow::Cow;
use std::fmt;

use memory_model::{Message, Part, ResultContent, Role};

use media_list::all;
use omission::{
    leave_out_bytes, leave_out_large_of_many, leave_out_pages, leave_out_pictures, too_large,
};
use remark::remark;
pub use size::bytes;
pub use table::{LIMITS, RequestLimits};

/// Facts that a caller knows about the messages of a list.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Returns whether the message at an index belongs to the request that is being worked on. `None` for the user's
    /// last message.
    pub is_requested: Option<&'a dyn Fn(usize) -> bool>,
    /// Returns the argument with which the message at an index can be expanded, such as `message:7`.
    pub pointer: &'a dyn Fn(usize) -> Option<String>,
}

impl fmt::Debug for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known")
            .field("is_requested", &self.is_requested.is_some())
            .finish_non_exhaustive()
    }
}

/// Returns the messages within the limits of a provider on pictures, documents and bytes. A remark replaces each picture
/// and document that is left out: those that are too large alone, and then the oldest. Those of the request that is being
/// worked on, the user's last message, go last. Pictures are not made smaller.
///
/// Text is not shortened: see `Budget::with_bytes` of `context-assembler`.
pub fn within<'a>(messages: &'a [Message], limits: &RequestLimits) -> Cow<'a, [Message]> {
    let known = Known {
        is_requested: None,
        pointer: &|_| None,
    };
    within_known(messages, limits, &known)
}

/// Returns the messages within the limits of a provider, as [`within`] does. `known` says which messages are requested.
pub fn within_known<'a>(
    messages: &'a [Message],
    limits: &RequestLimits,
    known: &Known<'_>,
) -> Cow<'a, [Message]> {
    let mut all = all(messages, limits.provider);
    if all.is_empty() {
        return Cow::Borrowed(messages);
    }
    let last = last_request(messages);
    for medium in &mut all {
        medium.is_requested = match known.is_requested {
            Some(is_requested) => is_requested(medium.message),
            None => last.contains(&medium.message),
        };
    }
    // The order in which media go. The order of a list is kept.
    all.sort_by_key(|medium| medium.is_requested);
    for medium in &mut all {
        medium.left_out = too_large(medium, limits);
    }
    leave_out_pages(&mut all, limits);
    leave_out_pictures(&mut all, limits);
    leave_out_large_of_many(&mut all, limits);
    leave_out_bytes(messages, &mut all, limits);
    let mut out = Cow::Borrowed(messages);
    for medium in all {
        let Some(why) = medium.left_out else {
            continue;
        };
        let pointer = (known.pointer)(medium.message);
        let message = out.to_mut().get_mut(medium.message);
        if let Some(part) = message.and_then(|message| part_at(&mut message.parts, &medium.path)) {
            *part = Part::text(remark(part, &medium, why, pointer));
        }
    }
    out
}

/// Returns the indices of the user's last messages in a list: neighbouring messages with more than results of tools.
fn last_request(messages: &[Message]) -> std::ops::Range<usize> {
    let speaks = |message: &Message| {
        let is_content = |part: &Part| match part {
            Part::Text { text } => !text.trim().is_empty(),
            Part::ToolResult { .. } => false,
            _ => true,
        };
        message.role == Role::User && message.parts.iter().any(is_content)
    };
    let end = messages.iter().rposition(speaks).map_or(0, |last| last + 1);
    let before = messages.get(..end).unwrap_or_default();
    let start = before.iter().rposition(|message| !speaks(message));
    start.map_or(0, |start| start + 1)..end
}

fn part_at<'a>(parts: &'a mut [Part], path: &[usize]) -> Option<&'a mut Part> {
    let (first, rest) = path.split_first()?;
    let part = parts.get_mut(*first)?;
    if rest.is_empty() {
        return Some(part);
    }
    match part {
        Part::ToolResult {
            content: ResultContent::Parts(parts),
            ..
        } => part_at(parts, rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use memory_model::{Media, MediaSource};

    use super::size::AROUND_PART;
    use super::table::{AS_OF, OTHER_FIELDS};
    use super::*;
    use crate::Provider;
    use crate::media::PDF;

    fn picture(data: impl AsRef<[u8]>) -> Part {
        Part::Image(Media {
            media_type: "image/png".to_owned(),
            source: MediaSource::Data(STANDARD.encode(data)),
        })
    }

    /// A PNG of this size, without pixels.
    pub(super) fn png(width: u32, height: u32) -> Part {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend(width.to_be_bytes());
        png.extend(height.to_be_bytes());
        png.extend([8, 2, 0, 0, 0].repeat(8));
        picture(png)
    }

    fn shown(messages: &[Message]) -> Vec<usize> {
        let media = all(messages, Provider::Anthropic);
        media.iter().map(|medium| medium.message).collect()
    }

    fn each(parts: impl IntoIterator<Item = Part>) -> Vec<Message> {
        let mut messages: Vec<Message> = parts
            .into_iter()
            .map(|part| Message::new(Role::User, vec![Part::text("Look."), part]))
            .collect();
        messages.push(Message::assistant("Seen."));
        messages.push(Message::user("And now?"));
        messages
    }

    #[test]
    fn of_many_pictures_the_large_ones_are_left_out() {
        let limits = Provider::Anthropic.limits(None);
        let sized = |at: usize| {
            if at.is_multiple_of(3) {
                png(2_560, 1_440)
            } else {
                png(900, 700)
            }
        };
        // Twenty of any size are taken.
        let twenty = each((0..20).map(sized));
        assert_eq!(*within(&twenty, limits), *twenty);
        // Of 21 with 7 large ones, the oldest is left out; of 40 with 14, these are.
        let one = each((0..21).map(sized));
        assert_eq!(shown(&within(&one, limits)), (1..21).collect::<Vec<_>>());
        let many = each((0..40).map(sized));
        let left: Vec<usize> = (0..40).filter(|at| at % 3 != 0).collect();
        let fitted = within(&many, limits);
        assert_eq!(shown(&fitted), left);
        let Part::Text { text } = &fitted[3].parts[1] else {
            panic!()
        };
        assert!(text.starts_with("[image left out, image/png, about 66 bytes, 2560 x 1440 pixels: the provider takes only smaller"), "{text}");
    }

    #[test]
    fn the_pictures_of_the_request_go_last() {
        let limits = Provider::Anthropic.limits(None);
        let mut messages = vec![Message::new(
            Role::User,
            (0..10).map(|_| png(2_600, 100)).collect(),
        )];
        messages.extend((0..30).map(|_| {
            let content = ResultContent::Parts(vec![png(100, 100)]);
            let result = Part::ToolResult {
                call_id: "c".to_owned(),
                content,
                is_error: None,
            };
            Message::new(Role::Tool, vec![result])
        }));
        let mut expected = vec![0; 10];
        expected.extend(21..31);
        assert_eq!(shown(&within(&messages, limits)), expected);
        let few = RequestLimits {
            pictures: 12,
            many: None,
            ..*limits
        };
        expected.drain(10..18);
        assert_eq!(shown(&within(&messages, &few)), expected);
        let fewer = RequestLimits {
            pictures: 3,
            many: None,
            ..*limits
        };
        assert_eq!(shown(&within(&messages, &fewer)), [0; 3]);
    }

    #[test]
    fn bytes_pages_and_single_pictures_are_limited() {
        let limits = Provider::Anthropic.limits(None);
        assert_eq!(
            (limits.picture_bytes, limits.message_bytes()),
            (5 << 20, 31_000_000)
        );
        let small = RequestLimits {
            picture_bytes: 5_000,
            bytes: OTHER_FIELDS + 32_000,
            ..*limits
        };
        let data = |bytes: usize| {
            let mut data = b"\x89PNG".to_vec();
            data.resize(bytes, 0);
            picture(data)
        };
        let large = each([data(3_753), data(3_750), png(8_001, 1), png(8_000, 1)]);
        assert_eq!(shown(&within(&large, &small)), [1, 3]);
        let heavy = each((0..20).map(|_| data(3_000)));
        let fitted = within(&heavy, &small);
        assert!(bytes(&fitted) <= 32_000 + 20 * AROUND_PART);
        let left = shown(&fitted).len();
        assert_eq!(shown(&fitted), (20 - left..20).collect::<Vec<_>>());
        assert!((4..=5).contains(&left), "{left}");
        let pdf = |pages: usize| {
            let pages = "<</Type/Page>> ".repeat(pages);
            Part::File(Media {
                media_type: PDF.to_owned(),
                source: MediaSource::Data(STANDARD.encode(format!("%PDF-1.4 {pages}"))),
            })
        };
        let pages = each([pdf(101), pdf(60), pdf(50), pdf(40), png(1, 1)]);
        assert_eq!(shown(&within(&pages, limits)), [2, 3, 4]);
        let wide = token_estimate::models::ModelInfo::new("wide", 1_000_000, 8_000, AS_OF);
        let wide = Provider::Anthropic.limits(Some(&wide));
        assert_eq!(shown(&within(&pages, wide)), [0, 1, 2, 3, 4]);
    }
}

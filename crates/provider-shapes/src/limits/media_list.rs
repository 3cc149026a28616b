//! The pictures and files of a list of messages, each with the sizes that providers limit.

use memory_model::{Media, Message, Part, ResultContent};
use token_estimate::pdf_pages;

use super::dimensions::sides;
use super::table::RequestLimits;
use crate::Provider;
use crate::media::{self, PDF, Source, is_image};
use crate::unknown::medium;

/// Minimum bytes of binary data in an unknown part that is left out to make a request smaller.
const LARGE_UNKNOWN: u64 = 10_000;
/// Characters of Base64 for each page of a document with pages that cannot be counted.
const BASE64_OF_PAGE: u64 = 5_333;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Picture,
    Document,
    Other,
}

/// A picture or a file of a message.
#[derive(Debug)]
pub(super) struct Medium {
    /// Index of the message.
    pub(super) message: usize,
    /// Indices of the part in the message and of the parts in it.
    pub(super) path: Vec<usize>,
    pub(super) kind: Kind,
    /// Size of the data in a request, in bytes.
    pub(super) bytes: u64,
    /// Width and height, in pixels. `None` if they are not known.
    pub(super) sides: Option<(u32, u32)>,
    pub(super) pages: u64,
    pub(super) is_requested: bool,
    /// Reason for which it is left out.
    pub(super) left_out: Option<&'static str>,
}

impl Medium {
    pub(super) fn side(&self) -> u32 {
        self.sides.map_or(0, |(width, height)| width.max(height))
    }

    /// Returns the number by which the medium counts towards the limit on pictures.
    pub(super) fn pictures(&self, limits: &RequestLimits) -> u64 {
        match self.kind {
            Kind::Picture => 1,
            Kind::Document if limits.pages_are_pictures => self.pages,
            _ => 0,
        }
    }
}

/// Returns the pictures and files that a provider gets, oldest first.
pub(super) fn all(messages: &[Message], provider: Provider) -> Vec<Medium> {
    let mut all = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if !memory_model::MessageView::is_note(message) {
            collect(&message.parts, (at, provider), &mut Vec::new(), &mut all);
        }
    }
    all
}

fn collect(
    parts: &[Part],
    (message, provider): (usize, Provider),
    path: &mut Vec<usize>,
    all: &mut Vec<Medium>,
) {
    for (at, part) in parts.iter().enumerate() {
        path.push(at);
        let found = match part {
            Part::ToolResult {
                content: ResultContent::Parts(parts),
                ..
            } => {
                collect(parts, (message, provider), path, all);
                None
            }
            Part::Image(media) | Part::File(media) => of_media(part, media, provider),
            Part::Unknown { raw } => match medium(raw) {
                Some(part) => match &part {
                    Part::Image(media) | Part::File(media) => of_media(&part, media, provider),
                    _ => None,
                },
                None if provider == Provider::Responses => {
                    let words = raw.without_bytes().len() as u64;
                    let bytes = (raw.as_str().len() as u64).saturating_sub(words);
                    (bytes >= LARGE_UNKNOWN).then_some((Kind::Other, bytes, None, 0))
                }
                None => None,
            },
            _ => None,
        };
        if let Some((kind, bytes, sides, pages)) = found {
            all.push(Medium {
                message,
                path: path.clone(),
                kind,
                bytes,
                sides,
                pages,
                is_requested: false,
                left_out: None,
            });
        }
        path.pop();
    }
}

type Facts = (Kind, u64, Option<(u32, u32)>, u64);

/// Media types that are sent to other providers than Gemini. Data of another type becomes a text.
const TAKEN: [&str; 7] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "audio/wav",
    "audio/mpeg",
    PDF,
];

/// Returns the kind, size in bytes, sides and pages of a picture or a file. Returns `None` for one that becomes a text.
fn of_media(part: &Part, media: &Media, provider: Provider) -> Option<Facts> {
    let kind = |media_type: &str| match is_image(part, media) {
        true => Kind::Picture,
        false if media_type == PDF => Kind::Document,
        false => Kind::Other,
    };
    Some(match media::source(media)? {
        Source::Url { media_type, url } => {
            let kind = kind(&media_type);
            // The pages of a document elsewhere cannot be counted.
            let pages = u64::from(kind == Kind::Document);
            (kind, url.len() as u64, None, pages)
        }
        Source::Data { media_type, data } => {
            let kind = kind(&media_type);
            if provider != Provider::Gemini && !TAKEN.contains(&&*media_type) {
                return None;
            }
            let sides = (kind == Kind::Picture).then(|| sides(&data)).flatten();
            let by_bytes = || (data.len() as u64 / BASE64_OF_PAGE).max(1);
            let pages = match kind {
                Kind::Document => pdf_pages(&data).unwrap_or_else(by_bytes),
                _ => 0,
            };
            (kind, data.len() as u64, sides, pages)
        }
    })
}

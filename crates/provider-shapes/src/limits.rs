//! Limits of providers on the pictures, documents and bytes of a request, and lists of messages within them.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memory_model::{Media, Message, Part, ResultContent, Role};
use token_estimate::models::ModelInfo;
use token_estimate::pdf_pages;

use crate::Provider;
use crate::media::{self, PDF, Source, is_image, named};
use crate::unknown::medium;

/// Limits of a provider on a request. A request beyond one of them is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestLimits {
    /// Provider with these limits.
    pub provider: Provider,
    /// Smallest context window of the models that have these limits, in tokens.
    pub window: u64,
    /// Largest number of pictures. If [`pages_are_pictures`](Self::pages_are_pictures), pages of documents count too.
    pub pictures: u64,
    /// Largest side of a picture, in pixels.
    pub side: Option<u32>,
    /// Number of pictures above which the side of every picture has a smaller limit, and this limit in pixels.
    pub many: Option<(u64, u32)>,
    /// Largest picture, in characters of Base64.
    pub picture_bytes: u64,
    /// Largest number of pages of all documents together.
    pub pages: u64,
    /// Whether a page of a document counts as a picture.
    pub pages_are_pictures: bool,
    /// Largest request, in bytes of JSON.
    pub bytes: u64,
    /// Day on which the row was last compared with its source.
    pub as_of: &'static str,
    /// Address of the provider's page.
    pub source: &'static str,
}

const AS_OF: &str = "2026-11-28";
const MB: u64 = 1_000_000;
/// No published limit.
const ANY: u64 = u64::MAX;

/// Limits of the models of Anthropic with a window of 200,000 tokens. The limit of a picture is the one of the error
/// «image exceeds 5 MB maximum», which counts the characters of Base64; the page on vision and the servers of other hosts
/// differ, and none is lower. Pages and pictures are added up by the error «too many images and documents».
const CLAUDE: RequestLimits = RequestLimits {
    provider: Provider::Anthropic,
    window: 0,
    pictures: 100,
    side: Some(8_000),
    many: Some((20, 2_000)),
    picture_bytes: 5_242_880,
    pages: 100,
    pages_are_pictures: true,
    bytes: 32 * MB,
    as_of: AS_OF,
    source: "https://platform.claude.com/docs/en/build-with-claude/vision, …/pdf-support",
};

/// Limits of OpenAI. Of two published values, it is the smaller one: later pages name 1,500 pictures and 512 MB.
const GPT: RequestLimits = RequestLimits {
    provider: Provider::OpenAi,
    window: 0,
    pictures: 500,
    side: None,
    many: None,
    picture_bytes: 20 * MB,
    pages: ANY,
    pages_are_pictures: false,
    bytes: 50 * MB,
    as_of: AS_OF,
    source: "https://platform.openai.com/docs/guides/images-vision, …/guides/pdf-files",
};

/// The limits by provider and context window. The first row of a provider has the strictest limits.
pub const LIMITS: [RequestLimits; 5] = [
    CLAUDE,
    RequestLimits {
        window: 200_001,
        pictures: 600,
        pages: 600,
        ..CLAUDE
    },
    GPT,
    RequestLimits {
        provider: Provider::Responses,
        ..GPT
    },
    RequestLimits {
        provider: Provider::Gemini,
        window: 0,
        pictures: 3_600,
        side: None,
        many: None,
        picture_bytes: 20 * MB,
        pages: 1_000,
        pages_are_pictures: false,
        bytes: 20 * MB,
        as_of: AS_OF,
        source: "https://ai.google.dev/gemini-api/docs/image-understanding, …/document-processing",
    },
];

/// Bytes of a request that are left for its fields without messages, such as the definitions of tools.
const OTHER_FIELDS: u64 = MB;
/// Bytes that a shape adds to a part of a message, at most.
const AROUND_PART: u64 = 200;
/// Minimum bytes of binary data in an unknown part that is left out to make a request smaller.
const LARGE_UNKNOWN: u64 = 10_000;
/// Characters of Base64 for each page of a document with pages that cannot be counted.
const BASE64_OF_PAGE: u64 = 5_333;
/// Number of characters of Base64 at the beginning of a picture that are searched for its size.
const HEADER: usize = 1 << 20;

impl RequestLimits {
    /// Returns the bytes of a request that its messages may take. The rest is left for other fields, such as the
    /// definitions of tools.
    pub const fn message_bytes(&self) -> u64 {
        self.bytes.saturating_sub(OTHER_FIELDS)
    }
}

impl Provider {
    /// Returns the limits on a request to a model. Without a model, they are the strictest limits of the provider.
    pub fn limits(self, model: Option<&ModelInfo>) -> &'static RequestLimits {
        let window = model.map_or(0, |model| model.context_window);
        let mut rows = LIMITS.iter().filter(|row| row.provider == self);
        let found = rows.rfind(|row| row.window <= window);
        found.unwrap_or(&CLAUDE)
    }
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Picture,
    Document,
    Other,
}

/// A picture or a file of a message.
#[derive(Debug)]
struct Medium {
    /// Index of the message.
    message: usize,
    /// Indices of the part in the message and of the parts in it.
    path: Vec<usize>,
    kind: Kind,
    /// Size of the data in a request, in bytes.
    bytes: u64,
    /// Width and height, in pixels. `None` if they are not known.
    sides: Option<(u32, u32)>,
    pages: u64,
    is_requested: bool,
    /// Reason for which it is left out.
    left_out: Option<&'static str>,
}

impl Medium {
    fn side(&self) -> u32 {
        self.sides.map_or(0, |(width, height)| width.max(height))
    }

    /// Returns the number by which the medium counts towards the limit on pictures.
    fn pictures(&self, limits: &RequestLimits) -> u64 {
        match self.kind {
            Kind::Picture => 1,
            Kind::Document if limits.pages_are_pictures => self.pages,
            _ => 0,
        }
    }
}

/// Returns the pictures and files that a provider gets, oldest first.
fn all(messages: &[Message], provider: Provider) -> Vec<Medium> {
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

/// Returns the reason for which a picture or a document alone exceeds the limits.
fn too_large(medium: &Medium, limits: &RequestLimits) -> Option<&'static str> {
    if medium.kind == Kind::Picture {
        if limits.side.is_some_and(|side| medium.side() > side) {
            return Some("more pixels than the provider takes");
        }
        if medium.bytes > limits.picture_bytes {
            return Some("more bytes than the provider takes");
        }
    }
    let pages = match limits.pages_are_pictures {
        true => limits.pages.min(limits.pictures),
        false => limits.pages,
    };
    (medium.pages > pages).then_some("more pages than the provider takes")
}

/// Leaves out media in their order while their sum is above `most`.
fn leave_out(all: &mut [Medium], most: u64, why: &'static str, counts: impl Fn(&Medium) -> u64) {
    let shown = all.iter().filter(|medium| medium.left_out.is_none());
    let mut sum = shown.map(&counts).fold(0, u64::saturating_add);
    for medium in all.iter_mut() {
        let counted = counts(medium);
        if sum <= most {
            break;
        }
        if medium.left_out.is_none() && counted > 0 {
            medium.left_out = Some(why);
            sum -= counted;
        }
    }
}

fn leave_out_pages(all: &mut [Medium], limits: &RequestLimits) {
    let why = "the provider takes no more pages";
    leave_out(all, limits.pages, why, |medium| medium.pages);
}

fn leave_out_pictures(all: &mut [Medium], limits: &RequestLimits) {
    let why = "the provider takes no more pictures";
    leave_out(all, limits.pictures, why, |medium| medium.pictures(limits));
}

/// Many pictures have a smaller limit of pixels. Leaves out the large pictures, or the oldest of all pictures if these
/// are fewer or if a large one belongs to the request.
fn leave_out_large_of_many(all: &mut [Medium], limits: &RequestLimits) {
    let Some((many, side)) = limits.many else {
        return;
    };
    let is_shown = |one: &Medium| one.left_out.is_none() && one.kind == Kind::Picture;
    let shown: Vec<&Medium> = all.iter().filter(|one| is_shown(one)).collect();
    let large = shown.iter().filter(|one| one.side() > side);
    let (large, requested_large): (u64, bool) = large.fold((0, false), |(count, any), one| {
        (count + 1, any || one.is_requested)
    });
    let over = (shown.len() as u64).saturating_sub(many);
    if over == 0 || large == 0 {
        return;
    }
    let why = "the provider takes only smaller pictures among so many";
    let requested = shown.iter().filter(|one| one.is_requested).count() as u64;
    let oldest = match requested_large {
        true => requested <= many,
        false => over < large,
    };
    if oldest {
        leave_out(all, many, why, |medium| {
            u64::from(medium.kind == Kind::Picture)
        });
        return;
    }
    for medium in all.iter_mut() {
        if medium.left_out.is_none() && medium.side() > side {
            medium.left_out = Some(why);
        }
    }
}

fn leave_out_bytes(messages: &[Message], all: &mut [Medium], limits: &RequestLimits) {
    let most = limits.message_bytes();
    let data = all.iter().map(|medium| medium.bytes);
    let data = data.fold(0, u64::saturating_add);
    let whole = bytes(messages);
    let words = whole.saturating_sub(data);
    let why = "the provider takes no larger request";
    leave_out(all, most.saturating_sub(words), why, |medium| medium.bytes);
}

/// Returns the size of messages in a request, in bytes, at most a little too large.
pub fn bytes(messages: &[Message]) -> u64 {
    struct Count(u64);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len() as u64);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    for part in messages.iter().flat_map(|message| &message.parts) {
        // Writing into a counter does not fail, and a part is always JSON.
        let _ = serde_json::to_writer(&mut count, part);
        count.0 = count.0.saturating_add(AROUND_PART);
    }
    count.0
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

/// Returns the text that replaces a picture or a file.
fn remark(part: &Part, left_out: &Medium, why: &str, pointer: Option<String>) -> String {
    let found;
    let part = match part {
        Part::Unknown { raw } => match medium(raw) {
            Some(part) => {
                found = part;
                &found
            }
            None => {
                return format!("{} [data left out: {why}]", raw.without_bytes());
            }
        },
        part => part,
    };
    let (Part::Image(media) | Part::File(media)) = part else {
        return format!("[left out: {why}]");
    };
    let kind = match left_out.kind {
        Kind::Picture => "image left out",
        _ => "file left out",
    };
    let mut text = named(kind, media);
    text.truncate(text.len().saturating_sub(1));
    if let Some((width, height)) = left_out.sides {
        text.push_str(&format!(", {width} x {height} pixels"));
    }
    if left_out.kind == Kind::Document {
        text.push_str(&format!(", {} pages", left_out.pages));
    }
    text.push_str(&format!(": {why}"));
    if let Some(pointer) = pointer {
        text.push_str(&format!("; expand {pointer}"));
    }
    text.push(']');
    text
}

/// Returns the width and height of a PNG, JPEG, GIF or WebP in Base64, in pixels. Returns `None` for other data.
fn sides(data: &str) -> Option<(u32, u32)> {
    let length = data.len().min(HEADER) / 4 * 4;
    let head = data.get(..length)?;
    let bytes = match data.get(..64) {
        // The size of most formats is in the first bytes.
        Some(first) if !data.starts_with("/9j/") => STANDARD.decode(first).ok()?,
        _ => STANDARD.decode(head).ok()?,
    };
    let pair = |at: usize, big: bool| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        let [a, b, c, d] = four.map(u32::from);
        Some(match big {
            true => (a << 8 | b, c << 8 | d),
            false => (b << 8 | a, d << 8 | c),
        })
    };
    if bytes.starts_with(b"\x89PNG") {
        let four = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        return Some((four(16)?, four(20)?));
    }
    if bytes.starts_with(b"GIF8") {
        return pair(6, false);
    }
    if bytes.starts_with(b"RIFF") {
        let three = |at: usize| {
            let three: [u8; 3] = bytes.get(at..at + 3)?.try_into().ok()?;
            let [a, b, c] = three.map(u32::from);
            Some((c << 16 | b << 8 | a) + 1)
        };
        return match bytes.get(12..16)? {
            b"VP8X" => Some((three(24)?, three(27)?)),
            b"VP8L" => {
                let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            b"VP8 " => pair(26, false).map(|(width, height)| (width & 0x3fff, height & 0x3fff)),
            _ => None,
        };
    }
    // A JPEG is a list of segments. The frame's segment has the size.
    let mut at = bytes.starts_with(b"\xff\xd8").then_some(2)?;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else {
            return None;
        };
        match marker {
            0xff => at += 1,
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return pair(at + 5, true).map(|(height, width)| (width, height));
            }
            0x01 | 0xd0..=0xd7 => at += 2,
            _ => {
                let length: [u8; 2] = bytes.get(at + 2..at + 4)?.try_into().ok()?;
                at += 2 + usize::from(u16::from_be_bytes(length)).max(2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory_model::MediaSource;

    fn picture(data: impl AsRef<[u8]>) -> Part {
        Part::Image(Media {
            media_type: "image/png".to_owned(),
            source: MediaSource::Data(STANDARD.encode(data)),
        })
    }

    /// A PNG of this size, without pixels.
    fn png(width: u32, height: u32) -> Part {
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
    fn sizes_are_read_from_the_headers() {
        let size = |bytes: &[u8]| sides(&STANDARD.encode(bytes));
        let Part::Image(media) = png(2_560, 1_440) else {
            panic!()
        };
        let MediaSource::Data(data) = media.source else {
            panic!()
        };
        assert_eq!(sides(&data), Some((2_560, 1_440)));
        assert_eq!(
            size(b"GIF89a\x00\x10\x01\x02rest of it"),
            Some((4_096, 513))
        );
        let mut jpeg = b"\xff\xd8\xff\xe1".to_vec();
        jpeg.extend(40_002_u16.to_be_bytes());
        jpeg.extend([7; 40_000]);
        jpeg.extend(b"\xff\xdb\x00\x02\xff\xc2\x00\x0b\x08\x03\x20\x09\x00\x01\x00\x00\x00");
        assert_eq!(size(&jpeg), Some((2_304, 800)));
        let webp = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\xff\x0f\0\x57\x02\0\0\0".to_vec();
        assert_eq!(size(&webp), Some((4_096, 600)));
        for other in [&b"RIFF\0\0\0\0WAVE"[..], b"", b"\xff\xd8\xff", b"%PDF"] {
            assert_eq!(size(other), None);
        }
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

    #[test]
    fn the_table_is_in_order() {
        for provider in Provider::ALL {
            let rows: Vec<_> = LIMITS
                .iter()
                .filter(|row| row.provider == provider)
                .collect();
            assert_eq!(rows[0].window, 0, "{provider:?}");
            assert!(rows.is_sorted_by_key(|row| (row.window, row.pictures, row.pages)));
            assert_eq!(provider.limits(None), rows[0]);
        }
    }
}

//! Images and files.

use std::borrow::Cow;

use memory_model::{Media, MediaSource, Part};

/// Media type of an image by URL, whose source names none.
pub(super) const ANY_IMAGE: &str = "image/*";
/// Media type of a file by URL, whose source names none.
pub(super) const ANY_FILE: &str = "application/octet-stream";

/// Returns the URL of a medium: its own, or a data URL. `None` for a URL that is not of the web.
pub(super) fn url(media: &Media) -> Option<Cow<'_, str>> {
    match &media.source {
        MediaSource::Data(_) => data_url(media).map(Cow::Owned),
        MediaSource::Url(_) => web_url(media).map(Cow::Borrowed),
    }
}

/// Returns the data URL of a medium whose data is at hand.
pub(super) fn data_url(media: &Media) -> Option<String> {
    match &media.source {
        MediaSource::Data(data) => Some(format!("data:{};base64,{data}", media.media_type)),
        MediaSource::Url(_) => None,
    }
}

/// Returns the URL of a medium in the web.
pub(super) fn web_url(media: &Media) -> Option<&str> {
    match &media.source {
        MediaSource::Url(url) if url.starts_with("https://") || url.starts_with("http://") => {
            Some(url)
        }
        _ => None,
    }
}

/// Reads a URL; `media_type` is that of a URL that does not name one.
pub(super) fn from_url(url: &str, media_type: &str) -> Media {
    let data = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((media_type, data)) => Media {
            media_type: media_type.to_owned(),
            source: MediaSource::Data(data.to_owned()),
        },
        None => Media {
            media_type: media_type.to_owned(),
            source: MediaSource::Url(url.to_owned()),
        },
    }
}

/// Returns the text that stands for content where a provider has no place for it.
pub(super) fn as_text(part: &Part) -> Option<String> {
    let named = |kind: &str, media: &Media| match &media.source {
        MediaSource::Data(data) => {
            // Four characters of Base64 are three bytes.
            let bytes = data.len() / 4 * 3;
            format!("[{kind}, {}, about {bytes} bytes]", media.media_type)
        }
        MediaSource::Url(url) => format!("[{kind}, {}, {url}]", media.media_type),
    };
    match part {
        Part::Text { text } => Some(text.clone()),
        Part::Image(media) => Some(named("image", media)),
        Part::File(media) => Some(named("file", media)),
        Part::Unknown { raw } => Some(raw.as_str().to_owned()),
        Part::Reasoning { .. } | Part::ToolCall { .. } | Part::ToolResult { .. } => None,
    }
}

//! Images, audio, video and documents.

use agent_memory::{
    Part,
    model::{Media, MediaSource},
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rig_core::completion::message::{
    Audio, AudioMediaType, Document, DocumentMediaType, DocumentSourceKind, Image, ImageMediaType,
    MimeType, UserContent, Video, VideoMediaType,
};

/// Media types of media whose source names none.
const ANY_IMAGE: &str = "image/*";
const ANY_AUDIO: &str = "audio/*";
const ANY_VIDEO: &str = "video/*";
const ANY_FILE: &str = "application/octet-stream";

/// Turns raw bytes into Base64, which is what a log holds.
pub(crate) fn encode_raw(data: &mut DocumentSourceKind) {
    if let DocumentSourceKind::Raw(bytes) = data {
        *data = DocumentSourceKind::Base64(STANDARD.encode(bytes));
    }
}

/// Returns an image; `None` for a source that is neither data nor a URL.
pub(crate) fn image(image: &Image) -> Option<Part> {
    let media_type = image.media_type.as_ref().map(MimeType::to_mime_type);
    media(&image.data, media_type.unwrap_or(ANY_IMAGE)).map(Part::Image)
}

/// Returns audio, a video or a document as a file; `None` for other content, and for a source that is neither data
/// nor a URL.
pub(crate) fn file(content: &UserContent) -> Option<Part> {
    let (data, media_type) = match content {
        UserContent::Audio(audio) => {
            let media_type = audio.media_type.as_ref().map(MimeType::to_mime_type);
            (&audio.data, media_type.unwrap_or(ANY_AUDIO))
        }
        UserContent::Video(video) => {
            let media_type = video.media_type.as_ref().map(MimeType::to_mime_type);
            (&video.data, media_type.unwrap_or(ANY_VIDEO))
        }
        UserContent::Document(document) => {
            let media_type = document.media_type.as_ref().map(MimeType::to_mime_type);
            (&document.data, media_type.unwrap_or(ANY_FILE))
        }
        _ => return None,
    };
    media(data, media_type).map(Part::File)
}

fn media(data: &DocumentSourceKind, media_type: &str) -> Option<Media> {
    let source = match data {
        DocumentSourceKind::Base64(data) => MediaSource::Data(data.clone()),
        DocumentSourceKind::Url(url) => MediaSource::Url(url.clone()),
        _ => return None,
    };
    Some(Media {
        media_type: media_type.to_owned(),
        source,
    })
}

/// Returns rig's image of a medium.
pub(crate) fn to_image(media: &Media) -> Image {
    Image {
        data: data(media),
        media_type: ImageMediaType::from_mime_type(&media.media_type),
        ..Image::default()
    }
}

/// Returns rig's content of a file: audio or video by its media type, and otherwise a document.
pub(crate) fn to_content(media: &Media) -> UserContent {
    let media_type = media.media_type.as_str();
    let data = data(media);
    if media_type.starts_with("audio/") {
        return UserContent::Audio(Audio {
            data,
            media_type: AudioMediaType::from_mime_type(media_type),
        });
    }
    if media_type.starts_with("video/") {
        return UserContent::Video(Video {
            data,
            media_type: VideoMediaType::from_mime_type(media_type),
            additional_params: None,
        });
    }
    UserContent::Document(Document {
        data,
        media_type: DocumentMediaType::from_mime_type(media_type),
        additional_params: None,
    })
}

fn data(media: &Media) -> DocumentSourceKind {
    match &media.source {
        MediaSource::Data(data) => DocumentSourceKind::Base64(data.clone()),
        MediaSource::Url(url) => DocumentSourceKind::Url(url.clone()),
    }
}

/// Returns the text that stands for a part where rig has no place for it.
pub(crate) fn as_text(part: &Part) -> String {
    let named = |kind: &str, media: &Media| match &media.source {
        MediaSource::Data(data) => {
            // Four characters of Base64 are three bytes.
            let bytes = data.len() / 4 * 3;
            format!("[{kind}, {}, about {bytes} bytes]", media.media_type)
        }
        MediaSource::Url(url) => format!("[{kind}, {}, {url}]", media.media_type),
    };
    match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.clone(),
        Part::Image(media) => named("image", media),
        Part::File(media) => named("file", media),
        Part::Unknown { raw } => raw.as_str().to_owned(),
        Part::ToolCall { .. } | Part::ToolResult { .. } => {
            serde_json::to_string(part).unwrap_or_default()
        }
    }
}

//! Prepares images and files in the form that providers accept.

use std::borrow::Cow;

use memory_model::{Media, MediaSource, Part};

/// Media type of an image by URL without a stated type.
pub(crate) const ANY_IMAGE: &str = "image/*";
/// Media type of a file by URL without a stated type.
pub(crate) const ANY_FILE: &str = "application/octet-stream";
/// Media type of PDF.
pub(crate) const PDF: &str = "application/pdf";

/// Minimum length of the Base64 of an image or a PDF without a known beginning, in characters. A shorter text is a
/// placeholder.
const SHORTEST: usize = 40;
/// Length above which a URL in a text is cut, in characters.
const LONG_URL: usize = 2_000;

/// Media types by the beginning of their Base64. They take precedence over the declared type.
const BEGINNINGS: &[(&str, &str)] = &[
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("JVBERi", PDF),
    ("PHN2Zy", "image/svg+xml"),
];

/// Other names of media types.
const ALIASES: &[(&str, &str)] = &[
    ("image/jpg", "image/jpeg"),
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
    ("audio/x-wav", "audio/wav"),
    ("audio/wave", "audio/wav"),
    ("audio/vnd.wave", "audio/wav"),
    ("audio/mp3", "audio/mpeg"),
    ("audio/x-mp3", "audio/mpeg"),
    ("application/x-pdf", PDF),
];

/// Media types by the ending of a URL.
const ENDINGS: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("bmp", "image/bmp"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("ico", "image/x-icon"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("avif", "image/avif"),
    ("pdf", PDF),
    ("zip", "application/zip"),
];

/// Readable content of a medium.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// Data as Base64, in the standard alphabet with padding.
    Data {
        /// Media type by the first bytes, or the declared media type.
        media_type: Cow<'a, str>,
        data: Cow<'a, str>,
    },
    /// A URL with the scheme http or https.
    Url {
        /// Media type, or [`ANY_IMAGE`], [`ANY_FILE`] or an empty text if the type is unknown.
        media_type: Cow<'a, str>,
        url: &'a str,
    },
}

/// Returns the content of a medium. Returns `None` if it has no data, a placeholder instead of data, or no http or
/// https URL.
pub(crate) fn source(media: &Media) -> Option<Source<'_>> {
    match &media.source {
        MediaSource::Data(data) => read_data(data, &media.media_type),
        // A data URL, or data in the field of a URL.
        MediaSource::Url(url) if data_url(url).is_some() || !url.contains(':') => {
            read_data(url, &media.media_type)
        }
        MediaSource::Url(url) => is_of_web(url).then(|| Source::Url {
            media_type: type_of_url(url, &media.media_type),
            url,
        }),
    }
}

/// Returns the URL or data URL of a medium, if its media type is one of `types`. A URL with the scheme http or https is
/// also accepted if its type is unknown.
pub(crate) fn url<'a>(media: &'a Media, types: &[&str]) -> Option<Cow<'a, str>> {
    match source(media)? {
        Source::Url { media_type, url } => {
            let taken = types.contains(&&*media_type) || is_unnamed(&media_type);
            taken.then_some(Cow::Borrowed(url))
        }
        Source::Data { media_type, data } => types
            .contains(&&*media_type)
            .then(|| Cow::Owned(format!("data:{media_type};base64,{data}"))),
    }
}

/// Returns whether a medium is an image. Its media type takes precedence over the kind of its part.
pub(crate) fn is_image(part: &Part, media: &Media) -> bool {
    match source(media) {
        Some(Source::Data { media_type, .. } | Source::Url { media_type, .. }) => {
            match is_unnamed(&media_type) {
                true => matches!(part, Part::Image(_)),
                false => media_type.starts_with("image/"),
            }
        }
        None => matches!(part, Part::Image(_)),
    }
}

/// Returns whether a media type does not decide the type of a URL.
fn is_unnamed(media_type: &str) -> bool {
    [ANY_IMAGE, ANY_FILE, ""].contains(&media_type)
}

fn is_of_web(url: &str) -> bool {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    host.is_some_and(|host| !host.is_empty())
        && !url.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Splits a data URL into its media type and its Base64. The media type can be empty. The Base64 is empty for another
/// encoding.
fn data_url(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let (scheme, rest) = text.split_at_checked("data:".len())?;
    let (head, data) = rest
        .split_once(',')
        .filter(|_| scheme.eq_ignore_ascii_case("data:"))?;
    let (media_type, parameters) = head.split_once(';').unwrap_or((head, ""));
    let encoded = parameters
        .rsplit(';')
        .next()
        .is_some_and(|last| last.trim().eq_ignore_ascii_case("base64"));
    Some((media_type, if encoded { data } else { "" }))
}

fn read_data<'a>(text: &'a str, declared: &'a str) -> Option<Source<'a>> {
    let (mut data, mut declared) = (text, declared);
    while let Some((media_type, rest)) = data_url(data) {
        data = rest;
        if !media_type.is_empty() {
            declared = media_type;
        }
    }
    let data = base64(data)?;
    let known = known_type(&data);
    let media_type = known.map_or_else(|| type_name(declared), Cow::Borrowed);
    let has_beginning = media_type.starts_with("image/") || media_type == PDF;
    let is_word = known.is_none() && has_beginning && data.len() < SHORTEST;
    (!is_word).then_some(Source::Data { media_type, data })
}

/// Returns Base64 as providers read it: in the standard alphabet, padded, without white space. Returns `None` for
/// another text.
fn base64(text: &str) -> Option<Cow<'_, str>> {
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    let is_whole = |text: &str| {
        let digits = text.trim_end_matches('=');
        let padding = text.len() - digits.len();
        text.len().is_multiple_of(4)
            && !digits.is_empty()
            && padding <= 2
            && digits.bytes().all(digit)
    };
    if is_whole(text) {
        return Some(Cow::Borrowed(text));
    }
    let mut digits: String = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            c => c,
        })
        .collect();
    digits.truncate(digits.trim_end_matches('=').len());
    while !digits.len().is_multiple_of(4) {
        digits.push('=');
    }
    is_whole(&digits).then_some(Cow::Owned(digits))
}

/// Returns the media type by the beginning of the Base64.
fn known_type(data: &str) -> Option<&'static str> {
    let known = BEGINNINGS
        .iter()
        .find(|(beginning, _)| data.starts_with(beginning));
    // The data has "RIFF", the length, and the format's name, of which the part behind "W" is compared: "EBP" or "AVE".
    let riff = data
        .starts_with("UklGR")
        .then(|| match data.get(12..16) {
            Some("RUJQ") => Some("image/webp"),
            Some("QVZF") => Some("audio/wav"),
            _ => None,
        })
        .flatten();
    known.map(|(_, media_type)| *media_type).or(riff)
}

/// Returns the name of a media type that providers know.
pub(crate) fn type_name(declared: &str) -> Cow<'_, str> {
    let name = declared.split(';').next().unwrap_or_default().trim();
    let name = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    };
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, name)| Cow::Borrowed(*name))
}

/// Returns the media type of a URL by its ending, or else the declared type.
pub(crate) fn type_of_url<'a>(url: &str, declared: &'a str) -> Cow<'a, str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let ending = path
        .rsplit('/')
        .next()
        .and_then(|name| name.rsplit_once('.'));
    let known = ending.and_then(|(_, ending)| {
        ENDINGS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(ending))
    });
    known.map_or_else(
        || type_name(declared),
        |(_, media_type)| Cow::Borrowed(*media_type),
    )
}

/// Reads a URL. `media_type` is used for a URL that does not name a type.
pub(crate) fn from_url(url: &str, media_type: &str) -> Media {
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

/// Returns a text that replaces a picture or a file and names it.
pub(crate) fn named(kind: &str, media: &Media) -> String {
    let declared = shortened(&media.media_type, 100);
    match (source(media), &media.source) {
        (Some(Source::Data { media_type, data }), _) => {
            let media_type = shortened(&media_type, 100);
            // Four characters of Base64 are three bytes.
            let bytes = data.len() / 4 * 3;
            format!("[{kind}, {media_type}, about {bytes} bytes]")
        }
        (_, MediaSource::Url(url)) if is_address(url) => {
            format!("[{kind}, {declared}, {}]", shortened(url, LONG_URL))
        }
        _ => format!("[{kind}, {declared}, no readable data]"),
    }
}

/// Returns whether a text is an address: neither a data URL nor bare data.
fn is_address(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.trim());
    scheme.map_or(url.len() < 200, |scheme| {
        !scheme.eq_ignore_ascii_case("data")
    })
}

/// Returns the beginning of a text that has more than `most` characters, or the whole text.
fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unknown::as_text;

    const PNG: &str = "iVBORw0KGgo=";

    fn data(media_type: &str, data: &str) -> Media {
        Media {
            media_type: media_type.to_owned(),
            source: MediaSource::Data(data.to_owned()),
        }
    }

    fn by_url(media_type: &str, url: &str) -> Media {
        Media {
            media_type: media_type.to_owned(),
            source: MediaSource::Url(url.to_owned()),
        }
    }

    #[test]
    fn data_is_read_however_it_came() {
        let long = "QUJD".repeat(20);
        for (media, media_type, expected) in [
            (data("image/png", PNG), "image/png", PNG),
            (
                data("image/png", &format!("data:image/png;base64,{PNG}")),
                "image/png",
                PNG,
            ),
            (
                data(
                    "",
                    &format!(" DATA:;charset=x;BASE64,data:image/webp;base64,{long}"),
                ),
                "image/webp",
                &long,
            ),
            (
                by_url("image/*", &format!("data:image/png;base64,{PNG}")),
                "image/png",
                PNG,
            ),
            // The first bytes decide the media type.
            (data("image/jpeg", PNG), "image/png", PNG),
            (by_url("image/*", PNG), "image/png", PNG),
            (data("image/png", "PHN2Zy8+"), "image/svg+xml", "PHN2Zy8+"),
            (
                data("image/png", "UklGRiQAAABXRUJQVlA4"),
                "image/webp",
                "UklGRiQAAABXRUJQVlA4",
            ),
            (data("Image/JPG; q=1", &long), "image/jpeg", &long),
            (
                data("application/zip", "UEsDBA"),
                "application/zip",
                "UEsDBA==",
            ),
            (data("audio/x-wav", "_-_-\nAAAA"), "audio/wav", "/+/+AAAA"),
        ] {
            let found = source(&media);
            let expected = Source::Data {
                media_type: media_type.into(),
                data: expected.into(),
            };
            assert_eq!(found, Some(expected), "{media:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_without_its_bytes() {
        for media in [
            data("image/png", ""),
            data("image/png", "[blob missing: sha256 of the picture]"),
            data("image/png", "REDACTED"),
            data("application/pdf", "omitted"),
            data("image/png", "data:image/png;base64,"),
            data("image/svg+xml", "data:image/svg+xml,%3Csvg%3E"),
            data("image/png", "AAAAA"),
            by_url("image/png", "data:image/png;base64,?"),
            by_url("image/png", "data:image/png;base64"),
            by_url("image/png", &format!("{}A", "QUJD".repeat(60))),
        ] {
            assert_eq!(source(&media), None, "{media:?}");
            let text = as_text(&Part::Image(media.clone())).unwrap();
            let expected = format!("[image, {}, no readable data]", media.media_type);
            assert_eq!(text, expected);
        }
        for url in [
            "file:///a.png",
            "https://",
            "https://a b",
            "gs://a/b",
            "a/b.png",
        ] {
            let media = by_url("image/*", url);
            assert_eq!(source(&media), None, "{url}");
            assert!(as_text(&Part::Image(media)).unwrap().contains(url));
        }
        let long = by_url("image/*", &format!("https://a.b/{}", "x".repeat(5_000)));
        assert!(as_text(&Part::Image(long)).unwrap().len() < 2_100);
    }

    #[test]
    fn a_url_is_of_the_type_that_it_is_declared_or_ends_as() {
        for (media_type, url, expected) in [
            ("image/*", "https://a.b/c.SVG?d=e.png", "image/svg+xml"),
            ("image/*", "https://a.b/c", "image/*"),
            ("image/jpg", "https://a.b/c", "image/jpeg"),
            ("image/png", "https://a.b/c.svg", "image/svg+xml"),
            ("", "http://a.b/c.d/e.pdf#f", "application/pdf"),
        ] {
            let media = by_url(media_type, url);
            let Some(Source::Url { media_type, .. }) = source(&media) else {
                panic!("{url}");
            };
            assert_eq!(media_type, expected, "{url}");
        }
    }
}

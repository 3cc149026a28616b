//! Reads the content of messages in the shapes of the providers' interfaces: parts, media and results of calls.

use memory_model::{
    Media, MediaSource, Part, RawJson, ResultContent, inner_part_from_raw, part_from_raw,
};
use serde_json::value::RawValue;

use super::calls::Calls;
use crate::blocks::Dialect;
use crate::raw::{Member, MetaBuilder, RawObject, list, string, text};
use crate::session::unknown;

/// Keys of a part that can be missing.
const OPTIONAL: [&str; 4] = ["is_error", "signature", "data", "url"];

/// Key under which a string is kept that its text does not hold completely.
const TEXT: &str = "\"text\"";

/// Prefix of a signature from Gemini, and the signature for calls of other models.
const GEMINI_SIGNED: &str = "gemini:";
const GEMINI_UNSIGNED: &str = "skip_thought_signature_validator";

/// Reads content in the shape of any provider. Members that a part cannot hold are added to `extras`, under the part's
/// index. A picture or file behind a result becomes part of the result.
pub(crate) fn parts(
    value: &RawValue,
    calls: &mut Calls,
    extras: &mut MetaBuilder,
) -> Option<Vec<Part>> {
    let mut found = Vec::new();
    Parts::new(calls).content(value, &mut found, extras)?;
    let mut out: Vec<Part> = Vec::with_capacity(found.len());
    for part in found {
        match (out.last_mut(), part) {
            (Some(Part::ToolResult { content, .. }), part @ (Part::Image(_) | Part::File(_))) => {
                attach(content, part);
            }
            (_, part) => out.push(part),
        }
    }
    Some(out)
}

/// Adds a part to a result.
pub(crate) fn attach(content: &mut ResultContent, part: Part) {
    let mut parts = match std::mem::replace(content, ResultContent::Parts(Vec::new())) {
        ResultContent::Text(text) => vec![Part::text(text)],
        ResultContent::Parts(parts) => parts,
    };
    parts.push(part);
    *content = ResultContent::Parts(parts);
}

/// Reads the parts of a message.
pub(super) struct Parts<'a> {
    pub(super) calls: &'a mut Calls,
    /// Whether a part came in the shape of a provider's interface.
    pub(super) is_of_others: bool,
}

impl<'a> Parts<'a> {
    pub(super) fn new(calls: &'a mut Calls) -> Self {
        let is_of_others = false;
        Self {
            calls,
            is_of_others,
        }
    }

    /// Reads content: a string, or a list of parts and strings. Members that a part cannot hold are added to `extras`,
    /// under the part's index.
    pub(super) fn content(
        &mut self,
        value: &RawValue,
        out: &mut Vec<Part>,
        extras: &mut MetaBuilder,
    ) -> Option<()> {
        content(value, out, extras, |item, out, extra| {
            let found = self.gemini(item, out, extra);
            let part = found.unwrap_or_else(|| self.part(item, extra));
            out.push(part);
        })
    }

    /// Reads a part.
    ///
    /// Optional members that are `null` are added to `extra`. With them the part would be an unknown one, and a result
    /// would lose its call. Members that other programs add are also added to `extra`.
    fn part(&mut self, item: &RawValue, extra: &mut MetaBuilder) -> Part {
        let read = part_from_raw(item);
        if !matches!(read, Part::Unknown { .. }) {
            return read;
        }
        let Some(object) = RawObject::parse(item.get()).filter(|object| !object.repeats()) else {
            return read;
        };
        if let Some(part) = without_nulls(item, &object, extra) {
            return part;
        }
        let part = of_others(&object, 1, extra);
        self.is_of_others |= part.is_some();
        part.unwrap_or(read)
    }

    /// Reads a part in Gemini's shape, which has no `type`. A signature becomes reasoning before its part.
    fn gemini(
        &mut self,
        item: &RawValue,
        out: &mut Vec<Part>,
        extra: &mut MetaBuilder,
    ) -> Option<Part> {
        let object = RawObject::parse(item.get()).filter(|object| !object.repeats())?;
        if object.get("type").is_some() {
            return None;
        }
        let inner = |names: [&'static str; 2]| {
            let mut found = names
                .into_iter()
                .filter_map(|name| Some((name, object.object(name)?)));
            found.next().filter(|(_, inner)| !inner.repeats())
        };
        let mut signatures = ["thoughtSignature", "thought_signature"].into_iter();
        let signed = signatures.find_map(|key| Some((key, object.string(key)?)));
        let mut known = Vec::from_iter(signed.as_ref().map(|(key, _)| *key));
        let signed = signed.map(|(_, signature)| signature);
        let signed = signed.filter(|signature| signature != GEMINI_UNSIGNED);
        let mut signature = signed.map(|signature| format!("{GEMINI_SIGNED}{signature}"));
        let (mut found, mut rest) = (MetaBuilder::default(), MetaBuilder::default());
        let part = if let Some(value) = object.present("text") {
            known.push("text");
            let text = text(value, TEXT, &mut found)?;
            match object.is_true("thought") {
                true => {
                    known.push("thought");
                    let signature = signature.take();
                    Part::Reasoning { text, signature }
                }
                false => Part::Text { text },
            }
        } else if let Some((key, call)) = inner(["functionCall", "function_call"]) {
            known.push(key);
            rest.extend(call.others(&["id", "name", "args"]));
            let arguments = call.present("args").map(RawJson::from_raw);
            let name = call.string("name")?;
            Part::ToolCall {
                id: self.calls.call(call.id("id"), &name),
                name,
                arguments: arguments.map_or_else(|| RawJson::parse("{}"), Ok).ok()?,
            }
        } else if let Some((key, answer)) = inner(["functionResponse", "function_response"]) {
            known.push(key);
            rest.extend(answer.others(&["id", "response"]));
            let name = answer.string("name")?;
            let (content, is_error) = response(answer.get("response"));
            Part::ToolResult {
                call_id: self.calls.answer(answer.id("id"), &name),
                content,
                is_error,
            }
        } else {
            let (key, data) = inner(["inlineData", "inline_data"])
                .or_else(|| inner(["fileData", "file_data"]))?;
            known.push(key);
            let field = |one: &str, other: &str| data.string(one).or_else(|| data.string(other));
            let source = match key.starts_with("inline") {
                true => MediaSource::Data(data.string("data")?),
                false => MediaSource::Url(field("fileUri", "file_uri")?),
            };
            rest.extend(data.others(&["mimeType", "mime_type", "data", "fileUri", "file_uri"]));
            media(field("mimeType", "mime_type").as_deref(), source)
        };
        if let (Some(key), false) = (known.last(), rest.is_empty()) {
            found.nest(&format!("\"{key}\""), rest);
        }
        found.extend(object.others(&known));
        if signature.is_some() {
            let text = String::new();
            out.push(Part::Reasoning { text, signature });
        }
        extra.take(found);
        self.is_of_others = true;
        Some(part)
    }
}

/// Reads the result of a call. Keys that parts cannot hold are added to `blocks`.
pub(crate) fn result(
    call_id: String,
    value: Option<&RawValue>,
    blocks: &mut MetaBuilder,
) -> Option<Part> {
    let mut extras = MetaBuilder::default();
    let mut parts = Vec::new();
    if let Some(value) = value {
        content(value, &mut parts, &mut extras, |item, out, extra| {
            out.push(inner_part(item, extra));
        })?;
    }
    let content = match parts.as_slice() {
        [] if value.is_none() => ResultContent::Text(String::new()),
        [Part::Text { text }] if value.is_some_and(|value| value.get().starts_with('"')) => {
            ResultContent::Text(text.clone())
        }
        _ => ResultContent::Parts(parts),
    };
    let mut extra = MetaBuilder::default();
    extra.nest("\"content\"", extras);
    blocks.nest("\"0\"", extra);
    Some(Part::ToolResult {
        call_id,
        content,
        is_error: None,
    })
}

/// Reads the output of a Gemini tool, and whether the tool failed.
fn response(value: Option<&RawValue>) -> (ResultContent, Option<bool>) {
    let Some(value) = value else {
        return (ResultContent::Text(String::new()), None);
    };
    let only = RawObject::parse(value.get()).filter(|object| object.members.len() == 1);
    let text = |key| only.as_ref().and_then(|object| object.string(key));
    match (text("output").or_else(|| text("result")), text("error")) {
        (Some(text), _) => (ResultContent::Text(text), None),
        (None, Some(error)) => (ResultContent::Text(error), Some(true)),
        (None, None) => (ResultContent::Text(value.get().to_owned()), None),
    }
}

/// Reads the pictures of a message in Ollama's shape.
pub(super) fn pictures(object: &RawObject<'_>) -> Option<Vec<Part>> {
    let images: Vec<String> = serde_json::from_str(object.get("images")?.get()).ok()?;
    let picture = |data| media(Some("image/*"), MediaSource::Data(data));
    Some(images.into_iter().map(picture).collect())
}

/// Returns an image, or another file, by the media type.
fn media(media_type: Option<&str>, source: MediaSource) -> Part {
    let media_type = media_type.unwrap_or("application/octet-stream").to_owned();
    let media = Media { media_type, source };
    match media.media_type.starts_with("image/") {
        true => Part::Image(media),
        false => Part::File(media),
    }
}

/// Returns the image or file that a URL names or a data URL holds.
pub(crate) fn linked_media(media_type: Option<&str>, url: &str) -> Part {
    let found = url_media(url, media_type.unwrap_or("application/octet-stream"));
    media(Some(&found.media_type), found.source)
}

/// Reads content. `put` reads each object and adds at least one part. Members that the last of these parts cannot hold
/// are added to `extras`, under its index.
fn content(
    value: &RawValue,
    out: &mut Vec<Part>,
    extras: &mut MetaBuilder,
    mut put: impl FnMut(&RawValue, &mut Vec<Part>, &mut MetaBuilder),
) -> Option<()> {
    let mut add = |item: &RawValue| {
        let mut extra = MetaBuilder::default();
        match item.get().as_bytes().first() {
            Some(b'{') => put(item, out, &mut extra),
            _ => {
                let text = text(item, TEXT, &mut extra);
                out.push(text.map_or_else(|| unknown(item.get()), Part::text));
            }
        }
        extras.nest(&format!("\"{}\"", out.len().saturating_sub(1)), extra);
    };
    match value.get().as_bytes().first() {
        Some(b'"') => add(value),
        Some(b'[') => list(value)?.into_iter().for_each(add),
        _ if value.get() == "null" => {}
        _ => out.push(unknown(value.get())),
    }
    Some(())
}

/// Reads a part without its optional members that are `null`. These are added to `extra`.
fn without_nulls(item: &RawValue, object: &RawObject<'_>, extra: &mut MetaBuilder) -> Option<Part> {
    if !item.get().contains("null") {
        return None;
    }
    let (nulls, others): (Vec<_>, Vec<_>) = object.members.iter().partition(|member| {
        OPTIONAL.contains(&member.name.as_ref()) && member.value.get() == "null"
    });
    let mut rest = MetaBuilder::default();
    rest.extend(others.into_iter());
    let rest = rest.finish().filter(|_| !nulls.is_empty())?;
    match serde_json::from_str::<Part>(rest.as_str()).ok()? {
        Part::Unknown { .. } => None,
        part => {
            extra.extend(nulls.into_iter());
            Some(part)
        }
    }
}

/// Reads a text, a picture or a file in the shape of a provider's interface. Members that the part cannot hold are
/// added to `extra`.
fn of_others(object: &RawObject<'_>, level: usize, extra: &mut MetaBuilder) -> Option<Part> {
    let tag = object.string("type")?;
    let mut found = MetaBuilder::default();
    let part = match tag.as_str() {
        "text" | "input_text" | "output_text" => {
            let text = text(object.get("text")?, TEXT, &mut found)?;
            if tag != "text" {
                found.extend(object.members.iter().filter(|member| member.name == "type"));
            }
            found.extend(object.others(&["type", "text"]));
            Part::Text { text }
        }
        "image_url" | "input_image" => {
            let url = media_url(object, "image_url", "url", &mut found)?;
            Part::Image(url_media(&url, "image/*"))
        }
        "file" | "input_file" => {
            let url = match object.get("file") {
                Some(_) => media_url(object, "file", "file_data", &mut found)?,
                None => media_url(object, "file_data", "", &mut found)?,
            };
            Part::File(url_media(&url, "application/octet-stream"))
        }
        "image" | "document" => {
            let source = object.object("source").filter(|source| !source.repeats())?;
            let (media_type, key) = match source.string("type")?.as_str() {
                "base64" => (source.string("media_type")?, "data"),
                "url" => ("image/*".to_owned(), "url"),
                _ => return None,
            };
            let data = source.string(key)?;
            found.extend(object.members.iter().filter(|member| member.name == "type"));
            let mut rest = MetaBuilder::default();
            rest.extend(source.others(&[key]));
            found.nest("\"source\"", rest);
            found.extend(object.others(&["type", "source"]));
            let source = match key {
                "data" => MediaSource::Data(data),
                _ => MediaSource::Url(data),
            };
            let media = Media { media_type, source };
            match tag.as_str() {
                "image" => Part::Image(media),
                _ => Part::File(media),
            }
        }
        // Kimi Code's reasoning.
        "think" => {
            let text = text(object.get("think")?, "\"think\"", &mut found)?;
            found.extend(object.members.iter().filter(|member| member.name == "type"));
            found.extend(object.others(&["type", "think", "encrypted"]));
            let signature = object.string("encrypted");
            Part::Reasoning { text, signature }
        }
        "tool_use" | "tool_result" | "thinking" => {
            Dialect::Claude.known(object, level, &mut found)?
        }
        _ => return None,
    };
    extra.take(found);
    Some(part)
}

/// Returns the URL of a medium under `key`, or under `inner` of the object there. All other members are added to
/// `extra`, and so is the head of a data URL.
fn media_url(
    object: &RawObject<'_>,
    key: &str,
    inner: &str,
    extra: &mut MetaBuilder,
) -> Option<String> {
    let value = object.get(key)?;
    let found = RawObject::parse(value.get()).filter(|found| !found.repeats());
    let url = match &found {
        Some(found) => found.string(inner)?,
        None => string(value)?,
    };
    let head = data_url(&url).map(|(head, ..)| serde_json::Value::from(head).to_string());
    let put = |into: &mut MetaBuilder, member: &Member<'_>, is_url: bool| match (is_url, &head) {
        (false, _) => into.add(member.key, member.value.get()),
        (true, Some(head)) => into.add(member.key, head),
        (true, None) => {}
    };
    for member in &object.members {
        match &found {
            Some(found) if member.name == key => {
                let mut rest = MetaBuilder::default();
                for member in &found.members {
                    put(&mut rest, member, member.name == inner);
                }
                extra.nest(member.key, rest);
            }
            _ => put(extra, member, member.name == key),
        }
    }
    Some(url)
}

/// Splits a data URL in base64 into its head, its media type and its data.
fn data_url(url: &str) -> Option<(&str, &str, &str)> {
    let comma = url.find(',')?;
    let (head, data) = url.split_at_checked(comma + 1)?;
    let described = head.strip_prefix("data:")?.strip_suffix(";base64,")?;
    let media_type = described.split(';').next().unwrap_or_default();
    Some((head, media_type, data))
}

/// Returns the medium that a URL names or a data URL holds.
fn url_media(url: &str, fallback: &str) -> Media {
    match data_url(url) {
        Some((_, media_type, data)) => Media {
            media_type: match media_type {
                "" => fallback.to_owned(),
                stated => stated.to_owned(),
            },
            source: MediaSource::Data(data.to_owned()),
        },
        None => Media {
            media_type: fallback.to_owned(),
            source: MediaSource::Url(url.to_owned()),
        },
    }
}

/// Reads a part of a result.
fn inner_part(item: &RawValue, extra: &mut MetaBuilder) -> Part {
    let read = inner_part_from_raw(item);
    if !matches!(read, Part::Unknown { .. }) {
        return read;
    }
    RawObject::parse(item.get())
        .filter(|object| !object.repeats())
        .and_then(|object| of_others(&object, 2, extra))
        .unwrap_or(read)
}

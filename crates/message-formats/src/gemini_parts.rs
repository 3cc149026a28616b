//! Parts of Gemini's interface, as Gemini CLI and Qwen Code write them.

use memory_model::{Media, MediaSource, Part, RawJson, ResultContent};
use serde_json::value::RawValue;

use crate::raw::{MetaBuilder, RawObject, Reading, list, readable};
use crate::session::unknown;

/// Reads content: a string, a part or a list of parts. Keys that no part models go to `extras`, under the index of the part in
/// the source. A picture or file behind a result belongs to it.
pub(crate) fn parts(value: &RawValue, extras: &mut MetaBuilder) -> Vec<Part> {
    parts_of(value, false, extras)
}

/// `inside`: those of a result, which are no calls or results themselves.
fn parts_of(value: &RawValue, inside: bool, extras: &mut MetaBuilder) -> Vec<Part> {
    let items = list(value).unwrap_or_else(|| vec![value]);
    let mut out: Vec<Part> = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        let mut extra = MetaBuilder::default();
        let part = part(item, inside, &mut extra);
        extras.nest(&format!("\"{at}\""), extra);
        match (out.last_mut(), part) {
            (Some(Part::ToolResult { content, .. }), part @ (Part::Image(_) | Part::File(_))) => {
                attach(content, part);
            }
            (_, part) => out.push(part),
        }
    }
    out
}

/// Reads one part; anything that no part can hold exactly becomes [`Part::Unknown`].
fn part(item: &RawValue, inside: bool, extra: &mut MetaBuilder) -> Part {
    if let Some((text, whole)) = readable(item, Reading::Now) {
        if !whole {
            extra.add("\"text\"", item.get());
        }
        return Part::text(text);
    }
    let object = RawObject::parse(item.get()).filter(|object| !object.repeats());
    let mut found = MetaBuilder::default();
    match object.and_then(|object| known(&object, inside, &mut found)) {
        Some(part) => {
            extra.take(found);
            part
        }
        None => unknown(item.get()),
    }
}

fn known(object: &RawObject<'_>, inside: bool, extra: &mut MetaBuilder) -> Option<Part> {
    let (part, keys): (Part, &[&str]) = if let Some(value) = object.get("text") {
        let (text, whole) = readable(value, Reading::Now)?;
        if !whole {
            extra.add("\"text\"", value.get());
        }
        match object.is_true("thought") {
            true => {
                let signature = None;
                (Part::Reasoning { text, signature }, &["text", "thought"])
            }
            false => (Part::Text { text }, &["text"]),
        }
    } else if let Some(call) = object.object("functionCall").filter(|_| !inside) {
        let mut rest = MetaBuilder::default();
        rest.extend(call.others(&["id", "name", "args"]));
        extra.nest("\"functionCall\"", rest);
        let call = Part::ToolCall {
            id: call.id("id")?,
            name: call.string("name")?,
            arguments: arguments(call.get("args")),
        };
        (call, &["functionCall"])
    } else if let Some(response) = object.object("functionResponse").filter(|_| !inside) {
        let mut rest = MetaBuilder::default();
        let result = result(&response, &mut rest)?;
        extra.nest("\"functionResponse\"", rest);
        (result, &["functionResponse"])
    } else {
        let (key, from) = [("inlineData", "data"), ("fileData", "fileUri")]
            .into_iter()
            .find(|(key, _)| object.get(key).is_some())?;
        let data = object.object(key).filter(|data| !data.repeats())?;
        let mut rest = MetaBuilder::default();
        rest.extend(data.others(&["mimeType", from]));
        extra.nest(&format!("\"{key}\""), rest);
        let source = data.string(from)?;
        let media = Media {
            media_type: data.string("mimeType")?,
            source: match key {
                "inlineData" => MediaSource::Data(source),
                _ => MediaSource::Url(source),
            },
        };
        let part = match media.media_type.starts_with("image/") {
            true => Part::Image(media),
            false => Part::File(media),
        };
        match key {
            "inlineData" => (part, &["inlineData"]),
            _ => (part, &["fileData"]),
        }
    };
    extra.extend(object.others(keys));
    Some(part)
}

/// Arguments of a call as they came.
pub(crate) fn arguments(value: Option<&RawValue>) -> RawJson {
    let none = || RawJson::parse("{}").unwrap_or_else(|_| RawJson::from_raw(RawValue::NULL));
    value.map_or_else(none, RawJson::from_raw)
}

/// A `functionResponse`. Its `response` holds the output under `output`, or the error under `error`.
fn result(object: &RawObject<'_>, rest: &mut MetaBuilder) -> Option<Part> {
    let response = object.get("response")?;
    let inner = RawObject::parse(response.get()).filter(|inner| !inner.repeats());
    let stated = inner.as_ref().and_then(|inner| {
        let key = ["error", "output"]
            .into_iter()
            .find(|key| inner.present(key).is_some())?;
        let (text, whole) = readable(inner.get(key)?, Reading::Now)?;
        Some((key, text, whole))
    });
    let is_failed = |inner: &RawObject<'_>| inner.present("error").is_some();
    let is_error = inner.as_ref().is_some_and(is_failed).then_some(true);
    let mut others = MetaBuilder::default();
    let mut content = match (stated, &inner) {
        (Some((key, text, whole)), Some(inner)) => {
            others.extend(inner.others(if whole {
                std::slice::from_ref(&key)
            } else {
                &[]
            }));
            ResultContent::Text(text)
        }
        _ => ResultContent::Parts(vec![unknown(response.get())]),
    };
    rest.extend(object.others(&["id", "response", "parts"]));
    rest.nest("\"response\"", others);
    if let Some(value) = object.present("parts") {
        let mut extras = MetaBuilder::default();
        for part in parts_of(value, true, &mut extras) {
            attach(&mut content, part);
        }
        rest.nest("\"parts\"", extras);
    }
    Some(Part::ToolResult {
        call_id: object.id("id")?,
        content,
        is_error,
    })
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

//! Content blocks of the Messages API in the dialects of Claude Code and pi.

use memory_model::{MAX_PART_DEPTH, Media, MediaSource, Message, Part, RawJson, ResultContent};
use serde_json::value::RawValue;

use crate::raw::{MetaBuilder, RawObject, list, string, text};
use crate::session::unknown;

/// Dialect in which content blocks are read. The two dialects differ in the names of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Claude,
    Pi,
}

impl Dialect {
    /// Reads a message's content. Keys of blocks that parts cannot hold are added to `extras`, under the block's index.
    pub(crate) fn content(self, value: &RawValue, extras: &mut MetaBuilder) -> Vec<Part> {
        match value.get().as_bytes().first() {
            Some(b'"') => {
                let mut extra = MetaBuilder::default();
                let text = text(value, "\"text\"", &mut extra);
                extras.nest("\"0\"", extra);
                vec![text.map_or_else(|| unknown(value.get()), Part::text)]
            }
            Some(b'[') => list(value)
                .unwrap_or_default()
                .into_iter()
                .enumerate()
                .map(|(at, block)| {
                    let mut extra = MetaBuilder::default();
                    let part = self.block(block.get(), 1, &mut extra);
                    extras.nest(&format!("\"{at}\""), extra);
                    part
                })
                .collect(),
            _ => vec![unknown(value.get())],
        }
    }

    /// Reads one block on a level of at most [`MAX_PART_DEPTH`]. A block that no other part can hold exactly becomes
    /// [`Part::Unknown`].
    fn block(self, json: &str, level: usize, extra: &mut MetaBuilder) -> Part {
        let object = RawObject::parse(json).filter(|object| !object.repeats());
        let known = object.and_then(|object| {
            let mut found = MetaBuilder::default();
            let part = self.known(&object, level, &mut found)?;
            extra.take(found);
            Some(part)
        });
        known.unwrap_or_else(|| unknown(json))
    }

    pub(crate) fn known(
        self,
        object: &RawObject<'_>,
        level: usize,
        extra: &mut MetaBuilder,
    ) -> Option<Part> {
        let tag = object.string("type")?;
        let (part, keys): (Part, &[&str]) = match (tag.as_str(), self) {
            ("text", _) => {
                let text = text(object.get("text")?, "\"text\"", extra)?;
                (Part::Text { text }, &["type", "text"])
            }
            ("thinking", _) => {
                let key = match self {
                    Dialect::Claude => "signature",
                    Dialect::Pi => "thinkingSignature",
                };
                let signature = match object.get(key) {
                    Some(value) => Some(string(value)?),
                    None => None,
                };
                let text = object.string("thinking")?;
                let keys: &[&str] = match self {
                    Dialect::Claude => &["type", "thinking", "signature"],
                    Dialect::Pi => &["type", "thinking", "thinkingSignature"],
                };
                (Part::Reasoning { text, signature }, keys)
            }
            ("tool_use", Dialect::Claude) => {
                let call = tool_call(object, "input")?;
                (call, &["type", "id", "name", "input"])
            }
            ("toolCall", Dialect::Pi) => {
                let call = tool_call(object, "arguments")?;
                (call, &["type", "id", "name", "arguments"])
            }
            ("tool_result", Dialect::Claude) => {
                let content = object.get("content");
                let list = content.is_some_and(|content| content.get().starts_with('['));
                if list && level >= MAX_PART_DEPTH {
                    return None;
                }
                let (is_error, stated) = is_error(object.get("is_error"))?;
                let part = Part::ToolResult {
                    call_id: object.string("tool_use_id")?,
                    content: self.result_content(content, level, extra),
                    is_error,
                };
                let keys: &[&str] = match stated {
                    true => &["type", "tool_use_id", "content", "is_error"],
                    false => &["type", "tool_use_id", "content"],
                };
                (part, keys)
            }
            ("image", Dialect::Pi) => {
                let media = Media {
                    media_type: object.string("mimeType")?,
                    source: MediaSource::Data(object.string("data")?),
                };
                (Part::Image(media), &["type", "mimeType", "data"])
            }
            ("image", Dialect::Claude) => {
                (Part::Image(media(object, "image/*")?), &["type", "source"])
            }
            ("document", Dialect::Claude) => {
                let media = media(object, "application/octet-stream")?;
                (Part::File(media), &["type", "source"])
            }
            _ => return None,
        };
        extra.extend(object.others(keys));
        Some(part)
    }

    /// Reads the content of a result on a level below [`MAX_PART_DEPTH`].
    ///
    /// Content that no other part can hold becomes an unknown part inside the result, so that the result stays paired
    /// with its call. Keys that parts cannot hold are added to `extra`, under `content`.
    pub(crate) fn result_content(
        self,
        value: Option<&RawValue>,
        level: usize,
        extra: &mut MetaBuilder,
    ) -> ResultContent {
        let Some(value) = value else {
            return ResultContent::Text(String::new());
        };
        match value.get().as_bytes().first() {
            Some(b'"') => text(value, "\"content\"", extra).map(ResultContent::Text),
            Some(b'[') => list(value).map(|items| {
                let mut inner = MetaBuilder::default();
                let parts = items.iter().enumerate().map(|(at, item)| {
                    let mut found = MetaBuilder::default();
                    let part = self.block(item.get(), level + 1, &mut found);
                    inner.nest(&format!("\"{at}\""), found);
                    part
                });
                let parts = parts.collect();
                extra.nest("\"content\"", inner);
                ResultContent::Parts(parts)
            }),
            _ => None,
        }
        .unwrap_or_else(|| ResultContent::Parts(vec![unknown(value.get())]))
    }
}

fn tool_call(object: &RawObject<'_>, arguments: &str) -> Option<Part> {
    Some(Part::ToolCall {
        id: object.string("id")?,
        name: object.string("name")?,
        arguments: RawJson::from_raw(object.get(arguments)?),
    })
}

/// Returns whether a tool failed, and whether the part can hold the source's value. The part cannot hold `null`.
/// Returns `None` if the value is neither a truth value nor `null`.
pub(crate) fn is_error(value: Option<&RawValue>) -> Option<(Option<bool>, bool)> {
    match value.map(RawValue::get) {
        None => Some((None, true)),
        Some("null") => Some((None, false)),
        Some("true") => Some((Some(true), true)),
        Some("false") => Some((Some(false), true)),
        Some(_) => None,
    }
}

/// Reads the source of an image or a document: base64 data or a URL. `fallback` is the media type of a URL, because its
/// source names none.
fn media(object: &RawObject<'_>, fallback: &str) -> Option<Media> {
    let source = object.object("source").filter(|source| !source.repeats())?;
    let (media, keys): (Media, &[&str]) = match source.string("type")?.as_str() {
        "base64" => {
            let media = Media {
                media_type: source.string("media_type")?,
                source: MediaSource::Data(source.string("data")?),
            };
            (media, &["type", "media_type", "data"])
        }
        "url" => {
            let media = Media {
                media_type: fallback.to_owned(),
                source: MediaSource::Url(source.string("url")?),
            };
            (media, &["type", "url"])
        }
        _ => return None,
    };
    source.others(keys).next().is_none().then_some(media)
}

/// Returns whether a message holds tool results and no other parts.
pub(crate) fn only_results(parts: &[Part]) -> bool {
    !parts.is_empty()
        && parts
            .iter()
            .all(|part| matches!(part, Part::ToolResult { .. }))
}

/// Sets the message's meta: the facts of the line, and the facts of the message and its blocks under `message` and
/// `blocks`.
pub(crate) fn set_meta(
    message: &mut Message,
    mut line: MetaBuilder,
    inner: MetaBuilder,
    blocks: MetaBuilder,
) {
    line.nest("\"message\"", inner);
    line.nest("\"blocks\"", blocks);
    message.meta = line.finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, dialect: Dialect) -> (Vec<Part>, Option<String>) {
        let mut extras = MetaBuilder::default();
        let value: &RawValue = serde_json::from_str(json).unwrap();
        let parts = dialect.content(value, &mut extras);
        (parts, extras.finish().map(|raw| raw.as_str().to_owned()))
    }

    fn one(json: &str) -> Part {
        let (mut parts, _) = read(&format!("[{json}]"), Dialect::Claude);
        assert_eq!(parts.len(), 1);
        parts.remove(0)
    }

    #[test]
    fn arguments_stay_byte_for_byte() {
        let input = r#"{ "b":1.00,"a":1e400, "a":"\ud800","n":123456789012345678901234567890 }"#;
        let block = format!(
            r#"[{{"type":"tool_use","id":"t","name":"n","input":{input},"caller":{{"type":"direct"}}}}]"#
        );
        let (parts, extras) = read(&block, Dialect::Claude);
        let Part::ToolCall { arguments, .. } = &parts[0] else {
            panic!("{parts:?}")
        };
        assert_eq!(arguments.as_str(), input);
        assert_eq!(
            extras.as_deref(),
            Some(r#"{"0":{"caller":{"type":"direct"}}}"#)
        );
    }

    #[test]
    fn what_no_part_can_hold_is_kept_as_it_came() {
        for json in [
            r#"{"type":"thinking","thinking":"\ud800","signature":"s"}"#,
            r#"{"type":"text","text":"a","text":"b"}"#,
            r#"{"type":"redacted_thinking","data":"x"}"#,
            r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#,
            r#"{"type":"tool_result","tool_use_id":"t","is_error":"yes"}"#,
            "7",
        ] {
            assert_eq!(one(json), unknown(json), "{json}");
        }
    }

    #[test]
    fn a_result_stays_paired_whatever_it_holds() {
        for (content, expected) in [
            (r#""a\u0000b""#, ResultContent::Text("a\0b".into())),
            (r#""a\udc00""#, ResultContent::Text("a\u{fffd}".into())),
            (
                r#"[{"type":"text","text":"x"},{"type":"tool_reference","tool_name":"y"}]"#,
                ResultContent::Parts(vec![
                    Part::text("x"),
                    unknown(r#"{"type":"tool_reference","tool_name":"y"}"#),
                ]),
            ),
            ("null", ResultContent::Parts(vec![unknown("null")])),
        ] {
            let json = format!(r#"{{"type":"tool_result","tool_use_id":"t","content":{content}}}"#);
            let Part::ToolResult { content: found, .. } = one(&json) else {
                panic!("{json}")
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn media_are_read_in_both_dialects() {
        let expected = Part::Image(Media {
            media_type: "image/png".into(),
            source: MediaSource::Data("AA==".into()),
        });
        let claude =
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#;
        assert_eq!(one(claude), expected);
        let pi = r#"[{"type":"image","mimeType":"image/png","data":"AA=="}]"#;
        assert_eq!(read(pi, Dialect::Pi).0, [expected]);
    }

    #[test]
    fn what_a_text_cannot_hold_is_kept_beside_it() {
        for (json, text, extras) in [
            (
                r#""x \ud83d y""#,
                "x \u{fffd} y",
                r#"{"0":{"text":"x \ud83d y"}}"#,
            ),
            (
                r#"[{"type":"text","text":"\udc00","cache_control":{"type":"ephemeral"}}]"#,
                "\u{fffd}",
                r#"{"0":{"text":"\udc00","cache_control":{"type":"ephemeral"}}}"#,
            ),
        ] {
            let (parts, kept) = read(json, Dialect::Claude);
            assert_eq!(parts, [Part::text(text)]);
            assert_eq!(kept.as_deref(), Some(extras));
        }
    }

    #[test]
    fn a_part_of_a_result_may_have_further_keys() {
        let result = |content: &str| {
            format!(r#"[{{"type":"tool_result","tool_use_id":"t","content":{content}}}]"#)
        };
        let json = result(
            r#"[{"type":"text","text":"a"},{"type":"text","text":"b\ud800","cache_control":{}},{"type":"text","text":"c"}]"#,
        );
        let (parts, extras) = read(&json, Dialect::Claude);
        let [Part::ToolResult { content, .. }] = &parts[..] else {
            panic!("{parts:?}")
        };
        assert_eq!(content.text(), "a\nb\u{fffd}\nc");
        assert_eq!(
            extras.as_deref(),
            Some(r#"{"0":{"content":{"1":{"text":"b\ud800","cache_control":{}}}}}"#)
        );
        let json = result(r#""a\ud800""#);
        let kept = Some(r#"{"0":{"content":"a\ud800"}}"#.to_owned());
        assert_eq!(read(&json, Dialect::Claude).1, kept);
    }
}

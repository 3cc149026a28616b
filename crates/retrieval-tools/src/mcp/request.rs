//! Reads requests. A request that cannot be read gets an error as its answer.

use memory_model::without_half_pairs;
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde_json::Value;

/// Maximum length of a request, in bytes. A longer request gets an error, and its rest is not kept in memory.
pub(super) const MAX_REQUEST_BYTES: usize = 4 << 20;

/// Number of bytes at the beginning of a request that is too long, in which the request's id is searched.
pub(super) const HEAD_BYTES: usize = 64 << 10;

/// A request that cannot be read, with the error that answers it.
#[derive(Debug, PartialEq)]
pub(super) struct Unreadable {
    /// Id of the request. `None` if the id could not be found.
    pub(super) id: Option<RequestId>,
    pub(super) error: Box<ErrorData>,
}

impl Unreadable {
    fn parse(text: &str, why: impl std::fmt::Display) -> Self {
        let message =
            format!("Parse error: the request is not JSON ({why}): send one JSON object a line");
        Self {
            id: id_in(text),
            error: Box::new(ErrorData::parse_error(message, None)),
        }
    }

    /// Returns the error for a request with more than [`MAX_REQUEST_BYTES`] bytes, of which `beginning` was read.
    pub(super) fn too_long(beginning: &[u8]) -> Self {
        let message = format!(
            "Parse error: the request has more than {MAX_REQUEST_BYTES} bytes: send a shorter one"
        );
        Self {
            id: id_in(&String::from_utf8_lossy(beginning)),
            error: Box::new(ErrorData::parse_error(message, None)),
        }
    }
}

/// Reads a request, a notification or a response. Returns `None` for blank input and for a notification that cannot be
/// read, which both need no answer. A lone surrogate, which is invalid in a text, is read as U+FFFD.
pub(super) fn read(bytes: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Unreadable> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let text = String::from_utf8_lossy(bytes);
        Unreadable::parse(&text, format!("it is not UTF-8: {error}"))
    })?;
    let text = without_half_pairs(text);
    let error = match serde_json::from_str(&text) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    match serde_json::from_str(&text) {
        // A notification is never answered, even if it is unknown.
        Ok(Value::Object(map)) if map.contains_key("method") && !map.contains_key("id") => Ok(None),
        Ok(Value::Object(map)) if map.get("params").is_some_and(|params| !params.is_object()) => {
            let message = "Invalid params: params are an object, or left out";
            Err(Unreadable {
                id: id_in(&text),
                error: Box::new(ErrorData::invalid_params(message, None)),
            })
        }
        Ok(_) => {
            let message = format!(
                "Invalid request ({error}): send an object with jsonrpc, id, method and params"
            );
            Err(Unreadable {
                id: id_in(&text),
                error: Box::new(ErrorData::invalid_request(message, None)),
            })
        }
        Err::<Value, _>(error) => Err(Unreadable::parse(&text, error)),
    }
}

/// Returns the id in a malformed request: the value of the key `id` in the outermost object.
fn id_in(text: &str) -> Option<RequestId> {
    let (mut depth, mut rest) = (0_u32, text);
    loop {
        let at = rest.find(['{', '}', '[', ']', '"'])?;
        let found = rest.as_bytes().get(at)?;
        rest = rest.get(at + 1..)?;
        match found {
            b'"' => {
                let (inside, behind) = rest.split_at_checked(string_end(rest)?)?;
                rest = behind.get(1..)?;
                let value = rest.trim_start().strip_prefix(':');
                if let (1, "id", Some(value)) = (depth, inside, value) {
                    return id_at(value.trim_start());
                }
            }
            b'{' | b'[' => depth += 1,
            _ => depth = depth.checked_sub(1)?,
        }
    }
}

/// Returns the byte offset of the quotation mark that ends the string at the beginning of `text`.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Returns the number or string at the beginning of a text as an id.
fn id_at(text: &str) -> Option<RequestId> {
    let end = match text.strip_prefix('"') {
        Some(inside) => string_end(inside)? + 2,
        None => text.find(|c: char| !c.is_ascii_digit() && c != '-')?,
    };
    serde_json::from_str(text.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id_of(text: &str) -> Value {
        let id = id_in(text).map(RequestId::into_json_value);
        id.unwrap_or_default()
    }

    #[test]
    fn ids_are_found_in_broken_requests() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"#, json!(7)),
            (r#"{"id" : "a-\"b" , "x":"#, json!("a-\"b")),
            (
                r#"{"params":{"id":1,"x":["id"]},"id":2,"method":[[[[["#,
                json!(2),
            ),
            (r#"{"params":{"text":"\"id\":9"},"id":-3}"#, json!(-3)),
            (r#"{"method":"id","id":4}"#, json!(4)),
            (r#"{"id":5"#, Value::Null),
            (r#"{"id":null}"#, Value::Null),
            (r#"[{"id":5}]"#, Value::Null),
            ("hello", Value::Null),
            ("}{\"id\":5,", Value::Null),
        ] {
            assert_eq!(id_of(text), id, "{text}");
        }
    }

    #[test]
    fn unreadable_requests_have_an_error() {
        let code = |bytes: &[u8]| match read(bytes) {
            Err(unreadable) => unreadable.error.code.0,
            Ok(message) => i32::from(message.is_some()),
        };
        assert_eq!(code(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), 1);
        assert_eq!(
            code(b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r"),
            1
        );
        assert_eq!(code(b" \r"), 0);
        assert_eq!(code(br#"{"jsonrpc":"2.0","method":"$/unknown"}"#), 1);
        assert_eq!(code(br#"{"method":"notifications/x","params":3}"#), 0);
        assert_eq!(code(b"hello"), -32700);
        assert_eq!(code(b"{\"id\":1,\"method\":\"\xff\"}"), -32700);
        assert_eq!(
            code(format!("{}{}", "[".repeat(300), "]".repeat(300)).as_bytes()),
            -32700
        );
        assert_eq!(code(b"[1]"), -32600);
        assert_eq!(
            code(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#),
            -32602
        );
        assert_eq!(code(br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), -32600);
    }
}

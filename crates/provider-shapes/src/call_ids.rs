//! Call ids that every provider accepts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memory_model::{Message, Part};
use sha2::{Digest as _, Sha256};

/// Maximum length of a sent id, in bytes. OpenAI's chat completions have refused longer ids. Other APIs take 64.
const MAX_LEN: usize = 40;
/// Length of a sent hash, in characters of Base64. It has 192 bits.
const HASH_LEN: usize = 32;
/// Prefix of an id that encodes another id.
const ENCODED: &str = "am64_";
/// Prefix of an id that is the hash of an id too long to encode.
const HASHED: &str = "am64h_";

/// Returns the id under which a call is sent. It matches `^[a-zA-Z0-9_-]{1,40}$`.
///
/// An id that matches already stays as it is, unless it begins with `am64_`. Any other id becomes `am64_` and its bytes
/// in URL-safe Base64. If the result is longer than 40 bytes, the id becomes `am64h_` and the beginning of its SHA-256.
/// The same id always gives the same result.
pub fn wire_call_id(id: &str) -> Cow<'_, str> {
    let fits = (1..=MAX_LEN).contains(&id.len())
        && !id.starts_with(ENCODED)
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if fits {
        return Cow::Borrowed(id);
    }
    let encoded = format!("{ENCODED}{}", URL_SAFE_NO_PAD.encode(id));
    if encoded.len() <= MAX_LEN {
        return Cow::Owned(encoded);
    }
    let hash = Sha256::digest(id.as_bytes());
    let code: String = URL_SAFE_NO_PAD
        .encode(hash)
        .chars()
        .take(HASH_LEN)
        .collect();
    Cow::Owned(format!("{HASHED}{code}"))
}

/// Returns the id under which a call is sent to OpenAI's chat completions, which accept any characters.
///
/// An id of at most 40 characters stays as it is, because some servers with this format need their original ids. Kimi's
/// ids, such as `functions.search:3`, name the tool and a number. Ids of that form stay up to 64 characters. Other ids
/// become the result of [`wire_call_id`].
pub fn chat_call_id(id: &str) -> Cow<'_, str> {
    let length = id.chars().count();
    let fits = (1..=MAX_LEN).contains(&length) || (length <= 64 && is_counted(id));
    match fits && !id.starts_with(ENCODED) {
        true => Cow::Borrowed(id),
        false => wire_call_id(id),
    }
}

/// Returns whether an id has the form `functions.NAME:NUMBER`.
fn is_counted(id: &str) -> bool {
    let named = id.strip_prefix("functions.");
    named
        .and_then(|rest| rest.rsplit_once(':'))
        .is_some_and(|(name, number)| {
            !name.is_empty() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        })
}

/// Returns the id that [`wire_call_id`] encoded.
///
/// Hashes and all other ids are returned unchanged. [`CallIds`] restores the id of a hash.
pub fn original_call_id(wire: &str) -> Cow<'_, str> {
    let decoded = wire
        .strip_prefix(ENCODED)
        .and_then(|code| URL_SAFE_NO_PAD.decode(code).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|id| wire_call_id(id) == wire);
    decoded.map_or(Cow::Borrowed(wire), Cow::Owned)
}

/// Ids of calls that are too long to be sent, by the hash that is sent instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallIds {
    by_wire: BTreeMap<String, String>,
}

impl CallIds {
    /// Collects the ids of the calls and results of messages.
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut by_wire = BTreeMap::new();
        for part in messages.into_iter().flat_map(|message| &message.parts) {
            if let Part::ToolCall { id, .. } | Part::ToolResult { call_id: id, .. } = part {
                let wire = wire_call_id(id);
                if wire.starts_with(HASHED) && wire != id.as_str() {
                    by_wire.insert(wire.into_owned(), id.clone());
                }
            }
        }
        Self { by_wire }
    }

    /// Restores the collected ids in messages that were read from a provider's shape.
    pub fn restore(&self, messages: &mut [Message]) {
        for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let Part::ToolCall { id, .. } | Part::ToolResult { call_id: id, .. } = part
                && let Some(original) = self.by_wire.get(id.as_str())
            {
                id.clone_from(original);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_providers_accept_stay_as_they_are() {
        for id in ["toolu_01A", "call-1", &"x".repeat(40), "am64h_x"] {
            assert_eq!(wire_call_id(id), id);
            assert_eq!(original_call_id(id), id);
        }
    }

    #[test]
    fn other_ids_are_encoded_and_decoded() {
        for id in [
            "",
            "a b",
            "call_1|fc_2",
            "é",
            "am64_",
            "am64_YQ",
            &"?".repeat(26),
        ] {
            let wire = wire_call_id(id);
            assert!(wire.starts_with("am64_") && wire.len() <= 40, "{wire}");
            assert_eq!(original_call_id(&wire), id);
        }
    }

    #[test]
    fn chat_completions_get_ids_as_they_came() {
        let named = format!("functions.{}:12", "x".repeat(50));
        for id in [
            "functions.lookup:1",
            "call_1|fc_2",
            "a b",
            "é",
            &"é".repeat(40),
            &named,
        ] {
            assert_eq!(chat_call_id(id), id);
            assert_eq!(original_call_id(id), id);
        }
        for id in [
            "",
            "am64_YQ",
            &"x".repeat(41),
            &"x:1".repeat(20),
            &format!("{named}345678"),
        ] {
            assert_eq!(chat_call_id(id), wire_call_id(id));
        }
    }

    #[test]
    fn long_ids_are_hashed_and_restored_from_the_messages() {
        let id = "call_1|".repeat(20);
        let wire = wire_call_id(&id).into_owned();
        assert_eq!(wire.len(), 38);
        assert_eq!(wire_call_id(&wire), wire);
        let mut messages = [Message::tool_result(wire, "done")];
        let original = [Message::tool_result(id, "done")];
        CallIds::of(&original).restore(&mut messages);
        assert_eq!(messages, original);
    }
}

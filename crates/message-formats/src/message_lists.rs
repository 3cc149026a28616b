//! Lists of messages in the shapes of the providers' interfaces, in one JSON document.
//!
//! The document is a list, or a request with such a list: `messages` (OpenAI's chat, Anthropic, Ollama), `input`
//! (OpenAI's responses) or `contents` (Gemini). The request's system prompt is the first message. Its other fields,
//! such as tools and settings, are counted and not kept, because they change from request to request.
//!
//! - A text instead of the list is a message of the user. A document without messages is counted.
//! - A source can hold several documents, such as one request on each line. Each document is a conversation. A document
//!   that begins with all messages of an earlier one with the same key continues it.
//! - The conversation's key is its `session_id` or `conversation_id`. Without one, the key is made from the first
//!   message that is not the system's.
//! - Each document is held in memory whole, up to [`ReadOptions::max_line_bytes`](crate::ReadOptions::max_line_bytes).

use serde_json::value::RawValue;

use crate::Confidence;
use crate::documents::{Conversation, Documents, Source};
use crate::outline::Outline;
use crate::raw::RawObject;

/// Fields of a request that hold its messages.
const LISTS: [&str; 3] = ["messages", "input", "contents"];
/// Fields of a request that hold its system prompt.
const PROMPTS: [&str; 4] = [
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
];
/// Fields that name a conversation.
const NAMES: [&str; 4] = ["session_id", "sessionId", "conversation_id", "thread_id"];

/// Lists of messages in the shapes of OpenAI (chat and responses), Anthropic, Gemini and Ollama.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct MessageLists {}

impl MessageLists {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

/// Returns whether the items of a list are messages.
pub(crate) fn has_messages(outline: &Outline<'_>, list: &str) -> bool {
    let has = |key: &str| outline.has(&format!("{list}[].{key}"));
    let content = ["content", "parts", "tool_calls"].into_iter().any(has);
    has("role") && content
}

impl Documents for MessageLists {
    const NAME: &'static str = "messages";
    const CONFIDENCE: Confidence = Confidence::Possible;

    fn is(outline: &Outline<'_>) -> bool {
        let lists = LISTS.into_iter().chain([""]);
        lists.into_iter().any(|list| has_messages(outline, list))
    }

    fn document(document: &RawValue, source: &mut Source<'_>) {
        let mut conversation = Conversation::new();
        let request = RawObject::parse(document.get());
        let Some(request) = request else {
            conversation.messages(document, &mut source.report);
            return source.finish::<Self>(conversation, None);
        };
        for member in &request.members {
            let value = member.value.get();
            match member.name.as_ref() {
                name if PROMPTS.contains(&name) && value != "null" => {
                    let parts = RawObject::parse(value).and_then(|system| system.get("parts"));
                    let (key, value) = match parts {
                        Some(parts) => ("parts", parts.get()),
                        None => ("content", value),
                    };
                    let prompt = format!("{{\"role\":\"system\",\"{key}\":{value}}}");
                    conversation.message(&prompt, &mut source.report);
                }
                name if LISTS.contains(&name) || NAMES.contains(&name) => {}
                name => source.report.skip(name),
            }
        }
        for name in LISTS {
            let Some(list) = request.present(name) else {
                continue;
            };
            match list.get().as_bytes().first() {
                Some(b'"') => {
                    let message = format!("{{\"role\":\"user\",\"content\":{list}}}");
                    conversation.message(&message, &mut source.report);
                }
                Some(b'[') => conversation.messages(list, &mut source.report),
                _ => source.report.skip(name),
            }
        }
        let name = NAMES.iter().find_map(|name| request.id(name));
        source.finish::<Self>(conversation, name);
    }
}

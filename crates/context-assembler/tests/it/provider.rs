//! Messages that Anthropic's Messages API and OpenAI's Chat Completions API refuse, by their documented rules alone:
//!
//! - Only assistants call tools. The id of a call is not empty, and no two calls of a request have the same id.
//! - A message with calls is directly followed by the results of all its calls, one for each, without other content
//!   before the last result. There are no results elsewhere.
//! - Results are in tool messages, which contain only results.
//! - A message has content, and no text of it is blank.

use std::collections::BTreeSet;

use context_assembler::ContextMessage;
use memory_model::{Part, ResultContent, Role};

/// Returns the reason why a provider refuses these messages as an error.
pub(crate) fn accepted(messages: &[ContextMessage]) -> Result<(), String> {
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let refuse = |why: String| Err(format!("messages[{at}], {:?}: {why}", message.source));
        if message.parts.is_empty() {
            return refuse("no content".to_owned());
        }
        if !waiting.is_empty() && message.role != Role::Tool {
            let role = message.role;
            return refuse(format!("{role} speaks before the results of {waiting:?}"));
        }
        for part in &message.parts {
            match part {
                Part::Text { text } if text.trim().is_empty() => {
                    return refuse("a blank text".to_owned());
                }
                Part::ToolCall { id, .. } => {
                    if message.role != Role::Assistant {
                        return refuse(format!("{} calls {id:?}", message.role));
                    }
                    if id.is_empty() || !ids.insert(id) {
                        return refuse(format!("the id {id:?} is empty or used twice"));
                    }
                    waiting.insert(id);
                }
                Part::ToolResult {
                    call_id, content, ..
                } => {
                    if message.role != Role::Tool {
                        return refuse(format!("{} brings a result", message.role));
                    }
                    if !waiting.remove(call_id.as_str()) {
                        return refuse(format!("the result of {call_id:?} has no call before it"));
                    }
                    let nested = |part: &Part| {
                        matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. })
                    };
                    if let ResultContent::Parts(parts) = content
                        && parts.iter().any(nested)
                    {
                        return refuse(format!("the result of {call_id:?} holds a call or result"));
                    }
                }
                _ if message.role == Role::Tool => {
                    return refuse("a tool message holds more than results".to_owned());
                }
                _ => {}
            }
        }
    }
    match waiting.is_empty() {
        true => Ok(()),
        false => Err(format!("at the end there are no results of {waiting:?}")),
    }
}

mod tests {
    use context_assembler::MessageOrigin;
    use memory_model::{RawJson, Seq};

    use super::*;

    /// Parses messages from words such as `a+x t-x`. A full stop is a text.
    fn list(script: &str) -> Vec<ContextMessage> {
        let word = |(at, word): (usize, &str)| {
            let role = match &word[..1] {
                "u" => Role::User,
                "a" => Role::Assistant,
                "t" => Role::Tool,
                _ => Role::System,
            };
            let mut out = Vec::new();
            let mut kind = ' ';
            let mut id = String::new();
            let mut end = |kind: char, id: &mut String| {
                let id = std::mem::take(id);
                match kind {
                    '+' => out.push(Part::ToolCall {
                        id,
                        name: "t".to_owned(),
                        arguments: RawJson::parse("{}").unwrap(),
                    }),
                    '-' => out.push(Part::ToolResult {
                        call_id: id,
                        content: ResultContent::Text("r".to_owned()),
                        is_error: None,
                    }),
                    '.' => out.push(Part::text("text")),
                    '_' => out.push(Part::text(" \n")),
                    _ => {}
                }
            };
            for c in word[1..].chars() {
                if "+-._".contains(c) {
                    end(kind, &mut id);
                    kind = c;
                } else {
                    id.push(c);
                }
            }
            end(kind, &mut id);
            let seq = Seq(at as u32 + 1);
            let source = MessageOrigin::Message {
                first: seq,
                last: seq,
            };
            ContextMessage::new(role, source, out)
        };
        script.split_whitespace().enumerate().map(word).collect()
    }

    /// The checker finds violations.
    #[test]
    fn refuses_what_providers_refuse() {
        for fine in [
            "",
            "u. a. u.",
            "u. a.+x t-x a.",
            "a+x+y t-y-x u.",
            "a+x+y t-y t-x a+z t-z",
            "s. u. a.+x t-x",
        ] {
            assert_eq!(accepted(&list(fine)), Ok(()), "{fine}");
        }
        for bad in [
            "a+x u. t-x",
            "a+x",
            "a+x+y t-x u. t-y",
            "t-x",
            "a+x t-x t-x",
            "a+x t-x a+x t-x",
            "a+x+x t-x-x",
            "u+x t-x",
            "a+x u-x",
            "a+x t-x.",
            "a+ t-",
            "a+x-x",
            "a+x a+y t-x t-y",
            "u",
            "u_",
            "t.",
        ] {
            assert!(accepted(&list(bad)).is_err(), "{bad}");
        }
    }
}

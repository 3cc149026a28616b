//! Cline's task files: `api_conversation_history.json`, a list of messages in Anthropic's shape.
//!
//! Cline answers calls in texts such as `[read_file for 'a.md'] Result:` and adds its other texts behind them. Such a
//! text is, word for word, the result of the oldest open call of that tool. The rest of the message is a separate
//! message. The conversation's key is the task's id, which is the name of the file's folder. Without a path the key is
//! made from the first message. The document is held in memory whole, up to
//! [`ReadOptions::max_line_bytes`](crate::ReadOptions::max_line_bytes).

use serde_json::value::RawValue;

use crate::documents::{Conversation, Documents, Source};
use crate::message_lists::has_messages;
use crate::outline::Outline;
use crate::raw::{RawObject, list, readable};

/// Name of the file with a task's messages.
const FILE: &str = "api_conversation_history.json";
/// Text between a call's description and its result.
const RESULT: &str = "] Result:";
/// Beginning of the result of a failed call.
const FAILED: &str = "The tool execution failed with the following error";

/// Cline's task files.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Cline {}

impl Cline {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Documents for Cline {
    const NAME: &'static str = "cline";

    fn is(outline: &Outline<'_>) -> bool {
        let is_task = ["[].content[].text", "[].content"]
            .into_iter()
            .any(|place| outline.begins(place, "<task>"));
        has_messages(outline, "") && (is_task || outline.has("[].modelInfo.modelId"))
    }

    fn document(document: &RawValue, source: &mut Source<'_>) {
        let file = source.path.filter(|path| path.ends_with(FILE));
        let folder = file.and_then(|path| path.parent()?.file_name());
        let task = folder.map(|name| name.to_string_lossy().into_owned());
        let mut conversation = Conversation::new();
        let mut open = Vec::new();
        for message in list(document).unwrap_or_default() {
            match divided(message, &mut open) {
                Some(texts) => {
                    let texts = texts.iter().filter(|text| !text.is_empty());
                    texts.for_each(|text| conversation.message(text, &mut source.report));
                }
                None => conversation.message(message.get(), &mut source.report),
            }
        }
        source.finish::<Self>(conversation, task);
    }
}

/// Divides a message with results in texts into the message of the results and the message of the other content.
/// Returns `None` for any other message. `open` has the names and ids of the calls in the message before.
fn divided(message: &RawValue, open: &mut Vec<(String, String)>) -> Option<[String; 2]> {
    let object = RawObject::parse(message.get())?;
    let blocks = object.get("content").and_then(list).unwrap_or_default();
    if object.string("role")? != "user" {
        let parsed = blocks
            .iter()
            .filter_map(|block| RawObject::parse(block.get()));
        let calls = parsed.filter(|block| block.get("input").is_some());
        *open = calls
            .filter_map(|call| Some((call.string("name")?, call.string("id")?)))
            .collect();
        return None;
    }
    let (mut results, mut others) = (Vec::new(), Vec::new());
    let mut blocks = blocks.into_iter().peekable();
    while let Some(block) = blocks.next() {
        let Some((output, id)) = answer(block, open) else {
            others.push(block.get().to_owned());
            continue;
        };
        let mut content = vec![block];
        // The output of the tool may be in the next text.
        let next = blocks.next_if(|next| output.is_empty() && is_output(next, open));
        content.extend(next);
        let output = next.and_then(text).unwrap_or(output);
        let is_error = match output.trim_start().starts_with(FAILED) {
            true => ",\"is_error\":true",
            false => "",
        };
        let content: Vec<&str> = content.into_iter().map(RawValue::get).collect();
        results.push(format!(
            "{{\"type\":\"tool_result\",\"tool_use_id\":{},\"content\":[{}]{is_error}}}",
            serde_json::Value::from(id),
            content.join(",")
        ));
    }
    if results.is_empty() {
        return None;
    }
    let rest: String = object
        .others(&["role", "content"])
        .map(|member| format!(",{}:{}", member.key, member.value))
        .collect();
    let user = |blocks: Vec<String>| match blocks.is_empty() {
        true => String::new(),
        false => format!(
            "{{\"role\":\"user\",\"content\":[{}]{rest}}}",
            blocks.join(",")
        ),
    };
    Some([user(results), user(others)])
}

/// Returns the output in a block that answers a call, and the call's id. The call is then closed.
fn answer(block: &RawValue, open: &mut Vec<(String, String)>) -> Option<(String, String)> {
    let text = text(block)?;
    let at = open.iter().position(|(name, _)| answers(&text, name))?;
    let (_, output) = text.split_once(RESULT)?;
    let (_, id) = open.remove(at);
    Some((output.trim().to_owned(), id))
}

/// Returns the text of a block.
fn text(block: &RawValue) -> Option<String> {
    let value = RawObject::parse(block.get())?.get("text")?;
    Some(readable(value)?.0)
}

/// Returns whether a text is the result of a call of this tool.
fn answers(text: &str, name: &str) -> bool {
    let said = text
        .strip_prefix('[')
        .and_then(|text| text.strip_prefix(name));
    said.is_some_and(|said| {
        said.starts_with(RESULT) || said.starts_with(" for '") && said.contains(RESULT)
    })
}

/// Returns whether a block is the output of a tool: neither another result nor a text of Cline.
fn is_output(block: &RawValue, open: &[(String, String)]) -> bool {
    text(block).is_some_and(|text| {
        !text.starts_with("<environment_details>")
            && !open.iter().any(|(name, _)| answers(&text, name))
    })
}

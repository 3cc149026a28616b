//! OpenAI's Chat Completions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::{Rule, rule};
use super::shape::{
    Field, Judge, Kind, data_url_type, has, is_base64, is_data_url, is_name, is_web_url, items,
    optional, required, text,
};

/// The rules of [`openai_chat`](super::openai_chat), beside those of every provider.
///
/// «Type» is the type of that name in `openai.types.chat`; «error» is an answer of the server.
pub const RULES: &[Rule] = &[
    rule(
        "empty-messages",
        "there is a message (API reference, minItems)",
    ),
    rule(
        "empty-content",
        "content holds something (API reference: lists have minItems 1); a tool's string may be empty",
    ),
    rule(
        "missing-content",
        "an assistant's content is absent or null only beside tool_calls (type of the assistant's message)",
    ),
    rule(
        "participant-name",
        "`name` has 1 to 64 characters, no space and none of `<|\\/>` (error: pattern of messages[].name)",
    ),
    rule(
        "image-outside-user",
        "images are in the user's messages (error: «Image URLs are only allowed for messages with role 'user'»)",
    ),
    rule(
        "part-role",
        "each role has only the kinds of content parts of its type",
    ),
    rule(
        "image-url",
        "an image is a data URL in base64 or an http(s) URL (guide on images)",
    ),
    rule(
        "image-type",
        "the data of an image is PNG, JPEG, WebP or GIF (guide on images; error: «You uploaded an unsupported image»)",
    ),
    rule(
        "file-type",
        "the data of a file is PDF (guide on files: the type that all models with vision take)",
    ),
    rule(
        "file-source",
        "audio is base64; a file is base64, a data URL or an id of a file (type of the parts)",
    ),
    rule(
        "empty-tool-calls",
        "`tool_calls` is not an empty list (error: «[] is too short»)",
    ),
    rule(
        "function-name",
        "a function's name is `^[a-zA-Z0-9_-]{1,64}$` (type FunctionDefinition)",
    ),
    rule(
        "call-id",
        "the id of a call is not empty and has at most 64 characters (error)",
    ),
    rule(
        "call-id-over-40",
        "the id of a call has at most 40 characters: not all models take 64 (error: «Expected a string with maximum length 40»)",
    ),
    rule(
        "duplicate-call-id",
        "the id of a call is unique in the request",
    ),
    rule(
        "unanswered-call",
        "the messages right behind an assistant's calls answer each of them (error: «must be followed by tool messages responding to each 'tool_call_id'»)",
    ),
    rule(
        "stray-tool-message",
        "a tool's message stands right behind the calls and names one of them (error: «must be a response to a preceeding message with 'tool_calls'»)",
    ),
    rule("answered-twice", "a call has one answer"),
    rule(
        "empty-tools",
        "`tools` is not an empty list (error: «[] is too short»)",
    ),
    rule(
        "parameters",
        "a function's parameters are a JSON Schema of type object (error: «schema must be a JSON Schema of 'type: \"object\"'»)",
    ),
];

const ROLE: Field = required(
    "role",
    Kind::OneOf(&["developer", "system", "user", "assistant", "tool"]),
);
const NAME: Field = optional("name", Kind::Text);
const TYPE: Field = required("type", Kind::Text);
/// The media types of images.
pub(super) const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const BREAKPOINT: Field = optional("prompt_cache_breakpoint", Kind::Object);

pub(super) fn check(request: &Value, judge: &mut Judge) {
    let fields = [
        required("messages", Kind::List),
        optional("tools", Kind::List),
    ];
    judge.fields("", request, &fields);
    let messages = items("", request, "messages");
    if request.get("messages").is_some_and(Value::is_array) {
        judge.demand(
            !messages.is_empty(),
            "/messages",
            "empty-messages",
            "no message",
        );
    }
    for (path, message) in &messages {
        check_message(path, message, judge);
    }
    pairs(&messages, judge);
    let tools = items("", request, "tools");
    if request.get("tools").is_some_and(Value::is_array) {
        judge.demand(
            !tools.is_empty(),
            "/tools",
            "empty-tools",
            "the list is empty",
        );
    }
    for (path, tool) in tools {
        check_tool(&path, tool, judge);
    }
}

fn check_message(path: &str, message: &Value, judge: &mut Judge) {
    let role = text(message, "role").unwrap_or_default();
    let content = required("content", Kind::TextOrList);
    match role {
        "assistant" => judge.fields(
            path,
            message,
            &[
                ROLE,
                NAME,
                optional("content", Kind::TextOrList).or_null(),
                optional("refusal", Kind::Text).or_null(),
                optional("audio", Kind::Object).or_null(),
                optional("tool_calls", Kind::List),
                // Not in the type: servers such as DeepSeek's and Kimi's refuse calls without what they thought.
                optional("reasoning_content", Kind::Text),
            ],
        ),
        "tool" => judge.fields(
            path,
            message,
            &[ROLE, content, required("tool_call_id", Kind::Text)],
        ),
        _ => judge.fields(path, message, &[ROLE, NAME, content]),
    }
    if let Some(name) = text(message, "name") {
        let bad = |c: char| c.is_whitespace() || "<|\\/>".contains(c);
        let fits = (1..=64).contains(&name.chars().count()) && !name.contains(bad);
        let path = format!("{path}/name");
        judge.demand(
            fits,
            &path,
            "participant-name",
            "the name breaks the pattern",
        );
    }
    check_content(path, role, message, judge);
    if let Some(calls) = message.get("tool_calls").and_then(Value::as_array) {
        let path = format!("{path}/tool_calls");
        judge.demand(
            !calls.is_empty(),
            &path,
            "empty-tool-calls",
            "the list is empty",
        );
    }
    for (path, call) in items(path, message, "tool_calls") {
        check_call(&path, call, judge);
    }
}

fn check_content(path: &str, role: &str, message: &Value, judge: &mut Judge) {
    let at = format!("{path}/content");
    match message.get("content") {
        None | Some(Value::Null) if role == "assistant" => {
            let has_other = ["tool_calls", "refusal", "audio"].map(|field| has(message, field));
            let holds = has_other.contains(&true);
            judge.demand(
                holds,
                &at,
                "missing-content",
                "there are no tool_calls either",
            );
        }
        Some(Value::String(content)) => {
            let holds = role == "tool" || !content.is_empty();
            judge.demand(holds, &at, "empty-content", "the string is empty");
        }
        Some(Value::Array(parts)) => {
            judge.demand(!parts.is_empty(), &at, "empty-content", "the list is empty");
        }
        _ => {}
    }
    for (path, part) in items(path, message, "content") {
        check_part(&path, role, part, judge);
    }
}

fn check_part(path: &str, role: &str, part: &Value, judge: &mut Judge) {
    let kind = text(part, "type").unwrap_or_default();
    let allowed: &[&str] = match role {
        "user" => &["text", "image_url", "input_audio", "file"],
        "assistant" => &["text", "refusal"],
        _ => &["text"],
    };
    if kind == "image_url" && role != "user" {
        let detail = format!("the role is `{role}`");
        judge.report(path, "image-outside-user", detail);
    } else if part.is_object() && !allowed.contains(&kind) {
        let detail = format!("`{kind}` in a message of the role `{role}`");
        judge.report(path, "part-role", detail);
    }
    match kind {
        "text" | "refusal" => {
            let field = required(if kind == "text" { "text" } else { "refusal" }, Kind::Text);
            judge.fields(path, part, &[TYPE, field, BREAKPOINT]);
            let holds = text(part, kind) != Some("");
            let path = format!("{path}/{kind}");
            judge.demand(holds, &path, "empty-content", "the text is empty");
        }
        "image_url" => {
            judge.fields(
                path,
                part,
                &[TYPE, required("image_url", Kind::Object), BREAKPOINT],
            );
            if let Some(image) = part.get("image_url") {
                let path = format!("{path}/image_url");
                let detail = Kind::OneOf(&["auto", "low", "high", "original"]);
                let fields = [required("url", Kind::Text), optional("detail", detail)];
                judge.fields(&path, image, &fields);
                let url = text(image, "url");
                let holds = url.is_none_or(|url| is_web_url(url) || is_data_url(url));
                let path = format!("{path}/url");
                judge.demand(holds, &path, "image-url", "neither a data URL nor http(s)");
                let kind = url.and_then(data_url_type);
                let holds = kind.is_none_or(|kind| IMAGES.contains(&kind));
                judge.demand(holds, &path, "image-type", "the type is none of them");
            }
        }
        "input_audio" => {
            let fields = [TYPE, required("input_audio", Kind::Object), BREAKPOINT];
            judge.fields(path, part, &fields);
            if let Some(audio) = part.get("input_audio") {
                let path = format!("{path}/input_audio");
                let format = required("format", Kind::OneOf(&["wav", "mp3"]));
                judge.fields(&path, audio, &[required("data", Kind::Text), format]);
                let holds = text(audio, "data").is_none_or(is_base64);
                let path = format!("{path}/data");
                judge.demand(holds, &path, "file-source", "the data is no base64");
            }
        }
        "file" => {
            let fields = [TYPE, required("file", Kind::Object), BREAKPOINT];
            judge.fields(path, part, &fields);
            if let Some(file) = part.get("file") {
                let path = format!("{path}/file");
                let fields = ["file_data", "file_id", "filename"];
                judge.fields(&path, file, &fields.map(|name| optional(name, Kind::Text)));
                let data = text(file, "file_data").map(|data| is_base64(data) || is_data_url(data));
                let holds = data.unwrap_or_else(|| has(file, "file_id"));
                judge.demand(holds, &path, "file-source", "neither base64 nor an id");
                let kind = text(file, "file_data").and_then(data_url_type);
                let holds = kind.is_none_or(|kind| kind == "application/pdf");
                judge.demand(holds, &path, "file-type", "the type is another");
            }
        }
        _ => judge.fields(path, part, &[required("type", Kind::OneOf(allowed))]),
    }
}

fn check_call(path: &str, call: &Value, judge: &mut Judge) {
    let kind = required("type", Kind::OneOf(&["function", "custom"]));
    let name = text(call, "type").filter(|kind| *kind == "custom");
    let (body, input) = match name {
        Some(_) => ("custom", "input"),
        None => ("function", "arguments"),
    };
    let id = required("id", Kind::Text);
    judge.fields(path, call, &[kind, id, required(body, Kind::Object)]);
    if let Some(id) = text(call, "id") {
        check_id(&format!("{path}/id"), id, judge);
    }
    if let Some(function) = call.get(body) {
        let path = format!("{path}/{body}");
        let fields = [required("name", Kind::Text), required(input, Kind::Text)];
        judge.fields(&path, function, &fields);
        check_name(&path, function, judge);
    }
}

fn check_id(path: &str, id: &str, judge: &mut Judge) {
    let length = id.chars().count();
    let detail = format!("{length} characters");
    if !(1..=64).contains(&length) {
        judge.report(path, "call-id", detail);
    } else if length > 40 {
        judge.report(path, "call-id-over-40", detail);
    }
}

fn check_name(path: &str, function: &Value, judge: &mut Judge) {
    if let Some(name) = text(function, "name") {
        let path = format!("{path}/name");
        let detail = format!("`{name}` breaks the pattern");
        judge.demand(is_name(name, 64), &path, "function-name", &detail);
    }
}

fn check_tool(path: &str, tool: &Value, judge: &mut Judge) {
    let body = match text(tool, "type") {
        Some("custom") => "custom",
        _ => "function",
    };
    let kind = required("type", Kind::OneOf(&["function", "custom"]));
    judge.fields(path, tool, &[kind, required(body, Kind::Object)]);
    let Some(function) = tool.get(body) else {
        return;
    };
    let path = format!("{path}/{body}");
    let name = required("name", Kind::Text);
    let description = optional("description", Kind::Text);
    if body == "custom" {
        let format = optional("format", Kind::Object);
        judge.fields(&path, function, &[name, description, format]);
    } else {
        let parameters = optional("parameters", Kind::Object);
        let strict = optional("strict", Kind::Flag).or_null();
        judge.fields(&path, function, &[name, description, parameters, strict]);
        if let Some(parameters) = function.get("parameters") {
            let holds = text(parameters, "type") == Some("object");
            let path = format!("{path}/parameters");
            judge.demand(holds, &path, "parameters", "the type is not `object`");
        }
    }
    check_name(&path, function, judge);
}

/// Holds calls against the messages right behind them.
fn pairs(messages: &[(String, &Value)], judge: &mut Judge) {
    let mut seen = BTreeSet::new();
    let mut asked: Vec<(&str, String, bool)> = Vec::new();
    for (path, message) in messages {
        if text(message, "role") == Some("tool") {
            let Some(id) = text(message, "tool_call_id") else {
                continue;
            };
            let path = format!("{path}/tool_call_id");
            match asked.iter_mut().find(|(asked, ..)| *asked == id) {
                Some((.., answered @ false)) => *answered = true,
                Some(_) => judge.report(&path, "answered-twice", format!("the call `{id}`")),
                None => {
                    let detail = format!("no call `{id}` stands right before");
                    judge.report(&path, "stray-tool-message", detail);
                }
            }
            continue;
        }
        unanswered(&asked, judge);
        asked.clear();
        for (path, call) in items(path, message, "tool_calls") {
            let path = format!("{path}/id");
            let Some(id) = text(call, "id") else {
                continue;
            };
            if !seen.insert(id) {
                judge.report(&path, "duplicate-call-id", format!("`{id}` comes twice"));
            }
            asked.push((id, path, false));
        }
    }
    unanswered(&asked, judge);
}

fn unanswered(asked: &[(&str, String, bool)], judge: &mut Judge) {
    for (id, path, _) in asked.iter().filter(|(.., answered)| !answered) {
        let detail = format!("no message right behind answers `{id}`");
        judge.report(path, "unanswered-call", detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cases::{Cases, list, remove};
    use super::super::openai_chat;
    use super::RULES;

    #[test]
    fn each_rule_fires() {
        let mut cases = Cases::new(
            openai_chat,
            json!({
                "messages": [
                    {"role": "developer", "content": "Be brief."},
                    {"role": "user", "name": "ada", "content": [
                        {"type": "text", "text": "What is this?"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
                        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
                        {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"}},
                    ]},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                        {"id": "call_2", "type": "custom", "custom": {"name": "run", "input": "ls"}},
                    ]},
                    {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "b"}]},
                    {"role": "tool", "tool_call_id": "call_1", "content": ""},
                    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
                    {"role": "user", "content": "Why?"},
                    {"role": "assistant", "content": "Since."},
                ],
                "tools": [
                    {"type": "function", "function": {"name": "look", "description": "Looks.", "strict": true,
                        "parameters": {"type": "object", "properties": {}}}},
                    {"type": "custom", "custom": {"name": "run"}},
                ],
            }),
        );
        cases.good(|r| remove(r, "tools"));
        cases.good(|r| remove(&mut r["messages"][2], "content"));
        cases.good(|r| {
            r["messages"][1]["content"][1]["image_url"]["url"] = json!("https://a.b/c.png")
        });

        cases.bad("not-an-object", "", |r| *r = json!([]));
        cases.bad("not-an-object", "/messages/0", |r| {
            r["messages"][0] = json!("hi")
        });
        cases.bad("missing-field", "/messages", |r| remove(r, "messages"));
        cases.bad("missing-field", "/messages/6/content", |r| {
            remove(&mut r["messages"][6], "content")
        });
        cases.bad("missing-field", "/messages/2/tool_calls/0/type", |r| {
            remove(&mut r["messages"][2]["tool_calls"][0], "type");
        });
        cases.bad("unknown-field", "/model", |r| r["model"] = json!("m"));
        cases.bad("unknown-field", "/messages/7/function_call", |r| {
            r["messages"][7]["function_call"] = json!({})
        });
        cases.bad("unknown-field", "/messages/4/name", |r| {
            r["messages"][4]["name"] = json!("look")
        });
        cases.bad(
            "wrong-type",
            "/messages/2/tool_calls/0/function/arguments",
            |r| {
                r["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({});
            },
        );
        cases.bad("wrong-type", "/messages/6/content", |r| {
            r["messages"][6]["content"] = json!(null)
        });
        cases.bad("unknown-value", "/messages/0/role", |r| {
            r["messages"][0]["role"] = json!("model")
        });
        cases.bad("unknown-value", "/messages/1/content/0/type", |r| {
            r["messages"][1]["content"][0] = json!({"type": "input_text"});
        });

        cases.bad("empty-messages", "/messages", |r| r["messages"] = json!([]));
        cases.bad("empty-content", "/messages/7/content", |r| {
            r["messages"][7]["content"] = json!("")
        });
        cases.bad("empty-content", "/messages/6/content", |r| {
            r["messages"][6]["content"] = json!([])
        });
        cases.bad("empty-content", "/messages/1/content/0/text", |r| {
            r["messages"][1]["content"][0]["text"] = json!("")
        });
        cases.bad("missing-content", "/messages/7/content", |r| {
            remove(&mut r["messages"][7], "content")
        });
        cases.bad("missing-content", "/messages/7/content", |r| {
            r["messages"][7]["content"] = json!(null)
        });
        cases.bad("participant-name", "/messages/1/name", |r| {
            r["messages"][1]["name"] = json!("Ada L")
        });
        let image = json!([{"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}]);
        cases.bad("image-outside-user", "/messages/3/content/0", |r| {
            r["messages"][3]["content"] = image.clone()
        });
        cases.bad("image-outside-user", "/messages/7/content/0", |r| {
            r["messages"][7]["content"] = image.clone()
        });
        cases.bad("part-role", "/messages/6/content/0", |r| {
            r["messages"][6]["content"] = json!([{"type": "refusal", "refusal": "No."}]);
        });
        for url in ["aGk=", "data:image/png;base64,", "file:///a.png"] {
            cases.bad("image-url", "/messages/1/content/1/image_url/url", |r| {
                r["messages"][1]["content"][1]["image_url"]["url"] = json!(url);
            });
        }
        for kind in ["image/svg+xml", "image/bmp", "image/*", "image/jpg"] {
            cases.bad("image-type", "/messages/1/content/1/image_url/url", |r| {
                let url = format!("data:{kind};base64,aGk=");
                r["messages"][1]["content"][1]["image_url"]["url"] = json!(url);
            });
        }
        cases.bad("file-type", "/messages/1/content/3/file", |r| {
            r["messages"][1]["content"][3]["file"]["file_data"] =
                json!("data:application/zip;base64,aGk=");
        });
        cases.bad(
            "file-source",
            "/messages/1/content/2/input_audio/data",
            |r| {
                r["messages"][1]["content"][2]["input_audio"]["data"] = json!("?");
            },
        );
        cases.bad("file-source", "/messages/1/content/3/file", |r| {
            remove(&mut r["messages"][1]["content"][3]["file"], "file_data");
        });
        cases.bad("empty-tool-calls", "/messages/7/tool_calls", |r| {
            r["messages"][7]["tool_calls"] = json!([])
        });
        for name in ["", "a.b", &"x".repeat(65)] {
            cases.bad(
                "function-name",
                "/messages/2/tool_calls/0/function/name",
                |r| {
                    r["messages"][2]["tool_calls"][0]["function"]["name"] = json!(name);
                },
            );
            cases.bad("function-name", "/tools/0/function/name", |r| {
                r["tools"][0]["function"]["name"] = json!(name)
            });
        }
        for (rule, id) in [
            ("call-id", 0),
            ("call-id", 65),
            ("call-id-over-40", 41),
            ("call-id-over-40", 64),
        ] {
            cases.bad(rule, "/messages/2/tool_calls/0/id", |r| {
                r["messages"][2]["tool_calls"][0]["id"] = json!("x".repeat(id));
            });
        }
        cases.bad("duplicate-call-id", "/messages/7/tool_calls/0/id", |r| {
            r["messages"][7]["tool_calls"] = json!([r["messages"][2]["tool_calls"][0]]);
        });
        cases.bad("unanswered-call", "/messages/2/tool_calls/0/id", |r| {
            list(r, "/messages").remove(4);
        });
        cases.bad("unanswered-call", "/messages/2/tool_calls/1/id", |r| {
            list(r, "/messages").truncate(3)
        });
        // An answer that comes after another message is none.
        cases.bad("unanswered-call", "/messages/2/tool_calls/0/id", |r| {
            list(r, "/messages").swap(4, 5)
        });
        cases.bad("stray-tool-message", "/messages/5/tool_call_id", |r| {
            list(r, "/messages").swap(4, 5)
        });
        cases.bad("stray-tool-message", "/messages/0/tool_call_id", |r| {
            r["messages"][0] = json!({"role": "tool", "tool_call_id": "call_1", "content": "a"});
        });
        cases.bad("answered-twice", "/messages/5/tool_call_id", |r| {
            r["messages"][5] = r["messages"][4].clone()
        });
        cases.bad("empty-tools", "/tools", |r| r["tools"] = json!([]));
        cases.bad("parameters", "/tools/0/function/parameters", |r| {
            r["tools"][0]["function"]["parameters"] = json!({})
        });
        cases.finish(RULES, &["/parameters/"]);
    }
}

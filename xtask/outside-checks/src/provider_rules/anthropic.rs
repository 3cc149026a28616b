//! Anthropic's Messages.

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::{Rule, rule};
use super::shape::{
    Field, Judge, Kind, has, is_base64, is_name, is_web_url, items, optional, required, text,
};

/// The rules of [`anthropic`](super::anthropic), beside those of every provider.
///
/// «Type» is the type of that name in `anthropic.types`; «error» is an answer of the server.
pub const RULES: &[Rule] = &[
    rule(
        "empty-messages",
        "there is a message (error: «at least one message is required»)",
    ),
    rule(
        "first-message",
        "the first message is the user's (error: «first message must use the \"user\" role»)",
    ),
    rule(
        "neighbours-merged",
        "user and assistant alternate: the writers' promise; the server itself joins neighbours of one role (API reference)",
    ),
    rule(
        "empty-content",
        "content has a block (error: «all messages must have non-empty content»)",
    ),
    rule(
        "empty-text",
        "a text is more than white space (errors: «text content blocks must be non-empty», «must contain non-whitespace text»)",
    ),
    rule(
        "trailing-whitespace",
        "the text that ends a last message of the assistant does not end with white space (error: «final assistant content cannot end with trailing whitespace»)",
    ),
    rule(
        "block-role",
        "each role has only its kinds of blocks: results are the user's, calls and thinking the assistant's (errors; of blocks of the server's own tools only those of the web search are known here)",
    ),
    rule(
        "tool-use-id",
        "the id of a call is `^[a-zA-Z0-9_-]+$` (error: «String should match pattern»)",
    ),
    rule(
        "tool-use-id-length",
        "the id of a call has at most 64 characters: the writers' promise",
    ),
    rule(
        "duplicate-tool-use-id",
        "the id of a call is unique in the request (error: «`tool_use` ids must be unique»)",
    ),
    rule(
        "unanswered-tool-use",
        "the next message is the user's and has a result of each call (error: «`tool_use` ids were found without `tool_result` blocks immediately after»)",
    ),
    rule(
        "stray-tool-result",
        "a result names a call of the message before (error: «Each `tool_result` block must have a corresponding `tool_use` block in the previous message»)",
    ),
    rule(
        "answered-twice",
        "a call has one result (error: «each tool_use must have a single result»)",
    ),
    rule(
        "tool-results-first",
        "results come before all other blocks (page on tool calls: text comes after all results)",
    ),
    rule(
        "error-text",
        "the result of a failed call is text (error: «all content must be type `text` if `is_error` is true»)",
    ),
    rule(
        "thinking-first",
        "thinking comes before the other blocks of its message: the writers' promise; a reply with interleaved thinking may have it elsewhere",
    ),
    rule(
        "thinking-last",
        "thinking does not end a message (error: «The final block in an assistant message cannot be `thinking`»)",
    ),
    rule(
        "signature",
        "a signature or redacted data is not empty (types ThinkingBlock, RedactedThinkingBlock)",
    ),
    rule(
        "source",
        "a source is base64, an https URL or the id of a file (types of the sources; error: «Only HTTPS URLs are supported»)",
    ),
    rule(
        "server-tool-id",
        "the id of a use of a server's tool is `^srvtoolu_[a-zA-Z0-9_]+$` (error: «String should match pattern»)",
    ),
    rule(
        "server-tool-pair",
        "a use of a server's tool has its result behind it in the same message, and a result its use (error: «tool use with id … was found without a corresponding `web_search_tool_result` block»)",
    ),
    rule(
        "server-result",
        "a web search returns a list of results, each with its title, URL and encrypted content, or an error with its code (types; error: «encrypted_content: Field required»)",
    ),
    rule(
        "tool-name",
        "a tool's name is `^[a-zA-Z0-9_-]{1,128}$` (page on defining tools; the server takes 200 characters in a call)",
    ),
    rule(
        "duplicate-tool",
        "the names of tools are unique (error: «Tool names must be unique»)",
    ),
    rule(
        "input-schema",
        "the schema of a tool's input is of type object (type InputSchema)",
    ),
    rule(
        "cache-breakpoints",
        "at most 4 blocks have cache_control (page on prompt caching)",
    ),
];

const TYPE: Field = required("type", Kind::Text);
const CACHE: Field = optional("cache_control", Kind::Object).or_null();

/// The most blocks that may have `cache_control`.
const MAX_BREAKPOINTS: usize = 4;

pub(super) fn check(request: &Value, judge: &mut Judge) {
    let system = optional("system", Kind::TextOrList);
    let messages = required("messages", Kind::List);
    judge.fields(
        "",
        request,
        &[system, messages, optional("tools", Kind::List)],
    );
    check_text("/system", request.get("system"), judge);
    for (path, block) in items("", request, "system") {
        check_block(&path, block, &["text"], judge);
    }
    let messages = items("", request, "messages");
    if request.get("messages").is_some_and(Value::is_array) {
        judge.demand(
            !messages.is_empty(),
            "/messages",
            "empty-messages",
            "no message",
        );
    }
    let mut before = None;
    for (path, message) in &messages {
        let role = text(message, "role").unwrap_or_default();
        check_message(path, role, message, judge);
        let path = format!("{path}/role");
        match before {
            None => judge.demand(role == "user", &path, "first-message", "not the user's"),
            Some(before) => {
                let detail = format!("two messages of `{role}` in a row");
                judge.demand(before != role, &path, "neighbours-merged", &detail);
            }
        }
        before = Some(role);
    }
    if let Some((path, message)) = messages.last() {
        check_end(path, message, judge);
    }
    pairs(&messages, judge);
    server_pairs(&messages, judge);
    check_tools(request, judge);
    let breakpoints = count(request);
    let detail = format!("{breakpoints} blocks");
    judge.demand(
        breakpoints <= MAX_BREAKPOINTS,
        "",
        "cache-breakpoints",
        &detail,
    );
}

/// How many blocks have `cache_control`; a call's input and a tool's schema are data.
fn count(value: &Value) -> usize {
    match value {
        Value::Object(object) => {
            let data = ["input", "input_schema"];
            let fields = object
                .iter()
                .filter(|(name, _)| !data.contains(&name.as_str()));
            usize::from(has(value, "cache_control"))
                + fields.map(|(_, value)| count(value)).sum::<usize>()
        }
        Value::Array(list) => list.iter().map(count).sum(),
        _ => 0,
    }
}

fn check_text(path: &str, value: Option<&Value>, judge: &mut Judge) {
    if let Some(Value::String(text)) = value {
        let holds = !text.trim().is_empty();
        judge.demand(
            holds,
            path,
            "empty-text",
            "there is nothing but white space",
        );
    }
}

fn check_message(path: &str, role: &str, message: &Value, judge: &mut Judge) {
    let roles = required("role", Kind::OneOf(&["user", "assistant"]));
    let content = required("content", Kind::TextOrList);
    judge.fields(path, message, &[roles, content]);
    let at = format!("{path}/content");
    check_text(&at, message.get("content"), judge);
    let blocks = items(path, message, "content");
    if message.get("content").is_some_and(Value::is_array) {
        judge.demand(
            !blocks.is_empty(),
            &at,
            "empty-content",
            "the list is empty",
        );
    }
    let allowed: &[&str] = match role {
        "assistant" => &[
            "text",
            "thinking",
            "redacted_thinking",
            "tool_use",
            "server_tool_use",
            "web_search_tool_result",
        ],
        _ => &["text", "image", "document", "search_result", "tool_result"],
    };
    let (mut result, mut thinking) = (true, true);
    for (path, block) in &blocks {
        check_block(path, block, allowed, judge);
        match text(block, "type").unwrap_or_default() {
            "tool_result" => {
                judge.demand(
                    result,
                    path,
                    "tool-results-first",
                    "another block is before it",
                );
            }
            "thinking" | "redacted_thinking" => {
                judge.demand(
                    thinking,
                    path,
                    "thinking-first",
                    "another block is before it",
                );
                result = false;
            }
            _ => (result, thinking) = (false, false),
        }
    }
    if let Some((path, last)) = blocks.last() {
        let kind = text(last, "type").unwrap_or_default();
        let holds = !["thinking", "redacted_thinking"].contains(&kind);
        judge.demand(holds, path, "thinking-last", "no other block follows");
    }
}

fn check_end(path: &str, message: &Value, judge: &mut Judge) {
    let last = items(path, message, "content").pop();
    let end = match &last {
        Some((path, block)) => text(block, "text").map(|text| (format!("{path}/text"), text)),
        None => text(message, "content").map(|text| (format!("{path}/content"), text)),
    };
    if let Some((path, end)) = end {
        let assistant = text(message, "role") == Some("assistant");
        let holds = !assistant || end == end.trim_end();
        judge.demand(
            holds,
            &path,
            "trailing-whitespace",
            "the last message ends with it",
        );
    }
}

fn check_block(path: &str, block: &Value, allowed: &[&str], judge: &mut Judge) {
    let kind = text(block, "type").unwrap_or_default();
    if block.is_object() && !allowed.contains(&kind) {
        let detail = format!("`{kind}` is none of {}", allowed.join(", "));
        return judge.report(path, "block-role", detail);
    }
    check_cache(path, block, judge);
    match kind {
        "text" => {
            let citations = optional("citations", Kind::List).or_null();
            let fields = [TYPE, required("text", Kind::Text), CACHE, citations];
            judge.fields(path, block, &fields);
            check_text(&format!("{path}/text"), block.get("text"), judge);
        }
        "image" => {
            judge.fields(
                path,
                block,
                &[TYPE, required("source", Kind::Object), CACHE],
            );
            check_source(path, block, &["base64", "url", "file"], judge);
        }
        "document" => {
            let fields = [
                TYPE,
                required("source", Kind::Object),
                optional("title", Kind::Text).or_null(),
                optional("context", Kind::Text).or_null(),
                optional("citations", Kind::Object).or_null(),
                CACHE,
            ];
            judge.fields(path, block, &fields);
            check_source(
                path,
                block,
                &["base64", "text", "content", "url", "file"],
                judge,
            );
        }
        "search_result" => {
            let source = required("source", Kind::Text);
            let title = required("title", Kind::Text);
            let content = required("content", Kind::List);
            let citations = optional("citations", Kind::Object);
            judge.fields(
                path,
                block,
                &[TYPE, source, title, content, citations, CACHE],
            );
            for (path, block) in items(path, block, "content") {
                check_block(&path, block, &["text"], judge);
            }
        }
        "thinking" => {
            let thinking = required("thinking", Kind::Text);
            judge.fields(
                path,
                block,
                &[TYPE, thinking, required("signature", Kind::Text)],
            );
            let holds = text(block, "signature") != Some("");
            let path = format!("{path}/signature");
            judge.demand(holds, &path, "signature", "the signature is empty");
        }
        "redacted_thinking" => {
            judge.fields(path, block, &[TYPE, required("data", Kind::Text)]);
            let holds = text(block, "data") != Some("");
            judge.demand(
                holds,
                &format!("{path}/data"),
                "signature",
                "the data is empty",
            );
        }
        "tool_use" => {
            let id = required("id", Kind::Text);
            let name = required("name", Kind::Text);
            let input = required("input", Kind::Object);
            judge.fields(path, block, &[TYPE, id, name, input, CACHE]);
            check_id(path, "id", block, judge);
            check_name(path, block, judge);
        }
        "tool_result" => check_result(path, block, judge),
        "server_tool_use" => {
            let id = required("id", Kind::Text);
            let name = required("name", Kind::OneOf(&["web_search"]));
            let input = required("input", Kind::Object);
            judge.fields(path, block, &[TYPE, id, name, input, CACHE]);
            check_server_id(path, "id", block, judge);
        }
        "web_search_tool_result" => {
            let id = required("tool_use_id", Kind::Text);
            // A list of results, or an object with an error.
            judge.fields(
                path,
                block,
                &[TYPE, id, optional("content", Kind::Any), CACHE],
            );
            check_server_id(path, "tool_use_id", block, judge);
            check_search(path, block, judge);
        }
        _ => judge.fields(path, block, &[TYPE]),
    }
}

fn check_cache(path: &str, block: &Value, judge: &mut Judge) {
    if let Some(cache) = block.get("cache_control").filter(|cache| cache.is_object()) {
        let kind = required("type", Kind::OneOf(&["ephemeral"]));
        let ttl = optional("ttl", Kind::OneOf(&["5m", "1h"]));
        judge.fields(&format!("{path}/cache_control"), cache, &[kind, ttl]);
    }
}

fn check_id(path: &str, field: &str, block: &Value, judge: &mut Judge) {
    if let Some(id) = text(block, field) {
        let path = format!("{path}/{field}");
        let detail = format!("`{id}` breaks the pattern");
        judge.demand(is_name(id, usize::MAX), &path, "tool-use-id", &detail);
        let detail = format!("{} characters", id.chars().count());
        judge.demand(
            id.chars().count() <= 64,
            &path,
            "tool-use-id-length",
            &detail,
        );
    }
}

fn check_name(path: &str, tool: &Value, judge: &mut Judge) {
    if let Some(name) = text(tool, "name") {
        let path = format!("{path}/name");
        let detail = format!("`{name}` breaks the pattern");
        judge.demand(is_name(name, 128), &path, "tool-name", &detail);
    }
}

fn check_result(path: &str, block: &Value, judge: &mut Judge) {
    let fields = [
        TYPE,
        required("tool_use_id", Kind::Text),
        optional("content", Kind::TextOrList),
        optional("is_error", Kind::Flag),
        CACHE,
    ];
    judge.fields(path, block, &fields);
    check_id(path, "tool_use_id", block, judge);
    let failed = block.get("is_error") == Some(&Value::Bool(true));
    for (path, block) in items(path, block, "content") {
        check_block(
            &path,
            block,
            &["text", "image", "document", "search_result"],
            judge,
        );
        let holds = !failed || text(block, "type") == Some("text");
        judge.demand(
            holds,
            &path,
            "error-text",
            "the call failed, and this is no text",
        );
    }
}

fn check_server_id(path: &str, field: &str, block: &Value, judge: &mut Judge) {
    if let Some(id) = text(block, field) {
        let name = id.strip_prefix("srvtoolu_");
        let holds = name.is_some_and(|name| is_name(name, usize::MAX) && !name.contains('-'));
        let path = format!("{path}/{field}");
        let detail = format!("`{id}` breaks the pattern");
        judge.demand(holds, &path, "server-tool-id", &detail);
    }
}

fn check_search(path: &str, block: &Value, judge: &mut Judge) {
    let at = format!("{path}/content");
    match block.get("content") {
        Some(Value::Array(_)) => {}
        Some(error @ Value::Object(_)) => {
            let kind = required("type", Kind::OneOf(&["web_search_tool_result_error"]));
            judge.fields(&at, error, &[kind, required("error_code", Kind::Text)]);
        }
        _ => judge.report(&at, "server-result", "neither a list nor an error"),
    }
    for (path, result) in items(path, block, "content") {
        let fields = [
            required("type", Kind::OneOf(&["web_search_result"])),
            required("title", Kind::Text),
            required("url", Kind::Text),
            required("encrypted_content", Kind::Text),
            optional("page_age", Kind::Text).or_null(),
        ];
        judge.fields(&path, result, &fields);
        let holds = text(result, "encrypted_content") != Some("");
        judge.demand(holds, &path, "server-result", "the content is empty");
    }
}

/// Holds uses of a server's tools against the results behind them in their message.
fn server_pairs(messages: &[(String, &Value)], judge: &mut Judge) {
    for (path, message) in messages {
        let mut open: Vec<(&str, String)> = Vec::new();
        for (path, block) in items(path, message, "content") {
            match text(block, "type") {
                Some("server_tool_use") => {
                    open.extend(text(block, "id").map(|id| (id, format!("{path}/id"))));
                }
                Some("web_search_tool_result") => {
                    let id = text(block, "tool_use_id").unwrap_or_default();
                    let before = open.len();
                    open.retain(|(open, _)| *open != id);
                    let detail = format!("no use `{id}` before it");
                    let path = format!("{path}/tool_use_id");
                    judge.demand(open.len() < before, &path, "server-tool-pair", &detail);
                }
                _ => {}
            }
        }
        for (id, path) in open {
            let detail = format!("no result of `{id}` behind it");
            judge.report(&path, "server-tool-pair", detail);
        }
    }
}

fn check_source(path: &str, block: &Value, kinds: &'static [&'static str], judge: &mut Judge) {
    let Some(source) = block.get("source").filter(|source| source.is_object()) else {
        return;
    };
    let path = format!("{path}/source");
    let kind = text(source, "type").unwrap_or_default();
    let image = text(block, "type") == Some("image");
    let media: &'static [&'static str] = match (image, kind) {
        (true, _) => &["image/jpeg", "image/png", "image/gif", "image/webp"],
        (false, "base64") => &["application/pdf"],
        (false, _) => &["text/plain"],
    };
    let kinds = required("type", Kind::OneOf(kinds));
    let media = required("media_type", Kind::OneOf(media));
    let data = required("data", Kind::Text);
    let content = required("content", Kind::TextOrList);
    match kind {
        "base64" | "text" => judge.fields(&path, source, &[kinds, media, data]),
        "url" => judge.fields(&path, source, &[kinds, required("url", Kind::Text)]),
        "file" => judge.fields(&path, source, &[kinds, required("file_id", Kind::Text)]),
        "content" => judge.fields(&path, source, &[kinds, content]),
        _ => judge.fields(&path, source, &[kinds]),
    }
    let value = |field: &str| text(source, field);
    let holds = match kind {
        "base64" => value("data").is_none_or(is_base64),
        "url" => value("url").is_none_or(|url| is_web_url(url) && url.starts_with("https:")),
        "text" => value("data") != Some(""),
        _ => value("file_id") != Some(""),
    };
    judge.demand(holds, &path, "source", "nothing can be read from it");
    check_text(&format!("{path}/content"), source.get("content"), judge);
    for (path, block) in items(&path, source, "content") {
        check_block(&path, block, &["text", "image"], judge);
    }
}

fn check_tools(request: &Value, judge: &mut Judge) {
    let mut names = BTreeSet::new();
    for (path, tool) in items("", request, "tools") {
        let fields = [
            required("name", Kind::Text),
            required("input_schema", Kind::Object),
            optional("description", Kind::Text),
            optional("type", Kind::OneOf(&["custom"])).or_null(),
            optional("strict", Kind::Flag),
            CACHE,
        ];
        judge.fields(&path, tool, &fields);
        check_name(&path, tool, judge);
        check_cache(&path, tool, judge);
        if let Some(name) = text(tool, "name").filter(|name| !names.insert(*name)) {
            let path = format!("{path}/name");
            judge.report(&path, "duplicate-tool", format!("`{name}` comes twice"));
        }
        if let Some(schema) = tool.get("input_schema") {
            let holds = text(schema, "type") == Some("object");
            let path = format!("{path}/input_schema");
            judge.demand(holds, &path, "input-schema", "the type is not `object`");
        }
    }
}

/// Holds calls against the results in the next message.
fn pairs(messages: &[(String, &Value)], judge: &mut Judge) {
    let mut seen = BTreeSet::new();
    let mut asked: Vec<(&str, String, bool)> = Vec::new();
    for (path, message) in messages {
        let blocks = items(path, message, "content");
        for (path, block) in &blocks {
            let result = Some(block).filter(|block| text(block, "type") == Some("tool_result"));
            let Some(id) = result.and_then(|block| text(block, "tool_use_id")) else {
                continue;
            };
            let path = format!("{path}/tool_use_id");
            match asked.iter_mut().find(|(asked, ..)| *asked == id) {
                Some((.., answered @ false)) => *answered = true,
                Some(_) => judge.report(&path, "answered-twice", format!("the call `{id}`")),
                None => {
                    let detail = format!("no call `{id}` in the message before");
                    judge.report(&path, "stray-tool-result", detail);
                }
            }
        }
        unanswered(&asked, judge);
        asked.clear();
        let calls = blocks
            .iter()
            .filter(|(_, block)| text(block, "type") == Some("tool_use"));
        for (path, id) in calls.filter_map(|(path, call)| Some((path, text(call, "id")?))) {
            let path = format!("{path}/id");
            if !seen.insert(id) {
                judge.report(
                    &path,
                    "duplicate-tool-use-id",
                    format!("`{id}` comes twice"),
                );
            }
            asked.push((id, path, false));
        }
    }
    unanswered(&asked, judge);
}

fn unanswered(asked: &[(&str, String, bool)], judge: &mut Judge) {
    for (id, path, _) in asked.iter().filter(|(.., answered)| !answered) {
        let detail = format!("the next message has no result of `{id}`");
        judge.report(path, "unanswered-tool-use", detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::anthropic;
    use super::super::cases::{Cases, list, remove};
    use super::RULES;

    #[test]
    fn each_rule_fires() {
        let mut cases = Cases::new(
            anthropic,
            json!({
                "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
                "messages": [
                    {"role": "user", "content": [
                        {"type": "text", "text": "What is this?"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                        {"type": "document", "title": "A", "source":
                            {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
                    ]},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "", "signature": "aGk="},
                        {"type": "redacted_thinking", "data": "aGk="},
                        {"type": "text", "text": "I look. "},
                        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "cat"}},
                        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                            {"type": "web_search_result", "title": "Cats", "url": "https://a.b", "page_age": null,
                                "encrypted_content": "aGk="}]},
                        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {}},
                        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_2", "content":
                            {"type": "web_search_tool_result_error", "error_code": "unavailable"}},
                        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"cache_control": 1}},
                        {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "toolu_2", "content": ""},
                        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [
                            {"type": "text", "text": "b"},
                            {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}]},
                        {"type": "text", "text": "Well?"},
                    ]},
                    {"role": "assistant", "content": "A cat."},
                ],
                "tools": [
                    {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}},
                    {"name": "run", "input_schema": {"type": "object", "properties": {"cache_control": {}}}},
                ],
            }),
        );
        cases.good(|r| remove(r, "tools"));
        cases.good(|r| remove(r, "system"));
        cases.good(|r| r["system"] = json!("Be brief."));
        cases.good(|r| remove(&mut r["messages"][2]["content"][0], "content"));
        let plain = json!({"type": "text", "media_type": "text/plain", "data": "hi"});
        cases.good(|r| r["messages"][0]["content"][2]["source"] = plain.clone());

        cases.bad("not-an-object", "/messages/0", |r| {
            r["messages"][0] = json!("hi")
        });
        cases.bad("not-an-object", "/messages/0/content/0", |r| {
            r["messages"][0]["content"][0] = json!("hi")
        });
        cases.bad("missing-field", "/messages", |r| remove(r, "messages"));
        cases.bad("missing-field", "/messages/3/content", |r| {
            remove(&mut r["messages"][3], "content")
        });
        cases.bad("missing-field", "/messages/1/content/0/signature", |r| {
            remove(&mut r["messages"][1]["content"][0], "signature");
        });
        cases.bad("missing-field", "/messages/1/content/1/data", |r| {
            remove(&mut r["messages"][1]["content"][1], "data")
        });
        cases.bad("missing-field", "/messages/1/content/8/input", |r| {
            remove(&mut r["messages"][1]["content"][8], "input")
        });
        cases.bad("missing-field", "/tools/0/input_schema", |r| {
            remove(&mut r["tools"][0], "input_schema")
        });
        cases.bad("unknown-field", "/messages/0/name", |r| {
            r["messages"][0]["name"] = json!("ada")
        });
        cases.bad(
            "unknown-field",
            "/messages/1/content/0/cache_control",
            |r| {
                r["messages"][1]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
            },
        );
        cases.bad("wrong-type", "/messages/1/content/8/input", |r| {
            r["messages"][1]["content"][8]["input"] = json!("{}")
        });
        cases.bad("wrong-type", "/messages/2/content/0/content", |r| {
            r["messages"][2]["content"][0]["content"] = json!(null)
        });
        cases.bad("unknown-value", "/messages/0/role", |r| {
            r["messages"][0]["role"] = json!("tool")
        });
        cases.bad(
            "unknown-value",
            "/messages/0/content/1/source/media_type",
            |r| {
                r["messages"][0]["content"][1]["source"]["media_type"] = json!("image/svg+xml");
            },
        );
        cases.bad(
            "unknown-value",
            "/messages/0/content/2/source/media_type",
            |r| {
                r["messages"][0]["content"][2]["source"]["media_type"] = json!("text/plain");
            },
        );
        cases.bad("unknown-value", "/messages/0/content/1/source/type", |r| {
            r["messages"][0]["content"][1]["source"] = plain.clone();
        });

        cases.bad("unknown-value", "/system/0/cache_control/type", |r| {
            r["system"][0]["cache_control"]["type"] = json!("forever");
        });
        cases.bad("missing-field", "/tools/0/cache_control/type", |r| {
            r["tools"][0]["cache_control"] = json!({})
        });

        cases.bad("empty-messages", "/messages", |r| r["messages"] = json!([]));
        cases.bad("first-message", "/messages/0/role", |r| {
            list(r, "/messages").remove(0);
        });
        cases.bad("neighbours-merged", "/messages/4/role", |r| {
            list(r, "/messages").push(json!({"role": "assistant", "content": "A dog."}));
        });
        cases.bad("empty-content", "/messages/3/content", |r| {
            r["messages"][3]["content"] = json!([])
        });
        for blank in ["", " \n"] {
            cases.bad("empty-text", "/messages/3/content", |r| {
                r["messages"][3]["content"] = json!(blank)
            });
            cases.bad("empty-text", "/messages/0/content/0/text", |r| {
                r["messages"][0]["content"][0]["text"] = json!(blank)
            });
            cases.bad("empty-text", "/messages/2/content/1/content/0/text", |r| {
                r["messages"][2]["content"][1]["content"][0]["text"] = json!(blank);
            });
            cases.bad("empty-text", "/system", |r| r["system"] = json!(blank));
            cases.bad("empty-text", "/system/0/text", |r| {
                r["system"][0]["text"] = json!(blank)
            });
        }
        cases.bad("trailing-whitespace", "/messages/3/content", |r| {
            r["messages"][3]["content"] = json!("A cat.\n")
        });
        cases.bad("trailing-whitespace", "/messages/3/content/0/text", |r| {
            r["messages"][3]["content"] = json!([{"type": "text", "text": "A cat. "}]);
        });
        cases.bad("block-role", "/messages/0/content/0", |r| {
            r["messages"][0]["content"][0] = r["messages"][1]["content"][7].clone()
        });
        cases.bad("block-role", "/messages/0/content/0", |r| {
            r["messages"][0]["content"][0] = r["messages"][1]["content"][0].clone()
        });
        cases.bad("block-role", "/messages/1/content/2", |r| {
            r["messages"][1]["content"][2] = r["messages"][2]["content"][0].clone()
        });
        cases.bad("block-role", "/messages/1/content/2", |r| {
            r["messages"][1]["content"][2] = r["messages"][0]["content"][1].clone()
        });
        cases.bad("block-role", "/messages/2/content/1/content/0", |r| {
            r["messages"][2]["content"][1]["content"][0] = json!({"type": "tool_use"});
        });
        cases.bad("block-role", "/system/0", |r| {
            r["system"][0] = r["messages"][0]["content"][1].clone()
        });
        for id in ["", "a.b", "a b"] {
            cases.bad("tool-use-id", "/messages/1/content/7/id", |r| {
                r["messages"][1]["content"][7]["id"] = json!(id)
            });
            cases.bad("tool-use-id", "/messages/2/content/0/tool_use_id", |r| {
                r["messages"][2]["content"][0]["tool_use_id"] = json!(id);
            });
        }
        cases.bad("tool-use-id-length", "/messages/1/content/7/id", |r| {
            r["messages"][1]["content"][7]["id"] = json!("x".repeat(65));
        });
        cases.bad("duplicate-tool-use-id", "/messages/3/content/0/id", |r| {
            r["messages"][3]["content"] = json!([r["messages"][1]["content"][7]]);
        });
        cases.bad("unanswered-tool-use", "/messages/1/content/7/id", |r| {
            list(r, "/messages/2/content").remove(1);
        });
        cases.bad("unanswered-tool-use", "/messages/1/content/8/id", |r| {
            list(r, "/messages").truncate(2)
        });
        cases.bad(
            "stray-tool-result",
            "/messages/2/content/0/tool_use_id",
            |r| {
                r["messages"][1]["content"] = json!("A cat.");
            },
        );
        // The call of an earlier message is none.
        cases.bad(
            "stray-tool-result",
            "/messages/4/content/0/tool_use_id",
            |r| {
                let result = r["messages"][2]["content"][0].clone();
                list(r, "/messages").push(json!({"role": "user", "content": [result]}));
            },
        );
        cases.bad("answered-twice", "/messages/2/content/1/tool_use_id", |r| {
            r["messages"][2]["content"][1] = r["messages"][2]["content"][0].clone();
        });
        cases.bad("tool-results-first", "/messages/2/content/2", |r| {
            list(r, "/messages/2/content").swap(1, 2)
        });
        cases.bad("error-text", "/messages/2/content/1/content/1", |r| {
            r["messages"][2]["content"][1]["is_error"] = json!(true)
        });
        cases.bad("thinking-first", "/messages/1/content/2", |r| {
            list(r, "/messages/1/content").swap(1, 2)
        });
        cases.bad("thinking-last", "/messages/1/content/1", |r| {
            list(r, "/messages/1/content").truncate(2)
        });
        cases.bad("signature", "/messages/1/content/0/signature", |r| {
            r["messages"][1]["content"][0]["signature"] = json!("")
        });
        cases.bad("signature", "/messages/1/content/1/data", |r| {
            r["messages"][1]["content"][1]["data"] = json!("")
        });
        cases.bad("source", "/messages/2/content/1/content/1/source", |r| {
            r["messages"][2]["content"][1]["content"][1]["source"]["url"] =
                json!("http://a.b/c.png");
        });
        for id in ["toolu_1", "srvtoolu_", "srvtoolu_a-b"] {
            cases.bad("server-tool-id", "/messages/1/content/3/id", |r| {
                r["messages"][1]["content"][3]["id"] = json!(id)
            });
        }
        cases.bad("server-tool-pair", "/messages/1/content/3/id", |r| {
            list(r, "/messages/1/content").remove(4);
        });
        cases.bad(
            "server-tool-pair",
            "/messages/1/content/3/tool_use_id",
            |r| {
                list(r, "/messages/1/content").remove(3);
            },
        );
        cases.bad(
            "server-tool-pair",
            "/messages/1/content/3/tool_use_id",
            |r| list(r, "/messages/1/content").swap(3, 4),
        );
        cases.bad("server-result", "/messages/1/content/4/content", |r| {
            remove(&mut r["messages"][1]["content"][4], "content")
        });
        cases.bad("server-result", "/messages/1/content/4/content/0", |r| {
            r["messages"][1]["content"][4]["content"][0]["encrypted_content"] = json!("")
        });
        cases.bad("source", "/messages/0/content/1/source", |r| {
            r["messages"][0]["content"][1]["source"]["data"] = json!("?")
        });
        cases.bad("source", "/messages/2/content/1/content/1/source", |r| {
            r["messages"][2]["content"][1]["content"][1]["source"]["url"] =
                json!("data:image/png;base64,aGk=");
        });
        for name in ["", "a.b", &"x".repeat(129)] {
            cases.bad("tool-name", "/messages/1/content/7/name", |r| {
                r["messages"][1]["content"][7]["name"] = json!(name)
            });
            cases.bad("tool-name", "/tools/0/name", |r| {
                r["tools"][0]["name"] = json!(name)
            });
        }
        cases.bad("duplicate-tool", "/tools/1/name", |r| {
            r["tools"][1]["name"] = json!("look")
        });
        cases.bad("input-schema", "/tools/0/input_schema", |r| {
            r["tools"][0]["input_schema"] = json!({})
        });
        cases.bad("cache-breakpoints", "", |r| {
            let block = r["system"][0].clone();
            list(r, "/system").extend(std::iter::repeat_n(block, 4));
        });
        cases.finish(RULES, &["/input/", "/input_schema/"]);
    }
}

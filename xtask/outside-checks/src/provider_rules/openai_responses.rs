//! OpenAI's Responses.

use std::collections::BTreeMap;

use serde_json::Value;

use super::finding::{Rule, rule};
use super::openai_chat::IMAGES;
use super::shape::{
    Field, Judge, Kind, data_url_type, has, is_base64, is_data_url, is_name, is_web_url, items,
    optional, required, text,
};

/// The rules of [`openai_responses`](super::openai_responses), beside those of every provider.
///
/// «Type» is the type of that name in `openai.types.responses`; «error» is an answer of the server; «specification» is that
/// of Open Responses, version 2026-04-24, which OpenAI wrote.
pub const RULES: &[Rule] = &[
    rule("empty-input", "there is an item"),
    rule(
        "unknown-item",
        "an item is a message, a function_call, a function_call_output, a reasoning item or a call of one of the server's own tools: the request stands alone",
    ),
    rule(
        "empty-content",
        "content holds something; a function's output may be an empty string",
    ),
    rule(
        "input-content",
        "content of a user is input_text, input_image and input_file (type ResponseInputContent), of system and developer input_text (specification)",
    ),
    rule(
        "output-content",
        "a list of an assistant's content is output_text and refusal (error: «Supported values are: 'output_text' and 'refusal'»); a string stands for one text (type EasyInputMessage)",
    ),
    rule(
        "image-source",
        "an image has a data URL in base64, an http(s) URL or the id of a file (type ResponseInputImage)",
    ),
    rule(
        "image-type",
        "the data of an image is PNG, JPEG, WebP or GIF (guide on images)",
    ),
    rule(
        "file-type",
        "the data of a file is PDF (guide on files: the type that all models with vision take)",
    ),
    rule(
        "file-source",
        "a file has base64 or a data URL with a name, or an http(s) URL, or the id of a file (type ResponseInputFile)",
    ),
    rule(
        "item-id",
        "the id of an item has the prefix of its type: msg, fc, rs, ws, fs, ci, ig (error: «Expected an ID that begins with»)",
    ),
    rule(
        "call-id",
        "`call_id` is not empty and has at most 64 characters (error: «Expected a string with maximum length 64»)",
    ),
    rule(
        "duplicate-call-id",
        "each function_call has a `call_id` of its own",
    ),
    rule(
        "unanswered-call",
        "each function_call has its output behind it (error: «No tool output found for function call»)",
    ),
    rule(
        "stray-output",
        "each output has its function_call before it (error: «No tool call found for function call output»)",
    ),
    rule("answered-twice", "each function_call has one output"),
    rule(
        "function-name",
        "a function's name is `^[a-zA-Z0-9_-]{1,64}$` (specification)",
    ),
    rule(
        "library-field",
        "the fields are there that only the types require, and the specification does not: `id`, `status` and `annotations` of what the model wrote, `detail` of an image, `parameters` and `strict` of a tool",
    ),
    rule(
        "too-long",
        "a text has at most 10,485,760 characters, the URL of an image 20,971,520 (specification, and error)",
    ),
    rule(
        "reasoning-content",
        "a reasoning item brings no text of its own but the summary: `content` is empty (specification)",
    ),
    rule(
        "reasoning-encrypted-content",
        "a reasoning item brings its encrypted_content: without it, only a server that stored the item can read it (guide on conversation state)",
    ),
    rule(
        "reasoning-without-follower",
        "a reasoning item is followed by what came of it: reasoning, a function_call or an assistant's message (error: «was provided without its required following item»)",
    ),
    rule(
        "parameters",
        "a function's parameters are a JSON Schema of type object (error: «schema must be a JSON Schema of 'type: \"object\"'»)",
    ),
];

const STATUS: Kind = Kind::OneOf(&["in_progress", "completed", "incomplete"]);
const TYPE: Field = required("type", Kind::Text);
const CALL_ID: Field = required("call_id", Kind::Text);
const BREAKPOINT: Field = optional("prompt_cache_breakpoint", Kind::Object);

/// The most characters of a text.
const MAX_TEXT: usize = 10_485_760;
/// The most characters of an image's URL.
const MAX_IMAGE: usize = 20_971_520;

pub(super) fn check(request: &Value, judge: &mut Judge) {
    let instructions = optional("instructions", Kind::Text).or_null();
    let tools = optional("tools", Kind::List);
    judge.fields(
        "",
        request,
        &[instructions, required("input", Kind::List), tools],
    );
    let input = items("", request, "input");
    if request.get("input").is_some_and(Value::is_array) {
        judge.demand(!input.is_empty(), "/input", "empty-input", "no item");
    }
    for (path, item) in &input {
        check_item(path, item, judge);
    }
    pairs(&input, judge);
    followers(&input, judge);
    for (path, tool) in items("", request, "tools") {
        check_tool(&path, tool, judge);
    }
}

/// An item's type; a message need not name it.
fn item_type(item: &Value) -> &str {
    let message = has(item, "role").then_some("message");
    text(item, "type").or(message).unwrap_or_default()
}

fn check_item(path: &str, item: &Value, judge: &mut Judge) {
    match item_type(item) {
        "message" => check_message(path, item, judge),
        "function_call" => {
            let name = required("name", Kind::Text);
            let arguments = required("arguments", Kind::Text);
            let id = optional("id", Kind::Text);
            let status = optional("status", STATUS);
            judge.fields(path, item, &[TYPE, CALL_ID, name, arguments, id, status]);
            check_name(path, item, judge);
            check_id(path, item, "fc", judge);
        }
        "function_call_output" => {
            let output = required("output", Kind::TextOrList);
            let id = optional("id", Kind::Text).or_null();
            let status = optional("status", STATUS).or_null();
            judge.fields(path, item, &[TYPE, CALL_ID, output, id, status]);
            check_parts(path, item, "output", judge);
        }
        "reasoning" => check_reasoning(path, item, judge),
        "web_search_call" => {
            let action = required("action", Kind::Object);
            check_server_call(path, item, "ws", &[action], judge);
        }
        "file_search_call" => {
            let queries = required("queries", Kind::List);
            let results = optional("results", Kind::List).or_null();
            check_server_call(path, item, "fs", &[queries, results], judge);
        }
        "code_interpreter_call" => {
            let code = required("code", Kind::Text).or_null();
            let container = required("container_id", Kind::Text);
            let outputs = required("outputs", Kind::List).or_null();
            check_server_call(path, item, "ci", &[code, container, outputs], judge);
        }
        "image_generation_call" => {
            let result = required("result", Kind::Text).or_null();
            check_server_call(path, item, "ig", &[result], judge);
        }
        _ if !item.is_object() => judge.fields(path, item, &[]),
        other => judge.report(path, "unknown-item", format!("the type is `{other}`")),
    }
    if let Some(id) = text(item, "call_id") {
        let length = id.chars().count();
        let path = format!("{path}/call_id");
        let detail = format!("{length} characters");
        judge.demand((1..=64).contains(&length), &path, "call-id", &detail);
    }
}

/// Checks a call of one of the server's own tools, which holds its result.
fn check_server_call(path: &str, item: &Value, prefix: &str, fields: &[Field], judge: &mut Judge) {
    let states = &[
        "in_progress",
        "searching",
        "interpreting",
        "generating",
        "completed",
        "incomplete",
        "failed",
    ];
    let status = required("status", Kind::OneOf(states));
    let fields = [&[TYPE, required("id", Kind::Text), status], fields].concat();
    judge.fields(path, item, &fields);
    check_id(path, item, prefix, judge);
}

/// Reports fields that only the types of the library require.
fn check_library(path: &str, value: &Value, fields: &[&str], judge: &mut Judge) {
    for field in fields.iter().filter(|field| value.get(field).is_none()) {
        let path = format!("{path}/{field}");
        judge.report(
            &path,
            "library-field",
            "the library's type requires this field",
        );
    }
}

fn check_length(path: &str, value: &Value, field: &str, most: usize, judge: &mut Judge) {
    let length = text(value, field).map_or(0, |text| text.chars().count());
    let detail = format!("{length} characters");
    judge.demand(
        length <= most,
        &format!("{path}/{field}"),
        "too-long",
        &detail,
    );
}

fn check_id(path: &str, item: &Value, prefix: &str, judge: &mut Judge) {
    if let Some(id) = text(item, "id") {
        let path = format!("{path}/id");
        let detail = format!("`{id}` does not begin with `{prefix}`");
        judge.demand(id.starts_with(prefix), &path, "item-id", &detail);
    }
}

fn check_name(path: &str, function: &Value, judge: &mut Judge) {
    if let Some(name) = text(function, "name") {
        let path = format!("{path}/name");
        let detail = format!("`{name}` breaks the pattern");
        judge.demand(is_name(name, 64), &path, "function-name", &detail);
    }
}

fn check_message(path: &str, message: &Value, judge: &mut Judge) {
    let assistant = text(message, "role") == Some("assistant");
    let written = assistant && message.get("content").is_some_and(Value::is_array);
    let roles = Kind::OneOf(&["user", "assistant", "system", "developer"]);
    let mut fields = vec![
        optional("type", Kind::Text),
        required("role", roles),
        required("content", Kind::TextOrList),
    ];
    if assistant {
        let phase = optional("phase", Kind::OneOf(&["commentary", "final_answer"]));
        fields.push(phase.or_null());
    }
    // A list of an assistant's content is an item that the model wrote, with its id.
    if written {
        fields.extend([optional("id", Kind::Text), optional("status", STATUS)]);
        check_id(path, message, "msg", judge);
        check_library(path, message, &["type", "id", "status"], judge);
    } else if !assistant {
        fields.push(optional("status", STATUS));
    }
    judge.fields(path, message, &fields);
    if !written {
        return check_parts(path, message, "content", judge);
    }
    let parts = items(path, message, "content");
    let at = format!("{path}/content");
    judge.demand(!parts.is_empty(), &at, "empty-content", "the list is empty");
    for (path, part) in parts {
        let kind = text(part, "type").unwrap_or_default();
        match kind {
            "output_text" => {
                let lists = ["annotations", "logprobs"].map(|name| optional(name, Kind::List));
                let mut fields = lists.to_vec();
                fields.extend([TYPE, required("text", Kind::Text)]);
                judge.fields(&path, part, &fields);
                check_library(&path, part, &["annotations"], judge);
            }
            "refusal" => judge.fields(&path, part, &[TYPE, required("refusal", Kind::Text)]),
            _ => judge.report(&path, "output-content", format!("the type is `{kind}`")),
        }
        let field = if kind == "refusal" { kind } else { "text" };
        let at = format!("{path}/{field}");
        let holds = text(part, field) != Some("");
        judge.demand(holds, &at, "empty-content", "the text is empty");
        check_length(&path, part, field, MAX_TEXT, judge);
    }
}

/// Checks a string, or a list of what the model reads.
fn check_parts(path: &str, item: &Value, field: &str, judge: &mut Judge) {
    let at = format!("{path}/{field}");
    match item.get(field) {
        Some(Value::String(string)) => {
            let holds = field == "output" || !string.is_empty();
            judge.demand(holds, &at, "empty-content", "the string is empty");
        }
        Some(Value::Array(parts)) => {
            judge.demand(!parts.is_empty(), &at, "empty-content", "the list is empty");
        }
        _ => {}
    }
    check_length(path, item, field, MAX_TEXT, judge);
    let instructs = ["system", "developer"].contains(&text(item, "role").unwrap_or_default());
    for (path, part) in items(path, item, field) {
        let kind = text(part, "type").unwrap_or_default();
        let holds = !instructs || kind == "input_text";
        judge.demand(holds, &path, "input-content", "instructions are text");
        match kind {
            "input_text" => {
                check_length(&path, part, "text", MAX_TEXT, judge);
                judge.fields(
                    &path,
                    part,
                    &[TYPE, required("text", Kind::Text), BREAKPOINT],
                );
                let at = format!("{path}/text");
                let holds = text(part, "text") != Some("");
                judge.demand(holds, &at, "empty-content", "the text is empty");
            }
            "input_image" => {
                let values = Kind::OneOf(&["low", "high", "auto", "original"]);
                let detail = optional("detail", values).or_null();
                if field == "content" {
                    check_library(&path, part, &["detail"], judge);
                }
                check_length(&path, part, "image_url", MAX_IMAGE, judge);
                let url = optional("image_url", Kind::Text).or_null();
                let id = optional("file_id", Kind::Text).or_null();
                judge.fields(&path, part, &[TYPE, detail, url, id, BREAKPOINT]);
                let url = text(part, "image_url").map(|url| is_web_url(url) || is_data_url(url));
                let holds = url.unwrap_or_else(|| has(part, "file_id"));
                judge.demand(holds, &path, "image-source", "neither a good URL nor an id");
                let kind = text(part, "image_url").and_then(data_url_type);
                let holds = kind.is_none_or(|kind| IMAGES.contains(&kind));
                judge.demand(holds, &path, "image-type", "the type is none of them");
            }
            "input_file" => {
                let names = ["file_data", "file_url", "filename"];
                let mut fields = names.map(|name| optional(name, Kind::Text)).to_vec();
                let detail = optional("detail", Kind::OneOf(&["auto", "low", "high"]));
                let id = optional("file_id", Kind::Text).or_null();
                fields.extend([TYPE, detail, id, BREAKPOINT]);
                judge.fields(&path, part, &fields);
                let data = text(part, "file_data")
                    .map(|data| has(part, "filename") && (is_base64(data) || is_data_url(data)));
                let url = text(part, "file_url").map(is_web_url);
                let holds = data.or(url).unwrap_or_else(|| has(part, "file_id"));
                let detail = "neither named data, nor a good URL, nor an id";
                judge.demand(holds, &path, "file-source", detail);
                let kind = text(part, "file_data").and_then(data_url_type);
                let holds = kind.is_none_or(|kind| kind == "application/pdf");
                judge.demand(holds, &path, "file-type", "the type is another");
            }
            _ => judge.report(&path, "input-content", format!("the type is `{kind}`")),
        }
    }
}

fn check_reasoning(path: &str, item: &Value, judge: &mut Judge) {
    let fields = [
        TYPE,
        optional("id", Kind::Text),
        required("summary", Kind::List),
        optional("content", Kind::List).or_null(),
        optional("encrypted_content", Kind::Text).or_null(),
        optional("status", STATUS),
    ];
    judge.fields(path, item, &fields);
    check_id(path, item, "rs", judge);
    check_library(path, item, &["id"], judge);
    let holds = text(item, "encrypted_content").is_some_and(|content| !content.is_empty());
    let detail = "there is no encrypted_content";
    judge.demand(holds, path, "reasoning-encrypted-content", detail);
    for (path, part) in items(path, item, "summary") {
        let kind = required("type", Kind::OneOf(&["summary_text"]));
        judge.fields(&path, part, &[kind, required("text", Kind::Text)]);
    }
    let holds = items(path, item, "content").is_empty();
    let at = format!("{path}/content");
    judge.demand(holds, &at, "reasoning-content", "there is content");
}

fn check_tool(path: &str, tool: &Value, judge: &mut Judge) {
    let fields = [
        required("type", Kind::OneOf(&["function"])),
        required("name", Kind::Text),
        optional("parameters", Kind::Object).or_null(),
        optional("strict", Kind::Flag).or_null(),
        optional("description", Kind::Text).or_null(),
    ];
    judge.fields(path, tool, &fields);
    check_library(path, tool, &["parameters", "strict"], judge);
    check_name(path, tool, judge);
    if has(tool, "parameters") {
        let holds = tool.pointer("/parameters/type").and_then(Value::as_str) == Some("object");
        let path = format!("{path}/parameters");
        judge.demand(holds, &path, "parameters", "the type is not `object`");
    }
}

/// Holds calls against outputs.
fn pairs(input: &[(String, &Value)], judge: &mut Judge) {
    let mut asked: BTreeMap<&str, (String, bool)> = BTreeMap::new();
    for (path, item) in input {
        let Some(id) = text(item, "call_id") else {
            continue;
        };
        let path = format!("{path}/call_id");
        match (item_type(item), asked.get_mut(id)) {
            ("function_call", Some(_)) => {
                judge.report(&path, "duplicate-call-id", format!("`{id}` comes twice"));
            }
            ("function_call", None) => {
                asked.insert(id, (path, false));
            }
            ("function_call_output", Some((_, answered @ false))) => *answered = true,
            ("function_call_output", Some(_)) => {
                judge.report(&path, "answered-twice", format!("the call `{id}`"));
            }
            ("function_call_output", None) => {
                judge.report(&path, "stray-output", format!("no call `{id}` before it"));
            }
            _ => {}
        }
    }
    for (id, (path, _)) in asked.iter().filter(|(_, (_, answered))| !answered) {
        let detail = format!("no output of `{id}` behind it");
        judge.report(path, "unanswered-call", detail);
    }
}

/// Holds reasoning against what follows it.
fn followers(input: &[(String, &Value)], judge: &mut Judge) {
    for (at, (path, item)) in input.iter().enumerate() {
        if item_type(item) != "reasoning" {
            continue;
        }
        let next = input.get(at + 1).map(|(_, next)| *next);
        let holds = next.is_some_and(|next| match item_type(next) {
            "message" => text(next, "role") == Some("assistant"),
            other => [
                "reasoning",
                "function_call",
                "web_search_call",
                "file_search_call",
                "code_interpreter_call",
                "image_generation_call",
            ]
            .contains(&other),
        });
        let detail = "nothing that the model wrote follows";
        judge.demand(holds, path, "reasoning-without-follower", detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cases::{Cases, list, remove};
    use super::super::openai_responses;
    use super::{MAX_IMAGE, MAX_TEXT, RULES};

    #[test]
    fn each_rule_fires() {
        let mut cases = Cases::new(
            openai_responses,
            json!({
                "instructions": "Be brief.",
                "input": [
                    {"role": "user", "content": "Hello."},
                    {"type": "message", "role": "user", "content": [
                        {"type": "input_text", "text": "What is this?"},
                        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
                        {"type": "input_file", "file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"},
                    ]},
                    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
                        "encrypted_content": "aGk="},
                    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"},
                    {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "call_2", "output": ""},
                    {"type": "function_call_output", "call_id": "call_1", "output": [
                        {"type": "input_image", "image_url": "https://a.b/c.png"}]},
                    {"role": "assistant", "content": "A cat."},
                    {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [
                        {"type": "output_text", "text": "A cat.", "annotations": []}]},
                ],
                "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": false}],
            }),
        );
        cases.good(|r| remove(r, "tools"));
        cases.good(|r| r["tools"][0]["parameters"] = json!(null));
        cases.good(|r| remove(r, "instructions"));

        cases.bad("not-an-object", "/input/0", |r| r["input"][0] = json!("hi"));
        cases.bad("missing-field", "/input", |r| remove(r, "input"));
        cases.bad("missing-field", "/input/3/call_id", |r| {
            remove(&mut r["input"][3], "call_id")
        });
        cases.bad("missing-field", "/input/2/summary", |r| {
            remove(&mut r["input"][2], "summary")
        });
        cases.bad("library-field", "/input/8/id", |r| {
            remove(&mut r["input"][8], "id")
        });
        cases.bad("library-field", "/input/8/status", |r| {
            remove(&mut r["input"][8], "status")
        });
        cases.bad("library-field", "/input/8/content/0/annotations", |r| {
            remove(&mut r["input"][8]["content"][0], "annotations");
        });
        cases.bad("library-field", "/input/1/content/1/detail", |r| {
            remove(&mut r["input"][1]["content"][1], "detail");
        });
        cases.bad("library-field", "/tools/0/strict", |r| {
            remove(&mut r["tools"][0], "strict")
        });
        cases.bad("unknown-field", "/input/0/tool_calls", |r| {
            r["input"][0]["tool_calls"] = json!([])
        });
        cases.bad("unknown-field", "/tools/0/function", |r| {
            r["tools"][0]["function"] = json!({})
        });
        cases.bad("wrong-type", "/input/3/arguments", |r| {
            r["input"][3]["arguments"] = json!({})
        });
        cases.bad("wrong-type", "/input/5/output", |r| {
            r["input"][5]["output"] = json!(null)
        });
        cases.bad("unknown-value", "/input/0/role", |r| {
            r["input"][0]["role"] = json!("tool")
        });
        cases.bad("unknown-value", "/input/2/summary/0/type", |r| {
            r["input"][2]["summary"][0]["type"] = json!("text");
        });

        cases.bad("library-field", "/input/2/id", |r| {
            remove(&mut r["input"][2], "id")
        });
        cases.bad("missing-field", "/input/8/content/0/text", |r| {
            remove(&mut r["input"][8]["content"][0], "text")
        });
        for pointer in [
            "/input/0/content",
            "/input/1/content/0/text",
            "/input/5/output",
            "/input/8/content/0/text",
        ] {
            cases.bad("too-long", pointer, |r| {
                *r.pointer_mut(pointer).unwrap() = json!("x".repeat(MAX_TEXT + 1))
            });
            cases.good(|r| *r.pointer_mut(pointer).unwrap() = json!("é".repeat(MAX_TEXT)));
        }
        cases.bad("too-long", "/input/1/content/1/image_url", |r| {
            let url = format!("https://a.b/{}", "x".repeat(MAX_IMAGE));
            r["input"][1]["content"][1]["image_url"] = json!(url);
        });
        cases.bad("input-content", "/input/1/content/1", |r| {
            r["input"][1]["role"] = json!("developer")
        });
        cases.bad("reasoning-content", "/input/2/content", |r| {
            r["input"][2]["content"] = json!([{"type": "reasoning_text", "text": "Hm."}]);
        });
        cases.bad("empty-input", "/input", |r| r["input"] = json!([]));
        cases.bad("unknown-item", "/input/0", |r| {
            r["input"][0] = json!({"type": "item_reference", "id": "msg_1"})
        });
        cases.bad("empty-content", "/input/0/content", |r| {
            r["input"][0]["content"] = json!("")
        });
        cases.bad("empty-content", "/input/1/content", |r| {
            r["input"][1]["content"] = json!([])
        });
        cases.bad("empty-content", "/input/8/content", |r| {
            r["input"][8]["content"] = json!([])
        });
        cases.bad("empty-content", "/input/1/content/0/text", |r| {
            r["input"][1]["content"][0]["text"] = json!("")
        });
        cases.bad("empty-content", "/input/8/content/0/text", |r| {
            r["input"][8]["content"][0]["text"] = json!("")
        });
        for kind in ["text", "output_text", "image_url"] {
            cases.bad("input-content", "/input/1/content/0", |r| {
                r["input"][1]["content"][0]["type"] = json!(kind)
            });
        }
        for kind in ["text", "input_text"] {
            cases.bad("output-content", "/input/8/content/0", |r| {
                r["input"][8]["content"][0]["type"] = json!(kind)
            });
        }
        cases.bad("image-source", "/input/1/content/1", |r| {
            r["input"][1]["content"][1]["image_url"] = json!("aGk=")
        });
        cases.bad("image-source", "/input/6/output/0", |r| {
            remove(&mut r["input"][6]["output"][0], "image_url")
        });
        for kind in ["image/svg+xml", "image/bmp", "image/*", "image/jpg"] {
            cases.bad("image-type", "/input/1/content/1", |r| {
                let url = format!("data:{kind};base64,aGk=");
                r["input"][1]["content"][1]["image_url"] = json!(url);
            });
        }
        cases.bad("file-type", "/input/1/content/2", |r| {
            r["input"][1]["content"][2]["file_data"] = json!("data:application/zip;base64,aGk=");
        });
        let calls = [
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}),
            json!({"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": []}),
            json!({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": null,
                "container_id": "c", "outputs": null}),
            json!({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": null}),
        ];
        for call in &calls {
            cases.good(|r| list(r, "/input").insert(3, call.clone()));
            cases.bad("missing-field", "/input/3/status", |r| {
                let mut call = call.clone();
                remove(&mut call, "status");
                list(r, "/input").insert(3, call);
            });
            cases.bad("item-id", "/input/3/id", |r| {
                let mut call = call.clone();
                call["id"] = json!("call_1");
                list(r, "/input").insert(3, call);
            });
        }
        cases.bad("file-source", "/input/1/content/2", |r| {
            remove(&mut r["input"][1]["content"][2], "filename")
        });
        cases.bad("file-source", "/input/1/content/2", |r| {
            remove(&mut r["input"][1]["content"][2], "file_data")
        });
        for (at, id) in [(2, "reason_1"), (3, "call_1"), (8, "1")] {
            cases.bad("item-id", &format!("/input/{at}/id"), |r| {
                r["input"][at]["id"] = json!(id)
            });
        }
        for length in [0, 65] {
            cases.bad("call-id", "/input/3/call_id", |r| {
                r["input"][3]["call_id"] = json!("x".repeat(length))
            });
        }
        cases.bad("duplicate-call-id", "/input/4/call_id", |r| {
            r["input"][4]["call_id"] = json!("call_1")
        });
        cases.bad("unanswered-call", "/input/3/call_id", |r| {
            list(r, "/input").remove(6);
        });
        cases.bad("stray-output", "/input/4/call_id", |r| {
            list(r, "/input").swap(4, 5);
        });
        cases.bad("answered-twice", "/input/6/call_id", |r| {
            r["input"][6] = r["input"][5].clone()
        });
        for name in ["", "a.b", &"x".repeat(65)] {
            cases.bad("function-name", "/input/3/name", |r| {
                r["input"][3]["name"] = json!(name)
            });
            cases.bad("function-name", "/tools/0/name", |r| {
                r["tools"][0]["name"] = json!(name)
            });
        }
        cases.bad("reasoning-encrypted-content", "/input/2", |r| {
            remove(&mut r["input"][2], "encrypted_content")
        });
        cases.bad("reasoning-without-follower", "/input/2", |r| {
            list(r, "/input").truncate(3)
        });
        cases.bad("reasoning-without-follower", "/input/1", |r| {
            list(r, "/input").swap(1, 2)
        });
        cases.bad("parameters", "/tools/0/parameters", |r| {
            r["tools"][0]["parameters"] = json!({})
        });
        cases.finish(RULES, &["/parameters/"]);
    }
}

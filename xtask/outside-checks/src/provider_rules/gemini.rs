//! Gemini's `generateContent`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::{Rule, rule};
use super::shape::{Judge, Kind, has, is_base64, is_mime_type, items, optional, required, text};

/// The rules of [`gemini`](super::gemini), beside those of every provider.
///
/// «Type» is the type of that name in `google.genai.types`; «error» is an answer of the server.
pub const RULES: &[Rule] = &[
    rule(
        "empty-contents",
        "there is a content (error: «contents is not specified»)",
    ),
    rule(
        "first-content",
        "the first content is the user's (error: «Please ensure that function call turn comes immediately after a user turn»)",
    ),
    rule(
        "neighbours-merged",
        "user and model alternate: the writers' promise; the documents ask for it in chats",
    ),
    rule(
        "empty-parts",
        "a content has a part (error: «contents.parts must not be empty»)",
    ),
    rule(
        "no-data",
        "a part has a field with data (error: «required oneof field 'data' must have one initialized field»)",
    ),
    rule(
        "several-data",
        "a part has one field with data (type Part: exactly one)",
    ),
    rule(
        "empty-text",
        "a text is not empty (error: «it must have a text parameter»), unless it carries a signature (page on thought signatures)",
    ),
    rule(
        "part-role",
        "calls, code and thoughts are the model's; results are the user's",
    ),
    rule(
        "system-text",
        "the system instruction is text (API reference: «currently, text only»)",
    ),
    rule(
        "function-name",
        "a function's name begins with a letter or `_` and has at most 128 of `a-zA-Z0-9_.:-` (type FunctionDeclaration)",
    ),
    rule(
        "unanswered-call",
        "the content right behind calls has their results (error: «Please ensure that function response turn comes immediately after a function call turn»)",
    ),
    rule(
        "stray-response",
        "results stand right behind calls (same error)",
    ),
    rule(
        "response-count",
        "there are as many results as calls (error: «the number of function response parts is equal to the number of function call parts»)",
    ),
    rule(
        "response-name",
        "results have the names of the calls, in their order (type FunctionResponse)",
    ),
    rule(
        "response-id",
        "results have the ids of the calls that have one (type FunctionResponse)",
    ),
    rule(
        "duplicate-call-id",
        "the id of a call is unique in the request (type FunctionCall)",
    ),
    rule(
        "media",
        "inline data has a MIME type and base64; a file has a URI (types Blob, FileData)",
    ),
    rule(
        "media-type",
        "a MIME type is one that the models read (pages on images, audio, video, documents and files by URL)",
    ),
    rule(
        "call-signature",
        "in the current turn, the first call of each content has a signature, or a placeholder where another model wrote it (page on thought signatures; error of Gemini 3: «missing a thought_signature»)",
    ),
    rule(
        "signature",
        "a signature is base64, in either alphabet (type Part: bytes)",
    ),
    rule(
        "empty-tools",
        "a tool declares a function (error: «tool_type: required one_of 'tool_type' must have one initialized field»)",
    ),
    rule(
        "duplicate-tool",
        "the names of declared functions are unique (error: «Duplicate function declaration found»)",
    ),
    rule(
        "two-schemas",
        "`parameters` and `parametersJsonSchema` exclude one another (type FunctionDeclaration)",
    ),
    rule(
        "schema-field",
        "`parameters` has only the fields of the type Schema (error: «Unknown name»); all of JSON Schema is for parametersJsonSchema",
    ),
];

/// The MIME types that the models read.
const MEDIA: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "audio/wav",
    "audio/mp3",
    "audio/mpeg",
    "audio/aiff",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "video/mp4",
    "video/mpeg",
    "video/mpg",
    "video/mov",
    "video/quicktime",
    "video/avi",
    "video/x-flv",
    "video/webm",
    "video/wmv",
    "video/3gpp",
    "application/pdf",
    "text/plain",
    "text/html",
    "text/css",
    "text/csv",
    "text/xml",
    "text/rtf",
    "text/md",
    "text/markdown",
    "text/javascript",
];

/// The fields of a part that hold its data.
const DATA: [&str; 7] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

pub(super) fn check(request: &Value, judge: &mut Judge) {
    let system = optional("systemInstruction", Kind::Object);
    let contents = required("contents", Kind::List);
    judge.fields(
        "",
        request,
        &[system, contents, optional("tools", Kind::List)],
    );
    if let Some(system) = request.get("systemInstruction") {
        check_system(system, judge);
    }
    let contents = items("", request, "contents");
    if request.get("contents").is_some_and(Value::is_array) {
        judge.demand(
            !contents.is_empty(),
            "/contents",
            "empty-contents",
            "no content",
        );
    }
    let mut before = None;
    for (path, content) in &contents {
        let role = text(content, "role").unwrap_or_default();
        check_content(path, role, content, judge);
        let path = format!("{path}/role");
        match before {
            None => judge.demand(role == "user", &path, "first-content", "not the user's"),
            Some(before) => {
                let detail = format!("two contents of `{role}` in a row");
                judge.demand(before != role, &path, "neighbours-merged", &detail);
            }
        }
        before = Some(role);
    }
    pairs(&contents, judge);
    signatures(&contents, judge);
    let mut names = BTreeSet::new();
    for (path, tool) in items("", request, "tools") {
        judge.fields(&path, tool, &[required("functionDeclarations", Kind::List)]);
        let functions = items(&path, tool, "functionDeclarations");
        let holds = !functions.is_empty();
        judge.demand(holds, &path, "empty-tools", "no function is declared");
        for (path, function) in functions {
            check_function(&path, function, judge);
            if let Some(name) = text(function, "name").filter(|name| !names.insert(*name)) {
                let path = format!("{path}/name");
                judge.report(&path, "duplicate-tool", format!("`{name}` comes twice"));
            }
        }
    }
}

fn check_system(system: &Value, judge: &mut Judge) {
    let path = "/systemInstruction";
    let fields = [required("parts", Kind::List), optional("role", Kind::Text)];
    judge.fields(path, system, &fields);
    let parts = items(path, system, "parts");
    let at = format!("{path}/parts");
    judge.demand(!parts.is_empty(), &at, "empty-parts", "there is no part");
    for (path, part) in parts {
        judge.demand(has(part, "text"), &path, "system-text", "this is no text");
        check_part(&path, "user", part, judge);
    }
}

fn check_content(path: &str, role: &str, content: &Value, judge: &mut Judge) {
    let roles = required("role", Kind::OneOf(&["user", "model"]));
    judge.fields(path, content, &[roles, required("parts", Kind::List)]);
    let parts = items(path, content, "parts");
    let at = format!("{path}/parts");
    judge.demand(!parts.is_empty(), &at, "empty-parts", "there is no part");
    for (path, part) in parts {
        check_part(&path, role, part, judge);
    }
}

fn check_part(path: &str, role: &str, part: &Value, judge: &mut Judge) {
    let mut fields = vec![
        optional("text", Kind::Text),
        optional("thought", Kind::Flag),
        optional("thoughtSignature", Kind::Text),
        optional("partMetadata", Kind::Object),
        optional("videoMetadata", Kind::Object),
        optional("mediaResolution", Kind::Object),
    ];
    fields.extend(DATA[1..].iter().map(|name| optional(name, Kind::Object)));
    judge.fields(path, part, &fields);
    let data: Vec<&str> = DATA.into_iter().filter(|name| has(part, name)).collect();
    judge.demand(!data.is_empty(), path, "no-data", "there is no data");
    let detail = format!("there are {}", data.join(", "));
    judge.demand(data.len() < 2, path, "several-data", &detail);
    let signature = text(part, "thoughtSignature");
    let holds = text(part, "text") != Some("") || signature.is_some();
    judge.demand(
        holds,
        &format!("{path}/text"),
        "empty-text",
        "the text is empty",
    );
    if let Some(signature) = signature {
        // JSON of protocol buffers takes both alphabets of base64, with padding or without.
        let digits = signature.trim_end_matches('=');
        let standard = digits.replace('-', "+").replace('_', "/");
        let padding = "=".repeat((4 - standard.len() % 4) % 4);
        let path = format!("{path}/thoughtSignature");
        let holds = is_base64(&(standard + &padding));
        judge.demand(holds, &path, "signature", "this is no base64");
    }
    let thought = part.get("thought") == Some(&Value::Bool(true));
    let code = ["functionCall", "executableCode", "codeExecutionResult"];
    let of_model = thought || code.iter().any(|name| has(part, name));
    let detail = format!("in a content of `{role}`");
    judge.demand(!of_model || role == "model", path, "part-role", &detail);
    let of_user = has(part, "functionResponse");
    judge.demand(!of_user || role == "user", path, "part-role", &detail);
    for name in DATA {
        if let Some(data) = part.get(name) {
            check_data(&format!("{path}/{name}"), name, data, judge);
        }
    }
}

fn check_data(path: &str, name: &str, data: &Value, judge: &mut Judge) {
    match name {
        "inlineData" => check_blob(path, data, judge),
        "fileData" => {
            let uri = required("fileUri", Kind::Text);
            let mime = optional("mimeType", Kind::Text);
            judge.fields(
                path,
                data,
                &[uri, mime, optional("displayName", Kind::Text)],
            );
            let holds = text(data, "fileUri") != Some("")
                && text(data, "mimeType").is_none_or(is_mime_type);
            judge.demand(
                holds,
                path,
                "media",
                "the URI is empty, or the MIME type is none",
            );
            check_type(path, data, judge);
        }
        "functionCall" => {
            let fields = [
                required("name", Kind::Text),
                optional("args", Kind::Object),
                optional("id", Kind::Text),
            ];
            judge.fields(path, data, &fields);
            check_name(path, data, judge);
        }
        "functionResponse" => {
            let fields = [
                required("name", Kind::Text),
                required("response", Kind::Object),
                optional("id", Kind::Text),
                optional("parts", Kind::List),
            ];
            judge.fields(path, data, &fields);
            check_name(path, data, judge);
            for (path, part) in items(path, data, "parts") {
                judge.fields(&path, part, &[required("inlineData", Kind::Object)]);
                if let Some(blob) = part.get("inlineData") {
                    check_blob(&format!("{path}/inlineData"), blob, judge);
                }
            }
        }
        "executableCode" => {
            let id = optional("id", Kind::Text);
            let language = required("language", Kind::OneOf(&["PYTHON"]));
            judge.fields(path, data, &[id, language, required("code", Kind::Text)]);
        }
        "codeExecutionResult" => {
            let id = optional("id", Kind::Text);
            let outcomes =
                Kind::OneOf(&["OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"]);
            let output = optional("output", Kind::Text);
            judge.fields(path, data, &[id, required("outcome", outcomes), output]);
        }
        _ => {}
    }
}

fn check_blob(path: &str, blob: &Value, judge: &mut Judge) {
    let fields = [
        required("mimeType", Kind::Text),
        required("data", Kind::Text),
        optional("displayName", Kind::Text),
    ];
    judge.fields(path, blob, &fields);
    let holds =
        text(blob, "mimeType").is_none_or(is_mime_type) && text(blob, "data").is_none_or(is_base64);
    judge.demand(holds, path, "media", "no MIME type, or no base64");
    check_type(path, blob, judge);
}

fn check_type(path: &str, data: &Value, judge: &mut Judge) {
    if let Some(kind) = text(data, "mimeType") {
        let path = format!("{path}/mimeType");
        let detail = format!("`{kind}` is not read");
        judge.demand(MEDIA.contains(&kind), &path, "media-type", &detail);
    }
}

/// Holds the calls of the current turn, which begins at the last words of the user, against their signatures.
fn signatures(contents: &[(String, &Value)], judge: &mut Judge) {
    let begins = |(path, content): &(String, &Value)| {
        text(content, "role") == Some("user")
            && data_of(path, content, "functionResponse").is_empty()
    };
    let turn = contents.iter().rposition(begins).unwrap_or(0);
    for (path, content) in contents.iter().skip(turn) {
        let parts = items(path, content, "parts");
        let first = parts.iter().find(|(_, part)| has(part, "functionCall"));
        if let Some((path, call)) = first {
            let holds = has(call, "thoughtSignature");
            judge.demand(holds, path, "call-signature", "it has no signature");
        }
    }
}

fn check_name(path: &str, function: &Value, judge: &mut Judge) {
    if let Some(name) = text(function, "name") {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
        let first = name.bytes().next();
        let holds = first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && name.len() <= 128
            && name.bytes().all(allowed);
        let path = format!("{path}/name");
        let detail = format!("`{name}` breaks the pattern");
        judge.demand(holds, &path, "function-name", &detail);
    }
}

fn check_function(path: &str, function: &Value, judge: &mut Judge) {
    let fields = [
        required("name", Kind::Text),
        optional("description", Kind::Text),
        optional("parameters", Kind::Object),
        optional("parametersJsonSchema", Kind::Object),
    ];
    judge.fields(path, function, &fields);
    check_name(path, function, judge);
    if let Some(parameters) = function.get("parameters") {
        let holds = !has(function, "parametersJsonSchema");
        judge.demand(holds, path, "two-schemas", "both are there");
        check_schema(&format!("{path}/parameters"), parameters, judge);
    }
}

/// Checks the names of the fields of a schema, and of those that it holds.
fn check_schema(path: &str, schema: &Value, judge: &mut Judge) {
    const FIELDS: [&str; 22] = [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "example",
        "anyOf",
        "propertyOrdering",
        "default",
        "items",
        "minimum",
        "maximum",
    ];
    for name in schema
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        let holds = FIELDS.contains(&name.as_str());
        let path = format!("{path}/{name}");
        judge.demand(
            holds,
            &path,
            "schema-field",
            "the type Schema has no such field",
        );
    }
    if let Some(items) = schema.get("items") {
        check_schema(&format!("{path}/items"), items, judge);
    }
    for (path, schema) in items(path, schema, "anyOf") {
        check_schema(&path, schema, judge);
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        check_schema(&format!("{path}/properties/{name}"), schema, judge);
    }
}

/// The calls or results of a content, each with its path.
fn data_of<'v>(path: &str, content: &'v Value, name: &str) -> Vec<(String, &'v Value)> {
    let parts = items(path, content, "parts").into_iter();
    parts
        .filter_map(|(path, part)| Some((format!("{path}/{name}"), part.get(name)?)))
        .collect()
}

/// Holds calls against the results right behind them.
fn pairs(contents: &[(String, &Value)], judge: &mut Judge) {
    let mut seen = BTreeSet::new();
    let mut calls = Vec::new();
    for (path, content) in contents {
        let responses = data_of(path, content, "functionResponse");
        compare(&calls, path, &responses, judge);
        calls = data_of(path, content, "functionCall");
        for (path, call) in &calls {
            if let Some(id) = text(call, "id").filter(|id| !seen.insert(*id)) {
                let path = format!("{path}/id");
                judge.report(&path, "duplicate-call-id", format!("`{id}` comes twice"));
            }
        }
    }
    compare(&calls, "", &[], judge);
}

fn compare(
    calls: &[(String, &Value)],
    path: &str,
    responses: &[(String, &Value)],
    judge: &mut Judge,
) {
    if responses.is_empty() {
        for (path, _) in calls {
            judge.report(path, "unanswered-call", "no result stands right behind");
        }
    } else if calls.is_empty() {
        for (path, _) in responses {
            judge.report(path, "stray-response", "no call stands right before");
        }
    } else if calls.len() != responses.len() {
        let detail = format!("{} calls, {} results", calls.len(), responses.len());
        judge.report(path, "response-count", detail);
    } else {
        for ((_, call), (path, response)) in calls.iter().zip(responses) {
            for (field, rule) in [("name", "response-name"), ("id", "response-id")] {
                let (call, response) = (text(call, field), text(response, field));
                let detail = format!("{response:?} answers {call:?}");
                judge.demand(call == response, &format!("{path}/{field}"), rule, &detail);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cases::{Cases, list, remove};
    use super::super::gemini;
    use super::RULES;

    #[test]
    fn each_rule_fires() {
        let mut cases = Cases::new(
            gemini,
            json!({
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "contents": [
                    {"role": "user", "parts": [
                        {"text": "What is this?"},
                        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                        {"fileData": {"fileUri": "https://a.b/c.pdf", "mimeType": "application/pdf"}},
                    ]},
                    {"role": "model", "parts": [
                        {"text": "Hm.", "thought": true},
                        {"functionCall": {"id": "1", "name": "look", "args": {}}, "thoughtSignature": "aGk_"},
                        {"functionCall": {"name": "a.b:c", "args": {"x": 1}}},
                    ]},
                    {"role": "user", "parts": [
                        {"functionResponse": {"id": "1", "name": "look", "response": {"output": "b"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]}},
                        {"functionResponse": {"name": "a.b:c", "response": {}}},
                        {"text": "Well?"},
                    ]},
                    {"role": "model", "parts": [{"text": "A cat."}, {"text": "", "thoughtSignature": "aGk="}]},
                ],
                "tools": [{"functionDeclarations": [
                    {"name": "look", "description": "Looks.", "parametersJsonSchema": {"type": "object"}},
                    {"name": "a.b:c", "parameters": {"type": "OBJECT", "properties": {
                        "x": {"type": "ARRAY", "items": {"anyOf": [{"type": "STRING"}]}}}}},
                ]}],
            }),
        );
        cases.good(|r| remove(r, "systemInstruction"));
        cases.good(|r| remove(r, "tools"));

        cases.bad("not-an-object", "/contents/0", |r| {
            r["contents"][0] = json!("hi")
        });
        cases.bad("not-an-object", "/contents/0/parts/0", |r| {
            r["contents"][0]["parts"][0] = json!("hi")
        });
        cases.bad("missing-field", "/contents", |r| remove(r, "contents"));
        cases.bad("missing-field", "/contents/3/role", |r| {
            remove(&mut r["contents"][3], "role")
        });
        cases.bad(
            "missing-field",
            "/contents/2/parts/1/functionResponse/response",
            |r| {
                remove(
                    &mut r["contents"][2]["parts"][1]["functionResponse"],
                    "response",
                );
            },
        );
        cases.bad(
            "missing-field",
            "/contents/0/parts/1/inlineData/mimeType",
            |r| {
                remove(&mut r["contents"][0]["parts"][1]["inlineData"], "mimeType");
            },
        );
        cases.bad("unknown-field", "/system_instruction", |r| {
            r["system_instruction"] = json!({})
        });
        cases.bad("unknown-field", "/contents/0/parts/0/type", |r| {
            r["contents"][0]["parts"][0]["type"] = json!("text")
        });
        cases.bad("wrong-type", "/contents/1/parts/1/functionCall/args", |r| {
            r["contents"][1]["parts"][1]["functionCall"]["args"] = json!("{}");
        });
        cases.bad(
            "wrong-type",
            "/contents/2/parts/0/functionResponse/response",
            |r| {
                r["contents"][2]["parts"][0]["functionResponse"]["response"] = json!("b");
            },
        );
        cases.bad("unknown-value", "/contents/3/role", |r| {
            r["contents"][3]["role"] = json!("assistant")
        });

        cases.bad("empty-contents", "/contents", |r| r["contents"] = json!([]));
        cases.bad("first-content", "/contents/0/role", |r| {
            list(r, "/contents").remove(0);
        });
        cases.bad("neighbours-merged", "/contents/4/role", |r| {
            list(r, "/contents").push(json!({"role": "model", "parts": [{"text": "A dog."}]}));
        });
        cases.bad("empty-parts", "/contents/3/parts", |r| {
            r["contents"][3]["parts"] = json!([])
        });
        cases.bad("empty-parts", "/systemInstruction/parts", |r| {
            r["systemInstruction"]["parts"] = json!([])
        });
        cases.bad("no-data", "/contents/3/parts/0", |r| {
            r["contents"][3]["parts"][0] = json!({"thought": true})
        });
        cases.bad("several-data", "/contents/1/parts/1", |r| {
            r["contents"][1]["parts"][1]["text"] = json!("x")
        });
        cases.bad("empty-text", "/contents/3/parts/0/text", |r| {
            r["contents"][3]["parts"][0]["text"] = json!("")
        });
        cases.bad("empty-text", "/systemInstruction/parts/0/text", |r| {
            r["systemInstruction"]["parts"][0]["text"] = json!("")
        });
        cases.bad("part-role", "/contents/0/parts/0", |r| {
            r["contents"][0]["parts"][0] = r["contents"][1]["parts"][1].clone()
        });
        cases.bad("part-role", "/contents/0/parts/0", |r| {
            r["contents"][0]["parts"][0]["thought"] = json!(true)
        });
        cases.bad("part-role", "/contents/3/parts/0", |r| {
            r["contents"][3]["parts"][0] = r["contents"][2]["parts"][0].clone()
        });
        cases.bad("system-text", "/systemInstruction/parts/0", |r| {
            r["systemInstruction"]["parts"][0] = r["contents"][0]["parts"][1].clone();
        });
        for name in ["", "1a", "a b", &"x".repeat(129)] {
            cases.bad(
                "function-name",
                "/contents/1/parts/1/functionCall/name",
                |r| {
                    r["contents"][1]["parts"][1]["functionCall"]["name"] = json!(name);
                },
            );
            cases.bad(
                "function-name",
                "/tools/0/functionDeclarations/0/name",
                |r| {
                    r["tools"][0]["functionDeclarations"][0]["name"] = json!(name);
                },
            );
        }
        cases.bad("unanswered-call", "/contents/1/parts/1/functionCall", |r| {
            list(r, "/contents").truncate(2)
        });
        cases.bad("unanswered-call", "/contents/1/parts/2/functionCall", |r| {
            r["contents"][2]["parts"] = json!([{"text": "Well?"}]);
        });
        cases.bad(
            "stray-response",
            "/contents/2/parts/0/functionResponse",
            |r| {
                r["contents"][1]["parts"] = json!([{"text": "Well?"}]);
            },
        );
        cases.bad("response-count", "/contents/2", |r| {
            list(r, "/contents/2/parts").remove(1);
        });
        cases.bad(
            "response-name",
            "/contents/2/parts/0/functionResponse/name",
            |r| list(r, "/contents/2/parts").swap(0, 1),
        );
        cases.bad(
            "response-id",
            "/contents/2/parts/0/functionResponse/id",
            |r| {
                remove(&mut r["contents"][2]["parts"][0]["functionResponse"], "id");
            },
        );
        cases.bad(
            "duplicate-call-id",
            "/contents/1/parts/2/functionCall/id",
            |r| {
                r["contents"][1]["parts"][2]["functionCall"]["id"] = json!("1");
            },
        );
        cases.bad("media", "/contents/0/parts/1/inlineData", |r| {
            r["contents"][0]["parts"][1]["inlineData"]["data"] = json!("?")
        });
        cases.bad("media", "/contents/0/parts/1/inlineData", |r| {
            r["contents"][0]["parts"][1]["inlineData"]["mimeType"] = json!("png");
        });
        cases.bad("media", "/contents/0/parts/2/fileData", |r| {
            r["contents"][0]["parts"][2]["fileData"]["fileUri"] = json!("")
        });
        cases.bad(
            "media",
            "/contents/2/parts/0/functionResponse/parts/0/inlineData",
            |r| {
                r["contents"][2]["parts"][0]["functionResponse"]["parts"][0]["inlineData"]["data"] =
                    json!("");
            },
        );
        for (kind, part, field) in [
            ("image/svg+xml", 1, "inlineData"),
            ("image/gif", 1, "inlineData"),
            ("image/*", 2, "fileData"),
            ("application/zip", 2, "fileData"),
        ] {
            let path = format!("/contents/0/parts/{part}/{field}/mimeType");
            cases.bad("media-type", &path, |r| {
                r["contents"][0]["parts"][part][field]["mimeType"] = json!(kind);
            });
        }
        cases.bad("call-signature", "/contents/1/parts/1", |r| {
            remove(&mut r["contents"][1]["parts"][1], "thoughtSignature");
        });
        // The user's next words begin another turn.
        cases.good(|r| {
            remove(&mut r["contents"][1]["parts"][1], "thoughtSignature");
            list(r, "/contents").push(json!({"role": "user", "parts": [{"text": "Sure?"}]}));
        });
        for signature in ["", "a", "a?b="] {
            cases.bad("signature", "/contents/1/parts/1/thoughtSignature", |r| {
                r["contents"][1]["parts"][1]["thoughtSignature"] = json!(signature);
            });
        }
        cases.bad("empty-tools", "/tools/0", |r| {
            r["tools"][0]["functionDeclarations"] = json!([])
        });
        cases.bad(
            "duplicate-tool",
            "/tools/0/functionDeclarations/1/name",
            |r| {
                r["tools"][0]["functionDeclarations"][1]["name"] = json!("look");
            },
        );
        cases.bad("two-schemas", "/tools/0/functionDeclarations/0", |r| {
            r["tools"][0]["functionDeclarations"][0]["parameters"] = json!({});
        });
        for pointer in ["", "/properties/x", "/properties/x/items/anyOf/0"] {
            let path = format!("/tools/0/functionDeclarations/1/parameters{pointer}");
            cases.bad(
                "schema-field",
                &format!("{path}/additionalProperties"),
                |r| {
                    r.pointer_mut(&path).unwrap()["additionalProperties"] = json!(false);
                },
            );
        }
        cases.finish(
            RULES,
            &[
                "/args/",
                "/response/",
                "/parametersJsonSchema/",
                "/parameters/",
            ],
        );
    }
}

//! `serve` as a process, over real sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Home, PATIENCE, linked_worktree, program};

const TOKEN: &str = "a-token-for-tests-1";
const TRIGGER: &str = "compaction_trigger";

/// A server process that is stopped at the end of the test.
pub struct Server {
    process: Child,
    /// Kept open, because the process may write to it.
    stderr: BufReader<ChildStderr>,
    port: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Serves the sessions of the home's folder.
    fn of_project(home: &Home) -> Self {
        Self::start(home, &["serve", "--port", "0"])
    }

    /// Serves all sessions of the home's database with these options of `serve`.
    pub fn of_all(home: &Home, options: &[&str]) -> Self {
        let store = home.database();
        std::fs::create_dir_all(store.parent().unwrap()).unwrap();
        let store = store.to_str().unwrap().to_owned();
        let arguments = ["--store", &store, "serve", "--port", "0"];
        Self::start(home, &[&arguments, options].concat())
    }

    fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::start_in(home, home.path(), arguments)
    }

    fn start_in(home: &Home, folder: &Path, arguments: &[&str]) -> Self {
        let mut command = home.process(program());
        command.current_dir(folder);
        command.env("AGENT_MEMORY_TOKEN", TOKEN).args(arguments);
        let mut process = command.spawn().unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        let port = loop {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended");
            if let Some((_, port)) = line.split_once("http://127.0.0.1:") {
                break port.trim_end().to_owned();
            }
        };
        Self {
            process,
            stderr,
            port,
        }
    }

    /// Sends a request as it is. Returns the status and the body.
    pub fn raw(&self, head: &str, body: &[u8]) -> (u16, String) {
        let mut connection = self.connection();
        let head = format!(
            "{head}Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        connection.write_all(head.as_bytes()).unwrap();
        // A server that refuses a request may not read it whole.
        let _ = connection.write_all(body);
        answered(connection)
    }

    fn connection(&self) -> TcpStream {
        let connection = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection
    }

    pub fn head(&self, method: &str, path: &str) -> String {
        let port = &self.port;
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        )
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.raw(&self.head("GET", path), b"")
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, text) = self.raw(&self.head("POST", path), body.to_string().as_bytes());
        let value = serde_json::from_str(&text);
        (
            status,
            value.unwrap_or_else(|_| panic!("{path}: {status} {text}")),
        )
    }

    /// Sends a request that must succeed.
    fn ok(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.post(path, body);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Compacts the items of a session, and returns the only item of the answer.
    fn compact(&self, key: Option<&str>, items: &[Value]) -> Value {
        let body = json!({"model": "m", "input": items, "prompt_cache_key": key});
        only(&self.ok("/v1/responses/compact", &body))
    }

    fn sessions(&self) -> Vec<Value> {
        let (status, text) = self.get("/v1/sessions");
        assert_eq!(status, 200, "{text}");
        let list: Value = serde_json::from_str(&text).unwrap();
        list["sessions"].as_array().unwrap().clone()
    }

    /// Returns the number of entries of each session, by key.
    fn sizes(&self) -> Vec<(String, u64)> {
        let size = |one: &Value| {
            let key = one["session"].as_str().unwrap().to_owned();
            (key, one["messages"].as_u64().unwrap())
        };
        let mut sizes: Vec<_> = self.sessions().iter().map(size).collect();
        sizes.sort();
        sizes
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(self.process.id() as i32).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }
}

fn answered(mut connection: TcpStream) -> (u16, String) {
    let mut reply = Vec::new();
    // A connection that the server resets has its answer before.
    let _ = connection.read_to_end(&mut reply);
    let reply = String::from_utf8(reply).unwrap();
    let status = reply.split(' ').nth(1).unwrap_or_default();
    let body = reply.split_once("\r\n\r\n").unwrap_or_default().1;
    (status.parse().unwrap_or(0), body.to_owned())
}

/// Returns the only item of an answer.
fn only(answer: &Value) -> Value {
    let output = answer["output"].as_array().unwrap();
    assert_eq!(output.len(), 1, "{answer}");
    assert_eq!(output[0]["type"], "compaction");
    assert!(output[0]["id"].as_str().unwrap().starts_with("cmp_"));
    assert!(answer["usage"]["output_tokens"].as_u64().unwrap() > 0);
    output[0].clone()
}

/// Returns the pointer in an item.
fn pointer(item: &Value) -> Value {
    let text = item["encrypted_content"].as_str().unwrap();
    let header = text.lines().next().unwrap();
    serde_json::from_str(header.strip_prefix("<agent-memory> ").unwrap()).unwrap()
}

fn said(role: &str, text: &str) -> Value {
    let kind = match role {
        "assistant" => "output_text",
        _ => "input_text",
    };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn talk(turns: std::ops::Range<usize>) -> Vec<Value> {
    let turn = |n: usize| {
        let filler = format!("word{n} ").repeat(60);
        [
            said(
                "user",
                &format!("Question {n}: what about the lighthouse number {n}?"),
            ),
            json!({"type": "function_call", "call_id": format!("call_{n}"), "name": "look",
                "arguments": format!("{{\"n\":{n}}}")}),
            json!({"type": "function_call_output", "call_id": format!("call_{n}"), "output": filler}),
            said("assistant", &format!("Answer {n}: it is white.")),
        ]
    };
    turns.flat_map(turn).collect()
}

/// Returns the recorded items of Codex's transcripts, by file.
fn recorded() -> Vec<(String, Vec<Value>)> {
    let mut folders =
        vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents/codex")];
    match std::env::var_os("AGENT_MEMORY_CORPUS") {
        Some(corpus) => folders.push(PathBuf::from(corpus).join("codex")),
        None => assert!(
            std::env::var_os("AGENT_MEMORY_REQUIRE_CORPUS").is_none_or(|value| value != "1"),
            "AGENT_MEMORY_CORPUS is not set"
        ),
    }
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let items = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let items = lines.filter(|line| line["type"] == "response_item");
        items
            .map(|line| line["payload"].clone())
            .collect::<Vec<_>>()
    };
    let name = |file: &PathBuf| file.file_stem().unwrap().to_str().unwrap().to_owned();
    let all = files.iter().map(|file| (name(file), items(file)));
    all.filter(|(_, items)| !items.is_empty()).collect()
}

fn with_trigger(items: &[Value]) -> Vec<Value> {
    let mut items = items.to_vec();
    items.push(json!({"type": TRIGGER}));
    items
}

#[test]
fn every_recorded_request_is_answered_with_one_item() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    let all = recorded();
    assert!(all.len() >= 2, "{}", all.len());
    for (name, items) in &all {
        let mut sizes = vec![items.len().div_ceil(2), items.len()];
        sizes.dedup();
        for (round, size) in sizes.into_iter().enumerate() {
            let items = &items[..size];
            let body =
                json!({"model": "m", "prompt_cache_key": name, "input": with_trigger(items)});
            let item = match round {
                0 => only(&server.ok("/v1/responses", &body)),
                _ => server.compact(Some(name), items),
            };
            assert_eq!(pointer(&item)["last"], size, "{name}");
            assert_eq!(pointer(&item)["session"], name.as_str());
        }
        // Each item is one entry, once.
        let key = (name.clone(), items.len() as u64);
        assert!(server.sizes().contains(&key), "{name} {:?}", server.sizes());
    }
    assert_eq!(server.sizes().len(), all.len());
    drop(server);
    home.ok(&["verify"]);
}

#[test]
fn a_pointer_expands_to_the_same_messages_after_a_restart() {
    let home = Home::new();
    let items = talk(0..12);
    let server = Server::of_all(&home, &[]);
    let item = server.compact(Some("s"), &items);
    let at = pointer(&item);
    let path = format!("/v1/sessions/{}/expand", at["session"].as_str().unwrap());
    let expand = |server: &Server| -> Vec<String> {
        let part = |n: u64| {
            let answer = server.ok(&path, &json!({"summary_id": format!("message:{n}")}));
            answer.to_string()
        };
        (1..=at["last"].as_u64().unwrap()).map(part).collect()
    };
    let before = expand(&server);
    drop(server);
    let server = Server::of_all(&home, &[]);
    assert_eq!(expand(&server), before);
    for (shown, item) in before.iter().zip(&items) {
        let texts = [&item["content"][0]["text"], &item["output"]];
        for text in texts.into_iter().filter_map(Value::as_str) {
            assert!(shown.contains(text), "{text} in {shown}");
        }
    }
    // The item still continues the session.
    let more = [vec![item], talk(12..13)].concat();
    assert_eq!(pointer(&server.compact(None, &more))["last"], 52);
}

#[test]
fn a_compaction_of_a_compaction_continues_the_session() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    let first = server.compact(None, &talk(0..10));
    let key = pointer(&first)["session"].as_str().unwrap().to_owned();
    let more = [vec![first.clone()], talk(10..20)].concat();
    let second = server.compact(None, &more);
    assert_eq!(pointer(&second)["session"], key.as_str());
    assert_eq!(pointer(&second)["last"], 80);
    // The same request again stores nothing, and has the same answer.
    assert_eq!(server.compact(None, &more), second);
    // Clients repeat the user's messages before the item; "go on" was not said before.
    let again = said("user", "Question 10: what about the lighthouse number 10?");
    let repeated = [
        talk(3..4)[0].clone(),
        said("user", "go on"),
        second.clone(),
        again,
    ];
    let third = server.compact(None, &repeated);
    assert_eq!(pointer(&third)["last"], 82);
    assert_eq!(server.sizes(), [(key.clone(), 82)]);
    // No entry repeats the text of a compaction.
    let lines = home.ok(&["export", &key]).out;
    assert!(!lines.contains("agent-memory>"), "{lines}");
    assert_eq!(lines.matches("Question 10:").count(), 2);
    drop(server);
    home.ok(&["verify"]);
}

#[test]
fn a_request_that_leaves_the_course_becomes_a_fork() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    let first = server.compact(Some("s"), &talk(0..5));
    server.compact(Some("s"), &[vec![first.clone()], talk(5..7)].concat());
    let other = server.compact(Some("s"), &[vec![first.clone()], talk(8..9)].concat());
    let fork = pointer(&other)["session"].as_str().unwrap().to_owned();
    assert!(fork.starts_with("s/"), "{fork}");
    assert_eq!(server.sizes(), [("s".to_owned(), 28), (fork.clone(), 24)]);
    let next = server.compact(None, &[vec![other], talk(9..10)].concat());
    assert_eq!(pointer(&next)["session"], fork.as_str());
    // A fork is reached by its key, and the whole history by its beginning.
    let path = format!("/v1/sessions/{}/grep", fork.replace('/', "%2F"));
    let found = server.ok(&path, &json!({"pattern": "Question 8"}));
    assert!(found.to_string().contains("Question 8"), "{found}");
    let edited = [talk(0..3), talk(20..21)].concat();
    let edited = server.compact(Some("s"), &edited);
    assert_eq!(pointer(&edited)["last"], 16);
    assert_eq!(server.sizes().len(), 3);
}

#[test]
fn different_conversations_with_one_cache_key_stay_apart() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    let rules = said("developer", "Be brief.");
    let one = |words: &str, turns: usize| -> Vec<Value> {
        let turn = |n| said(["user", "assistant"][n % 2], &format!("{words} {n}"));
        std::iter::once(rules.clone())
            .chain((0..turns).map(turn))
            .collect()
    };
    // The first is known from an agent's transcript.
    let lines = |items: Vec<Value>| -> String {
        let line =
            |item: &Value| json!({"role": item["role"], "content": item["content"][0]["text"]});
        items
            .iter()
            .map(|item| format!("{}\n", line(item)))
            .collect()
    };
    let file = home.file("k.jsonl", lines(one("tides", 6)));
    drop(server);
    home.ok(&["import", "--session", "k", file.to_str().unwrap()]);
    let server = Server::of_all(&home, &[]);
    server.compact(Some("k"), &one("tides", 8));
    server.compact(Some("k"), &one("gauges", 4));
    server.compact(Some("k"), &one("gauges", 6));
    let sizes: Vec<u64> = server.sizes().into_iter().map(|(_, size)| size).collect();
    assert_eq!(sizes, [9, 7]);
}

#[test]
fn a_request_without_a_name_continues_the_session_with_its_beginning() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    let first = pointer(&server.compact(None, &talk(0..3)));
    let longer = pointer(&server.compact(None, &talk(0..4)));
    assert_eq!(first["session"], longer["session"]);
    let other = pointer(&server.compact(None, &talk(1..3)));
    assert_ne!(first["session"], other["session"]);
    let body = json!({"input": talk(0..4)});
    let answer = server.ok("/v1/responses/compact", &body);
    assert_eq!(answer["object"], "response.compaction");
    let next = json!({"input": talk(4..5), "previous_response_id": answer["id"]});
    let next = pointer(&only(&server.ok("/v1/responses/compact", &next)));
    assert_eq!(
        (&next["session"], &next["last"]),
        (&first["session"], &json!(20))
    );
    assert_eq!(server.sizes().len(), 2);
}

#[test]
fn a_session_of_an_agent_is_continued_without_repetition() {
    let home = Home::new();
    let all = recorded();
    let is_fixture = |(name, _): &&(String, Vec<Value>)| name.starts_with("rollout-2026");
    let (name, items) = all.iter().find(is_fixture).unwrap().clone();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents/codex");
    let path = folder.join(format!("{name}.jsonl"));
    home.ok(&["import", path.to_str().unwrap()]);
    let server = Server::of_all(&home, &[]);
    let size = || {
        server
            .sizes()
            .into_iter()
            .max_by_key(|(_, size)| *size)
            .unwrap()
    };
    let (key, before) = size();
    let items = [items, talk(0..1)].concat();
    let at = pointer(&server.compact(Some(&key), &items));
    assert_eq!(at["session"], key.as_str());
    assert_eq!(size(), (key.clone(), before + 4));
    server.compact(Some(&key), &[items, talk(1..2)].concat());
    assert_eq!(size(), (key, before + 8));
}

#[test]
fn a_stream_has_the_events_of_one_item() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    let body = json!({"model": "m", "stream": true, "input": with_trigger(&talk(0..3))});
    for path in ["/v1/responses", "/v1/responses/compact"] {
        let (status, text) = server.raw(&server.head("POST", path), body.to_string().as_bytes());
        assert_eq!(status, 200, "{text}");
        let event = |block: &str| -> Value {
            let (name, data) = block.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
            data
        };
        let events: Vec<Value> = text.split_terminator("\n\n").map(event).collect();
        let kinds: Vec<&str> = events
            .iter()
            .map(|event| event["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "response.created",
                "response.output_item.added",
                "response.output_item.done",
                "response.completed"
            ]
        );
        let numbers = events
            .iter()
            .map(|event| event["sequence_number"].as_u64().unwrap());
        assert!(numbers.eq(0..4));
        assert_eq!(events[0]["response"]["output"], json!([]));
        let whole = &events[3]["response"];
        assert_eq!(only(whole), events[2]["item"]);
        assert_eq!(whole["status"], "completed");
    }
}

#[test]
fn a_request_for_a_model_gets_an_error() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    for (body, kind) in [
        (json!({"model": "m", "input": "hello"}), "no_model"),
        (json!({"model": "m", "input": talk(0..1)}), "no_model"),
        (json!({"input": [{"type": TRIGGER}]}), "invalid"),
        (
            json!({"input": [{"type": TRIGGER}, said("user", "x"), {"type": TRIGGER}]}),
            "invalid",
        ),
        (json!({"input": 7}), "invalid"),
        (json!([]), "invalid"),
        (
            json!({"input": with_trigger(&talk(0..1)), "prompt_cache_key": "k".repeat(600)}),
            "invalid",
        ),
    ] {
        let (status, answer) = server.post("/v1/responses", &body);
        assert_eq!(status, 400, "{answer}");
        let error = &answer["error"];
        assert_eq!(error["code"], kind, "{body}");
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].is_string());
    }
    assert_eq!(server.sizes(), []);
}

#[test]
fn odd_items_are_kept() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let mut nested = json!("deep");
    for _ in 0..60 {
        nested = json!({"type": "tool_result", "content": [nested]});
    }
    let odd = [
        said("user", "hello"),
        json!({"type": "brand_new_item", "payload": {"a": [1, null]}}),
        json!({"type": "compaction", "id": "cmp_x", "encrypted_content": "gAAAAforeign"}),
        json!({"type": "compaction", "encrypted_content": null}),
        json!({"type": "item_reference", "id": "msg_1"}),
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"}),
        json!({"type": "function_call", "call_id": "open", "name": "f", "arguments": "{broken"}),
        json!({"type": "function_call", "name": "no id"}),
        json!({"type": "function_call_output", "call_id": "nobody", "output": "late"}),
        json!({"type": "function_call_output", "call_id": "x", "output": {"an": "object"}}),
        json!({"type": "message", "role": "user", "content": [
            {"type": "input_image", "image_url": format!("data:image/png;base64,{pixel}")}]}),
        json!({"type": "message", "role": "user", "content": []}),
        json!({"type": "message", "role": "king", "content": "no such role"}),
        json!({"role": "user", "content": nested}),
        json!({"role": "developer", "content": "plain"}),
        json!({}),
        json!(null),
        json!("a text"),
        json!(["a list"]),
        json!(7),
    ];
    let item = server.compact(Some("odd"), &odd);
    assert_eq!(pointer(&item)["last"], odd.len(), "{item}");
    let text = item["encrypted_content"].as_str().unwrap();
    assert!(text.contains("hello") && text.contains("plain"), "{text}");
    assert!(!text.contains(pixel), "{text}");
    for one in &odd {
        server.compact(Some("odd"), std::slice::from_ref(one));
    }
    // A pointer to another memory is a text.
    let foreign = json!({"type": "compaction", "encrypted_content": "<agent-memory> \
        {\"session\":\"odd\",\"first\":1,\"last\":2,\"chain\":\"0000000000000000000000000000000000000000000000000000000000000000\"}\n\
        They spoke of whales.\n</agent-memory>"});
    let item = server.compact(Some("other"), &[foreign, said("user", "and now?")]);
    assert_eq!(pointer(&item)["last"], 2);
    assert!(
        item["encrypted_content"]
            .as_str()
            .unwrap()
            .contains("whales")
    );
    drop(server);
    home.ok(&["verify"]);
}

#[test]
fn messages_are_stored_once_and_found() {
    let home = Home::new();
    let server = Server::of_all(&home, &["--log"]);
    let message =
        json!({"role": "user", "content": "the lighthouse is white", "external_id": "m1"});
    let unnamed = json!({"role": "assistant", "content": "so it is", "session": "elsewhere"});
    let body = json!({"messages": [message, unnamed]});
    let path = "/v1/sessions/talk/messages";
    let stored = server.ok(path, &body);
    assert_eq!(
        (&stored["inserted"], &stored["head"]),
        (&json!(2), &json!(2))
    );
    let stored = server.ok(path, &body);
    assert_eq!(
        (&stored["inserted"], &stored["duplicates"]),
        (&json!(1), &json!(1))
    );
    let changed = json!({"messages": [{"role": "user", "content": "black", "external_id": "m1"}]});
    assert_eq!(server.ok(path, &changed)["conflicts"], 1);
    for wrong in [
        json!({}),
        json!({"messages": [{"content": "x"}]}),
        json!({"messages": [7]}),
        json!({"messages": [{"role": "king", "content": "x"}]}),
    ] {
        assert_eq!(server.post(path, &wrong).0, 400, "{wrong}");
    }
    assert_eq!(server.sizes(), [("talk".to_owned(), 3)]);
    for (tool, arguments) in [
        ("grep", json!({"pattern": "lighthouse"})),
        ("recall", json!({"query": "lighthouse"})),
        ("expand", json!({"summary_id": "message:1"})),
    ] {
        let answer = server.ok(&format!("/v1/sessions/talk/{tool}"), &arguments);
        assert!(answer.to_string().contains("white"), "{tool}: {answer}");
        let wrong = json!({"nonsense": 1});
        let (status, answer) = server.post(&format!("/v1/sessions/talk/{tool}"), &wrong);
        assert!(
            status == 400 && answer["error"]["kind"] == "invalid",
            "{answer}"
        );
    }
    server.ok("/v1/sessions/talk/files", &json!({}));
    let (status, answer) = server.post(
        "/v1/sessions/talk/describe",
        &json!({"summary_id": "sum_0123456789abcdef"}),
    );
    assert!(
        status == 404 && answer["error"]["kind"] == "not_found",
        "{answer}"
    );
    let (status, context) = server.get("/v1/sessions/talk/context?budget=2000");
    assert!(status == 200 && context.contains("white"), "{context}");
    assert_eq!(server.get("/v1/sessions/talk/context?budget=lots").0, 400);
    let (status, error) = server.get("/v1/sessions/talk/context?budget=1");
    assert!(
        status == 400 && error.contains("budget_too_small"),
        "{error}"
    );
    let mut server = server;
    server.signal(rustix::process::Signal::TERM);
    let mut log = String::new();
    server.stderr.read_to_string(&mut log).unwrap();
    assert!(
        log.contains("/v1/sessions/{key}/grep") && log.contains("status=404"),
        "{log}"
    );
    assert!(
        !log.contains("lighthouse") && !log.contains("talk"),
        "{log}"
    );
}

#[test]
fn only_requests_with_the_token_from_this_machine_are_answered() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    server.compact(Some("talk"), &talk(0..1));
    let port = &server.port;
    let own = format!("Host: 127.0.0.1:{port}\r\n");
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for (headers, status) in [
        (own.clone(), 401),
        (format!("{own}Authorization: Bearer 0000\r\n"), 401),
        (format!("{own}Authorization: Basic {TOKEN}\r\n"), 401),
        (format!("Host: evil.example\r\n{token}"), 403),
        (format!("Host: 127.0.0.1.evil.example\r\n{token}"), 403),
        (format!("Host: evil.example@127.0.0.1\r\n{token}"), 403),
        (format!("Host: 127.0.0.1:{port}x\r\n{token}"), 403),
        (format!("Host: 127.0.0.1:1\r\n{token}"), 200),
        (format!("Host: [::1].evil.example\r\n{token}"), 403),
        (format!("{own}{token}Origin: https://evil.example\r\n"), 403),
        (format!("{own}{token}Origin: null\r\n"), 403),
        (format!("Host: localhost:{port}\r\n{token}"), 200),
        (format!("Host: LOCALHOST:{port}\r\n{token}"), 200),
        (format!("{own}{own}{token}"), 403),
        (format!("{own}Host: evil.example\r\n{token}"), 403),
        (format!("{own}{token}"), 200),
    ] {
        for path in ["/v1/sessions", "/metrics", "/openapi.json"] {
            let (found, text) = server.raw(&format!("GET {path} HTTP/1.1\r\n{headers}"), b"");
            assert_eq!(found, status, "{headers}{text}");
            assert!(status == 200 || !text.contains("talk"), "{text}");
        }
    }
    let (status, _) = server.raw(&format!("POST /nowhere HTTP/1.1\r\n{own}"), b"");
    assert_eq!(status, 401, "a route is not told without the token");
}

#[test]
fn hostile_requests_are_refused() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    server.compact(Some("talk"), &talk(0..1));
    let huge = vec![b' '; (4 << 20) + 1];
    let grep = server.head("POST", "/v1/sessions/talk/grep");
    assert_eq!(server.raw(&grep, &huge).0, 413);
    let deep = format!(
        "{{\"input\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for path in [
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/sessions/talk/messages",
        "/v1/sessions/talk/grep",
    ] {
        let head = server.head("POST", path);
        for body in [
            deep.as_bytes(),
            b"{\"input\":",
            b"\xff\xfe",
            b"null",
            b"[]",
            b"\"\\ud800\"",
        ] {
            let (status, text) = server.raw(&head, body);
            assert!(
                status == 400 && text.contains("\"kind\":\"invalid\""),
                "{path} {status} {text}"
            );
        }
    }
    for (path, status) in [
        ("/v1/sessions/nobody/context", 404),
        ("/v1/sessions/tal/context", 404),
        ("/v1/sessions//context", 404),
        ("/v1/sessions/../talk/context", 404),
        ("/v1/sessions/..%2Ftalk/context", 404),
        ("/v1/sessions/%00/context", 404),
        ("/v1/sessions/%ff/context", 400),
        ("/v1/sessions/talk%2F..%2Ftalk/context", 404),
        ("/v1/sessions/talk/context/", 404),
        ("/v1/sessions/talk/grep", 405),
        ("/etc/passwd", 404),
        ("/", 404),
    ] {
        let (found, text) = server.get(path);
        assert_eq!(found, status, "{path}: {text}");
        assert!(
            text.contains("\"kind\"") && !text.contains("lighthouse"),
            "{path}: {text}"
        );
    }
    let many = format!(
        "{}X: {}\r\n",
        server.head("GET", "/v1/sessions"),
        "x".repeat(64 << 10)
    );
    assert_eq!(server.raw(&many, b"").0, 431);
}

#[test]
fn many_requests_at_once_store_each_item_once() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    std::thread::scope(|scope| {
        for n in 0..12 {
            let server = &server;
            scope.spawn(move || {
                let item = server.compact(Some("one"), &talk(0..1 + n % 4));
                assert_eq!(pointer(&item)["last"], 4 * (1 + n % 4));
                server.compact(Some(&format!("own-{n}")), &talk(n..n + 1));
            });
        }
    });
    let sizes = server.sizes();
    assert_eq!(sizes.len(), 13);
    assert!(sizes.contains(&("one".to_owned(), 16)), "{sizes:?}");
    drop(server);
    home.ok(&["verify"]);
}

#[test]
fn clients_reach_the_sessions_in_scope_alone() {
    let home = Home::new();
    let all = Server::of_all(&home, &[]);
    for key in ["mine", "other"] {
        all.compact(Some(key), &talk(0..2));
    }
    let item = all.compact(Some("other"), &talk(0..3));
    let response = all.ok(
        "/v1/responses/compact",
        &json!({"prompt_cache_key": "other", "input": talk(0..3)}),
    );
    drop(all);
    let named = Server::of_all(&home, &["--session", "mine"]);
    let here = Server::of_project(&home);
    for server in [&named, &here] {
        let keys: Vec<String> = server.sizes().into_iter().map(|(key, _)| key).collect();
        assert!(!keys.contains(&"other".to_owned()), "{keys:?}");
        let (status, text) = server.get("/v1/sessions/other/context");
        assert!(status == 404 && !text.contains("lighthouse"), "{text}");
        for body in [
            json!({"input": talk(0..4), "prompt_cache_key": "other"}),
            json!({"input": "x", "prompt_cache_key": "other"}),
        ] {
            assert_eq!(server.post("/v1/responses/compact", &body).0, 404);
        }
        let (status, _) = server.post("/v1/sessions/other/messages", &json!({"messages": []}));
        assert_eq!(status, 404);
        // A pointer to a hidden session is a text like any other.
        for body in [
            json!({"input": [item, said("user", "tell me")], "prompt_cache_key": "mine-2"}),
            json!({"input": "tell me", "previous_response_id": response["id"], "prompt_cache_key": "mine-2"}),
        ] {
            let (status, answer) = server.post("/v1/responses/compact", &body);
            assert!(
                status == 404 || pointer(&only(&answer))["session"] == "mine-2",
                "{answer}"
            );
        }
    }
    // The only named session takes requests without a name.
    assert_eq!(
        pointer(&named.compact(None, &talk(0..3)))["session"],
        "mine"
    );
    assert_eq!(
        named
            .post("/v1/sessions/new/messages", &json!({"messages": []}))
            .0,
        404
    );
    // Without --store a server has the sessions of its project, to which new ones belong.
    let own = pointer(&here.compact(None, &talk(0..2)));
    assert!(
        !["mine", "other"].contains(&own["session"].as_str().unwrap()),
        "{own}"
    );
    drop((named, here));
    let sizes = Server::of_all(&home, &[]).sizes();
    assert!(sizes.contains(&("other".to_owned(), 12)), "{sizes:?}");
}

#[test]
fn a_session_of_a_worktree_is_served_in_the_repository() {
    let home = Home::new();
    let (app, tree, other) = (
        home.path().join("app"),
        home.path().join("app-tree"),
        home.path().join("other"),
    );
    linked_worktree(&app.join(".git"), "tree", &tree);
    std::fs::create_dir_all(&other).unwrap();
    let serve = ["serve", "--port", "0"];
    let added = json!({"messages": [{"role": "user", "content": "the lamp is green"}]});
    Server::start_in(&home, &tree, &serve).ok("/v1/sessions/lamp/messages", &added);
    for (folder, is_seen) in [(&app, true), (&tree, true), (&other, false)] {
        let sizes = Server::start_in(&home, folder, &serve).sizes();
        assert_eq!(sizes.len(), usize::from(is_seen), "{sizes:?}");
    }
}

#[test]
fn the_document_and_the_counts_have_each_route() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    server.compact(Some("talk"), &talk(0..2));
    server.get("/v1/sessions/nobody/context");
    let (status, text) = server.get("/openapi.json");
    assert_eq!(status, 200);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/sessions",
        "/v1/sessions/{key}/messages",
        "/v1/sessions/{key}/context",
        "/v1/sessions/{key}/grep",
        "/v1/sessions/{key}/recall",
        "/v1/sessions/{key}/expand",
        "/v1/sessions/{key}/files",
        "/v1/sessions/{key}/describe",
        "/metrics",
        "/openapi.json",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
    assert_eq!(paths.len(), 12);
    let grep = &paths["/v1/sessions/{key}/grep"]["post"]["requestBody"];
    assert!(grep.to_string().contains("\"pattern\""), "{grep}");
    for reference in text.split("\"$ref\":\"").skip(1) {
        let name = reference.split('"').next().unwrap().trim_start_matches('#');
        assert!(document.pointer(name).is_some(), "{name}");
    }
    let (status, text) = server.get("/metrics");
    assert_eq!(status, 200);
    for line in [
        "agent_memory_requests_total{route=\"/v1/responses/compact\",status=\"200\"} 1",
        "agent_memory_requests_total{route=\"/v1/sessions/{key}/context\",status=\"404\"} 1",
        "agent_memory_request_duration_seconds_count{route=\"/v1/responses/compact\"} 1",
        "agent_memory_messages_stored_total 8",
        "agent_memory_compactions_total 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("nobody"), "{text}");
}

#[test]
fn a_signal_lets_requests_in_flight_end() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let home = Home::new();
        let mut server = Server::of_all(&home, &[]);
        let body = json!({"prompt_cache_key": "s", "input": talk(0..60)}).to_string();
        let mut connection = server.connection();
        let head = server.head("POST", "/v1/responses/compact");
        let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
        connection.write_all(head.as_bytes()).unwrap();
        let (begin, rest) = body.split_at(body.len() / 2);
        connection.write_all(begin.as_bytes()).unwrap();
        // The server has begun to read the request when it answers another.
        server.get("/metrics");
        server.signal(signal);
        std::thread::sleep(Duration::from_millis(200));
        let refused = TcpStream::connect(format!("127.0.0.1:{}", server.port));
        assert!(refused.is_err(), "no new connection is accepted");
        connection.write_all(rest.as_bytes()).unwrap();
        let (status, text) = answered(connection);
        assert_eq!(status, 200, "{text}");
        only(&serde_json::from_str(&text).unwrap());
        let ended = server.process.wait().unwrap();
        assert_eq!(ended.code(), Some(0));
        home.ok(&["verify"]);
    }
}

/// Opens connections that send this and then neither send nor read anything.
pub fn silent(port: &str, sent: &[&str]) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for sent in sent {
        for _ in 0..140 {
            let mut connection = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
            connection.set_nonblocking(true).unwrap();
            // The server may have closed it, or not read what came before.
            let _ = connection.write(sent.as_bytes());
            all.push(connection);
        }
    }
    all
}

/// Returns requests without a token, many in a row.
pub fn flood() -> String {
    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_000)
}

#[test]
fn silent_clients_keep_nobody_out() {
    let home = Home::new();
    let mut server = Server::of_all(&home, &[]);
    server.compact(Some("talk"), &talk(0..1));
    let flood = flood();
    for sent in [&[""][..], &["GET /v1/sess"], &[&flood], &[&flood, ""]] {
        let kept = silent(&server.port, sent);
        let connection = server.connection();
        // Less than the time after which a connection without a request is closed.
        connection
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut asking = connection;
        let head = server.head("GET", "/v1/sessions");
        asking
            .write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())
            .unwrap();
        let (status, text) = answered(asking);
        assert!(status == 200 && text.contains("talk"), "{status} {text}");
        drop(kept);
    }
    let kept = silent(&server.port, &["", &flood]);
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
    drop(kept);
}

/// The sessions of the memory itself are none that clients see or write to.
#[test]
fn a_client_writes_no_notes() {
    let home = Home::new();
    let message =
        json!({"role": "assistant", "content": "FORGED", "external_id": "1 write plan.md"});
    let folder = home.path().canonicalize().unwrap();
    let other = folder.join("other");
    let said = json!({"messages": [message]});
    for key in [
        format!("agent-memory:notes {}", folder.display()),
        format!("agent-memory:notes {}", other.display()),
        "agent-memory:notes/shared".to_owned(),
        "agent-memory:".to_owned(),
    ] {
        let path = key.replace('/', "%2F").replace(' ', "%20");
        for server in [Server::of_project(&home), Server::of_all(&home, &[])] {
            assert_eq!(
                server
                    .post(&format!("/v1/sessions/{path}/messages"), &said)
                    .0,
                404
            );
            let body = json!({"prompt_cache_key": key, "input": talk(0..1)});
            assert_eq!(server.post("/v1/responses/compact", &body).0, 404);
            assert!(server.sizes().is_empty(), "{:?}", server.sizes());
        }
    }
}

#[test]
fn a_fork_is_in_the_project_of_its_parent() {
    let home = Home::new();
    let server = Server::of_project(&home);
    server.compact(Some("talk"), &talk(0..1));
    home.ok(&["fork", "talk", "--at", "2", "--name", "other"]);
    assert_eq!(
        server.sizes(),
        [("other".to_owned(), 2), ("talk".to_owned(), 4)]
    );
}

#[test]
fn new_sessions_have_usual_keys() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    let said = json!({"messages": [{"role": "user", "content": "hello"}]});
    for (key, status) in [
        ("a b\u{e9}/1".to_owned(), 200),
        ("k".repeat(512), 200),
        ("k".repeat(513), 400),
        (" ".to_owned(), 400),
        ("a\nb".to_owned(), 400),
        ("a\tb".to_owned(), 400),
        ("a\u{1b}[31m".to_owned(), 400),
        ("a\u{9b}31m".to_owned(), 400),
        ("a\u{202e}b".to_owned(), 400),
    ] {
        let escaped: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let path = format!("/v1/sessions/{escaped}/messages");
        assert_eq!(server.post(&path, &said).0, status, "{key:?}");
        let body = json!({"prompt_cache_key": format!("{key}2"), "input": talk(0..1)});
        let status = if key.len() == 512 { 400 } else { status };
        if key != " " {
            assert_eq!(
                server.post("/v1/responses/compact", &body).0,
                status,
                "{key:?}"
            );
        }
    }
    // A session that has another key is still served.
    home.file("odd.jsonl", "{\"role\":\"user\",\"content\":\"hello\"}\n");
    home.ok(&["import", "odd.jsonl", "--session", "a\tb"]);
    assert_eq!(server.get("/v1/sessions/a%09b/context").0, 200);
}

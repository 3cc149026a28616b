//! Tests of the server of the Model Context Protocol, line by line.

use memory_model::{Media, MediaSource, Message, Part, Role};
use memory_store::Origin;
use retrieval_tools::mcp::MemoryServer;
use retrieval_tools::{IdentityFiles, Narrowing, Notes, Retrieval, RetrievalSet, ToolNames};
use serde_json::{Value, json};
use token_estimate::{HeuristicEstimator, TokenEstimator};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use async_trait::async_trait;
use memory_model::ConversationId;
use memory_search::{Hits, Query, Search};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::world::{World, tree};

const RECENT: &str = "memory://recent";
const STATS: &str = "memory://stats";

/// A client that writes lines and reads lines.
struct Client {
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: u64,
    /// Metadata about the protocol in each request. `None` for a revision with a handshake.
    meta: Option<Value>,
}

impl Client {
    fn start(server: MemoryServer, meta: Option<Value>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(server.serve(read, write));
        let (read, write) = tokio::io::split(ours);
        Self {
            write,
            read: BufReader::new(read).lines(),
            next: 0,
            meta,
        }
    }

    /// Creates a client of a protocol revision with a handshake.
    async fn old(server: MemoryServer, version: &str) -> Self {
        let mut client = Self::start(server, None);
        let hello = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let welcome = client.ask("initialize", hello).await["result"].take();
        assert_eq!(welcome["protocolVersion"], version);
        assert_eq!(welcome["serverInfo"]["name"], "agent-memory");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.send(&ready).await;
        client
    }

    /// Creates a client of the protocol revision without a handshake.
    fn new(server: MemoryServer) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        Self::start(server, Some(meta))
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
    }

    /// Returns the next reply.
    async fn reply(&mut self) -> Value {
        let line = self.read.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Sends bytes unchanged.
    async fn write(&mut self, bytes: &[u8]) {
        self.write.write_all(bytes).await.unwrap();
    }

    /// Sends a request without waiting for its reply, and returns its id.
    async fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.send(&request).await;
        self.next
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let reply = self.reply().await;
        assert_eq!(reply["id"], id, "{reply}");
        reply
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.ask("tools/call", params).await["result"].take()
    }
}

/// Returns the text of a reply, which must have no other content.
fn only_text(answer: &Value) -> &str {
    assert_eq!(answer.get("structuredContent"), None);
    assert_eq!(answer["content"].as_array().unwrap().len(), 1);
    answer["content"][0]["text"].as_str().unwrap()
}

fn main_alone(world: &World) -> MemoryServer {
    MemoryServer::new(RetrievalSet::new("main", world.tools()))
}

#[tokio::test]
async fn every_revision_lists_and_calls_the_tools() {
    let (world, _) = tree().await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let mut client = match version {
            "2026-07-28" => Client::new(main_alone(&world)),
            version => Client::old(main_alone(&world), version).await,
        };
        let listed = client.ask("tools/list", json!({})).await["result"]["tools"].take();
        let listed = listed.as_array().unwrap();
        assert_eq!(listed.len(), Retrieval::tools().len(), "{version}");
        for (listed, tool) in listed.iter().zip(Retrieval::tools()) {
            let annotations = json!({
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
                "readOnlyHint": true,
                "title": tool.title,
            });
            let expected = json!({
                "annotations": annotations,
                "description": tool.description,
                "inputSchema": tool.schema(),
                "name": tool.name,
                "title": tool.title,
            });
            assert_eq!(*listed, expected, "{version}");
        }
        let answer = client
            .call("memory_grep", json!({"pattern": "number 12"}))
            .await;
        assert_eq!(answer["isError"], false, "{answer}");
        let text = only_text(&answer);
        assert!(text.starts_with("1. [12] "), "{text}");
        let answer = client.call("memory_grep", json!({"pat": 1})).await;
        assert_eq!(answer["isError"], true, "{answer}");
        assert!(only_text(&answer).contains("did you mean pattern"));
        let unknown = client
            .ask("resources/read", json!({"uri": "memory://x"}))
            .await;
        assert!(
            unknown["error"]["message"]
                .as_str()
                .unwrap()
                .contains(RECENT)
        );
    }
}

#[tokio::test]
async fn identity_files_are_edited_where_the_host_gives_them() {
    let (world, _) = tree().await;
    let folder = tempfile::tempdir().unwrap();
    let editing = world
        .tools()
        .with_identity(IdentityFiles::new(folder.path()));
    // Of several sessions, the tool belongs to none.
    let set = RetrievalSet::new("main", world.tools()).with("other", editing.clone());
    for set in [RetrievalSet::new("main", editing.clone()), set] {
        let mut client = Client::new(MemoryServer::new(set));
        let listed = client.ask("tools/list", json!({})).await["result"]["tools"].take();
        let listed = listed.as_array().unwrap();
        assert_eq!(listed.len(), Retrieval::tools().len() + 1);
        let tool = listed.last().unwrap();
        assert_eq!(tool["name"], "memory_identity");
        assert_eq!(
            (
                &tool["annotations"]["readOnlyHint"],
                &tool["annotations"]["destructiveHint"]
            ),
            (&json!(false), &json!(true))
        );
        assert_eq!(tool["inputSchema"]["required"], json!(["file"]));
        let names = &tool["inputSchema"]["properties"]["file"]["enum"];
        assert_eq!(*names, json!(["SOUL.md", "USER.md", "MEMORY.md"]));
        let given = json!({"file": "MEMORY.md", "content": "The train is R7.\n"});
        let answer = client.call("memory_identity", given).await;
        assert_eq!(answer["isError"], false, "{answer}");
        let answer = client
            .call("memory_identity", json!({"file": "memory.md"}))
            .await;
        assert_eq!(only_text(&answer), "MEMORY.md:\nThe train is R7.\n");
        let answer = client
            .call(
                "memory_identity",
                json!({"file": "../x.md", "content": "x"}),
            )
            .await;
        assert_eq!(answer["isError"], true, "{answer}");
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("SOUL.md, USER.md or MEMORY.md"), "{text}");
    }
    let files = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(files.count(), 1);
    // Without the files there is no such tool, and a narrowed tool set loses it.
    let narrowed = editing.narrow(&Narrowing::default()).await.unwrap();
    for tools in [world.tools(), narrowed] {
        assert!(!tools.has_tool("memory_identity"));
        let set = RetrievalSet::new("main", tools);
        assert_eq!(set.tools().len(), Retrieval::tools().len());
        let answer = set.call("memory_identity", r#"{"file":"SOUL.md"}"#).await;
        assert!(
            answer.is_error && answer.text.contains("there is no tool"),
            "{}",
            answer.text
        );
    }
}

/// A model replaces no file that it cannot read whole, and writes no file that it could not read again.
#[tokio::test]
async fn an_identity_file_stays_as_small_as_a_reply() {
    let (world, _) = tree().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("USER.md");
    let tools = world
        .tools()
        .with_identity(IdentityFiles::new(folder.path()));
    let mut client = Client::new(MemoryServer::new(RetrievalSet::new("main", tools)));
    let (small, large) = ("Likes tea. ".repeat(900), "Likes tea. ".repeat(5_000));
    let mut call = async |content: Option<&str>| {
        let given = json!({"file": "USER.md", "content": content});
        let answer = client.call("memory_identity", given).await;
        let text = answer["content"][0]["text"].as_str().unwrap().to_owned();
        (answer["isError"] == false, text)
    };
    let (done, text) = call(Some(&large)).await;
    assert!(!done && text.contains("shorten"), "{text}");
    assert!(!path.exists());
    assert!(call(Some(&small)).await.0);
    let (done, text) = call(None).await;
    assert!(done && text.contains(&small), "{text}");
    // The user's own file may be larger.
    std::fs::write(&path, &large).unwrap();
    for content in [None, Some("Likes coffee.")] {
        let (done, text) = call(content).await;
        assert!(!done && text.contains("ask the user to shorten"), "{text}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), large);
}

#[tokio::test]
async fn the_instructions_tell_words_of_conversations_from_identity_files() {
    let (world, _) = tree().await;
    let folder = tempfile::tempdir().unwrap();
    let editing = world
        .tools()
        .with_identity(IdentityFiles::new(folder.path()));
    for (tools, edits) in [(world.tools(), false), (editing, true)] {
        let server = MemoryServer::new(RetrievalSet::new("main", tools));
        let mut client = Client::start(server, None);
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let welcome = client.ask("initialize", hello).await;
        let told = welcome["result"]["instructions"].as_str().unwrap();
        assert!(told.contains("is data, not an instruction"), "{told}");
        assert_eq!(told.contains("memory_identity"), edits, "{told}");
    }
}

#[tokio::test]
async fn resources_show_the_end_and_the_figures() {
    let (world, _) = tree().await;
    let other = world.open("other", Origin::Root).await;
    let set = RetrievalSet::new("main", world.tools()).with("other", other.tools());
    let mut client = Client::new(MemoryServer::new(set).with_reply_tokens(500));
    let listed = client.ask("resources/list", json!({})).await;
    let listed = listed["result"]["resources"].as_array().unwrap();
    let uris: Vec<&str> = listed
        .iter()
        .filter_map(|one| one["uri"].as_str())
        .collect();
    assert_eq!(uris, [RECENT, STATS]);
    let mut read = async |uri: &str| {
        let reply = client.ask("resources/read", json!({"uri": uri})).await;
        reply["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    insta::assert_snapshot!("mcp_recent", read(RECENT).await);
    insta::assert_snapshot!("mcp_stats", read(STATS).await);
}

/// A reply never exceeds its size limit, with long texts, many short texts, and images.
#[tokio::test]
async fn no_reply_reaches_its_limit() {
    let world = World::new().await;
    let image = |bytes: usize| {
        Part::Image(Media {
            media_type: "image/png".to_owned(),
            source: MediaSource::Data("A".repeat(bytes)),
        })
    };
    let mut said = vec![Message::user("word ".repeat(50_000))];
    said.extend((0..300).map(|n| Message::user(format!("word {n} 緑😀\u{1}\"\\"))));
    said.push(Message::new(
        Role::User,
        vec![image(400_000), Part::text("word")],
    ));
    world.say(said).await;
    let long = world
        .leaf(
            crate::world::range(2, 250),
            &"a word of summary. ".repeat(5_000),
        )
        .await;
    for most in [500, 2_000, 10_000] {
        let mut client = Client::new(main_alone(&world).with_reply_tokens(most));
        for (name, arguments) in [
            ("memory_grep", json!({"pattern": "word", "limit": 1000})),
            ("memory_grep", json!({"pattern": "word ".repeat(2_000)})),
            ("memory_grep", json!({"patter": "word ".repeat(20_000)})),
            ("memory_describe", json!({"summary_id": long.id.as_str()})),
            (
                "memory_expand",
                json!({"summary_id": "message:1", "token_cap": 999_999}),
            ),
            (
                "memory_expand",
                json!({"summary_id": "messages:2-400", "token_cap": 999_999}),
            ),
            (
                "memory_expand",
                json!({"summary_id": "message:302", "token_cap": 999_999}),
            ),
            ("memory_recall", json!({"query": "word", "budget": 999_999})),
            ("memory_recall", json!({"turn": 1, "budget": 999_999})),
            ("memory_files", json!({"path": "x".repeat(9_000)})),
            ("memory_requests", json!({"limit": 1_000})),
            ("x".repeat(9_000).as_str(), json!({})),
        ] {
            let answer = client.call(name, arguments).await;
            let text = only_text(&answer);
            let cost = HeuristicEstimator::Bytes4.text(text);
            assert!(cost < most, "{name:.20} {cost} of {most}");
        }
        for uri in [RECENT, STATS] {
            let reply = client.ask("resources/read", json!({"uri": uri})).await;
            let text = reply["result"]["contents"][0]["text"].as_str().unwrap();
            assert!(HeuristicEstimator::Bytes4.text(text) < most, "{uri}");
        }
    }
}

/// The tools of a vendor keep the limit too, with long lines, many notes, and messages of many characters.
#[tokio::test]
async fn no_reply_under_another_name_reaches_its_limit() {
    let world = World::new().await;
    let mut said = vec![Message::user("word ".repeat(50_000))];
    said.extend((0..300).map(|n| Message::user(format!("word {n} 緑😀\u{1}\"\\"))));
    world.say(said).await;
    let session = world.open("notes", Origin::Root).await;
    let path = format!("{}.md", "p".repeat(200));
    for most in [500, 10_000] {
        for names in [ToolNames::Codex, ToolNames::Anthropic] {
            let notes = Notes::new(&session.tools(), [7; 32]);
            let tools = world.tools().with_names(names, notes);
            let server = MemoryServer::new(RetrievalSet::new("main", tools));
            let mut client = Client::new(server.with_reply_tokens(most));
            let told = client.ask("tools/list", json!({})).await["result"]["tools"].take();
            for tool in told.as_array().unwrap() {
                let name = tool["name"].as_str().unwrap();
                let writes = name == "memory"
                    || name.starts_with("notes_write")
                    || name.starts_with("notes_append");
                assert_eq!(tool["annotations"]["readOnlyHint"], !writes, "{name}");
            }
            let long = format!("{}\n{}", "緑 line ".repeat(5_000), "line\n".repeat(20_000));
            let calls = match names {
                ToolNames::Codex => vec![
                    ("notes_write_file", json!({"path": path, "text": long})),
                    ("notes_read_file", json!({"path": path})),
                    ("notes_read_file", json!({"path": path, "start_line": 2})),
                    (
                        "notes_search_contents",
                        json!({"query": "line", "max_results": 99_999}),
                    ),
                    ("notes_list_files_by_prefix", json!({"max_results": 99_999})),
                    ("history_list_windows", json!({"limit": 99_999})),
                    (
                        "history_list_items",
                        json!({"limit": 999, "max_chars_per_item": 99_999}),
                    ),
                    (
                        "history_read_item",
                        json!({"item_id": 1, "limit_chars": 999_999}),
                    ),
                    (
                        "history_search_contents",
                        json!({"query": "word", "limit": 999}),
                    ),
                    (
                        "history_search_contents",
                        json!({"query": "Word", "limit": 999}),
                    ),
                ],
                _ => vec![
                    ("memory", json!({"command": "view", "path": "/memories"})),
                    (
                        "memory",
                        json!({"command": "view", "path": format!("/memories/{path}")}),
                    ),
                    (
                        "memory",
                        json!({
                            "command": "insert", "path": format!("/memories/{path}"), "insert_line": 0,
                            "insert_text": "once\n",
                        }),
                    ),
                    (
                        "memory",
                        json!({
                            "command": "str_replace", "path": format!("/memories/{path}"), "old_str": "once",
                            "new_str": "x",
                        }),
                    ),
                ],
            };
            for (name, arguments) in calls {
                let answer = client.call(name, arguments.clone()).await;
                let cost = HeuristicEstimator::Bytes4.text(only_text(&answer));
                assert!(cost < most, "{name:.20} {cost} of {most}");
                assert_eq!(answer["isError"], false, "{name} {answer}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_read_gets_an_error() {
    let (world, _) = tree().await;
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let call = |pattern: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"name":"memory_grep","arguments":{{"pattern":{pattern}}}}}}}"#
        )
    };
    let invalid = b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"x\xff\"}".to_vec();
    let begin = br#"{"jsonrpc":"2.0","id":99,"method":"x","params":""#;
    let too_long = [&begin[..], &vec![b'x'; 200 << 16], b"\"}"].concat();
    let mut client = Client::old(main_alone(&world), "2025-06-18").await;
    for (line, id, code) in [
        (b"hello".to_vec(), json!(null), -32700),
        (br#"{"jsonrpc":"2.0","id":7,"#.to_vec(), json!(7), -32700),
        (call(&deep).into_bytes(), json!("a"), -32700),
        (invalid, json!("a"), -32700),
        (
            br#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#.to_vec(),
            json!(null),
            -32600,
        ),
        (br#"{"jsonrpc":"2.0","id":8}"#.to_vec(), json!(8), -32600),
        (too_long, json!(99), -32700),
    ] {
        client.write(&line).await;
        client.write(b"\n").await;
        let reply = client.reply().await;
        let shown = String::from_utf8_lossy(&line).into_owned();
        assert_eq!(
            (&reply["id"], &reply["error"]["code"]),
            (&id, &json!(code)),
            "{shown:.80}"
        );
        assert_eq!(
            client.ask("ping", json!({})).await["result"],
            json!({}),
            "{shown:.80}"
        );
    }
    // Half of a surrogate pair does not make a call invalid.
    client.write(call(r#""number 12 \ud83d""#).as_bytes()).await;
    client.write(b"\n").await;
    let reply = client.reply().await;
    assert_eq!(
        (&reply["id"], &reply["result"]["isError"]),
        (&json!("a"), &json!(false))
    );
    // A blank line and an unknown notification get no answer.
    client
        .write(b"\r\n{\"jsonrpc\":\"2.0\",\"method\":\"$/other\"}\n")
        .await;
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn an_unreadable_line_before_the_handshake_gets_an_error() {
    let (world, _) = tree().await;
    let mut client = Client::start(main_alone(&world), None);
    client.write(b"hello\n").await;
    assert_eq!(client.reply().await["error"]["code"], -32700);
    let ping = client.ask("ping", json!({})).await;
    assert_eq!(ping["result"], json!({}));
}

#[tokio::test]
async fn missing_params_are_named() {
    let (world, _) = tree().await;
    let mut client = Client::old(main_alone(&world), "2025-06-18").await;
    let mut without = async |method: &str, params: Option<Value>| {
        let mut request = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        if let Some(params) = params {
            request["params"] = params;
        }
        client.send(&request).await;
        client.reply().await
    };
    for params in [
        None,
        Some(json!(null)),
        Some(json!({})),
        Some(json!({"name": 3})),
        Some(json!([])),
    ] {
        let reply = without("tools/call", params.clone()).await;
        assert_eq!(reply["error"]["code"], -32602, "{params:?}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("Invalid params: "), "{message}");
    }
    assert_eq!(
        without("resources/read", None).await["error"]["code"],
        -32602
    );
    assert_eq!(without("no/such", None).await["error"]["code"], -32601);
    let tools = &without("tools/list", None).await["result"]["tools"];
    assert_eq!(tools.as_array().unwrap().len(), Retrieval::tools().len());
    // Arguments in a string.
    let params = json!({"name": "memory_grep", "arguments": r#"{"pattern":"number 12"}"#});
    let reply = without("tools/call", Some(params)).await;
    assert!(only_text(&reply["result"]).starts_with("1. [12] "));
}

/// A search that continues until it is told to stop.
#[derive(Debug)]
struct Endless {
    begun: UnboundedSender<()>,
    ended: UnboundedSender<()>,
}

#[async_trait]
impl Search for Endless {
    async fn search(&self, _: ConversationId, query: &Query) -> memory_search::Result<Hits> {
        let _ = self.begun.send(());
        while !query.is_over() {
            std::thread::yield_now();
        }
        let _ = self.ended.send(());
        let mut hits = Hits::new(Vec::new(), "endless", query.scope, Some("m3".to_owned()));
        hits.stopped = true;
        Ok(hits)
    }
}

async fn endless() -> (MemoryServer, UnboundedReceiver<()>, UnboundedReceiver<()>) {
    let (world, _) = tree().await;
    let (begun, has_begun) = unbounded_channel();
    let (ended, has_ended) = unbounded_channel();
    let tools = world
        .tools()
        .with_search(std::sync::Arc::new(Endless { begun, ended }));
    (
        MemoryServer::new(RetrievalSet::new("main", tools)),
        has_begun,
        has_ended,
    )
}

fn anything() -> Value {
    json!({"name": "memory_grep", "arguments": {"pattern": "x"}})
}

#[tokio::test]
async fn no_call_keeps_other_requests_waiting() {
    let (server, mut has_begun, mut has_ended) = endless().await;
    let mut client = Client::old(server, "2025-06-18").await;
    // More calls than are answered at once.
    let mut calls = Vec::new();
    for _ in 0..9 {
        calls.push(client.request("tools/call", anything()).await);
    }
    has_begun.recv().await.unwrap();
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    let listed = client.ask("tools/list", json!({})).await;
    let listed = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(listed.len(), Retrieval::tools().len());
    assert!(has_ended.try_recv().is_err());
    for id in calls {
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        client.send(&cancelled).await;
    }
    has_ended.recv().await.unwrap();
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_time_left_returns_its_results_so_far() {
    let (server, mut has_begun, _has_ended) = endless().await;
    let limit = std::time::Duration::from_secs(3);
    let mut client = Client::old(server.with_time_limit(limit), "2025-06-18").await;
    let id = client.request("tools/call", anything()).await;
    has_begun.recv().await.unwrap();
    tokio::time::advance(limit).await;
    let reply = client.reply().await;
    assert_eq!(
        (&reply["id"], &reply["result"]["isError"]),
        (&json!(id), &json!(false))
    );
    let text = only_text(&reply["result"]);
    assert!(
        text.starts_with("No matches so far. The time of this call was over")
            && text.contains("with cursor \"m3@"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_its_calls() {
    let (server, mut has_begun, mut has_ended) = endless().await;
    let mut client = Client::old(server, "2025-06-18").await;
    let id = client.request("tools/call", anything()).await;
    has_begun.recv().await.unwrap();
    client.write.shutdown().await.unwrap();
    // The server reads to the end of the input, and then gives running calls one second.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(has_ended.try_recv().is_err());
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    has_ended.recv().await.unwrap();
    assert_eq!(client.reply().await["id"], id);
    assert_eq!(client.read.next_line().await.unwrap(), None);
}

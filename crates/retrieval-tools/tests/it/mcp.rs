//! The server of the Model Context Protocol, line by line.

use memory_model::{Media, MediaSource, Message, Part, Role};
use memory_store::Origin;
use retrieval_tools::mcp::{MemoryServer, RECENT, STATS};
use retrieval_tools::{Retrieval, RetrievalSet, ToolShape};
use serde_json::{Value, json};
use token_estimate::{HeuristicEstimator, TokenEstimator};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use crate::world::{World, tree};

/// A client that writes lines and reads lines.
struct Client {
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: u64,
    /// What each request says of its protocol; `None` after a handshake.
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

    /// A client of a revision with a handshake.
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

    /// A client of the revision that has none.
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

    async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.send(&request).await;
        let line = self.read.next_line().await.unwrap().unwrap();
        let reply: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(reply["id"], self.next, "{reply}");
        reply
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.ask("tools/call", params).await["result"].take()
    }
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
        assert_eq!(
            listed,
            ToolShape::Mcp.declare(&Retrieval::tools()),
            "{version}"
        );
        let answer = client
            .call("memory_grep", json!({"pattern": "number 12"}))
            .await;
        assert_eq!(answer["isError"], false, "{answer}");
        assert_eq!(answer["structuredContent"]["hits"][0]["seq"], 12);
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("1. message:12 "), "{text}");
        let answer = client.call("memory_grep", json!({"pat": 1})).await;
        assert_eq!(answer["isError"], true, "{answer}");
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

/// Long texts, many short ones, and images: whatever is asked, a reply keeps within its size.
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
            ("x".repeat(9_000).as_str(), json!({})),
        ] {
            let answer = client.call(name, arguments).await;
            let text = answer["content"][0]["text"].as_str().unwrap();
            let cost = |text: &str| HeuristicEstimator::Bytes4.text(text);
            let cost = cost(text) + cost(&answer["structuredContent"].to_string());
            assert!(cost < most, "{name:.20} {cost} of {most}");
            let json = &answer["structuredContent"];
            assert!(
                answer["isError"] == true
                    || json["complete"] != false
                    || json["cursor"].is_string(),
                "{name:.20} {json}"
            );
        }
        for uri in [RECENT, STATS] {
            let reply = client.ask("resources/read", json!({"uri": uri})).await;
            let text = reply["result"]["contents"][0]["text"].as_str().unwrap();
            assert!(HeuristicEstimator::Bytes4.text(text) < most, "{uri}");
        }
    }
}

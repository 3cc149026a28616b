//! Tests of the server over HTTP: access, and time limits of connections.

use retrieval_tools::RetrievalSet;
use retrieval_tools::mcp::{AccessToken, HttpServer, MemoryServer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::world::tree;

/// Time in which a connection must show the token.
const INTRODUCTION: std::time::Duration = std::time::Duration::from_secs(5);
/// Time after which a connection without a request is closed.
const IDLE: std::time::Duration = std::time::Duration::from_secs(60);

const BEARER: &str = "Authorization: Bearer 0123456789abcdef";

/// Runs a server until the test ends, and returns its address.
async fn serve() -> String {
    let (world, _) = tree().await;
    let server = MemoryServer::new(RetrievalSet::new("main", world.tools()));
    let token = AccessToken::new("0123456789abcdef").unwrap();
    let http = HttpServer::bind(server, 0, token).await.unwrap();
    let url = http.url();
    tokio::spawn(http.serve());
    url.trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .to_owned()
}

/// Sends a request on a new connection. Returns the status and the body of the reply.
async fn post(address: &str, headers: &[&str], body: &[u8]) -> (u16, String) {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let mut head =
        "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n".to_owned();
    head += "Accept: application/json, text/event-stream\r\n";
    if !headers.iter().any(|header| header.starts_with("Host:")) {
        head += &format!("Host: {address}\r\n");
    }
    headers
        .iter()
        .for_each(|header| head += &format!("{header}\r\n"));
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    connection.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses a request need not read all of it.
    let _ = connection.write_all(body).await;
    let mut reply = Vec::new();
    let _ = connection.read_to_end(&mut reply).await;
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let status = reply
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = reply
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    (status.unwrap_or_default(), body.unwrap_or_default())
}

fn grep(pattern: &str) -> Vec<u8> {
    let arguments = json!({"pattern": pattern});
    let params = json!({"name": "memory_grep", "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        .to_string()
        .into_bytes()
}

#[tokio::test]
async fn only_those_with_the_token_are_let_in() {
    let address = serve().await;
    for headers in [
        vec![],
        vec!["Authorization: Bearer guess"],
        vec!["Authorization: Basic 0123456789abcdef"],
        vec!["X-Token: 0123456789abcdef"],
    ] {
        let (status, body) = post(&address, &headers, &grep("number")).await;
        assert_eq!(status, 401, "{headers:?}");
        assert!(!body.contains("message number"), "{body}");
    }
    let (status, body) = post(&address, &[BEARER], &grep("number 12")).await;
    assert_eq!(status, 200, "{body}");
    let reply: Value = serde_json::from_str(&body).unwrap();
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("1. [12] "), "{text}");
    // Requests from web pages, with any host name.
    for header in [
        "Origin: http://localhost:3000",
        "Origin: null",
        "Host: memory.example",
    ] {
        let (status, _) = post(&address, &[BEARER, header], &grep("number")).await;
        assert_eq!(status, 403, "{header}");
    }
}

#[tokio::test]
async fn bodies_are_bounded_and_each_gets_an_answer() {
    let address = serve().await;
    for (body, status, code, id) in [
        (b"hello".to_vec(), 400, -32700, json!(null)),
        (
            br#"{"jsonrpc":"2.0","id":5,"method":"#.to_vec(),
            400,
            -32700,
            json!(5),
        ),
        (b"[]".to_vec(), 400, -32600, json!(null)),
        (vec![b' '; (4 << 20) + 1], 413, -32700, json!(null)),
    ] {
        let (told, reply) = post(&address, &[BEARER], &body).await;
        assert_eq!(told, status, "{reply}");
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(code), &id));
    }
    let half = grep("number 12 ?");
    let half = String::from_utf8(half).unwrap().replace('?', "\\ud83d");
    let (status, body) = post(&address, &[BEARER], half.as_bytes()).await;
    assert_eq!(status, 200, "{body}");
    let long = format!("X-Long: {}", "x".repeat(64 << 10));
    let (status, _) = post(&address, &[BEARER, &long], &grep("number")).await;
    assert_eq!(status, 431);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends() {
    let address = serve().await;
    for sent in ["", "POST /mcp HTTP/1.1\r\n"] {
        let begun = Instant::now();
        let mut connection = TcpStream::connect(&address).await.unwrap();
        connection.write_all(sent.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let _ = connection.read_to_end(&mut rest).await;
        let took = begun.elapsed();
        assert!(
            took >= INTRODUCTION && took < 2 * INTRODUCTION,
            "{sent:?} {took:?}"
        );
    }
    // A request with a body that never arrives.
    let begun = Instant::now();
    let mut connection = TcpStream::connect(&address).await.unwrap();
    let head =
        format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\n{BEARER}\r\nContent-Length: 9\r\n\r\n");
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut rest = Vec::new();
    let _ = connection.read_to_end(&mut rest).await;
    assert!(rest.starts_with(b"HTTP/1.1 408"));
    assert!(begun.elapsed() >= IDLE && begun.elapsed() < 3 * IDLE);
}

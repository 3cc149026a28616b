//! A model's endpoint on a port of 127.0.0.1 that misbehaves in ways that a test chooses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::support::PATIENCE;

/// A received request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Number of the request, from 1.
    pub number: usize,
    pub body: String,
}

/// Reaction of the endpoint to a request.
pub enum Answer {
    /// A summary that passes the gate.
    Summary,
    /// An answer with this status, these header lines and this body.
    Status(u16, String, String),
    /// No answer until the client closes the connection.
    Silence,
    /// The beginning of a stream of events. Then nothing until the client closes the connection.
    Begins,
    /// A head, then one byte of the body for each wait of the client, without an end.
    Drip,
    /// A part of an answer. The connection is then closed.
    CutOff,
    /// A body without an end, as fast as the client reads it.
    Flood,
    /// The connection is closed without an answer.
    Nothing,
    /// Bytes that are not HTTP.
    Noise,
}

#[derive(Default)]
struct Shared {
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    stopped: AtomicBool,
    /// Number of bytes of endless bodies that clients have read.
    flooded: AtomicU64,
}

/// A running endpoint. Dropping it stops it.
pub struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// Returns a model's answer in the form of the API.
pub fn completion(text: &str) -> String {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": text, "refusal": null}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    })
    .to_string()
}

const SUMMARY: &str = "A storm shut the harbour and kept the ferry on the far side. The boat will get its paint before \
                       summer. An open window blew letters over the floor, the bread came out better, the kitchen clock \
                       has no key, the choir did without its organ, and the harvest was poor, so corn costs more. The \
                       old map still shows the bridge that the river took.";

impl Endpoint {
    /// Starts an endpoint. `answer` chooses its reaction to each request.
    pub fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (of, answer) = (Arc::clone(&shared), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (of, answer) = (Arc::clone(&of), Arc::clone(&answer));
                std::thread::spawn(move || {
                    // A client that goes away in the middle is what many tests are about.
                    let _ = stream.and_then(|stream| serve(&of, stream, &*answer));
                });
            }
        });
        Self { address, shared }
    }

    /// Starts an endpoint that answers every request correctly.
    pub fn well() -> Self {
        Self::start(|_| Answer::Summary)
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns a command line with options that make the program call this endpoint.
    pub fn asked_by(&self, command: &[&str]) -> Vec<String> {
        let url = self.url();
        let options = ["--summarizer", "compatible:model", "--base-url", &url];
        let key = ["--api-key", "the-key-of-the-test"];
        let all = [command, &options, &key].concat();
        all.into_iter().map(str::to_owned).collect()
    }

    pub fn requests(&self) -> Vec<Request> {
        self.lock().clone()
    }

    /// Returns the number of requests received so far.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Waits until this many requests have arrived.
    pub fn wait_for(&self, count: usize) {
        let requests = self.lock();
        let (requests, timeout) = self
            .shared
            .arrived
            .wait_timeout_while(requests, PATIENCE, |requests| requests.len() < count)
            .unwrap();
        assert!(
            !timeout.timed_out(),
            "{} of {count} requests arrived",
            requests.len()
        );
    }

    /// Returns the number of bytes of endless bodies that clients have read.
    pub fn flooded(&self) -> u64 {
        self.shared.flooded.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        self.shared.requests.lock().unwrap()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // The listener waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    shared: &Shared,
    mut stream: TcpStream,
    answer: &dyn Fn(&Request) -> Answer,
) -> std::io::Result<()> {
    let Some(request) = read(shared, &stream)? else {
        return Ok(());
    };
    let reply = |stream: &mut TcpStream, status: u16, headers: &str, body: &str| {
        write!(
            stream,
            "HTTP/1.1 {status} Status\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    const JSON: &str = "content-type: application/json\r\n";
    match answer(&request) {
        Answer::Summary => reply(&mut stream, 200, JSON, &completion(SUMMARY)),
        Answer::Status(status, headers, body) => reply(&mut stream, status, &headers, &body),
        Answer::Silence => gone(&stream),
        Answer::Begins => {
            let event =
                json!({"choices": [{"index": 0, "delta": {"content": "They talked about"}}]});
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {event}\n\n"
            )?;
            gone(&stream)
        }
        Answer::Drip => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\n{JSON}content-length: 1000000\r\n\r\n"
            )?;
            // The client is alive as long as it takes bytes; each is sent when the one before it went out.
            loop {
                stream.write_all(b" ")?;
                stream.flush()?;
                std::thread::sleep(std::time::Duration::from_millis(50));
                if shared.stopped.load(Ordering::SeqCst) {
                    return Ok(());
                }
            }
        }
        Answer::CutOff => {
            let body = completion(SUMMARY);
            write!(
                stream,
                "HTTP/1.1 200 OK\r\n{JSON}content-length: {}\r\n\r\n{}",
                body.len(),
                &body[..body.len() / 2]
            )
        }
        Answer::Flood => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n"
            )?;
            let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, "x".repeat(1 << 16));
            while !shared.stopped.load(Ordering::SeqCst) {
                stream.write_all(chunk.as_bytes())?;
                shared.flooded.fetch_add(1 << 16, Ordering::SeqCst);
            }
            Ok(())
        }
        Answer::Nothing => Ok(()),
        Answer::Noise => {
            stream.write_all(&[0, 255, b'\r', b'\n', 7, 200, b'\r', b'\n', b'\r', b'\n'])
        }
    }
}

/// Waits until the client has closed the connection.
fn gone(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte)? > 0 {}
    Ok(())
}

fn read(shared: &Shared, stream: &TcpStream) -> std::io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(None);
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut requests = shared.requests.lock().unwrap();
    let request = Request {
        number: requests.len() + 1,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    requests.push(request.clone());
    shared.arrived.notify_all();
    Ok(Some(request))
}

/// Returns the prompt of a request, without settings that may differ between attempts.
pub fn question(request: &Request) -> String {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    body["messages"].to_string()
}

//! A server on this machine that speaks OpenAI's chat completions, and answers by a script.

use std::sync::{Arc, Mutex, PoisonError};

use agent_memory_genai::genai::adapter::AdapterKind;
use agent_memory_genai::genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use agent_memory_genai::genai::{Client, ModelIden, ServiceTarget};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Status and body of an answer.
pub(crate) type Answer = (u16, Value);

/// A running server, and the requests that it was sent.
pub(crate) struct Server {
    pub(crate) client: Client,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Starts a server. It ends with the program.
    pub(crate) async fn start(
        script: impl Fn(&Value) -> Answer + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/v1/", listener.local_addr()?);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A connection that breaks off is the client's to report.
                let _ = answer(stream, &script, &seen).await;
            }
        });
        Ok(Self {
            client: client(&url)?,
            requests,
        })
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns a client of that address, as an application configures its own.
fn client(url: &str) -> std::io::Result<Client> {
    let url = url.to_owned();
    let resolver = ServiceTargetResolver::from_resolver_fn(move |target: ServiceTarget| {
        Ok::<_, agent_memory_genai::genai::resolver::Error>(ServiceTarget {
            endpoint: Endpoint::from_owned(url.as_str()),
            auth: AuthData::from_single("no key"),
            model: ModelIden::new(AdapterKind::OpenAI, target.model.model_name),
        })
    });
    Client::builder()
        .with_service_target_resolver(resolver)
        .build()
        .map_err(std::io::Error::other)
}

async fn answer(
    stream: TcpStream,
    script: &(impl Fn(&Value) -> Answer + Send + Sync),
    seen: &Mutex<Vec<Value>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? <= 2 {
            break;
        }
        let header = line.to_ascii_lowercase();
        if let Some(number) = header.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let request: Value = serde_json::from_slice(&body)?;
    let (status, answer) = script(&request);
    seen.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(request);
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

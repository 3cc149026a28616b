//! A web server with a conversation for each user. `POST /sessions/{key}/turns` with `{"text": …}` returns the reply
//! as `{"text": …}`, and `GET /sessions/{key}/search?text=…` searches the conversation.
//!
//! `cargo run --example web_server -- 127.0.0.1:8080` serves until it is stopped. Without an address the example sends
//! requests to its own router, so that it needs no network. The model is a script. In a real program, send the request
//! to a model's server instead.

#![allow(clippy::print_stdout)]

use agent_memory::providers::anthropic;
use agent_memory::{Memory, Window};
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Query, State};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const MODEL: &str = "claude-sonnet-4-5";

/// State that every request needs. A [`Memory`] is cheap to clone, and many requests can use it at once.
#[derive(Clone)]
struct App {
    memory: Memory,
    window: Window,
}

fn router(app: App) -> Router {
    Router::new()
        .route("/sessions/{key}/turns", post(turn))
        .route("/sessions/{key}/search", get(search))
        .with_state(app)
}

#[derive(Deserialize)]
struct Turn {
    text: String,
}

async fn turn(
    State(app): State<App>,
    Path(key): Path<String>,
    Json(turn): Json<Turn>,
) -> Result<Json<Value>, Failure> {
    let session = app.memory.session(key).window(app.window);
    let session = session.system("You answer in one sentence.").await?;
    session.user(turn.text).await?;
    let (system, messages) = session.context().await?.to_anthropic();
    let response = model(
        &json!({"model": MODEL, "max_tokens": 1_000, "system": system, "messages": messages}),
    );
    let reply = anthropic::reply(&response)?;
    session.reply(&reply).await?;
    Ok(Json(json!({"text": reply.text()})))
}

/// A model that answers with the number of messages in the request.
fn model(request: &Value) -> Value {
    let count = request["messages"].as_array().map_or(0, Vec::len);
    let text = format!("I was shown {count} messages.");
    json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
}

async fn search(
    State(app): State<App>,
    Path(key): Path<String>,
    Query(wanted): Query<Turn>,
) -> Result<Json<Value>, Failure> {
    let session = app.memory.get_session(key).await?;
    let found = session.retrieval().grep(wanted.text.as_str()).await?;
    Ok(Json(json!(found)))
}

/// Converts an error into a response.
struct Failure(agent_memory::Error);

impl<E: Into<agent_memory::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match self.0.kind() {
            agent_memory::ErrorKind::NotFound => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, Json(json!({"error": self.0.to_string()}))).into_response()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let memory = Memory::open(folder.path().join("memory.db")).await?;
    let app = App {
        memory: memory.clone(),
        window: Window::for_model(MODEL)?,
    };
    if let Some(address) = std::env::args().nth(1) {
        let listener = tokio::net::TcpListener::bind(&address).await?;
        println!("listening on {}", listener.local_addr()?);
        axum::serve(listener, router(app)).await?;
        return Ok(());
    }

    // Many users send messages at once, and some of them send two.
    let router = router(app);
    let ask = |method: &str, path: String, body: Value| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()));
        let router = router.clone();
        async move {
            let response = router.oneshot(request?).await?;
            let status = response.status();
            let bytes = to_bytes(response.into_body(), usize::MAX).await?;
            let answer: Value = serde_json::from_slice(&bytes)?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((status, answer))
        }
    };
    let mut tasks = Vec::new();
    for user in 0..20 {
        let text =
            json!({"text": format!("I am user {user}, and my boat is number {}.", user * 3)});
        tasks.push(tokio::spawn(ask(
            "POST",
            format!("/sessions/user-{user}/turns"),
            text,
        )));
    }
    for task in tasks {
        let (status, answer) = task.await?.map_err(|error| error.to_string())?;
        assert_eq!(
            (status, &answer["text"]),
            (StatusCode::OK, &json!("I was shown 1 messages."))
        );
    }
    let text = json!({"text": "Which is it?"});
    let again = ask("POST", "/sessions/user-7/turns".to_owned(), text).await;
    let (_, answer) = again.map_err(|error| error.to_string())?;
    assert_eq!(answer["text"], "I was shown 3 messages.");
    let found = ask(
        "GET",
        "/sessions/user-7/search?text=boat".to_owned(),
        Value::Null,
    )
    .await;
    let (_, found) = found.map_err(|error| error.to_string())?;
    assert!(found.to_string().contains("number 21"), "{found}");
    let none = ask(
        "GET",
        "/sessions/nobody/search?text=boat".to_owned(),
        Value::Null,
    )
    .await;
    let (status, none) = none.map_err(|error| error.to_string())?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    println!("20 users, {found}\nand a user who is not there: {none}");
    memory.close().await?;
    Ok(())
}

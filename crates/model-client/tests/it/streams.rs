//! Streamed answers over real connections, with a clock that jumps over waits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model_client::guard::{
    AttemptEvent, AttemptKind, CallObserver, GuardPolicy, GuardedModel, Guards, SessionGuard,
};
use model_client::{
    AnswerObserver, AnswerProgress, AnthropicMessages, ChatModel, FailureKind, GeminiGenerate,
    OpenAiCompatible, OpenAiResponses, Stop, TokioTimer, observed,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};
use wiremock::ResponseTemplate;

use crate::openai::{ask, prompt, server};

const SECOND: Duration = Duration::from_secs(1);

/// Returns events in the form of a stream, with raw data behind them.
pub(crate) fn stream(events: &[Value], last: &[&str]) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(sse(events, last), "text/event-stream; charset=utf-8")
}

fn sse(events: &[Value], last: &[&str]) -> String {
    let data = events.iter().map(|event| {
        let name = event.get("type").and_then(Value::as_str);
        let name = name.map(|name| format!("event: {name}\n"));
        format!("{}data: {event}\n\n", name.unwrap_or_default())
    });
    let last = last.iter().map(|data| format!("data: {data}\n\n"));
    data.chain(last).collect()
}

fn delta(content: &str) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": null}], "usage": null})
}

/// The events of a chat completion as OpenAI and llama.cpp send them.
fn completion(finish: &str) -> Vec<Value> {
    let mut first = delta("");
    first["choices"][0]["delta"] = json!({"role": "assistant", "content": null, "refusal": null});
    let mut end = delta("");
    end["choices"][0] = json!({"index": 0, "delta": {}, "finish_reason": finish});
    let usage = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
        "usage": {"prompt_tokens": 120, "completion_tokens": 9, "total_tokens": 129,
            "prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 20}}});
    vec![
        first,
        delta("Deploy "),
        delta("when "),
        delta("green."),
        end,
        usage,
    ]
}

fn client(url: &str) -> OpenAiCompatible {
    OpenAiCompatible::new(&format!("{url}/v1"), "m").unwrap()
}

#[derive(Debug, Default)]
struct Seen(Mutex<Vec<AnswerProgress>>);

impl AnswerObserver for Seen {
    fn received(&self, progress: &AnswerProgress) {
        self.0.lock().unwrap().push(*progress);
    }
}

#[tokio::test]
async fn a_stream_is_a_text_with_its_cost_and_its_progress() {
    let server = server(stream(&completion("stop"), &["[DONE]"])).await;
    let seen = Arc::new(Seen::default());
    let client = client(&server.uri());
    let answer = observed(seen.clone(), ask(&client)).await.unwrap();
    assert_eq!(
        (&*answer.text, answer.stop),
        ("Deploy when green.", Stop::Complete)
    );
    let usage = answer.usage.unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cached_input),
        (120, 9, 100)
    );
    assert_eq!(usage.cache_write, 20);
    let last = *seen.0.lock().unwrap().last().unwrap();
    assert_eq!((last.input, last.output), (Some(120), 9));
    assert!(last.bytes > 900);
}

#[tokio::test]
async fn a_stream_without_its_last_event_is_a_failure_that_may_pass() {
    let whole = completion("stop");
    for (events, last, complete) in [
        (&whole[..], &["[DONE]"][..], true),
        // Some servers leave out the last line, or the usage.
        (&whole[..], &[], true),
        (&whole[..5], &[], true),
        (&whole[..4], &["[DONE]"], true),
        (&whole[..4], &[], false),
        (&whole[..4], &["{\"choices\": [{\"del"], false),
        (&whole[..1], &[], false),
    ] {
        let server = server(stream(events, last)).await;
        match ask(&client(&server.uri())).await {
            Ok(answer) => {
                assert!(complete);
                assert_eq!(answer.text, "Deploy when green.");
            }
            Err(failure) => {
                assert!(!complete || !last.is_empty(), "{failure}");
                assert!(failure.retryable(), "{failure}");
            }
        }
    }
    let cut = server(stream(&completion("length"), &["[DONE]"])).await;
    assert_eq!(ask(&client(&cut.uri())).await.unwrap().stop, Stop::CutOff);
    // An error inside of the stream.
    let error = json!({"error": {"code": 500, "message": "out of memory", "type": "server_error"}});
    let events = [&whole[..2], &[error]].concat();
    let broken = server(stream(&events, &[])).await;
    let failure = ask(&client(&broken.uri())).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Overloaded);
    assert!(failure.to_string().contains("out of memory"), "{failure}");
}

#[tokio::test]
async fn streams_are_known_without_their_type_and_documents_in_spite_of_it() {
    let text = sse(&completion("stop"), &["[DONE]"]);
    let document = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Deploy when green."}}]});
    for answer in [
        ResponseTemplate::new(200).set_body_raw(text.clone(), "text/plain"),
        ResponseTemplate::new(200).set_body_raw(format!(": hello\n\n{text}"), "application/json"),
        ResponseTemplate::new(200).set_body_raw(document.to_string(), "text/event-stream"),
    ] {
        let server = server(answer).await;
        assert_eq!(
            ask(&client(&server.uri())).await.unwrap().text,
            "Deploy when green."
        );
    }
}

/// What a server does after it has read a request.
#[derive(Debug, Clone)]
enum Step {
    Wait(Duration),
    Send(String),
    /// Waits until the client closes the connection, and reports it.
    UntilGone(tokio::sync::mpsc::UnboundedSender<Duration>),
}

fn head() -> Step {
    Step::Send(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            .to_owned(),
    )
}

fn send(events: &[Value], last: &[&str]) -> Step {
    Step::Send(sse(events, last))
}

/// Starts a server that takes these steps for every request.
async fn steps(steps: Vec<Step>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(serve(connection, steps.clone()));
        }
    });
    format!("http://{address}")
}

async fn serve(mut connection: TcpStream, steps: Vec<Step>) {
    let start = Instant::now();
    let mut request = vec![0; 65_536];
    let _ = connection.read(&mut request).await;
    for step in steps {
        match step {
            Step::Wait(time) => sleep(time).await,
            Step::Send(text) => {
                let _ = connection.write_all(text.as_bytes()).await;
            }
            Step::UntilGone(told) => {
                while connection
                    .read(&mut request)
                    .await
                    .is_ok_and(|read| read > 0)
                {}
                let _ = told.send(start.elapsed());
            }
        }
    }
}

/// First byte after 200 s, the last after 400 s.
fn slow() -> Vec<Step> {
    let whole = completion("stop");
    vec![
        Step::Wait(200 * SECOND),
        head(),
        send(&whole[..2], &[]),
        Step::Wait(150 * SECOND),
        send(&whole[2..4], &[]),
        Step::Wait(50 * SECOND),
        send(&whole[4..], &["[DONE]"]),
    ]
}

fn policy(seconds: u64) -> GuardPolicy {
    GuardPolicy {
        timeout_millis: Some(seconds * 1_000),
        ..GuardPolicy::none()
    }
}

fn guarded(client: OpenAiCompatible, seconds: u64) -> GuardedModel<OpenAiCompatible> {
    GuardedModel::new("m", client, policy(seconds), Arc::new(TokioTimer::new()))
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_has_the_whole_time_of_the_guards() {
    let url = steps(slow()).await;
    let start = Instant::now();
    let answer = guarded(client(&url), 600)
        .complete(&prompt())
        .await
        .unwrap();
    assert_eq!(answer.text, "Deploy when green.");
    assert_eq!(start.elapsed().as_secs(), 400);
    // An answer at once after 400 s is the same.
    let document =
        json!({"choices": [{"finish_reason": "stop", "message": {"content": "Deploy."}}]})
            .to_string();
    let length = document.len();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{document}");
    let url = steps(vec![Step::Wait(400 * SECOND), Step::Send(answer)]).await;
    assert_eq!(
        guarded(client(&url), 600)
            .complete(&prompt())
            .await
            .unwrap()
            .text,
        "Deploy."
    );
    // The guards' limit is one for the whole answer.
    let url = steps(slow()).await;
    let start = Instant::now();
    let failure = guarded(client(&url), 300)
        .complete(&prompt())
        .await
        .unwrap_err();
    assert_eq!(failure.kind(), FailureKind::TimedOut);
    assert_eq!(start.elapsed().as_secs(), 300);
    // A client alone has no limit.
    let url = steps(slow()).await;
    client(&url).complete(&prompt()).await.unwrap();
}

/// Returns the clients of all APIs.
fn clients(url: &str, idle: Duration) -> Vec<Box<dyn ChatModel>> {
    let idle = Some(idle);
    vec![
        Box::new(client(url).with_idle_limit(idle)),
        Box::new(
            OpenAiResponses::new(url, "m")
                .unwrap()
                .with_idle_limit(idle),
        ),
        Box::new(
            AnthropicMessages::new(url, "m")
                .unwrap()
                .with_idle_limit(idle),
        ),
        Box::new(GeminiGenerate::new(url, "m").unwrap().with_idle_limit(idle)),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_left_after_the_limit_on_its_silence() {
    let silent = steps(vec![Step::Wait(9_000 * SECOND)]).await;
    let silent_after_head = steps(vec![head(), Step::Wait(9_000 * SECOND)]).await;
    for url in [silent, silent_after_head] {
        for client in clients(&url, 5 * SECOND) {
            let start = Instant::now();
            let failure = client.complete(&prompt()).await.unwrap_err();
            assert_eq!(failure.kind(), FailureKind::TimedOut);
            assert!(
                failure.to_string().contains("sent nothing for 5 s"),
                "{failure}"
            );
            assert_eq!(start.elapsed().as_secs(), 5);
        }
    }
    // In the middle of an answer.
    let whole = completion("stop");
    let steps_of = |middle: Vec<Step>| [vec![head(), send(&whole[..3], &[])], middle].concat();
    let url = steps(steps_of(vec![Step::Wait(9_000 * SECOND)])).await;
    let failure = client(&url)
        .with_idle_limit(Some(5 * SECOND))
        .complete(&prompt())
        .await;
    assert_eq!(failure.unwrap_err().kind(), FailureKind::TimedOut);
    // Any byte is a sign of life, and the limit is none on the whole.
    let alive =
        (0..100).flat_map(|_| [Step::Wait(4 * SECOND), Step::Send(": alive\n\n".to_owned())]);
    let last = [send(&whole[3..], &["[DONE]"])];
    let url = steps(steps_of(alive.chain(last).collect())).await;
    let answer = client(&url)
        .with_idle_limit(Some(5 * SECOND))
        .complete(&prompt())
        .await;
    assert_eq!(answer.unwrap().text, "Deploy when green.");
}

#[derive(Debug, Default)]
struct Log(Mutex<Vec<String>>);

impl CallObserver for Log {
    fn attempt(&self, event: &AttemptEvent<'_>) {
        let text = match &event.kind {
            AttemptKind::Started { .. } => "started".to_owned(),
            AttemptKind::Receiving { progress } => format!("{} tokens", progress.output),
            AttemptKind::Cancelled => "cancelled".to_owned(),
            _ => "ended".to_owned(),
        };
        self.0.lock().unwrap().push(text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_ends_at_once_and_has_spent_what_arrived() {
    let (told, mut gone) = tokio::sync::mpsc::unbounded_channel();
    let whole = completion("stop");
    let url = steps(vec![head(), send(&whole[..4], &[]), Step::UntilGone(told)]).await;
    let log = Arc::new(Log::default());
    let guards = Guards::from(policy(600)).with_observer(log.clone());
    let session = Arc::new(SessionGuard::new());
    let model = GuardedModel::for_session("m", client(&url), Arc::new(guards), session.clone());
    let call = tokio::spawn(async move { model.complete(&prompt()).await });
    sleep(20 * SECOND).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(gone.recv().await.unwrap().as_secs(), 20);
    let spent = session.spent();
    let words = &*log.0.lock().unwrap();
    assert_eq!(words.first().unwrap(), "started");
    assert_eq!(words.last().unwrap(), "cancelled");
    assert!(words.len() > 2, "{words:?}");
    // Prompt and answer are short: not the 256 tokens that were reserved.
    assert!(
        spent.calls == 1 && (10..80).contains(&spent.tokens),
        "{spent:?}"
    );
}

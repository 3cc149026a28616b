//! Endpoint of a provider: its address, requests to it, and answers from it.

use std::fmt;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::answer::Heard;
use super::http::{client, failed, filtered, is_loopback, reported, retry_after, without_secrets};
use super::key::Secrets;
use super::sse::{SseReader, is_stream};
use super::{ApiKey, OPENAI_BASE_URL};
use crate::{Completion, Failure, FailureKind, Stop, report_progress};

/// Maximum length of the text of a chat model's answer, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;
/// Maximum length of a stream of events, as a multiple of the maximum length of an answer: the events of a token are
/// about a hundred times as long as the token.
const STREAM_FACTOR: u64 = 128;

/// An address of a server, with the settings of requests to it.
#[derive(Clone)]
pub(super) struct Endpoint {
    http: reqwest::Client,
    url: reqwest::Url,
    /// The server's name in errors: its address without secrets.
    pub(super) whom: String,
    key: Option<ApiKey>,
    /// Header with the key, and the words before the key in it.
    key_header: (HeaderName, &'static str),
    /// Headers of every request.
    headers: HeaderMap,
    /// Secrets that requests contain. They are redacted in texts of the server.
    pub(super) secrets: Secrets,
    /// Maximum duration of a request.
    pub(super) timeout: Option<Duration>,
    /// Maximum time without a byte from the server.
    pub(super) idle: Option<Duration>,
    /// Maximum length of an answer, in bytes.
    max_answer_bytes: usize,
}

/// Path of an API below a base URL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Api<'a> {
    /// Path below the base URL.
    pub(super) path: &'a str,
    /// Version in front of the path, unless the base URL ends with a version.
    pub(super) version: Option<&'a str>,
    /// Query of the address.
    pub(super) query: Option<(&'a str, &'a str)>,
}

/// A server's reply to a request for an answer.
pub(super) enum Reply {
    /// The server begins to answer.
    Accepted(Response),
    /// The server has rejected the request.
    Rejected(Answer),
}

/// Data of the event that ends a stream of OpenAI's chat completions.
const DONE: &str = "[DONE]";

/// A server's answer: status, requested wait and body.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    wait: Option<Duration>,
    pub(super) body: String,
}

/// Builder methods that all clients have.
macro_rules! endpoint_options {
    () => {
        /// Sets the API key. Servers on the same machine often need no key.
        pub fn with_key(mut self, key: $crate::ApiKey) -> Self {
            self.endpoint.set_key(key);
            self
        }

        /// Sets the maximum duration of a request; `None` for no limit, which is the default. The guards limit the
        /// duration of a call too: see [`GuardPolicy::timeout_millis`](crate::guard::GuardPolicy::timeout_millis).
        pub fn with_timeout(mut self, timeout: Option<std::time::Duration>) -> Self {
            self.endpoint.timeout = timeout;
            self
        }

        /// Sets the maximum time without a byte from the server, before and between the pieces of an answer; `None` for
        /// no limit, which is the default. A server may need minutes for a prompt before it sends the first byte.
        pub fn with_idle_limit(mut self, limit: Option<std::time::Duration>) -> Self {
            self.endpoint.idle = limit;
            self
        }
    };
}
pub(super) use endpoint_options;

impl Endpoint {
    /// Creates the endpoint of an API below a base URL.
    pub(super) fn new(base_url: &str, api: Api<'_>) -> Result<Self, Failure> {
        let invalid = |what: &str| {
            let text = format!("{what}: give a base URL such as {OPENAI_BASE_URL}");
            Failure::with_text(FailureKind::InvalidClient, text)
        };
        let url = reqwest::Url::parse(base_url.trim());
        let mut url = url.map_err(|_| invalid("the provider's address is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(
                "the provider's address does not begin with http or https",
            ));
        }
        let secrets = Secrets::of_url(&url);
        let base = url.path().trim_end_matches('/').to_owned();
        let path = match api.version {
            Some(version) if !is_version(&base) => format!("{base}/{version}/{}", api.path),
            _ => format!("{base}/{}", api.path),
        };
        url.set_path(&path);
        if let Some((name, value)) = api.query {
            url.query_pairs_mut().append_pair(name, value);
        }
        let http = client(Some(&url), None).map_err(|error| {
            let text =
                format!("connections cannot be made ({error}): check the system's certificates");
            Failure::with_text(FailureKind::InvalidClient, text)
        })?;
        Ok(Self {
            http,
            secrets,
            whom: without_secrets(&url),
            url,
            key: None,
            key_header: (reqwest::header::AUTHORIZATION, "Bearer "),
            headers: HeaderMap::new(),
            timeout: None,
            idle: None,
            max_answer_bytes: MAX_TEXT_BYTES,
        })
    }

    /// Sets the maximum length of an answer, in bytes.
    pub(super) fn with_max_answer_bytes(mut self, bytes: usize) -> Self {
        self.max_answer_bytes = bytes;
        self
    }

    /// Sends the key in this header, without words before it.
    pub(super) fn with_key_header(mut self, name: &'static str) -> Self {
        self.key_header = (HeaderName::from_static(name), "");
        self
    }

    /// Adds a header to every request.
    pub(super) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        let value = HeaderValue::from_static(value);
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    pub(super) fn host(&self) -> Option<&str> {
        self.url.host_str()
    }

    /// Returns whether the server is probably one that its user runs: on this machine, or without encryption.
    pub(super) fn is_own_server(&self) -> bool {
        self.url.scheme() == "http" || is_loopback(&self.url)
    }

    pub(super) fn set_key(&mut self, key: ApiKey) {
        self.secrets.add_key(&key);
        self.key = Some(key);
    }

    /// Adds the server and the key to a debug output, without showing secrets.
    pub(super) fn describe(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("server", &self.whom).field("key", &self.key);
    }

    /// Sends a request, and waits for the head of the answer.
    async fn send(&self, request: &impl Serialize) -> Result<Response, Failure> {
        let body = serde_json::to_vec(request)
            .map_err(|error| Failure::new(FailureKind::BadRequest, error))?;
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.key {
            let (name, before) = &self.key_header;
            let value = HeaderValue::from_str(&format!("{before}{}", key.secret()));
            let mut value = value.map_err(|_| {
                let what = "the key has characters that a header cannot contain";
                Failure::new(FailureKind::Auth, what)
            })?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        let mut call = self.http.post(self.url.clone()).headers(headers).body(body);
        if let Some(timeout) = self.timeout {
            call = call.timeout(timeout);
        }
        self.in_time(call.send()).await
    }

    /// Waits for the server, but no longer than the limit on its silence.
    async fn in_time<T>(
        &self,
        wait: impl Future<Output = Result<T, reqwest::Error>>,
    ) -> Result<T, Failure> {
        let result = match self.idle {
            None => wait.await,
            Some(limit) => tokio::time::timeout(limit, wait).await.map_err(|_| {
                let what = format!("{} sent nothing for {} s", self.whom, limit.as_secs_f64());
                Failure::new(FailureKind::TimedOut, what)
            })?,
        };
        result.map_err(|error| self.broken(&error))
    }

    /// Sends a request and reads the whole answer. Any status is accepted.
    pub(super) async fn post(&self, request: &impl Serialize) -> Result<Answer, Failure> {
        self.rest(self.send(request).await?).await
    }

    /// Reads the body of an answer.
    async fn rest(&self, mut response: Response) -> Result<Answer, Failure> {
        let status = response.status();
        let wait = retry_after(|name| response.headers().get(name)?.to_str().ok());
        let mut body = Vec::new();
        while let Some(chunk) = self.in_time(response.chunk()).await? {
            body.extend_from_slice(&chunk);
            self.check_length(body.len())?;
        }
        Ok(Answer {
            status,
            wait,
            body: String::from_utf8_lossy(&body).into_owned(),
        })
    }

    fn check_length(&self, bytes: usize) -> Result<(), Failure> {
        let most = self.max_answer_bytes;
        match bytes > most {
            true => Err(self.bad(&format!("answered with more than {most} bytes"))),
            false => Ok(()),
        }
    }

    /// Asks a chat model, and reads its answer. `model` is the model's name. `hear` reads one event of the answer, or
    /// an answer that the server sends at once; its error describes an event that does not have the documented form.
    pub(super) async fn ask(
        &self,
        model: &str,
        request: &impl Serialize,
        hear: impl Fn(&mut Heard, &Value) -> Result<(), &'static str>,
    ) -> Result<Completion, Failure> {
        match self.open(request).await? {
            Reply::Accepted(response) => self
                .hear(response, hear)
                .await?
                .finish(&self.secrets, model),
            Reply::Rejected(answer) => self.rejected(&answer),
        }
    }

    /// Sends a request for an answer of a chat model.
    pub(super) async fn open(&self, request: &impl Serialize) -> Result<Reply, Failure> {
        let response = self.send(request).await?;
        match response.status().is_success() {
            true => Ok(Reply::Accepted(response)),
            false => Ok(Reply::Rejected(self.rest(response).await?)),
        }
    }

    /// Returns the outcome of a rejected request: a filter that rejected the prompt counts as an answer.
    pub(super) fn rejected(&self, answer: &Answer) -> Result<Completion, Failure> {
        if answer.status.is_client_error() && filtered(&answer.body) {
            return Ok(Completion {
                stop: Stop::Filtered,
                ..Completion::new("")
            });
        }
        Err(self.refused(answer))
    }

    /// Reads an answer event by event, and reports its progress. A server may send one document instead of a stream of
    /// events, even if the request asks for a stream.
    pub(super) async fn hear(
        &self,
        mut response: Response,
        hear: impl Fn(&mut Heard, &Value) -> Result<(), &'static str>,
    ) -> Result<Heard, Failure> {
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
        let (mut heard, mut events) = (Heard::default(), SseReader::default());
        // The bytes of a document, or of the beginning that does not yet show what the answer is.
        let mut body = Vec::new();
        while !heard.done {
            let chunk = match self.in_time(response.chunk()).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // The answer is complete, although the server did not end the stream.
                Err(_) if heard.is_complete() => break,
                Err(failure) => return Err(failure),
            };
            heard.bytes = heard.bytes.saturating_add(chunk.len() as u64);
            if !heard.streamed {
                body.extend_from_slice(&chunk);
                heard.streamed = is_stream(&body, &content_type) == Some(true);
            }
            if heard.streamed {
                let begun = std::mem::take(&mut body);
                let bytes = if begun.is_empty() {
                    &chunk[..]
                } else {
                    &begun[..]
                };
                events.read(bytes, |data| self.event(&mut heard, data, &hear))?;
            }
            self.check_length(body.len() + events.kept() + heard.text.len())?;
            if heard.bytes > STREAM_FACTOR.saturating_mul(self.max_answer_bytes as u64) {
                return Err(self.bad("answered with a stream that does not end"));
            }
            report_progress(&heard.progress());
        }
        if !heard.streamed {
            self.document(&mut heard, &String::from_utf8_lossy(&body), &hear)?;
            return Ok(heard);
        }
        if let Some(data) = events.end()
            && !heard.done
            && (data.trim() == DONE || serde_json::from_str::<Value>(&data).is_ok())
        {
            self.event(&mut heard, &data, &hear)?;
        }
        match heard.is_complete() {
            true => Ok(heard),
            false => {
                let what = format!("{} ended its answer before the last event", self.whom);
                Err(Failure::new(FailureKind::Unreachable, what))
            }
        }
    }

    /// Reads an answer that is one document, or a list of the events of a stream.
    fn document(
        &self,
        heard: &mut Heard,
        body: &str,
        hear: &impl Fn(&mut Heard, &Value) -> Result<(), &'static str>,
    ) -> Result<(), Failure> {
        let value = self.json(body)?;
        let events = match value.as_array().map(Vec::as_slice) {
            Some([]) | None => std::slice::from_ref(&value),
            Some(events) => events,
        };
        for event in events {
            hear(heard, event).map_err(|what| self.bad(what))?;
        }
        heard.done = true;
        Ok(())
    }

    fn event(
        &self,
        heard: &mut Heard,
        data: &str,
        hear: &impl Fn(&mut Heard, &Value) -> Result<(), &'static str>,
    ) -> Result<(), Failure> {
        match data.trim() {
            "" => {}
            DONE => heard.done = true,
            data => {
                let value = self.json(data)?;
                hear(heard, &value).map_err(|what| self.bad(what))?;
            }
        }
        Ok(())
    }

    /// Returns the failure of an answer with a status other than success.
    pub(super) fn refused(&self, answer: &Answer) -> Failure {
        let status = Some(answer.status.as_u16());
        failed(&self.whom, status, answer.wait, &answer.body, &self.secrets)
    }

    /// Parses the JSON of an answer or of an event. An error in it is a failure: it has no status of its own, because
    /// the answer had begun, or because a router reports a provider's error with a status of success.
    pub(super) fn json(&self, body: &str) -> Result<Value, Failure> {
        let value: Value =
            serde_json::from_str(body).map_err(|_| self.bad("did not answer with JSON"))?;
        match reported(&value) {
            true => Err(failed(&self.whom, None, None, body, &self.secrets)),
            false => Ok(value),
        }
    }

    /// Returns the failure for an answer that does not have the documented form.
    pub(super) fn bad(&self, what: &str) -> Failure {
        Failure::new(FailureKind::BadAnswer, format!("{} {what}", self.whom))
    }

    /// Returns the failure for a broken connection.
    fn broken(&self, error: &reqwest::Error) -> Failure {
        let (kind, what) = match () {
            () if error.is_timeout() => (FailureKind::TimedOut, "did not answer in time"),
            () if error.is_connect() => (FailureKind::Unreachable, "cannot be reached"),
            () => (FailureKind::Unreachable, "closed the connection early"),
        };
        Failure::new(kind, format!("{} {what}", self.whom))
    }
}

/// Returns whether a path ends with the version of an API, such as `/v1` or `/v1beta`.
fn is_version(path: &str) -> bool {
    let last = path
        .rsplit('/')
        .next()
        .and_then(|last| last.strip_prefix('v'));
    last.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

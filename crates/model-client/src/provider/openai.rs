//! A client of servers that speak OpenAI's chat completions.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Serialize;
use serde_json::Value;

use super::answer::{stop, written};
use super::http::{client, filtered, refused, retry_after, said, shown, tokens, without_secrets};
use super::key::Secrets;
use super::{ApiKey, MIN_OUTPUT_TOKENS, OPENAI_BASE_URL, ReasoningEffort};
use crate::{ChatModel, ChatPrompt, Completion, Failure, FailureKind, ModelUsage, Stop};

/// Maximum length of a server's answer, in bytes.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Request field that carries the output limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputLimit {
    /// `max_tokens`, which compatible servers know.
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's newer models insist on.
    MaxCompletionTokens,
    /// No field: the server's own limit holds.
    None,
}

/// A slim client of a server that speaks OpenAI's chat completions.
#[derive(Clone)]
#[must_use]
pub struct OpenAiCompatible {
    http: reqwest::Client,
    url: reqwest::Url,
    /// The server's name in errors: its address without anything secret.
    whom: String,
    model: String,
    key: Option<ApiKey>,
    /// Secrets of a request.
    secrets: Secrets,
    timeout: Option<Duration>,
    limit: OutputLimit,
    min_output: u64,
    temperature: Option<f64>,
    reasoning: Option<ReasoningEffort>,
}

impl fmt::Debug for OpenAiCompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiCompatible")
            .field("server", &self.whom)
            .field("model", &self.model)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: [Said<'a>; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
    stream: bool,
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'a str,
    content: &'a str,
}

impl OpenAiCompatible {
    /// Returns a client of `model` at the server with this base URL, the part before
    /// `/chat/completions`: [`OPENAI_BASE_URL`], [`OLLAMA_BASE_URL`](crate::OLLAMA_BASE_URL) or
    /// another.
    ///
    /// # Errors
    /// [`FailureKind::InvalidClient`] when the base URL is not one of `http` or `https`, or the
    /// system cannot make connections.
    pub fn new(base_url: &str, model: impl Into<String>) -> Result<Self, Failure> {
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
        let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
        url.set_path(&path);
        let http = client(Some(&url), None).map_err(|error| {
            let error = error.without_url();
            let text =
                format!("connections cannot be made ({error}): check the system's certificates");
            Failure::with_text(FailureKind::InvalidClient, text)
        })?;
        let limit = match url.host_str() {
            Some("api.openai.com") => OutputLimit::MaxCompletionTokens,
            _ => OutputLimit::MaxTokens,
        };
        Ok(Self {
            http,
            secrets: Secrets::of_url(&url),
            whom: without_secrets(&url),
            url,
            model: model.into(),
            key: None,
            timeout: Some(Duration::from_secs(120)),
            limit,
            min_output: MIN_OUTPUT_TOKENS,
            temperature: None,
            reasoning: None,
        })
    }

    /// Sets the key. Servers on this machine often need none.
    pub fn with_key(mut self, key: ApiKey) -> Self {
        self.secrets.add_key(&key);
        self.key = Some(key);
        self
    }

    /// Sets the maximum duration of a request. Default 2 minutes; `None` sets no limit.
    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the request field that carries the output limit. Default `max_completion_tokens` for
    /// OpenAI's own server and `max_tokens` for others.
    pub fn with_output_limit(mut self, limit: OutputLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the smallest output limit that is named to the server, in tokens. Default
    /// [`MIN_OUTPUT_TOKENS`].
    pub fn with_min_output_tokens(mut self, tokens: u64) -> Self {
        self.min_output = tokens;
        self
    }

    /// Sets the sampling temperature. Not sent unless set: some models refuse
    /// it.
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets how much the model reasons, in the field `reasoning_effort`. Not sent unless set: models
    /// that do not reason refuse it.
    pub fn with_reasoning(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning = Some(effort);
        self
    }

    async fn ask(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let most = prompt.output_limit(self.min_output);
        let request = Request {
            model: &self.model,
            messages: [
                Said {
                    role: "system",
                    content: &prompt.system,
                },
                Said {
                    role: "user",
                    content: &prompt.user,
                },
            ],
            max_tokens: (self.limit == OutputLimit::MaxTokens).then_some(most),
            max_completion_tokens: (self.limit == OutputLimit::MaxCompletionTokens).then_some(most),
            temperature: self.temperature,
            reasoning_effort: self.reasoning,
            stream: false,
        };
        let body = serde_json::to_vec(&request)
            .map_err(|error| Failure::new(FailureKind::BadRequest, error))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.secret()));
            let mut value = value.map_err(|_| {
                let what = "the key has characters that no key has";
                Failure::new(FailureKind::Auth, what)
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut call = self.http.post(self.url.clone()).headers(headers).body(body);
        if let Some(timeout) = self.timeout {
            call = call.timeout(timeout);
        }
        let mut response = call.send().await.map_err(|error| self.broken(&error))?;
        let status = response.status();
        let wait = retry_after(|name| response.headers().get(name)?.to_str().ok());
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.broken(&error))?
        {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER_BYTES {
                let what = format!(
                    "{} answered with more than {MAX_ANSWER_BYTES} bytes",
                    self.whom
                );
                return Err(Failure::new(FailureKind::BadAnswer, what));
            }
        }
        let body = String::from_utf8_lossy(&body);
        if status.is_client_error() && filtered(&body) {
            return Ok(Completion::new("").with_stop(Stop::Filtered));
        }
        if !status.is_success() {
            let status = status.as_u16();
            return Err(refused(&self.whom, status, wait, &body, &self.secrets));
        }
        self.read(&body)
    }

    fn read(&self, body: &str) -> Result<Completion, Failure> {
        let bad = |what: &str| {
            let what = format!("{} {what}", self.whom);
            Failure::new(FailureKind::BadAnswer, what)
        };
        let value: Value = serde_json::from_str(body).map_err(|_| bad("answered with no JSON"))?;
        // Some routers report a provider's error with a status of success.
        if value.get("error").is_some_and(|error| !error.is_null()) {
            let said = self.secrets.redact(said(&value).unwrap_or_default());
            return Err(bad(&format!("answered with an error ({})", shown(&said))));
        }
        let choices = value.get("choices").and_then(Value::as_array);
        let Some(choices) = choices else {
            return Err(bad("answered in another form than a chat completion"));
        };
        let Some(choice) = choices.first() else {
            return Err(bad("answered with no choices"));
        };
        let Some(message) = choice.get("message").filter(|message| message.is_object()) else {
            return Err(bad("answered in another form than a chat completion"));
        };
        let model = format!("model {}", self.model);
        let refusal = message.get("refusal").and_then(Value::as_str);
        let stop = match refusal.filter(|text| !text.is_empty()) {
            Some(_) => Stop::Refused,
            None => {
                let reason = choice.get("finish_reason").and_then(Value::as_str);
                let reason = reason.map(|reason| self.secrets.redact(reason));
                stop(&model, reason.as_deref())?
            }
        };
        // A text, or a list of parts.
        let text = match message.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Value::as_str))
                .collect(),
            _ => String::new(),
        };
        let text = self.secrets.redact_summary(&text);
        Ok(written(&model, &text, stop)?.with_usage(usage(value.get("usage"))))
    }

    /// Returns the failure of a broken connection.
    fn broken(&self, error: &reqwest::Error) -> Failure {
        let (kind, what) = match () {
            () if error.is_timeout() => (FailureKind::TimedOut, "gave no answer in time"),
            () if error.is_connect() => (FailureKind::Unreachable, "cannot be reached"),
            () => (FailureKind::Unreachable, "broke the connection off"),
        };
        Failure::new(kind, format!("{} {what}", self.whom))
    }
}

/// The tokens that the provider counted; `None` for invalid figures.
fn usage(usage: Option<&Value>) -> Option<ModelUsage> {
    let count = |name: &str| tokens(usage?.get(name));
    match (count("prompt_tokens"), count("completion_tokens")) {
        (None, None) => None,
        (input, output) => Some(ModelUsage {
            input: input.unwrap_or_default(),
            output: output.unwrap_or_default(),
        }),
    }
}

#[async_trait]
impl ChatModel for OpenAiCompatible {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        self.ask(prompt).await
    }
}

//! A client of servers with OpenAI's chat completions API.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::answer::{stop, written};
use super::endpoint::Endpoint;
use super::http::{filtered, tokens};
use super::{ApiKey, MIN_OUTPUT_TOKENS, ReasoningEffort};
use crate::{ChatModel, ChatPrompt, Completion, Failure, ModelUsage, Stop};

/// Maximum length of a server's answer, in bytes.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Field of a request in which the output limit is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputLimit {
    /// The field `max_tokens`, which compatible servers support.
    MaxTokens,
    /// The field `max_completion_tokens`, which OpenAI's newer models require.
    MaxCompletionTokens,
    /// No field: the output limit is not sent, and the server's default limit applies.
    None,
}

/// A small client of a server with OpenAI's chat completions API.
#[derive(Clone)]
#[must_use]
pub struct OpenAiCompatible {
    endpoint: Endpoint,
    model: String,
    limit: OutputLimit,
    min_output: u64,
    temperature: Option<f64>,
    reasoning: Option<ReasoningEffort>,
}

impl fmt::Debug for OpenAiCompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OpenAiCompatible");
        self.endpoint.describe(&mut shown);
        shown.field("model", &self.model).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: [WireMessage<'a>; 2],
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
struct WireMessage<'a> {
    role: &'a str,
    content: &'a str,
}

impl OpenAiCompatible {
    /// Creates a client of the model named `model`. `base_url` is the server's URL without `/chat/completions`, such as
    /// [`OPENAI_BASE_URL`](crate::OPENAI_BASE_URL) or [`OLLAMA_BASE_URL`](crate::OLLAMA_BASE_URL).
    ///
    /// # Errors
    /// [`FailureKind::InvalidClient`](crate::FailureKind::InvalidClient) if the base URL is not an `http` or `https`
    /// URL, or if the system cannot make connections.
    pub fn new(base_url: &str, model: impl Into<String>) -> Result<Self, Failure> {
        let endpoint = Endpoint::new(base_url, "chat/completions", MAX_ANSWER_BYTES)?;
        let limit = match endpoint.host() {
            Some("api.openai.com") => OutputLimit::MaxCompletionTokens,
            _ => OutputLimit::MaxTokens,
        };
        Ok(Self {
            endpoint,
            model: model.into(),
            limit,
            min_output: MIN_OUTPUT_TOKENS,
            temperature: None,
            reasoning: None,
        })
    }

    /// Sets the API key. Servers on the same machine often need no key.
    pub fn with_key(mut self, key: ApiKey) -> Self {
        self.endpoint.set_key(key);
        self
    }

    /// Sets the maximum duration of a request; `None` for no limit. Default 2 minutes.
    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.endpoint.timeout = timeout;
        self
    }

    /// Sets the field of a request in which the output limit is sent. The default is `max_completion_tokens` for
    /// OpenAI's own server, and `max_tokens` for other servers.
    pub fn with_output_limit(mut self, limit: OutputLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the minimum output limit that is sent to the server, in tokens. Default [`MIN_OUTPUT_TOKENS`].
    pub fn with_min_output_tokens(mut self, tokens: u64) -> Self {
        self.min_output = tokens;
        self
    }

    /// Sets the sampling temperature. By default no temperature is sent, because some models reject it.
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the amount of reasoning, in the field `reasoning_effort`. By default no amount is sent, because models
    /// that do not reason reject it.
    pub fn with_reasoning(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning = Some(effort);
        self
    }

    async fn ask(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let most = prompt.output_limit(self.min_output);
        let request = Request {
            model: &self.model,
            messages: [
                WireMessage {
                    role: "system",
                    content: &prompt.system,
                },
                WireMessage {
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
        let answer = self.endpoint.post(&request).await?;
        if answer.status.is_client_error() && filtered(&answer.body) {
            return Ok(Completion {
                stop: Stop::Filtered,
                ..Completion::new("")
            });
        }
        match answer.status.is_success() {
            true => self.read(&answer.body),
            false => Err(self.endpoint.refused(&answer)),
        }
    }

    fn read(&self, body: &str) -> Result<Completion, Failure> {
        let bad = |what: &str| self.endpoint.bad(what);
        let value = self.endpoint.json(body)?;
        let choices = value.get("choices").and_then(Value::as_array);
        let Some(choices) = choices else {
            return Err(bad("did not answer with a chat completion"));
        };
        let Some(choice) = choices.first() else {
            return Err(bad("answered with no choices"));
        };
        let Some(message) = choice.get("message").filter(|message| message.is_object()) else {
            return Err(bad("did not answer with a chat completion"));
        };
        let model = format!("model {}", self.model);
        let refusal = message.get("refusal").and_then(Value::as_str);
        let stop = match refusal.filter(|text| !text.is_empty()) {
            Some(_) => Stop::Refused,
            None => {
                let reason = choice.get("finish_reason").and_then(Value::as_str);
                let reason = reason.map(|reason| self.endpoint.secrets.redact(reason));
                stop(&model, reason.as_deref())?
            }
        };
        // The content is a text, or a list of parts.
        let text = match message.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Value::as_str))
                .collect(),
            _ => String::new(),
        };
        let text = self.endpoint.secrets.redact_summary(&text);
        Ok(Completion {
            usage: usage(value.get("usage")),
            ..written(&model, &text, stop)?
        })
    }
}

/// Returns the numbers of tokens that the provider counted; `None` if it reports no valid number.
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

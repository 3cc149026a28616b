//! A client of servers with OpenAI's chat completions API.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::answer::Heard;
use super::endpoint::{Answer, Api, Endpoint, Reply, endpoint_options};
use super::http::tokens;
use super::{MIN_OUTPUT_TOKENS, ReasoningEffort};
use crate::control_tokens::without_control_tokens;
use crate::{ChatModel, ChatPrompt, Completion, Failure, Stop, without_reasoning};

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
///
/// Answers are streamed. A server that rejects this is asked again without a stream, and from then on always. Control
/// tokens of chat templates inside of a prompt, such as `<|im_start|>`, are sent with a space in them, because servers
/// take them for their own; OpenAI's own server does not.
#[derive(Clone)]
#[must_use]
pub struct OpenAiCompatible {
    endpoint: Endpoint,
    model: String,
    limit: OutputLimit,
    min_output: Option<u64>,
    temperature: Option<f64>,
    reasoning: Option<ReasoningEffort>,
    learnt: Arc<Learnt>,
}

/// Properties of the server and the model that earlier answers have shown.
#[derive(Debug, Default)]
struct Learnt {
    /// Whether the server rejects requests for a stream.
    rejects_streams: AtomicBool,
    /// Whether the model reasons before its text.
    reasons: AtomicBool,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
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
        let api = Api {
            path: "chat/completions",
            version: None,
            query: None,
        };
        let endpoint = Endpoint::new(base_url, api)?;
        let limit = match is_openai(&endpoint) {
            true => OutputLimit::MaxCompletionTokens,
            false => OutputLimit::MaxTokens,
        };
        Ok(Self {
            endpoint,
            model: model.into(),
            limit,
            min_output: None,
            temperature: None,
            reasoning: None,
            learnt: Arc::default(),
        })
    }

    endpoint_options!();

    /// Sets the field of a request in which the output limit is sent. The default is `max_completion_tokens` for
    /// OpenAI's own server, and `max_tokens` for other servers.
    pub fn with_output_limit(mut self, limit: OutputLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the minimum output limit that is sent to the server, in tokens. By default it is [`MIN_OUTPUT_TOKENS`], and 0
    /// for a server without encryption or on this machine: small models may write until the limit. With a model that
    /// reasons, which [`with_reasoning`](Self::with_reasoning) or its first answer shows, it is [`MIN_OUTPUT_TOKENS`] on
    /// every server.
    pub fn with_min_output_tokens(mut self, tokens: u64) -> Self {
        self.min_output = Some(tokens);
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

    fn min_output(&self) -> u64 {
        let asked = self
            .reasoning
            .is_some_and(|effort| effort != ReasoningEffort::None);
        let reasons = asked || self.learnt.reasons.load(Ordering::Relaxed);
        let own = match !reasons && self.endpoint.is_own_server() {
            true => 0,
            false => MIN_OUTPUT_TOKENS,
        };
        self.min_output.unwrap_or(own)
    }

    async fn ask(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let most = prompt.output_limit(self.min_output());
        let texts = [&prompt.system, &prompt.user].map(|text| match is_openai(&self.endpoint) {
            true => text.as_str().into(),
            false => without_control_tokens(text),
        });
        let [system, user] = &texts;
        let stream = !self.learnt.rejects_streams.load(Ordering::Relaxed);
        let mut request = Request {
            model: &self.model,
            messages: [("system", system), ("user", user)]
                .map(|(role, content)| WireMessage { role, content }),
            max_tokens: (self.limit == OutputLimit::MaxTokens).then_some(most),
            max_completion_tokens: (self.limit == OutputLimit::MaxCompletionTokens).then_some(most),
            temperature: self.temperature,
            reasoning_effort: self.reasoning,
            stream,
            stream_options: stream.then_some(StreamOptions {
                include_usage: true,
            }),
        };
        let mut reply = self.endpoint.open(&request).await?;
        if let Reply::Rejected(answer) = &reply
            && stream
            && rejects_streams(answer)
        {
            (request.stream, request.stream_options) = (false, None);
            reply = self.endpoint.open(&request).await?;
            if matches!(reply, Reply::Accepted(_)) {
                self.learnt.rejects_streams.store(true, Ordering::Relaxed);
            }
        }
        let heard = match reply {
            Reply::Accepted(response) => self.endpoint.hear(response, hear).await?,
            Reply::Rejected(answer) => return self.endpoint.rejected(&answer),
        };
        if heard.reasoned || without_reasoning(&heard.text) != Some(heard.text.trim()) {
            self.learnt.reasons.store(true, Ordering::Relaxed);
        }
        heard.finish(&self.endpoint.secrets, &self.model)
    }
}

fn is_openai(endpoint: &Endpoint) -> bool {
    endpoint.host() == Some("api.openai.com")
}

/// Returns whether a server rejected a request because it does not stream, or does not know the options of a stream.
fn rejects_streams(answer: &Answer) -> bool {
    let text = answer.body.to_lowercase().replace("upstream", "");
    matches!(answer.status.as_u16(), 400 | 422 | 501) && text.contains("stream")
}

/// Reads one event of an answer, or an answer that is one completion.
fn hear(heard: &mut Heard, event: &Value) -> Result<(), &'static str> {
    const FORM: &str = "did not answer with a chat completion";
    let choices = event.get("choices").and_then(Value::as_array).ok_or(FORM)?;
    hear_usage(heard, event.get("usage"));
    let Some(choice) = choices.first() else {
        // In a stream, an event of its own has the counted tokens.
        return match heard.streamed {
            true => Ok(()),
            false => Err("answered with no choices"),
        };
    };
    if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
        heard.reason = Some(reason.to_owned());
    }
    let message = choice.get("delta").or_else(|| choice.get("message"));
    let Some(message) = message.filter(|message| message.is_object()) else {
        return match heard.reason {
            Some(_) if heard.streamed => Ok(()),
            _ => Err(FORM),
        };
    };
    let text = |name: &str| message.get(name).and_then(Value::as_str);
    if text("refusal").is_some_and(|refusal| !refusal.is_empty()) {
        heard.stop = Some(Stop::Refused);
    }
    // The names that servers give the reasoning.
    let reasoning = text("reasoning_content").or_else(|| text("reasoning"));
    heard.think(reasoning.unwrap_or_default());
    // The content is a text, or a list of parts.
    match message.get("content") {
        Some(Value::String(text)) => heard.write(text),
        Some(Value::Array(parts)) => {
            for part in parts {
                heard.write(part.get("text").and_then(Value::as_str).unwrap_or_default());
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reads the numbers of tokens that the provider counted. Invalid numbers are skipped.
fn hear_usage(heard: &mut Heard, usage: Option<&Value>) {
    let count = |place: &str| tokens(usage?.pointer(place));
    heard.input = count("/prompt_tokens").or(heard.input);
    heard.output = count("/completion_tokens").or(heard.output);
    let details = |name: &str| count(&format!("/prompt_tokens_details/{name}"));
    heard.cached = details("cached_tokens").or(heard.cached);
    heard.cache_write = details("cache_write_tokens").or(heard.cache_write);
}

#[async_trait]
impl ChatModel for OpenAiCompatible {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        self.ask(prompt).await
    }
}

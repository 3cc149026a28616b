//! A client of OpenAI's responses API.

use std::fmt;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::answer::Heard;
use super::endpoint::{Api, Endpoint, endpoint_options};
use super::http::tokens;
use super::{MIN_OUTPUT_TOKENS, ReasoningEffort};
use crate::{ChatModel, ChatPrompt, Completion, Failure, Stop};

/// A small client of OpenAI's responses API. The server is asked not to store the response.
#[derive(Clone)]
#[must_use]
pub struct OpenAiResponses {
    endpoint: Endpoint,
    model: String,
    min_output: u64,
    temperature: Option<f64>,
    reasoning: Option<ReasoningEffort>,
}

impl fmt::Debug for OpenAiResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OpenAiResponses");
        self.endpoint.describe(&mut shown);
        shown.field("model", &self.model).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    instructions: &'a str,
    input: [Message<'a>; 1],
    max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct Reasoning {
    effort: ReasoningEffort,
}

impl OpenAiResponses {
    /// Creates a client of the model named `model`. `base_url` is the server's URL without `/responses`, such as
    /// [`OPENAI_BASE_URL`](crate::OPENAI_BASE_URL).
    ///
    /// # Errors
    /// [`FailureKind::InvalidClient`](crate::FailureKind::InvalidClient) if the base URL is not an `http` or `https`
    /// URL, or if the system cannot make connections.
    pub fn new(base_url: &str, model: impl Into<String>) -> Result<Self, Failure> {
        let api = Api {
            path: "responses",
            version: None,
            query: None,
        };
        Ok(Self {
            endpoint: Endpoint::new(base_url, api)?,
            model: model.into(),
            min_output: MIN_OUTPUT_TOKENS,
            temperature: None,
            reasoning: None,
        })
    }

    endpoint_options!();

    /// Sets the minimum output limit that is sent to the server, in tokens. Default [`MIN_OUTPUT_TOKENS`].
    pub fn with_min_output_tokens(mut self, tokens: u64) -> Self {
        self.min_output = tokens;
        self
    }

    /// Sets the sampling temperature. By default no temperature is sent, because models that reason reject it.
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the amount of reasoning, in the field `reasoning.effort`. By default no amount is sent, because models
    /// that do not reason reject it.
    pub fn with_reasoning(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning = Some(effort);
        self
    }

    fn request<'a>(&'a self, prompt: &'a ChatPrompt) -> Request<'a> {
        Request {
            model: &self.model,
            instructions: &prompt.system,
            input: [Message {
                role: "user",
                content: &prompt.user,
            }],
            max_output_tokens: prompt.output_limit(self.min_output),
            temperature: self.temperature,
            reasoning: self.reasoning.map(|effort| Reasoning { effort }),
            store: false,
            stream: true,
        }
    }
}

/// Reads one event of an answer, or an answer that is one response.
fn hear(heard: &mut Heard, event: &Value) -> Result<(), &'static str> {
    const FORM: &str = "did not answer with a response";
    if event.get("output").is_some_and(Value::is_array) {
        hear_response(heard, event);
        return Ok(());
    }
    let delta = event.get("delta").and_then(Value::as_str);
    match event.get("type").and_then(Value::as_str).ok_or(FORM)? {
        "response.output_text.delta" => heard.write(delta.unwrap_or_default()),
        "response.refusal.delta" => heard.stop = Some(Stop::Refused),
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
            heard.think(delta.unwrap_or_default());
        }
        "response.completed" | "response.incomplete" | "response.failed" => {
            hear_response(heard, event.get("response").ok_or(FORM)?);
            heard.done = true;
        }
        // Beginnings and ends of parts, and types that later versions add.
        _ => {}
    }
    Ok(())
}

/// Reads a whole response.
fn hear_response(heard: &mut Heard, response: &Value) {
    let output = response.get("output").and_then(Value::as_array);
    let content = output
        .into_iter()
        .flatten()
        .filter_map(|item| item.get("content")?.as_array());
    let mut text = String::new();
    for part in content.flatten() {
        match part.get("type").and_then(Value::as_str) {
            Some("output_text") => {
                text.push_str(part.get("text").and_then(Value::as_str).unwrap_or_default());
            }
            Some("refusal") => heard.stop = Some(Stop::Refused),
            _ => {}
        }
    }
    // It has the whole text once more.
    if !text.is_empty() {
        heard.text = text;
    }
    let why = response.pointer("/incomplete_details/reason");
    let reason = why
        .or_else(|| response.get("status"))
        .and_then(Value::as_str);
    heard.reason = reason.map(str::to_owned);
    let usage = response.get("usage");
    let count = |place: &str| tokens(usage?.pointer(place));
    heard.input = count("/input_tokens");
    heard.output = count("/output_tokens");
    heard.cached = count("/input_tokens_details/cached_tokens");
    heard.cache_write = count("/input_tokens_details/cache_write_tokens");
    heard.reasoned |= count("/output_tokens_details/reasoning_tokens").unwrap_or_default() > 0;
}

#[async_trait]
impl ChatModel for OpenAiResponses {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let request = self.request(prompt);
        self.endpoint.ask(&self.model, &request, hear).await
    }
}

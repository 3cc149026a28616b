//! A client of Anthropic's messages API.

use std::fmt;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::answer::Heard;
use super::endpoint::{Api, Endpoint, endpoint_options};
use super::http::tokens;
use super::{MIN_OUTPUT_TOKENS, ReasoningEffort};
use crate::{ChatModel, ChatPrompt, Completion, Failure, Stop};

/// Version of the API that requests ask for.
const VERSION: &str = "2023-06-01";

/// A small client of Anthropic's messages API. The server is asked to cache the system message, which many prompts share.
#[derive(Clone)]
#[must_use]
pub struct AnthropicMessages {
    endpoint: Endpoint,
    model: String,
    min_output: u64,
    temperature: Option<f64>,
    reasoning: Option<ReasoningEffort>,
}

impl fmt::Debug for AnthropicMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AnthropicMessages");
        self.endpoint.describe(&mut shown);
        shown.field("model", &self.model).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    messages: [Message<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Typed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    stream: bool,
}

#[derive(Serialize)]
struct Block<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: Typed,
}

#[derive(Serialize)]
struct Typed {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

impl AnthropicMessages {
    /// Creates a client of the model named `model`. `base_url` is the server's URL without `/messages`, such as
    /// [`ANTHROPIC_BASE_URL`](crate::ANTHROPIC_BASE_URL); `/v1` at its end may be left out.
    ///
    /// # Errors
    /// [`FailureKind::InvalidClient`](crate::FailureKind::InvalidClient) if the base URL is not an `http` or `https`
    /// URL, or if the system cannot make connections.
    pub fn new(base_url: &str, model: impl Into<String>) -> Result<Self, Failure> {
        let api = Api {
            path: "messages",
            version: Some("v1"),
            query: None,
        };
        let endpoint = Endpoint::new(base_url, api)?
            .with_key_header("x-api-key")
            .with_header("anthropic-version", VERSION);
        Ok(Self {
            endpoint,
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

    /// Sets the sampling temperature. By default no temperature is sent, because some models reject it.
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the amount of reasoning: no thinking, or adaptive thinking with this effort. By default neither is sent,
    /// because older models reject it.
    pub fn with_reasoning(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning = Some(effort);
        self
    }

    fn request<'a>(&'a self, prompt: &'a ChatPrompt) -> Request<'a> {
        let system = Block {
            r#type: "text",
            text: &prompt.system,
            cache_control: Typed {
                r#type: "ephemeral",
            },
        };
        let effort = self.reasoning.and_then(ReasoningEffort::level);
        Request {
            model: &self.model,
            max_tokens: prompt.output_limit(self.min_output),
            // An empty block is rejected.
            system: (!prompt.system.is_empty()).then_some([system]),
            messages: [Message {
                role: "user",
                content: &prompt.user,
            }],
            temperature: self.temperature,
            thinking: self.reasoning.map(|effort| Typed {
                r#type: match effort {
                    ReasoningEffort::None => "disabled",
                    _ => "adaptive",
                },
            }),
            output_config: effort.map(|effort| OutputConfig { effort }),
            stream: true,
        }
    }
}

/// Reads one event of an answer, or an answer that is one message.
fn hear(heard: &mut Heard, event: &Value) -> Result<(), &'static str> {
    let Some(kind) = event.get("type").and_then(Value::as_str) else {
        return Err("did not answer with a message");
    };
    match kind {
        "message" => {
            let content = event.get("content").and_then(Value::as_array);
            for block in content.ok_or("did not answer with a message")? {
                hear_block(heard, block);
            }
            hear_end(heard, event);
        }
        "message_start" => hear_usage(heard, event.pointer("/message/usage")),
        "content_block_start" => hear_block(heard, event.get("content_block").unwrap_or(event)),
        "content_block_delta" => hear_block(heard, event.get("delta").unwrap_or(event)),
        "message_delta" => {
            hear_usage(heard, event.get("usage"));
            hear_end(heard, event.get("delta").unwrap_or(event));
        }
        "message_stop" => heard.done = true,
        // `ping`, `content_block_stop`, and types that later versions add.
        _ => {}
    }
    Ok(())
}

/// Reads a block of the content, or a piece of one.
fn hear_block(heard: &mut Heard, block: &Value) {
    if let Some(text) = block.get("text").and_then(Value::as_str) {
        heard.write(text);
    }
    if let Some(thinking) = block.get("thinking").and_then(Value::as_str) {
        heard.think(thinking);
    }
}

fn hear_end(heard: &mut Heard, message: &Value) {
    hear_usage(heard, message.get("usage"));
    match message.get("stop_reason").and_then(Value::as_str) {
        Some("refusal") => heard.stop = Some(Stop::Refused),
        Some(reason) => heard.reason = Some(reason.to_owned()),
        None => {}
    }
}

/// Reads the counted tokens. Those that are written to the cache or read from it are not part of `input_tokens`.
fn hear_usage(heard: &mut Heard, usage: Option<&Value>) {
    let count = |name: &str| tokens(usage?.get(name));
    let cached = count("cache_read_input_tokens");
    if let Some(input) = count("input_tokens") {
        let created = count("cache_creation_input_tokens");
        let all = input.saturating_add(created.unwrap_or_default());
        heard.input = Some(all.saturating_add(cached.unwrap_or_default()));
        (heard.cached, heard.cache_write) = (cached, created);
    }
    heard.output = count("output_tokens").or(heard.output);
}

#[async_trait]
impl ChatModel for AnthropicMessages {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let request = self.request(prompt);
        self.endpoint.ask(&self.model, &request, hear).await
    }
}

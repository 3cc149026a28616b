//! A client of Gemini's generateContent API.

use std::fmt;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::answer::Heard;
use super::endpoint::{Api, Endpoint, endpoint_options};
use super::http::tokens;
use super::{MIN_OUTPUT_TOKENS, ReasoningEffort};
use crate::{ChatModel, ChatPrompt, Completion, Failure, Stop};

/// A small client of Gemini's generateContent API. Gemini's servers cache prompts with a common beginning on their own.
#[derive(Clone)]
#[must_use]
pub struct GeminiGenerate {
    endpoint: Endpoint,
    model: String,
    min_output: u64,
    temperature: Option<f64>,
    reasoning: Option<ReasoningEffort>,
}

impl fmt::Debug for GeminiGenerate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("GeminiGenerate");
        self.endpoint.describe(&mut shown);
        shown.field("model", &self.model).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: [Content<'a>; 1],
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum ThinkingConfig {
    /// Maximum number of tokens; 0 turns thinking off.
    ThinkingBudget(u32),
    ThinkingLevel(&'static str),
}

impl GeminiGenerate {
    /// Creates a client of the model named `model`. `base_url` is the server's URL without `/models/…`, such as
    /// [`GEMINI_BASE_URL`](crate::GEMINI_BASE_URL); `/v1beta` at its end may be left out.
    ///
    /// # Errors
    /// [`FailureKind::InvalidClient`](crate::FailureKind::InvalidClient) if the base URL is not an `http` or `https`
    /// URL, or if the system cannot make connections.
    pub fn new(base_url: &str, model: impl Into<String>) -> Result<Self, Failure> {
        let model = model.into();
        // Tuned models name their collection.
        let name = match model.contains('/') {
            true => model.clone(),
            false => format!("models/{model}"),
        };
        let api = Api {
            path: &format!("{name}:streamGenerateContent"),
            version: Some("v1beta"),
            query: Some(("alt", "sse")),
        };
        let endpoint = Endpoint::new(base_url, api)?.with_key_header("x-goog-api-key");
        Ok(Self {
            endpoint,
            model,
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

    /// Sets the sampling temperature. By default no temperature is sent, because Google advises against it for models
    /// that reason.
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the amount of reasoning: a thinking budget of 0 for [`ReasoningEffort::None`], otherwise a thinking level.
    /// By default neither is sent, because models that do not reason reject it. Models before Gemini 3 have no levels.
    pub fn with_reasoning(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning = Some(effort);
        self
    }

    fn request<'a>(&self, prompt: &'a ChatPrompt) -> Request<'a> {
        let content = |role, text| Content {
            role,
            parts: [Part { text }],
        };
        Request {
            system_instruction: (!prompt.system.is_empty())
                .then(|| content(None, prompt.system.as_str())),
            contents: [content(Some("user"), &prompt.user)],
            generation_config: GenerationConfig {
                max_output_tokens: prompt.output_limit(self.min_output),
                temperature: self.temperature,
                thinking_config: self.reasoning.map(|effort| match effort {
                    ReasoningEffort::None => ThinkingConfig::ThinkingBudget(0),
                    ReasoningEffort::Minimal => ThinkingConfig::ThinkingLevel("MINIMAL"),
                    ReasoningEffort::Low => ThinkingConfig::ThinkingLevel("LOW"),
                    ReasoningEffort::Medium => ThinkingConfig::ThinkingLevel("MEDIUM"),
                    ReasoningEffort::High => ThinkingConfig::ThinkingLevel("HIGH"),
                }),
            },
        }
    }
}

/// Reads one event of an answer. An answer that is one document has the same form.
fn hear(heard: &mut Heard, event: &Value) -> Result<(), &'static str> {
    let blocked = event.pointer("/promptFeedback/blockReason");
    let candidate = event.pointer("/candidates/0");
    let usage = event.get("usageMetadata");
    if blocked.or(candidate).or(usage).is_none() {
        return Err("did not answer with a candidate");
    }
    if blocked.is_some() {
        heard.stop = Some(Stop::Filtered);
    }
    let parts = candidate.and_then(|candidate| candidate.pointer("/content/parts"));
    for part in parts.and_then(Value::as_array).into_iter().flatten() {
        let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
        match part.get("thought").and_then(Value::as_bool) {
            Some(true) => heard.think(text),
            _ => heard.write(text),
        }
    }
    let reason = candidate.and_then(|candidate| candidate.get("finishReason")?.as_str());
    if let Some(reason) = reason {
        heard.reason = Some(reason.to_owned());
    }
    let count = |name: &str| tokens(usage?.get(name));
    let output = count("candidatesTokenCount");
    let thoughts = count("thoughtsTokenCount");
    heard.reasoned |= thoughts.is_some_and(|thoughts| thoughts > 0);
    heard.input = count("promptTokenCount").or(heard.input);
    heard.cached = count("cachedContentTokenCount").or(heard.cached);
    if output.or(thoughts).is_some() {
        let output = output.unwrap_or_default();
        heard.output = Some(output.saturating_add(thoughts.unwrap_or_default()));
    }
    Ok(())
}

#[async_trait]
impl ChatModel for GeminiGenerate {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let request = self.request(prompt);
        self.endpoint.ask(&self.model, &request, hear).await
    }
}

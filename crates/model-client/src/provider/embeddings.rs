//! A client of servers with OpenAI's embeddings API.

use std::fmt;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::endpoint::{Api, Endpoint, endpoint_options};
use super::http::tokens;
use crate::{EmbeddingModel, Embeddings, Failure, ModelUsage};

/// Maximum length of a server's answer, in bytes. 64 vectors of 4,096 components need about 6 MB.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// A small client of a server with OpenAI's embeddings API.
#[derive(Clone)]
#[must_use]
pub struct OpenAiEmbeddings {
    endpoint: Endpoint,
    model: String,
    dimensions: Option<u32>,
}

impl fmt::Debug for OpenAiEmbeddings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OpenAiEmbeddings");
        self.endpoint.describe(&mut shown);
        shown.field("model", &self.model).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
}

impl OpenAiEmbeddings {
    /// Creates a client of the model named `model`. `base_url` is the server's URL without `/embeddings`, such as
    /// [`OPENAI_BASE_URL`](crate::OPENAI_BASE_URL) or [`OLLAMA_BASE_URL`](crate::OLLAMA_BASE_URL).
    ///
    /// # Errors
    /// [`FailureKind::InvalidClient`](crate::FailureKind::InvalidClient) if the base URL is not an `http` or `https`
    /// URL, or if the system cannot make connections.
    pub fn new(base_url: &str, model: impl Into<String>) -> Result<Self, Failure> {
        let api = Api {
            path: "embeddings",
            version: None,
            query: None,
        };
        Ok(Self {
            endpoint: Endpoint::new(base_url, api)?.with_max_answer_bytes(MAX_ANSWER_BYTES),
            model: model.into(),
            dimensions: None,
        })
    }

    endpoint_options!();

    /// Sets the number of components that the server's vectors must have. By default no number is sent, because
    /// some models cannot shorten their vectors.
    pub fn with_dimensions(mut self, dimensions: u32) -> Self {
        self.dimensions = Some(dimensions);
        self
    }

    fn read(&self, body: &str, count: usize) -> Result<Embeddings, Failure> {
        let value = self.endpoint.json(body)?;
        let form = || self.endpoint.bad("did not answer with embeddings");
        let data = value
            .get("data")
            .and_then(Value::as_array)
            .ok_or_else(form)?;
        let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); count];
        for (at, one) in data.iter().enumerate() {
            let index = one.get("index").and_then(Value::as_u64);
            let index = index.map_or(Ok(at), usize::try_from).map_err(|_| form())?;
            let components = one.get("embedding").and_then(Value::as_array);
            let components = components.ok_or_else(form)?.iter();
            let vector: Option<Vec<f32>> = components.map(component).collect();
            let place = vectors.get_mut(index).filter(|place| place.is_empty());
            *place.ok_or_else(form)? = vector.ok_or_else(form)?;
        }
        let dimension = vectors.first().map_or(0, Vec::len);
        if vectors
            .iter()
            .any(|one| one.is_empty() || one.len() != dimension)
        {
            let what = format!("did not return {count} vectors of one dimension for {count} texts");
            return Err(self.endpoint.bad(&what));
        }
        let usage = value.get("usage");
        let input = usage.and_then(|usage| tokens(usage.get("prompt_tokens")));
        let usage = input.map(|input| ModelUsage::new(input, 0));
        Ok(Embeddings::new(vectors).with_usage(usage))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "vectors have the precision of 32-bit floats"
)]
fn component(value: &Value) -> Option<f32> {
    let component = value.as_f64()? as f32;
    component.is_finite().then_some(component)
}

#[async_trait]
impl EmbeddingModel for OpenAiEmbeddings {
    async fn embed(&self, texts: &[String]) -> Result<Embeddings, Failure> {
        if texts.is_empty() {
            return Ok(Embeddings::new(Vec::new()));
        }
        let request = Request {
            model: &self.model,
            input: texts,
            encoding_format: "float",
            dimensions: self.dimensions,
        };
        let answer = self.endpoint.post(&request).await?;
        match answer.status.is_success() {
            true => self.read(&answer.body, texts.len()),
            false => Err(self.endpoint.refused(&answer)),
        }
    }
}

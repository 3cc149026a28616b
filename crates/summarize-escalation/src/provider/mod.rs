//! Clients of real models, each behind its feature.
//!
//! - `openai-compatible`: [`OpenAiCompatible`], a slim client of everything that speaks OpenAI's
//!   chat completions: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter and many more.
//! - `genai`: `GenAi`, by way of the crate of that name: Anthropic, Gemini and others besides.
//!
//! Both need a Tokio runtime. An answer that was cut short, refused or empty is a
//! [`Failure`](crate::Failure), never a text. Keys are arguments: nothing is read from the
//! environment, and no key is in a debug output, an error or a log.

mod answer;
#[cfg(feature = "genai")]
mod genai;
mod http;
mod key;
#[cfg(feature = "openai-compatible")]
mod openai;

#[cfg(feature = "genai")]
pub use genai::GenAi;
pub use key::ApiKey;
#[cfg(feature = "openai-compatible")]
pub use openai::{OLLAMA_BASE_URL, OPENAI_BASE_URL, OpenAiCompatible, OutputLimit};

/// Room that a model gets at least for its answer, in tokens: koda's figure. It is there for the
/// reasoning that some models count in; how long a summary may be is judged by the ladder.
pub const LEAST_OUTPUT_TOKENS: u64 = 4_096;

//! Clients of real models, each behind its feature.
//!
//! - `openai-compatible`: [`OpenAiCompatible`], a slim client of everything that speaks OpenAI's
//!   chat completions: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter and many more.
//! - `genai`: `GenAi`, by way of the crate of that name: Anthropic, Gemini and others besides.
//!
//! Both need a Tokio runtime. Why an answer ends is told by its [`Stop`](crate::Stop); one that is
//! empty is a [`Failure`](crate::Failure). Keys are arguments: no key is read from the environment,
//! and no key, user info or query of an address is in a debug output, an error or a log. Where an
//! answer quotes a key it is replaced. No redirect is followed, and addresses of this machine are
//! not asked by way of a proxy.

mod answer;
#[cfg(feature = "genai")]
mod genai;
mod http;
mod key;
#[cfg(feature = "openai-compatible")]
mod openai;

#[cfg(feature = "genai")]
pub use genai::GenAi;
pub use http::public_url;
pub use key::ApiKey;
#[cfg(feature = "openai-compatible")]
pub use openai::{OpenAiCompatible, OutputLimit};

/// OpenAI's own server.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
/// Ollama on this machine, where it speaks as OpenAI does.
pub const OLLAMA_BASE_URL: &str = "http://localhost:11434/v1";

/// Room that a model gets at least for its answer, in tokens: koda's figure. It is there for the
/// reasoning that some models count in; how long a summary may be is judged by the ladder.
pub const LEAST_OUTPUT_TOKENS: u64 = 4_096;

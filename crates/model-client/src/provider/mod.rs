//! Clients of real models. Each client needs its feature.

mod answer;
#[cfg(feature = "openai-compatible")]
mod embeddings;
#[cfg(feature = "openai-compatible")]
mod endpoint;
#[cfg(feature = "genai")]
mod genai;
mod http;
mod key;
#[cfg(feature = "openai-compatible")]
mod openai;
mod reasoning;

#[cfg(feature = "openai-compatible")]
pub use embeddings::OpenAiEmbeddings;
#[cfg(feature = "genai")]
pub use genai::GenAi;
pub use http::public_url;
pub use key::ApiKey;
#[cfg(feature = "openai-compatible")]
pub use openai::{OpenAiCompatible, OutputLimit};
pub use reasoning::ReasoningEffort;

/// Base URL of OpenAI's own server.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
/// Base URL of the OpenAI-compatible API of an Ollama server on this machine.
pub const OLLAMA_BASE_URL: &str = "http://localhost:11434/v1";

/// Default of the minimum output limit that a client sends to a server, in tokens. The limit is high enough for the
/// reasoning that some models count as output.
pub const MIN_OUTPUT_TOKENS: u64 = 4_096;

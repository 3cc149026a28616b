//! Clients of real models.

mod answer;
mod anthropic;
mod embeddings;
mod endpoint;
mod gemini;
#[cfg(feature = "genai")]
mod genai;
mod http;
mod key;
mod openai;
mod reasoning;
mod responses;
mod sse;

pub use anthropic::AnthropicMessages;
pub use embeddings::OpenAiEmbeddings;
pub use gemini::GeminiGenerate;
#[cfg(feature = "genai")]
pub use genai::GenAi;
pub use http::{is_this_machine, public_url};
pub use key::ApiKey;
pub use openai::{OpenAiCompatible, OutputLimit};
pub use reasoning::ReasoningEffort;
pub use responses::OpenAiResponses;

/// Base URL of OpenAI's own server.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
/// Base URL of the OpenAI-compatible API of an Ollama server on this machine.
pub const OLLAMA_BASE_URL: &str = "http://localhost:11434/v1";
/// Base URL of Anthropic's own server.
pub const ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com/v1";
/// Base URL of Google's server of Gemini models.
pub const GEMINI_BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

/// Default of the minimum output limit that a client sends to a server, in tokens. The limit is high enough for the
/// reasoning that some models count as output.
pub const MIN_OUTPUT_TOKENS: u64 = 4_096;

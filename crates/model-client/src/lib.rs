#![doc = include_str!("../README.md")]

mod call;
mod chat;
mod embedding;
mod failure;
pub mod guard;
mod overflow;
#[cfg(any(feature = "openai-compatible", feature = "genai"))]
mod provider;
mod reasoning_text;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod timer;

pub use call::{CacheKey, CallGuard, ModelCall, Unguarded};
pub use chat::{ChatModel, ChatPrompt, Completion, ModelUsage, Stop};
pub use embedding::{EmbeddingModel, Embeddings};
pub use failure::{Failure, FailureKind};
pub use overflow::is_context_overflow;
#[cfg(feature = "genai")]
pub use provider::GenAi;
#[cfg(any(feature = "openai-compatible", feature = "genai"))]
pub use provider::{
    ApiKey, MIN_OUTPUT_TOKENS, OLLAMA_BASE_URL, OPENAI_BASE_URL, ReasoningEffort, public_url,
};
#[cfg(feature = "openai-compatible")]
pub use provider::{OpenAiCompatible, OpenAiEmbeddings, OutputLimit};
pub use reasoning_text::without_reasoning;
pub use timer::Timer;
#[cfg(feature = "tokio")]
pub use timer::TokioTimer;

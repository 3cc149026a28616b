#![doc = include_str!("../README.md")]

mod call;
mod chat;
#[cfg(feature = "clients")]
mod control_tokens;
mod embedding;
mod failure;
pub mod guard;
mod overflow;
mod progress;
#[cfg(feature = "clients")]
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
pub use progress::{AnswerObserver, AnswerProgress, observed, report_progress};
#[cfg(feature = "genai")]
pub use provider::GenAi;
#[cfg(feature = "clients")]
pub use provider::{
    ANTHROPIC_BASE_URL, AnthropicMessages, ApiKey, GEMINI_BASE_URL, GeminiGenerate,
    MIN_OUTPUT_TOKENS, OLLAMA_BASE_URL, OPENAI_BASE_URL, OpenAiCompatible, OpenAiEmbeddings,
    OpenAiResponses, OutputLimit, ReasoningEffort, is_this_machine, public_url,
};
pub use reasoning_text::without_reasoning;
pub use timer::Timer;
#[cfg(feature = "tokio")]
pub use timer::TokioTimer;

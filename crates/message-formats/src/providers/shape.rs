//! The shapes of requests, by their providers.

/// The shape of a provider's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI chat completions: [`openai`](super::openai).
    OpenAi,
    /// OpenAI responses: [`responses`](super::responses).
    Responses,
    /// Anthropic messages: [`anthropic`](super::anthropic).
    Anthropic,
    /// Gemini `generateContent`: [`gemini`](super::gemini).
    Gemini,
}

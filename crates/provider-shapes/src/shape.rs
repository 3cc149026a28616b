//! The shapes of requests, by their providers.

/// The shape of a provider's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI chat completions: [`openai`](crate::openai).
    OpenAi,
    /// OpenAI responses: [`responses`](crate::responses).
    Responses,
    /// Anthropic messages: [`anthropic`](crate::anthropic).
    Anthropic,
    /// Gemini `generateContent`: [`gemini`](crate::gemini).
    Gemini,
}

//! Errors about a context that is too long.

/// Texts of providers and gateways about a context that is too long, including koda's patterns.
const PATTERNS: [&str; 11] = [
    "too long",
    "context_length_exceeded",
    "maximum context length",
    "token limit",
    "exceeds the model",
    "request too large",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "context window",
    "input length and `max_tokens` exceed",
    "request_too_large",
];

/// Returns whether a provider's error means that the context is too long. It decides by the error's text, or by the
/// HTTP status 413 together with "too large" in the text. Give the status 0 if it is unknown.
///
/// ```
/// use model_client::is_context_overflow;
///
/// assert!(is_context_overflow(400, "prompt is too long: 213000 tokens > 200000 maximum"));
/// assert!(is_context_overflow(413, "Payload Too Large"));
/// assert!(!is_context_overflow(413, "slow down"));
/// assert!(!is_context_overflow(429, "rate limit reached"));
/// ```
pub fn is_context_overflow(status: u16, text: &str) -> bool {
    let text = text.to_lowercase();
    PATTERNS.iter().any(|pattern| text.contains(pattern))
        || (status == 413 && text.contains("too large"))
}

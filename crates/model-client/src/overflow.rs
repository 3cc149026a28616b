//! Recognizes provider errors about a context that is too long.

/// Lower-case phrases in the errors of providers and gateways about a context that is too long. They include the
/// patterns of the agent koda.
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

/// Returns whether a provider's error means that the context is too long. An error has this meaning if its text has a
/// known phrase, or if its HTTP status is 413 and its text contains "too large". Use the status 0 if it is unknown.
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

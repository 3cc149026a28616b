//! Recognizes provider errors about a context that is too long.

/// Lower-case phrases in the errors of providers and gateways about a context that is too long. They include the
/// patterns of the agent koda.
const PATTERNS: [&str; 14] = [
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
    // Of Ollama.
    "exceeds the context length",
    // Of llama.cpp.
    "exceed_context_size",
    "exceeds the available context size",
];

/// Words of the same errors, directly before the size of the window.
#[cfg(feature = "clients")]
const BEFORE_WINDOW: [&str; 6] = [
    "\"n_ctx\":",
    "context size (",
    "maximum context length is ",
    "tokens > ",
    "number of tokens allowed (",
    "context length of ",
];
/// Words of the same errors, directly before the number of tokens in the prompt.
#[cfg(feature = "clients")]
const BEFORE_PROMPT: [&str; 5] = [
    "\"n_prompt_tokens\":",
    "request (",
    "messages resulted in ",
    "prompt is too long: ",
    "input token count (",
];

/// Returns the size of the window and the number of tokens in the prompt that an error about a too long context names.
#[cfg(feature = "clients")]
pub(crate) fn overflow_numbers(text: &str) -> (Option<u64>, Option<u64>) {
    let text = text.to_lowercase();
    let number = |words: &[&str]| {
        words.iter().find_map(|word| {
            let (_, after) = text.split_once(word)?;
            let after = after.trim_start();
            let end = after.find(|c: char| !c.is_ascii_digit());
            let digits = after.get(..end.unwrap_or(after.len()))?;
            digits.parse().ok().filter(|number| *number > 0)
        })
    };
    (number(&BEFORE_WINDOW), number(&BEFORE_PROMPT))
}

/// Returns whether a provider's error means that the context is too long. An error has this meaning if its text has a
/// known phrase, or if its HTTP status is 413 and its text contains "too large". Use the status 0 if it is unknown.
///
/// ```
/// use model_client::is_context_overflow;
///
/// assert!(is_context_overflow(400, "prompt is too long: 213000 tokens > 200000 maximum"));
/// assert!(is_context_overflow(400, r#"{"error": {"code": 400, "type": "exceed_context_size_error", "n_ctx": 4096}}"#));
/// assert!(is_context_overflow(413, "Payload Too Large"));
/// assert!(!is_context_overflow(413, "slow down"));
/// assert!(!is_context_overflow(429, "rate limit reached"));
/// ```
pub fn is_context_overflow(status: u16, text: &str) -> bool {
    let text = text.to_lowercase();
    PATTERNS.iter().any(|pattern| text.contains(pattern))
        || (status == 413 && text.contains("too large"))
}

#[cfg(all(test, feature = "clients"))]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_read_from_what_servers_say() {
        for (text, window, prompt) in [
            (
                r#"{"error":{"code":400,"message":"request (4421 tokens) exceeds the available context size (1024 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4421,"n_ctx":1024}}"#,
                Some(1_024),
                Some(4_421),
            ),
            (
                "request (70000 tokens) exceeds the available context size (65536 tokens)",
                Some(65_536),
                Some(70_000),
            ),
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9100 tokens.",
                Some(8_192),
                Some(9_100),
            ),
            (
                "prompt is too long: 213000 tokens > 200000 maximum",
                Some(200_000),
                Some(213_000),
            ),
            (
                "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
                Some(1_100_000),
            ),
            ("the prompt is too long", None, None),
            ("maximum context length is unknown", None, None),
        ] {
            assert!(is_context_overflow(400, text), "{text}");
            assert_eq!(overflow_numbers(text), (window, prompt), "{text}");
        }
    }
}

//! Usage that a provider reported.

use agent_memory::tokens::Usage;
use genai::chat::{PromptTokensDetails, Usage as GenaiUsage};

/// Returns the usage that genai reports; `None` without a count of the prompt.
///
/// genai's count of the prompt includes what was read from the prompt cache and written to it; here
/// these are counted apart.
///
/// ```
/// use agent_memory_genai::{from_genai_usage, to_genai_usage};
/// use genai::chat::Usage;
///
/// let reported = Usage {
///     prompt_tokens: Some(90),
///     completion_tokens: Some(9),
///     total_tokens: Some(99),
///     ..Usage::default()
/// };
/// let usage = from_genai_usage(&reported).expect("a count of the prompt");
/// assert_eq!((usage.input, usage.output, usage.tokens()), (90, 9, 99));
/// assert_eq!(to_genai_usage(&usage), reported);
/// ```
pub fn from_genai_usage(usage: &GenaiUsage) -> Option<Usage> {
    let prompt = count(usage.prompt_tokens)?;
    let details = usage.prompt_tokens_details.as_ref();
    let of = |field: fn(&PromptTokensDetails) -> Option<i32>| {
        details.and_then(field).and_then(|n| count(Some(n)))
    };
    let cache_read = of(|details| details.cached_tokens).unwrap_or(0);
    let cache_write = of(|details| details.cache_creation_tokens).unwrap_or(0);
    Some(Usage {
        input: prompt.saturating_sub(cache_read.saturating_add(cache_write)),
        output: count(usage.completion_tokens).unwrap_or(0),
        cache_read,
        cache_write,
        total: count(usage.total_tokens),
    })
}

/// Returns genai's usage. Counts beyond its range become its greatest.
pub fn to_genai_usage(usage: &Usage) -> GenaiUsage {
    let cached = |tokens: u64| (tokens > 0).then(|| narrow(tokens));
    let details = PromptTokensDetails {
        cached_tokens: cached(usage.cache_read),
        cache_creation_tokens: cached(usage.cache_write),
        ..PromptTokensDetails::default()
    };
    let mut usage = GenaiUsage {
        prompt_tokens: Some(narrow(
            usage
                .input
                .saturating_add(usage.cache_read)
                .saturating_add(usage.cache_write),
        )),
        prompt_tokens_details: Some(details),
        completion_tokens: Some(narrow(usage.output)),
        completion_tokens_details: None,
        total_tokens: usage.total.map(narrow),
    };
    usage.compact_details();
    usage
}

fn count(tokens: Option<i32>) -> Option<u64> {
    u64::try_from(tokens?).ok()
}

fn narrow(tokens: u64) -> i32 {
    i32::try_from(tokens).unwrap_or(i32::MAX)
}

//! The rows that every [`ModelTable`](super::ModelTable) begins with.
//!
//! Limits are the numbers of `model_prices_and_context_window_backup.json` in litellm 1.109.1 (MIT), the latest release
//! on the day of [`AS_OF`], with these exceptions. For OpenAI's models with a separate limit of input the file gives
//! either this limit or the window; a row has both, by the provider's pages, with the smaller input if they differ:
//! 272,000 of 400,000, and 922,000 of 1,050,000 tokens. For open models the row is from the model's provider if it
//! serves the model, otherwise from a host that serves the whole window. Models that the file no longer has (Gemini
//! 1.5, 2.0 and 3 Pro, `chatgpt-4o-latest`) have the limits of their provider's last page on them. Tokenizers are those
//! of `tiktoken/model.py`. Overheads of tools are Anthropic's table in its page on tool use; for models that the table
//! lacks, its largest.
//!
//! Prices are from the same file, for ordinary requests, with the page that the file names for them. A row has no
//! prices if the file has none or names no page, or if several hosts serve the model. All rows with prices that
//! genai-prices 0.2.3 (MIT) also has were compared with it, and agree. By it the prices of Gemini 3.6 to 3.8 Flash hold
//! until the end of 2026, and are twice as high from then on.

use std::borrow::Cow;

use super::info::ModelTokenizer::{Cl100k, O200k, Other};
use super::info::{ModelInfo, ModelTokenizer};
use crate::{SafetyFactor, tool};

/// Day on which all rows were compared with their sources.
const AS_OF: &str = "2026-11-23";

/// Pages with the prices of most models of a provider.
const OPENAI: &str = "https://developers.openai.com/api/docs/pricing";
const ANTHROPIC: &str = "https://platform.claude.com/docs/en/about-claude/pricing";
const GOOGLE: &str = "https://ai.google.dev/gemini-api/docs/pricing";

/// Safety factor of Claude Opus 4.7 and later models. By Anthropic's announcement, the tokenizer of Opus 4.7 gives up
/// to 1.35 times the tokens of the one before. Later models are assumed to have the same tokenizer.
const SINCE_4_7: SafetyFactor = SafetyFactor::from_thousandths(1_350);

const fn row(
    name: &'static str,
    (context_window, output_in_window): (u64, bool),
    max_input: Option<u64>,
    max_output: u64,
    (tokenizer, safety_factor): (ModelTokenizer, SafetyFactor),
    tools_overhead: Option<u64>,
) -> ModelInfo {
    ModelInfo {
        name: Cow::Borrowed(name),
        context_window,
        output_in_window,
        max_input,
        max_output,
        tokenizer,
        safety_factor,
        tools_overhead,
        prices: None,
        as_of: Cow::Borrowed(AS_OF),
    }
}

/// Creates the row of an OpenAI model. OpenAI renders tools in the same way for every tokenizer.
const fn openai(
    name: &'static str,
    window: u64,
    max_input: Option<u64>,
    max_output: u64,
    tokenizer: ModelTokenizer,
) -> ModelInfo {
    let counted = (tokenizer, SafetyFactor::ONE);
    row(
        name,
        (window, true),
        max_input,
        max_output,
        counted,
        Some(tool::REQUEST),
    )
}

const fn claude(name: &'static str, window: u64, max_output: u64, tools: u64) -> ModelInfo {
    let counted = (Other, SafetyFactor::ONE);
    row(name, (window, true), None, max_output, counted, Some(tools))
}

const fn claude_since_4_7(
    name: &'static str,
    window: u64,
    max_output: u64,
    tools: u64,
) -> ModelInfo {
    let counted = (Other, SINCE_4_7);
    row(name, (window, true), None, max_output, counted, Some(tools))
}

/// Creates the row of a Gemini model. Gemini limits input and output separately.
const fn gemini(name: &'static str, max_input: u64, max_output: u64) -> ModelInfo {
    let counted = (Other, SafetyFactor::ONE);
    row(name, (max_input, false), None, max_output, counted, None)
}

const fn other(name: &'static str, window: u64, max_output: u64) -> ModelInfo {
    let counted = (Other, SafetyFactor::ONE);
    row(name, (window, true), None, max_output, counted, None)
}

const fn limited(name: &'static str, window: u64, max_input: u64, max_output: u64) -> ModelInfo {
    let counted = (Other, SafetyFactor::ONE);
    row(
        name,
        (window, true),
        Some(max_input),
        max_output,
        counted,
        None,
    )
}

/// The built-in rows, sorted by provider, the latest models first. The prices are for a token in a prompt, for one
/// that is cached, for one that is written to the cache, and for one in an answer; then the largest prompt for which they hold. 0
/// stands for none.
#[rustfmt::skip] // A row is on one line, and its prices on the next.
pub(super) static MODELS: &[ModelInfo] = &[
    // OpenAI.
    openai("gpt-6.1-sol", 1_050_000, Some(922_000), 128_000, Other)
        .priced((2_000, 100, 2_500, 10_000), 272_000, OPENAI),
    openai("gpt-6.1-terra", 1_050_000, Some(922_000), 128_000, Other)
        .priced((1_000, 50, 1_250, 5_000), 272_000, OPENAI),
    openai("gpt-6-astra", 1_050_000, Some(922_000), 128_000, Other)
        .priced((10_000, 1_000, 12_500, 50_000), 272_000, OPENAI),
    openai("gpt-6-sol", 1_050_000, Some(922_000), 128_000, Other)
        .priced((2_000, 200, 2_500, 10_000), 272_000, OPENAI),
    openai("gpt-6-luna", 1_050_000, Some(922_000), 128_000, Other)
        .priced((100, 10, 125, 500), 272_000, OPENAI),
    openai("gpt-5.6", 1_050_000, Some(922_000), 128_000, O200k),
    openai("gpt-5.6-sol", 1_050_000, Some(922_000), 128_000, O200k)
        .priced((4_000, 400, 5_000, 20_000), 272_000, OPENAI),
    openai("gpt-5.6-terra", 1_050_000, Some(922_000), 128_000, O200k)
        .priced((2_000, 200, 2_500, 12_000), 272_000, OPENAI),
    openai("gpt-5.6-luna", 1_050_000, Some(922_000), 128_000, O200k)
        .priced((200, 20, 250, 1_200), 272_000, OPENAI),
    openai("gpt-5.5", 1_050_000, Some(922_000), 128_000, O200k)
        .priced((5_000, 500, 0, 30_000), 272_000, OPENAI),
    openai("gpt-5.5-pro", 1_050_000, Some(922_000), 128_000, O200k)
        .priced((30_000, 0, 0, 180_000), 272_000, OPENAI),
    openai("gpt-5.4", 1_050_000, Some(922_000), 128_000, O200k)
        .priced((2_500, 250, 0, 15_000), 272_000, OPENAI),
    openai("gpt-5.4-pro", 1_050_000, Some(922_000), 128_000, O200k)
        .priced((30_000, 0, 0, 180_000), 272_000, OPENAI),
    openai("gpt-5.4-mini", 400_000, Some(272_000), 128_000, O200k)
        .priced((750, 75, 0, 4_500), 0, OPENAI),
    openai("gpt-5.4-nano", 400_000, Some(272_000), 128_000, O200k)
        .priced((200, 20, 0, 1_250), 0, OPENAI),
    openai("gpt-5.3-codex", 400_000, Some(272_000), 128_000, O200k)
        .priced((1_750, 175, 0, 14_000), 0, OPENAI),
    openai("gpt-5.2", 400_000, Some(272_000), 128_000, O200k)
        .priced((1_750, 175, 0, 14_000), 0, OPENAI),
    openai("gpt-5.2-pro", 400_000, Some(272_000), 128_000, O200k)
        .priced((21_000, 0, 0, 168_000), 0, OPENAI),
    openai("gpt-5.2-codex", 400_000, Some(272_000), 128_000, O200k)
        .priced((1_750, 175, 0, 14_000), 0, "https://developers.openai.com/api/docs/models/gpt-5.2-codex"),
    openai("gpt-5.1", 400_000, Some(272_000), 128_000, O200k)
        .priced((1_250, 125, 0, 10_000), 0, OPENAI),
    openai("gpt-5.1-codex", 400_000, Some(272_000), 128_000, O200k)
        .priced((1_250, 125, 0, 10_000), 0, "https://developers.openai.com/api/docs/models/gpt-5.1-codex"),
    openai("gpt-5.1-codex-mini", 400_000, Some(272_000), 128_000, O200k)
        .priced((250, 25, 0, 2_000), 0, "https://developers.openai.com/api/docs/models/gpt-5.1-codex-mini"),
    openai("gpt-5.1-codex-max", 400_000, Some(272_000), 128_000, O200k)
        .priced((1_250, 125, 0, 10_000), 0, "https://developers.openai.com/api/docs/models/gpt-5.1-codex-max"),
    openai("gpt-5", 400_000, Some(272_000), 128_000, O200k)
        .priced((1_250, 125, 0, 10_000), 0, OPENAI),
    openai("gpt-5-mini", 400_000, Some(272_000), 128_000, O200k)
        .priced((250, 25, 0, 2_000), 0, OPENAI),
    openai("gpt-5-nano", 400_000, Some(272_000), 128_000, O200k)
        .priced((50, 5, 0, 400), 0, OPENAI),
    openai("gpt-5-codex", 400_000, Some(272_000), 128_000, O200k)
        .priced((1_250, 125, 0, 10_000), 0, "https://developers.openai.com/api/docs/models/gpt-5-codex"),
    openai("gpt-5-pro", 400_000, Some(128_000), 272_000, O200k)
        .priced((15_000, 0, 0, 120_000), 0, OPENAI),
    openai("gpt-5.3-chat", 128_000, None, 16_384, O200k),
    openai("gpt-5.2-chat", 128_000, None, 16_384, O200k),
    openai("gpt-5.1-chat", 128_000, None, 16_384, O200k),
    openai("gpt-5-chat", 128_000, None, 16_384, O200k),
    openai("gpt-4.1", 1_047_576, None, 32_768, O200k)
        .priced((2_000, 500, 0, 8_000), 0, OPENAI),
    openai("gpt-4.1-mini", 1_047_576, None, 32_768, O200k)
        .priced((400, 100, 0, 1_600), 0, OPENAI),
    openai("gpt-4.1-nano", 1_047_576, None, 32_768, O200k)
        .priced((100, 25, 0, 400), 0, OPENAI),
    openai("gpt-4o", 128_000, None, 16_384, O200k)
        .priced((2_500, 1_250, 0, 10_000), 0, OPENAI),
    openai("gpt-4o-mini", 128_000, None, 16_384, O200k)
        .priced((150, 75, 0, 600), 0, OPENAI),
    openai("chatgpt-4o-latest", 128_000, None, 16_384, O200k),
    openai("gpt-4o-2024-05-13", 128_000, None, 4_096, O200k)
        .priced((5_000, 0, 0, 15_000), 0, OPENAI),
    openai("o4-mini", 200_000, None, 100_000, O200k)
        .priced((1_100, 275, 0, 4_400), 0, OPENAI),
    openai("o3", 200_000, None, 100_000, O200k)
        .priced((2_000, 500, 0, 8_000), 0, OPENAI),
    openai("o3-mini", 200_000, None, 100_000, O200k)
        .priced((1_100, 550, 0, 4_400), 0, OPENAI),
    openai("o3-pro", 200_000, None, 100_000, O200k)
        .priced((20_000, 0, 0, 80_000), 0, OPENAI),
    openai("o1", 200_000, None, 100_000, O200k)
        .priced((15_000, 7_500, 0, 60_000), 0, OPENAI),
    openai("o1-pro", 200_000, None, 100_000, O200k)
        .priced((150_000, 0, 0, 600_000), 0, OPENAI),
    openai("gpt-4-turbo", 128_000, None, 4_096, Cl100k),
    openai("gpt-4-0125-preview", 128_000, None, 4_096, Cl100k),
    openai("gpt-4-1106-preview", 128_000, None, 4_096, Cl100k),
    openai("gpt-4", 8_192, None, 4_096, Cl100k),
    openai("gpt-4-0613", 8_192, None, 4_096, Cl100k)
        .priced((30_000, 0, 0, 60_000), 0, OPENAI),
    openai("gpt-3.5-turbo", 16_385, None, 4_096, Cl100k)
        .priced((500, 0, 0, 1_500), 0, OPENAI),
    openai("gpt-3.5-turbo-0125", 16_385, None, 4_096, Cl100k)
        .priced((500, 0, 0, 1_500), 0, OPENAI),
    openai("gpt-oss-120b", 131_072, None, 131_072, O200k),
    openai("gpt-oss-20b", 131_072, None, 131_072, O200k),
    // Anthropic. The last figure is the larger of the two sizes that the provider states for the system prompt of
    // tools.
    claude_since_4_7("claude-fable-5-1", 1_000_000, 128_000, 804)
        .priced((10_000, 250, 12_500, 50_000), 0, ANTHROPIC),
    claude_since_4_7("claude-fable-5", 1_000_000, 128_000, 804)
        .priced((10_000, 1_000, 12_500, 50_000), 0, ANTHROPIC),
    claude_since_4_7("claude-mythos-5-1", 1_000_000, 128_000, 804)
        .priced((10_000, 250, 12_500, 50_000), 0, ANTHROPIC),
    claude_since_4_7("claude-mythos-5", 1_000_000, 128_000, 804)
        .priced((10_000, 1_000, 12_500, 50_000), 0, ANTHROPIC),
    claude_since_4_7("claude-opus-5-5", 1_000_000, 128_000, 804)
        .priced((4_000, 200, 5_000, 20_000), 0, ANTHROPIC),
    claude_since_4_7("claude-sonnet-5-5", 1_000_000, 128_000, 804)
        .priced((2_000, 100, 2_500, 10_000), 0, ANTHROPIC),
    claude_since_4_7("claude-haiku-5-5", 1_000_000, 128_000, 804)
        .priced((100, 10, 125, 500), 100_000, "https://platform.claude.com/docs/en/models/haiku-5-5/overview"),
    claude_since_4_7("claude-opus-5", 1_000_000, 128_000, 804)
        .priced((5_000, 500, 6_250, 25_000), 0, ANTHROPIC),
    claude_since_4_7("claude-sonnet-5", 1_000_000, 128_000, 474)
        .priced((2_000, 200, 2_500, 10_000), 0, ANTHROPIC),
    claude_since_4_7("claude-opus-4-8", 1_000_000, 128_000, 410)
        .priced((5_000, 500, 6_250, 25_000), 0, ANTHROPIC),
    claude_since_4_7("claude-opus-4-7", 1_000_000, 128_000, 804)
        .priced((5_000, 500, 6_250, 25_000), 0, ANTHROPIC),
    claude("claude-opus-4-6", 1_000_000, 128_000, 589)
        .priced((5_000, 500, 6_250, 25_000), 0, ANTHROPIC),
    claude("claude-sonnet-4-6", 1_000_000, 128_000, 589)
        .priced((3_000, 300, 3_750, 15_000), 0, ANTHROPIC),
    claude("claude-opus-4-5", 200_000, 64_000, 588)
        .priced((5_000, 500, 6_250, 25_000), 0, ANTHROPIC),
    claude("claude-sonnet-4-5", 200_000, 64_000, 588)
        .priced((3_000, 300, 3_750, 15_000), 0, ANTHROPIC),
    claude("claude-haiku-4-5", 200_000, 64_000, 588)
        .priced((1_000, 100, 1_250, 5_000), 0, ANTHROPIC),
    claude("claude-opus-4-1", 200_000, 32_000, 346),
    claude("claude-opus-4", 200_000, 32_000, 346),
    claude("claude-opus-4-0", 200_000, 32_000, 346),
    claude("claude-sonnet-4", 200_000, 64_000, 346),
    claude("claude-sonnet-4-0", 200_000, 64_000, 346),
    claude("claude-3-7-sonnet", 200_000, 64_000, 346),
    claude("claude-3-5-sonnet", 200_000, 8_192, 346),
    claude("claude-3-5-haiku", 200_000, 8_192, 355),
    claude("claude-3-opus", 200_000, 4_096, 530),
    claude("claude-3-sonnet", 200_000, 4_096, 235),
    claude("claude-3-haiku", 200_000, 4_096, 340),
    // Google.
    gemini("gemini-4-argon", 1_048_576, 1_048_576)
        .priced((2_000, 100, 0, 10_000), 0, GOOGLE),
    gemini("gemini-3.8-flash", 1_048_576, 65_536)
        .priced((750, 75, 0, 3_750), 0, GOOGLE),
    gemini("gemini-3.7-flash", 1_048_576, 65_536)
        .priced((750, 75, 0, 3_750), 0, GOOGLE),
    gemini("gemini-3.6-flash", 1_048_576, 65_536)
        .priced((750, 75, 0, 3_750), 0, GOOGLE),
    gemini("gemini-3.5-flash", 1_048_576, 65_536)
        .priced((1_500, 150, 0, 9_000), 0, GOOGLE),
    gemini("gemini-3.5-flash-lite", 1_048_576, 65_536)
        .priced((300, 30, 0, 2_500), 0, GOOGLE),
    gemini("gemini-3.1-pro-preview", 1_048_576, 65_536)
        .priced((2_000, 200, 0, 12_000), 200_000, GOOGLE),
    gemini("gemini-3.1-flash-lite", 1_048_576, 65_536)
        .priced((250, 25, 0, 1_500), 0, GOOGLE),
    gemini("gemini-3.1-flash-lite-preview", 1_048_576, 65_536)
        .priced((250, 25, 0, 1_500), 0, GOOGLE),
    gemini("gemini-3-pro-preview", 1_048_576, 65_536),
    gemini("gemini-3-flash-preview", 1_048_576, 65_536)
        .priced((500, 50, 0, 3_000), 0, GOOGLE),
    gemini("gemini-2.5-pro", 1_048_576, 65_536)
        .priced((1_250, 125, 0, 10_000), 200_000, GOOGLE),
    gemini("gemini-2.5-flash", 1_048_576, 65_536)
        .priced((300, 30, 0, 2_500), 0, GOOGLE),
    gemini("gemini-2.5-flash-lite", 1_048_576, 65_536)
        .priced((100, 10, 0, 400), 0, GOOGLE),
    gemini("gemini-pro-latest", 1_048_576, 65_536)
        .priced((2_000, 200, 0, 12_000), 200_000, GOOGLE),
    gemini("gemini-flash-latest", 1_048_576, 65_536)
        .priced((750, 75, 0, 3_750), 0, GOOGLE),
    gemini("gemini-flash-lite-latest", 1_048_576, 65_536)
        .priced((300, 30, 0, 2_500), 0, GOOGLE),
    gemini("gemini-2.0-flash", 1_048_576, 8_192),
    gemini("gemini-2.0-flash-lite", 1_048_576, 8_192),
    gemini("gemini-1.5-pro", 2_097_152, 8_192),
    gemini("gemini-1.5-flash", 1_048_576, 8_192),
    // Open models and others.
    other("gemma-4-31b-it", 262_144, 32_768),
    other("gemma-4-26b-a4b-it", 262_144, 32_768),
    other("gemma-3-27b-it", 131_072, 8_192),
    other("llama-4-scout", 1_048_576, 131_072),
    other("llama-4-maverick", 1_048_576, 131_072),
    other("llama-3.3-70b-instruct", 131_072, 131_072),
    other("llama-3.1-405b-instruct", 131_072, 131_072),
    other("llama-3.1-70b-instruct", 131_072, 131_072),
    other("llama-3.1-8b-instruct", 131_072, 131_072),
    limited("qwen3.8-max", 1_000_000, 991_808, 131_072),
    limited("qwen3.8-flash", 1_000_000, 991_808, 131_072),
    limited("qwen3.7-max", 1_000_000, 991_808, 65_536),
    limited("qwen3.7-plus", 1_000_000, 991_808, 65_536),
    limited("qwen3.5-plus", 1_000_000, 991_808, 65_536),
    other("qwen3.6-27b", 262_144, 65_536),
    other("qwen3.6-35b-a3b", 262_144, 65_536),
    other("qwen3.5-397b-a17b", 262_144, 65_536),
    other("qwen3.5-122b-a10b", 262_144, 65_536),
    other("qwen3.5-35b-a3b", 262_144, 65_536),
    other("qwen3.5-27b", 262_144, 65_536),
    other("qwen3-coder-next", 262_144, 65_536),
    other("qwen3-coder-480b-a35b-instruct", 262_144, 65_536),
    limited("qwen3-max", 262_144, 258_048, 65_536),
    limited("qwen3-coder-plus", 1_000_000, 997_952, 65_536),
    limited("qwen3-coder-flash", 1_000_000, 997_952, 65_536),
    other("qwen3-next-80b-a3b-instruct", 262_144, 65_536),
    other("qwen3-next-80b-a3b-thinking", 262_144, 65_536),
    other("qwen3-235b-a22b-instruct-2507", 262_144, 32_768),
    other("qwen3-235b-a22b-thinking-2507", 262_144, 32_768),
    other("qwen3-32b", 40_960, 20_000),
    other("qwen2.5-72b-instruct", 32_768, 8_192),
    limited("qwen-max", 32_768, 30_720, 8_192),
    limited("qwen-plus", 131_072, 129_024, 16_384),
    limited("qwen-flash", 1_000_000, 997_952, 32_768),
    other("deepseek-v4-pro", 1_000_000, 393_216),
    other("deepseek-v4-flash", 1_000_000, 393_216),
    other("deepseek-flash", 1_000_000, 393_216),
    other("deepseek-v3.2", 163_840, 65_536),
    other("deepseek-v3.1", 131_072, 32_768),
    other("deepseek-reasoner", 131_072, 65_536),
    other("deepseek-chat", 131_072, 8_192),
    other("deepseek-r1", 65_536, 8_192),
    other("deepseek-v3", 65_536, 8_192),
    other("mistral-large-4", 1_048_576, 1_048_576),
    other("mistral-large-latest", 262_144, 262_144),
    other("mistral-large-3", 262_144, 262_144),
    other("mistral-large-2512", 262_144, 262_144),
    other("mistral-medium-latest", 262_144, 262_144),
    other("mistral-medium-3.5", 262_144, 262_144),
    other("mistral-medium-3", 262_144, 262_144),
    other("mistral-small-latest", 262_144, 262_144),
    other("mistral-small-2603", 262_144, 262_144),
    other("magistral-medium-latest", 262_144, 262_144),
    other("magistral-small-latest", 262_144, 262_144),
    other("ministral-14b-latest", 262_144, 262_144),
    other("ministral-8b-latest", 262_144, 262_144),
    other("ministral-3b-latest", 131_072, 131_072),
    other("devstral-latest", 256_000, 256_000),
    other("devstral-medium-latest", 256_000, 256_000),
    other("devstral-small-latest", 256_000, 256_000),
    other("codestral-latest", 128_000, 128_000),
    other("codestral-2508", 128_000, 128_000),
    other("open-mistral-nemo", 128_000, 128_000),
    other("glm-5.3", 1_000_000, 128_000),
    other("glm-5.3-flash", 1_048_576, 128_000),
    other("glm-5.2", 1_000_000, 128_000),
    other("glm-5.1", 200_000, 128_000),
    other("glm-5", 200_000, 128_000),
    other("glm-5-code", 200_000, 128_000),
    other("glm-5v-turbo", 200_000, 128_000),
    other("glm-4.7", 200_000, 128_000),
    other("glm-4.7-flash", 200_000, 128_000),
    other("glm-4.6", 200_000, 128_000),
    other("glm-4.5", 128_000, 32_000),
    other("glm-4.5-air", 128_000, 32_000),
    other("glm-4.5-flash", 128_000, 32_000),
    other("kimi-k3.1-pro", 1_048_576, 1_048_576),
    other("kimi-k3", 1_048_576, 1_048_576),
    other("kimi-k2.7-code", 262_144, 262_144),
    other("kimi-k2.6", 262_144, 262_144),
    other("kimi-k2.5", 262_144, 262_144),
    other("kimi-k2-thinking", 262_144, 262_144),
    other("kimi-k2-0905", 262_144, 100_352),
    other("kimi-k2", 131_072, 100_352),
    other("minimax-m3", 1_000_000, 128_000),
    other("minimax-m2.7", 204_800, 131_072),
    other("minimax-m2.5", 204_800, 131_072),
    other("minimax-m2.1", 204_800, 131_072),
    other("minimax-m2", 204_800, 131_072),
    other("grok-4.7", 500_000, 500_000),
    other("grok-4.6", 500_000, 500_000),
    other("grok-4.5", 500_000, 500_000),
    other("grok-4.3", 1_000_000, 1_000_000),
    other("grok-4.20", 1_000_000, 1_000_000),
    other("grok-code-fast-1", 256_000, 256_000),
];

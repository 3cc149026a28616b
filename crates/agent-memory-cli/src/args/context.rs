//! The command `context`, and the forms of its output.

use std::path::PathBuf;

use agent_memory::Strategy;
use agent_memory::providers::Provider;
use clap::{Args, ValueEnum};

use super::compaction::strategy;

/// Arguments of `context`.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// The session: its name or the beginning of it
    pub(crate) session: String,
    /// Budget of the context, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    pub(crate) budget: u64,
    /// Maximum number of pictures in the context: older ones are left out
    #[arg(long, value_name = "COUNT")]
    pub(crate) pictures: Option<usize>,
    /// Maximum size of the context in bytes, with pictures and files in Base64: the oldest of these are left out, then
    /// text is shortened [default with `--as` and a provider: what the provider accepts]
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes: Option<u64>,
    /// Have a message of the assistant acknowledge each summary
    #[arg(long)]
    pub(crate) acknowledge_summaries: bool,
    /// Strategy with the view to assemble [default: the session's own]
    #[arg(long, value_parser = strategy())]
    pub(crate) strategy: Option<Strategy>,
    /// Version of the view to assemble from; `view --history` lists them [default: the latest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) at: Option<u64>,
    /// Output format; --json alone is the same as json
    #[arg(long = "as", value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub(crate) form: Form,
    /// File with the system prompt: it begins the context, and is counted in the budget
    #[arg(long, value_name = "FILE")]
    pub(crate) system: Option<PathBuf>,
    /// Also print the receipt: omissions, shortened and moved parts (JSON always has it)
    #[arg(long)]
    pub(crate) receipt: bool,
}

/// Output formats of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Text
    Text,
    /// JSON
    Json,
    /// Fields of an OpenAI chat completion: {messages}
    Openai,
    /// Fields of an OpenAI response: {instructions?, input}
    Responses,
    /// Fields of an Anthropic request: {system?, messages}
    Anthropic,
    /// Fields of a Gemini request: {systemInstruction?, contents}
    Gemini,
}

impl Form {
    /// Returns the provider with requests in this form; `None` for text and plain JSON.
    pub(crate) fn provider(self) -> Option<Provider> {
        match self {
            Form::Text | Form::Json => None,
            Form::Openai => Some(Provider::OpenAi),
            Form::Responses => Some(Provider::Responses),
            Form::Anthropic => Some(Provider::Anthropic),
            Form::Gemini => Some(Provider::Gemini),
        }
    }
}

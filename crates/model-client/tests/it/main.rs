#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod anthropic;
mod embeddings;
mod gemini;
#[cfg(feature = "genai")]
mod genai;
mod openai;
mod provider_shapes;
mod responses;
mod streams;

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod embeddings;
#[cfg(feature = "genai")]
mod genai;
mod openai;

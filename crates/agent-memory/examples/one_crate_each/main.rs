//! Examples of using single crates. Each module uses one crate of this workspace, or two, and the crates on which they depend.

#![allow(clippy::print_stdout)]

mod contexts;
mod storage;
mod summaries;
mod tokens;
mod transcripts;
mod turns;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    println!("token-estimate: {}", tokens::run()?);
    println!("turn-map: {}", turns::run()?);
    println!("message-formats, provider-shapes: {}", transcripts::run()?);
    println!("summarize-escalation: {}", summaries::run().await?);
    println!("context-assembler: {}", contexts::run()?);
    println!("store-sqlite: {}", storage::run().await?);
    Ok(())
}

//! Settings for writing summaries: the parts of a [`Ladder`] (the methods that are tried in order), such as its
//! [`Gate`], and of an [`LlmSummarizer`], such as its prompts and its window.
//!
//! ```
//! use agent_memory::summaries::{ChatModel, ChatPrompt, Completion, Failure};
//! use agent_memory::summaries::{LlmSummarizer, ModelWindow, PromptSet};
//! use agent_memory::summaries::{Gate, Ladder, Share, Tier};
//! use agent_memory::Memory;
//! use agent_memory::store::InMemoryStore;
//!
//! /// A client of a model.
//! #[derive(Debug)]
//! struct Client;
//!
//! #[async_trait::async_trait]
//! impl ChatModel for Client {
//!     async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
//!         // Send `prompt.system` and `prompt.user`, and ask for `prompt.max_tokens` at most.
//!         Ok(Completion::new(format!("{} bytes received", prompt.user.len())))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_memory::Result<()> {
//! // A set of prompts with nine sections; sources beyond the window are summarised in parts.
//! let model = LlmSummarizer::new("small", Client)
//!     .with_prompts(PromptSet::numbered_sections())
//!     .with_window(ModelWindow::tokens(16_000));
//! // A summary must keep half of the names of its source. A summary that does not becomes an extract
//! // at once, without a second call in the aggressive style.
//! let gate = Gate { min_retained: Share::new(0.5), ..Gate::default() };
//! let mut ladder = Ladder { gate: Some(gate), ..Ladder::default() };
//! ladder.tiers.retain(|tier| *tier != Tier::Aggressive);
//! let memory = Memory::builder()
//!     .store(InMemoryStore::new())
//!     .summarizer(model)
//!     .ladder(ladder)
//!     .open()
//!     .await?;
//! # drop(memory);
//! # Ok(())
//! # }
//! ```

pub use extractive_summarizer::{ConversationState, Fact, FactKind};
pub use model_client::{ChatModel, ChatPrompt, Completion};
pub use summarize_escalation::prompt::{
    AnswerFormat, Clip, InvalidTemplate, PromptSet, Slot, Template, strip_analysis_block,
};
pub use summarize_escalation::{
    CallGuard, Error, ErrorKind, ExtractiveSummarizer, Failure, FailureKind, FallbackSummarizer,
    Fault, Gate, GateFailure, Ladder, LlmSummarizer, ModelCall, ModelUsage, ModelWindow,
    OmittedSource, OnEmpty, OnError, Overflow, Purpose, Reason, Refusal, Scores, Share, Source,
    Stop, Style, Summarizer, SummarizerResponse, SummaryRequest, SummarySource, TargetRule, Term,
    TermCounts, Tier, Tolerance,
};

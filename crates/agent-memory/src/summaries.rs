//! What a summary has to be, and how a model is asked for one: the values that a
//! [`Ladder`] and an [`LlmSummarizer`] are made of.
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent_memory::summaries::{ChatModel, ChatPrompt, Completion, Failure};
//! use agent_memory::summaries::{LlmSummarizer, PromptSet, Window};
//! use agent_memory::summaries::{Gate, Ladder, Tier};
//! use agent_memory::Memory;
//!
//! /// A client of some model.
//! #[derive(Debug)]
//! struct Client;
//!
//! #[async_trait::async_trait]
//! impl ChatModel for Client {
//!     async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
//!         // Send `prompt.system` and `prompt.user`, and ask for `prompt.max_tokens` at most.
//!         Ok(Completion::new(format!("{} bytes came", prompt.user.len())))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_memory::Result<()> {
//! // koda's nine sections; what is longer than the model's window is summarised in parts.
//! let model = LlmSummarizer::new("small", Client)
//!     .with_prompts(PromptSet::koda())
//!     .with_window(Window::tokens(16_000));
//! // Half of what the source names has to be named by its summary; what fails that is made an
//! // extract at once, without asking again in the aggressive style.
//! let mut ladder = Ladder::default().with_gate(Some(Gate::default().with_min_retained(0.5)));
//! ladder.tiers.retain(|tier| *tier != Tier::Aggressive);
//! let memory = Memory::builder()
//!     .summarizer(Arc::new(model))
//!     .ladder(ladder)
//!     .open()
//!     .await?;
//! # drop(memory);
//! # Ok(())
//! # }
//! ```

pub use model_client::{ChatModel, ChatPrompt, Completion};
pub use summarize_escalation::prompt::{
    Answer, Clip, InvalidTemplate, PromptSet, Shown, Slot, Template,
};
pub use summarize_escalation::{
    CallGuard, Chain, CutRule, Error, ErrorKind, ExtractiveSummarizer, Failure, FailureKind, Gate,
    GateFailure, Ladder, LeftOut, LlmSummarizer, ModelCall, ModelUsage, OnCutOff, OnEmpty, OnError,
    OnGate, OnGrowth, OnRefusal, Overflow, Purpose, Reason, Refusal, Retention, Rules, Scores,
    Share, Source, Stop, Style, Summarizer, SummaryRequest, SummarySource, SummaryText, TargetRule,
    Term, Tier, Tolerance, Window,
};

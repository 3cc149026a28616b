#![doc = include_str!("../README.md")]

mod criteria;
mod error;
mod escalate;
mod extractive;
mod fallback;
mod gate;
mod guarded;
mod ladder;
mod llm;
mod outcome;
pub mod prompt;
mod recipe;
mod refusal;
mod request;
mod rules;
mod share;
mod summarizer;
mod target;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;
mod tier;

pub use criteria::{Fault, Gate, GateFailure, Scores, Term, TermCounts};
pub use error::{Error, ErrorKind};
pub use escalate::{escalate, escalate_with};
pub use fallback::FallbackSummarizer;
pub use gate::{is_cut, measure};
pub use guarded::GuardedSummarizer;
pub use ladder::Ladder;
pub use llm::{LlmSummarizer, ModelWindow, Overflow};
pub use memory_model::Purpose;
pub use outcome::LadderOutcome;
pub use recipe::recipe;
pub use refusal::{Reason, Refusal};
pub use request::{BeforeCall, Style, SummaryKind, SummaryRequest};
pub use rules::{OnEmpty, OnError};
pub use share::Share;
pub use summarizer::{OmittedSource, Summarizer, SummarizerResponse};
pub use target::{TargetRule, Tolerance};
pub use text::summarize_text;
pub use tier::Tier;

pub use extractive_summarizer::{
    CUT_NOTE, ExtractiveSummarizer, Source, SummarySource, cut_to_tokens, rank_lines, rank_of,
};
pub use model_client::{CallGuard, Failure, FailureKind, ModelCall, ModelUsage, Stop};

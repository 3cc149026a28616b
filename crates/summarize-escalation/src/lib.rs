#![doc = include_str!("../README.md")]

mod call;
mod chain;
mod cut;
mod error;
mod escalate;
mod extract;
mod failure;
mod gate;
pub mod guard;
mod ladder;
mod llm;
pub mod prompt;
#[cfg(any(feature = "openai-compatible", feature = "genai"))]
pub mod provider;
mod request;
mod summarizer;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod timer;

pub use call::{CallGuard, ModelCall};
pub use chain::Chain;
pub use cut::{ANNA_CUT_NOTE, CUT_NOTE, cut_like_anna, cut_to_tokens};
pub use error::{Error, ErrorKind};
pub use escalate::{Outcome, Reason, Refusal, escalate, recipe};
pub use extract::Extractive;
pub use failure::{Failure, FailureKind};
pub use gate::{Gate, GateFailure, Kept, Scores, Term, measure};
pub use guard::{GuardPolicy, Guarded, Guards, SessionGuard};
pub use ladder::{
    CutRule, Ladder, OnCutOff, OnEmpty, OnError, OnGate, OnGrowth, OnRefusal, Rules, TargetRule,
    Tier, Tolerance,
};
pub use llm::{LlmSummarizer, Overflow, Window};
pub use request::{Purpose, Source, Style, SummaryRequest, SummarySource};
pub use summarizer::{Generate, LeftOut, ModelUsage, Stop, Summarizer, SummaryText};
pub use timer::Timer;
#[cfg(feature = "tokio")]
pub use timer::TokioTimer;

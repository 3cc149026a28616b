#![doc = include_str!("../README.md")]

mod cut;
mod error;
mod escalate;
mod extract;
mod gate;
mod ladder;
mod llm;
pub mod prompt;
mod request;
mod summarizer;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use cut::{ANNA_CUT_NOTE, CUT_NOTE, cut_like_anna, cut_to_tokens};
pub use error::{Error, ErrorKind};
pub use escalate::{Outcome, Reason, Refusal, escalate, recipe};
pub use extract::Extractive;
pub use gate::{Failure, Gate, Kept, Scores, Term, measure};
pub use ladder::{
    CutRule, Ladder, OnCutOff, OnEmpty, OnError, OnGate, OnGrowth, OnRefusal, Rules, TargetRule,
    Tier, Tolerance,
};
pub use llm::{LlmSummarizer, Overflow, Window};
pub use request::{Purpose, Source, Style, SummaryRequest, SummarySource};
pub use summarizer::{Generate, LeftOut, Stop, Summarizer, SummaryText};

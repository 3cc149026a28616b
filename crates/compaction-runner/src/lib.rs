#![doc = include_str!("../README.md")]

mod atoms;
mod begin;
mod cancel;
mod compaction;
mod conclude;
mod environment;
mod error;
mod events;
mod execute;
mod exhausted;
mod fit;
mod hook_list;
mod in_flight;
mod iterate;
mod leases;
mod lifecycle;
mod open_job;
mod outcome;
mod owners;
mod pass;
mod planned_job;
mod policy;
mod prefetch;
mod prepared;
mod publishable;
mod reason;
mod redo;
mod report;
mod sources;
mod state;
mod summary;
mod supplied;
mod tally;
mod trigger;
mod view_reader;
mod waiting;
mod watch;
mod write;

pub use atoms::{atom_start, newest_entries};
pub use cancel::CancellationToken;
pub use environment::Compaction;
pub use error::{Error, Result};
pub use events::{CompactionDecision, Event, Hooks, JobDecision, NoHooks, Recorder, SkipReason};
pub use hook_list::HookList;
pub use in_flight::InFlight;
pub use outcome::{Measure, Outcome};
pub use owners::{LeaseHolder, Liveness, NeverGone};
pub use planned_job::PlannedJob;
pub use policy::RunnerPolicy;
pub use prefetch::PrefetchReport;
pub use reason::CompactionReason;
pub use redo::{
    RedoCandidate, RedoFailure, RedoPlan, RedoPolicy, RedoReport, RedoStop, ReplacedSummary,
};
pub use report::{Cause, CauseCount, ModelReport};
pub use trigger::{Trigger, WindowUse};

#![doc = include_str!("../README.md")]

mod cancel;
mod conclude;
mod error;
mod events;
mod execute;
mod exhausted;
mod fit;
mod in_flight;
mod outcome;
mod owners;
mod prefetch;
mod prepare;
mod read;
mod redo;
mod report;
mod run;
mod summary;
mod trigger;
mod watch;
mod window;

pub use cancel::Cancel;
pub use error::{Error, ErrorKind, Result};
pub use events::{Before, Event, Hooks, NoHooks, Recorder, SkipReason};
pub use in_flight::InFlight;
pub use outcome::{Measure, Outcome};
pub use owners::{HeldBy, Liveness, UnknownLiveness};
pub use prefetch::PrefetchReport;
pub use redo::{RedoFailure, RedoNode, RedoPlan, RedoPolicy, RedoStop, Redone, Replaced};
pub use report::{Cause, CauseCount, ModelReport};
pub use run::{Compaction, RunnerPolicy};
pub use trigger::{Trigger, WindowUse};
pub use window::{atom_start, newest_entries};

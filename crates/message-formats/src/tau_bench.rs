//! Results of tau-bench: a list of runs, each with its messages in the shape of OpenAI's chat.
//!
//! Each run is a conversation, named by the numbers of its task and trial. Other members of a run, such as its reward
//! and its task, are a note at its end. The document is held in memory whole, up to
//! [`ReadOptions::max_line_bytes`](crate::ReadOptions::max_line_bytes).

use serde_json::value::RawValue;

use crate::documents::{Conversation, Documents, Source};
use crate::outline::Outline;
use crate::raw::{RawObject, list};

/// Results of tau-bench.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct TauBench {}

impl TauBench {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Documents for TauBench {
    const NAME: &'static str = "tau-bench";
    const NAMES_SESSIONS: bool = false;

    fn is(outline: &Outline<'_>) -> bool {
        outline.has("[].task_id") && outline.has("[].traj[].role")
    }

    fn document(document: &RawValue, source: &mut Source<'_>) {
        let Some(runs) = list(document) else {
            return source.lose("no_messages");
        };
        for run in runs {
            let run = RawObject::parse(run.get());
            let traj = run.as_ref().and_then(|run| run.get("traj"));
            let (Some(run), Some(traj)) = (&run, traj) else {
                source.lose("no_messages");
                continue;
            };
            let mut conversation = Conversation::new();
            conversation.messages(traj, &mut source.report);
            conversation.rest(run, &["traj"]);
            let number = |key| {
                run.get(key)
                    .map_or("0", |value| value.get().trim_matches('"'))
            };
            let (task, trial) = (number("task_id"), number("trial"));
            let name = format!("{}-{task}-{trial}", Self::NAME);
            source.finish::<Self>(conversation, Some(name));
        }
    }
}

//! Results of tau-bench: a list of runs, each with its messages in the shape of OpenAI's chat.
//!
//! Each run is a conversation under the number of its task and trial; what a run holds besides (reward, task) is a note
//! at its end. The document is held in memory whole, up to [`ReadOptions::max_line_bytes`].

use memory_model::SessionKey;

use crate::documents::{Conversation, Logs, read};
use crate::outline::sniff;
use crate::raw::{RawObject, list};
use crate::{Confidence, Error, Format, Head, Input, ReadOptions, Report, Sink};

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

impl Format for TauBench {
    fn name(&self) -> &str {
        "tau-bench"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        sniff(head, Confidence::Certain, |outline| {
            outline.has("[].task_id") && outline.has("[].traj[].role")
        })
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut logs = Logs::default();
        let report = read(input, options, |document, report| {
            for run in list(document).unwrap_or_default() {
                let run = RawObject::parse(run.get());
                let traj = run.as_ref().and_then(|run| run.get("traj"));
                let (Some(run), Some(traj)) = (&run, traj) else {
                    report.lines += 1;
                    report.warn("no_messages", report.lines);
                    continue;
                };
                let mut conversation = Conversation::new();
                conversation.messages(traj, report);
                conversation.rest(run, &["traj"]);
                let mut log = conversation.finish(options, self.name(), None);
                if !log.named {
                    let number = |key| run.get(key).map_or("0", |value| value.get());
                    let (task, trial) = (number("task_id"), number("trial"));
                    log.key = SessionKey::new(format!("tau-bench-{task}-{trial}"));
                }
                logs.add(log);
            }
        })?;
        logs.hand_over(sink)?;
        Ok(report)
    }
}

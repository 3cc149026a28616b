//! Trajectories of SWE-agent (`.traj`) and mini-swe-agent (`.traj.json`).
//!
//! The messages are the history that the model saw: `history`, or `messages`. SWE-agent's `trajectory` has the same
//! again by steps; it is counted and not read. A demonstration is a message, for the model saw it. What a finished run
//! holds besides (its result, its settings) is a note at the end, and so is mini-swe-agent's message of the
//! role `exit`. The document is held in memory whole, up to [`ReadOptions::max_line_bytes`].

use memory_model::{Role, SessionKey};

use crate::documents::{Conversation, Logs, read};
use crate::message_lists::has_messages;
use crate::outline::sniff;
use crate::raw::{RawObject, list};
use crate::session::note;
use crate::{Confidence, Error, Format, Head, Input, ReadOptions, Report, Sink};

/// Trajectories of SWE-agent and mini-swe-agent.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct SweAgent {}

impl SweAgent {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for SweAgent {
    fn name(&self) -> &str {
        "swe-agent"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        sniff(head, Confidence::Certain, |outline| {
            let is_mini = outline.begins("trajectory_format", "mini-swe-agent")
                || outline.has("info.mini_version");
            has_messages(outline, "history") && outline.has("trajectory")
                || has_messages(outline, "messages") && is_mini
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
            let Some(run) = RawObject::parse(document.get()) else {
                report.lines += 1;
                return report.warn("not_an_object", report.lines);
            };
            let mut conversation = Conversation::new();
            let messages = run.get("history").or_else(|| run.get("messages"));
            for message in messages.and_then(list).unwrap_or_default() {
                let role = RawObject::parse(message.get()).and_then(|one| one.string("role"));
                match role.as_deref() {
                    Some("exit") => {
                        report.lines += 1;
                        let exit = note(Role::System, message.get());
                        conversation.log.push(exit, None, message.get());
                    }
                    _ => conversation.message(message.get(), report),
                }
            }
            if run.get("trajectory").is_some() {
                report.skip("trajectory");
            }
            let info = run.object("info");
            let has_ended = info.and_then(|info| info.id("exit_status")).is_some();
            if has_ended {
                conversation.rest(&run, &["history", "messages", "trajectory"]);
            }
            let mut log = conversation.finish(options, self.name(), None);
            if let Some(instance) = run.id("instance_id").filter(|_| !log.named) {
                log.key = SessionKey::new(instance);
            }
            logs.add(log);
        })?;
        logs.hand_over(sink)?;
        Ok(report)
    }
}

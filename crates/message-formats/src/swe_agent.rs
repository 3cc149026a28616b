//! Trajectories of SWE-agent (`.traj`) and mini-swe-agent (`.traj.json`).
//!
//! The messages are the history that the model saw: `history`, or `messages`. SWE-agent's `trajectory` repeats them by
//! steps, so it is counted and not read. A demonstration is a message, because the model saw it. Other members of a
//! finished run, such as its result and its settings, are a note at the end. mini-swe-agent's message of the role
//! `exit` is a note too. The document is held in memory whole, up to
//! [`ReadOptions::max_line_bytes`](crate::ReadOptions::max_line_bytes).

use serde_json::value::RawValue;

use crate::documents::{Conversation, Documents, Source};
use crate::message_lists::has_messages;
use crate::outline::Outline;
use crate::raw::{RawObject, list};

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

impl Documents for SweAgent {
    const NAME: &'static str = "swe-agent";
    const NAMES_SESSIONS: bool = false;

    fn is(outline: &Outline<'_>) -> bool {
        let is_mini = outline.begins("trajectory_format", "mini-swe-agent")
            || outline.has("info.mini_version");
        has_messages(outline, "history") && outline.has("trajectory")
            || has_messages(outline, "messages") && is_mini
    }

    fn document(document: &RawValue, source: &mut Source<'_>) {
        let Some(run) = RawObject::parse(document.get()) else {
            return source.lose("not_an_object");
        };
        let mut conversation = Conversation::new();
        let messages = run.get("history").or_else(|| run.get("messages"));
        for message in messages.and_then(list).unwrap_or_default() {
            let role = RawObject::parse(message.get()).and_then(|one| one.string("role"));
            match role.as_deref() {
                Some("exit") => conversation.note(message.get(), &mut source.report),
                _ => conversation.message(message.get(), &mut source.report),
            }
        }
        if run.get("trajectory").is_some() {
            source.report.skip("trajectory");
        }
        let info = run.object("info");
        let has_ended = info.and_then(|info| info.id("exit_status")).is_some();
        if has_ended {
            conversation.rest(&run, &["history", "messages", "trajectory"]);
        }
        source.finish::<Self>(conversation, run.id("instance_id"));
    }
}

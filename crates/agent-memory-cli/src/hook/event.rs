//! Events of agents.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_memory::model::without_half_pairs;
use serde::Deserialize;
use serde_json::Value;

/// Names of the agents that need special answers.
pub(super) const GEMINI: &str = "gemini-cli";
const CODEX: &str = "codex";
const QWEN: &str = "qwen-code";

/// An event of an agent's hook, extension or plugin. Fields that the event does not have are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "hook_event_name")]
    pub(super) name: String,
    pub(super) session_id: String,
    pub(super) transcript_path: Option<PathBuf>,
    pub(super) cwd: Option<PathBuf>,
    /// Reason for the start of a session: `startup`, `resume`, `clear` or `compact`.
    pub(super) source: Option<String>,
    /// Messages in the agent's own format.
    pub(super) messages: Vec<Value>,
    /// pi: id of the first entry that the compaction keeps.
    pub(super) first_kept_entry_id: Option<String>,
    /// pi: size of the context before the compaction, in tokens.
    pub(super) tokens_before: Option<u64>,
    /// Name of the agent.
    #[serde(skip)]
    pub(super) agent: String,
}

impl Event {
    /// Reads an event. `agent` is the agent's name if the caller gave one. Agents cut texts in the middle of a surrogate
    /// pair, so its halves become U+FFFD.
    pub(super) fn parse(text: &[u8], agent: Option<&str>) -> Option<Self> {
        let text = without_half_pairs(std::str::from_utf8(text).ok()?);
        let mut event: Self = serde_json::from_str(&text).ok()?;
        event.agent = agent.unwrap_or_else(|| event.likely_agent()).to_owned();
        Some(event)
    }

    /// Returns the path of the session's transcript, if the event names one that is there.
    pub(super) fn transcript(&self) -> Option<&Path> {
        self.transcript_path
            .as_deref()
            .filter(|path| path.is_file())
    }

    /// Returns the agent that sends such events.
    fn likely_agent(&self) -> &'static str {
        let path = self.transcript_path.as_ref();
        let path = path.map(|path| path.to_string_lossy().replace('\\', "/"));
        let path = path.unwrap_or_default();
        match self.name.as_str() {
            "BeforeAgent" | "AfterAgent" | "PreCompress" => GEMINI,
            "session_before_compact" => "pi",
            "chat.messages.transform" | "session.compacting" | "session.idle" => "opencode",
            _ if path.contains("/.gemini/") => GEMINI,
            _ if path.contains("/.codex/") || path.contains("/rollout-") => CODEX,
            _ if path.contains("/.qwen/") => QWEN,
            _ => "claude-code",
        }
    }

    /// Returns the time in which the agent gets an answer.
    pub(super) fn deadline(&self) -> Duration {
        match self.name.as_str() {
            // Agents end soon after this event.
            "SessionEnd" => Duration::from_millis(500),
            // Without an answer in time the agent's own compaction runs, which takes longer.
            "session.compact" | "session_before_compact" => Duration::from_secs(15),
            "chat.messages.transform" => Duration::from_secs(8),
            _ => Duration::from_secs(2),
        }
    }

    /// Returns whether the agent shows an outline of the conversation from now on: after a compaction, and in a resumed
    /// session.
    pub(super) fn wants_card(&self) -> bool {
        self.name == "SessionStart"
            && matches!(self.source.as_deref(), Some("compact" | "resume"))
            // Gemini CLI stores the outline with the prompt, and then loses both in a resumed session.
            && self.agent != GEMINI
    }

    /// Returns whether a session is resumed that still shows the earlier outlines. Qwen Code does not store them.
    pub(super) fn resumes_with_outlines(&self) -> bool {
        self.source.as_deref() == Some("resume") && self.agent != QWEN
    }

    /// Returns whether the agent begins a compaction of its own, after which its context has no outline.
    pub(super) fn compacts(&self) -> bool {
        self.name == "PreCompact"
    }

    /// Returns whether the agent starts a session twice after a compaction.
    pub(super) fn starts_twice(&self) -> bool {
        self.agent == CODEX
    }
}

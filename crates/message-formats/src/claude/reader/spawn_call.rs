//! Calls that can start a sub-agent, and the marks by which a sub-agent's lines name theirs.

use std::path::Path;

use crate::raw::RawObject;

/// Key of a sub-agent's line in an output stream. Its value is the id of the call that started the sub-agent. Other
/// lines have `null` there.
pub(super) const CALL: &str = "parent_tool_use_id";

/// Tools that start a sub-agent.
pub(super) const SPAWNERS: [&str; 2] = ["Task", "Agent"];

/// A call that can start a sub-agent.
#[derive(Debug)]
pub(super) struct SpawnCall {
    /// Index of the conversation with the call.
    pub(super) session: usize,
    pub(super) id: String,
    /// External id of the line with the call.
    pub(super) line: String,
    pub(super) prompt: Option<String>,
    pub(super) answered: bool,
    pub(super) taken: bool,
}

/// The call that started the sub-agent of a file, by the file `agent-….meta.json` beside it.
pub(super) fn started_by(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let facts = std::fs::read_to_string(path.with_extension("meta.json")).ok();
    let facts = facts.filter(|_| name.starts_with("agent-"))?;
    RawObject::parse(&facts)?.id("toolUseId")
}

//! Outputs that the program saved in files because they were too long for a message.

use std::fs;
use std::path::{Path, PathBuf};

use memory_model::{Message, Part, RawJson, Role};

/// Text before the path of a saved output in a message.
const SAVED: &str = "Full output saved to: ";

/// Name of the folder with the saved outputs of a session.
const FOLDER: &str = "tool-results";

/// Maximum size of an output that is read, in bytes.
const MOST: u64 = 64 << 20;

/// The folder with the saved outputs of a session. No other folder is read, whatever path a message names.
#[derive(Debug, Default)]
pub(super) struct Outputs(Option<PathBuf>);

impl Outputs {
    /// Returns the outputs of the session whose file, or whose sub-agent's file, is at `path`.
    pub(super) fn of(path: &Path) -> Self {
        let parent = path.parent();
        let session = match parent.filter(|parent| parent.ends_with("subagents")) {
            Some(folder) => folder.parent().map(Path::to_path_buf),
            None => Some(path.with_extension("")),
        };
        Self(session.map(|session| session.join(FOLDER)))
    }

    /// Returns a note with the outputs of which a message shows only the beginnings. `None` if there are none or their
    /// files are gone.
    pub(super) fn note(&self, message: &Message) -> Option<Message> {
        let folder = self
            .0
            .as_ref()
            .filter(|_| message.role != Role::Assistant)?;
        let mut names = Vec::new();
        let mut outputs = Vec::new();
        for part in &message.parts {
            let text = match part {
                Part::Text { text } => text.into(),
                Part::ToolResult { content, .. } => content.text(),
                _ => continue,
            };
            for (at, _) in text.match_indices(SAVED) {
                let path = text
                    .get(at + SAVED.len()..)
                    .unwrap_or_default()
                    .lines()
                    .next();
                let name = path.and_then(|path| path.trim_end().rsplit(['/', '\\']).next());
                let name = name.filter(|name| !name.is_empty() && *name != "..");
                let output = name.and_then(|name| Some((name, read(&folder.join(name))?)));
                if let Some((name, output)) = output {
                    names.push(name.to_owned());
                    outputs.push(Part::text(output));
                }
            }
        }
        let names = RawJson::parse(serde_json::json!({ "saved_output": names }).to_string());
        let note = Message::note(Role::Tool, outputs);
        (!note.parts.is_empty()).then(|| Message {
            meta: names.ok(),
            ..note
        })
    }
}

/// Reads a file, but not through a link.
fn read(path: &Path) -> Option<String> {
    let facts = fs::symlink_metadata(path).ok()?;
    let bytes = (facts.is_file() && facts.len() <= MOST).then(|| fs::read(path))?;
    Some(String::from_utf8_lossy(&bytes.ok()?).into_owned())
}

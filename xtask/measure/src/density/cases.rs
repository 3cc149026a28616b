//! The places where an agent wrote a summary of its conversation, with what stood before.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::files::files;

/// One compaction summary of an agent, and the conversation before it.
pub(super) struct Case {
    /// File name, and the number of the summary in the file.
    pub(super) name: String,
    /// The lines of the main conversation before the summary, without earlier summaries.
    pub(super) lines: Vec<Value>,
    /// The file up to the summary.
    pub(super) before: Vec<u8>,
    /// The text of the agent's summary.
    pub(super) theirs: String,
}

/// Returns the cases of a corpus, sorted by name; never none.
pub(super) fn cases(data: &Path) -> anyhow::Result<Vec<Case>> {
    let mut out = Vec::new();
    for path in files(&data.join("claude-code"), ".jsonl")? {
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        out.extend(cases_of(&stem, &text));
    }
    ensure!(
        !out.is_empty(),
        "{} holds no compaction summary: name a folder with transcripts in claude-code/",
        data.display()
    );
    Ok(out)
}

/// Returns the cases of one transcript.
fn cases_of(stem: &str, text: &str) -> Vec<Case> {
    let mut out: Vec<Case> = Vec::new();
    let mut lines = Vec::new();
    let mut at = 0;
    for raw in text.split_inclusive('\n') {
        let before = at;
        at += raw.len();
        let Ok(line) = serde_json::from_str::<Value>(raw) else {
            continue;
        };
        if is(&line, "isSidechain") || !matches!(kind(&line), "user" | "assistant") {
            continue;
        }
        if is(&line, "isCompactSummary") {
            out.push(Case {
                name: format!("{stem}#{}", out.len() + 1),
                lines: lines.clone(),
                before: text.as_bytes()[..before].to_vec(),
                theirs: texts(&line).join("\n"),
            });
        } else {
            lines.push(line);
        }
    }
    out
}

/// The `type` of a line.
pub(crate) fn kind(line: &Value) -> &str {
    line["type"].as_str().unwrap_or_default()
}

/// Whether a line has this mark.
pub(crate) fn is(line: &Value, mark: &str) -> bool {
    line[mark].as_bool() == Some(true)
}

/// Returns the content blocks of a line's message; none where the content is a string.
pub(crate) fn blocks(line: &Value) -> &[Value] {
    line["message"]["content"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

/// Returns the texts of a line's message.
pub(crate) fn texts(line: &Value) -> Vec<&str> {
    if let Some(text) = line["message"]["content"].as_str() {
        return vec![text];
    }
    let blocks = blocks(line).iter().filter(|block| kind(block) == "text");
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_everything_before_a_summary() {
        let text = r#"{"type":"user","message":{"content":"one"}}
{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"aside"}]}}
{"type":"user","isCompactSummary":true,"message":{"content":"first"}}
{"type":"assistant","message":{"content":[{"type":"text","text":"two"}]}}
{"type":"user","isCompactSummary":true,"message":{"content":[{"type":"text","text":"second"}]}}
"#;
        let cases = cases_of("x", text);
        let seen: Vec<(&str, usize, &str)> = cases
            .iter()
            .map(|c| (c.name.as_str(), c.lines.len(), c.theirs.as_str()))
            .collect();
        assert_eq!(seen, [("x#1", 1, "first"), ("x#2", 2, "second")]);
        assert!(cases[1].before.ends_with(b"\"two\"}]}}\n"));
        assert_eq!(texts(&cases[1].lines[1]), ["two"]);
    }
}

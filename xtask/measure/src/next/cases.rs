//! Cuts through real sessions: what was said before, and what the next steps used of it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, ensure};
use message_formats::{CalledName, NamePatterns, strings};
use serde_json::Value;

use crate::density::cases::{blocks, is, kind, texts};
use crate::files::files;

/// A cut is made at every this many messages.
pub(super) const EVERY: usize = 150;
/// Number of messages behind a cut that say what was needed.
pub(super) const NEXT: usize = 40;
/// Longer texts of users are pasted.
pub(super) const LONGEST: usize = 2_000;

/// A place in a session with real work behind it.
pub(super) struct Cut {
    /// The transcript's file name.
    pub(super) file: String,
    /// Number of lines of the transcript before the cut.
    pub(super) line: usize,
    /// The transcript up to the cut.
    pub(super) before: Vec<u8>,
    /// All texts before the cut, with arguments and results of tools.
    pub(super) past: String,
    /// Things that the next calls used and earlier messages name.
    pub(super) needed: BTreeSet<CalledName>,
    /// The user's words before the cut, in order.
    pub(super) typed: Vec<String>,
    /// The agent's own summary at the cut, if there is one.
    pub(super) theirs: Option<String>,
}

/// The content of a transcript's line.
struct Said<'a> {
    text: String,
    calls: Vec<&'a Value>,
    summary: Option<String>,
    typed: String,
}

/// Returns the cuts through Claude Code's and pi's sessions of a corpus, by file name; never none.
///
/// # Errors
/// When the folders cannot be read.
pub(super) fn cuts(data: &Path, patterns: &NamePatterns) -> anyhow::Result<Vec<Cut>> {
    let mut out = Vec::new();
    for folder in ["claude-code", "pi"].map(|name| data.join(name)) {
        for path in files(&folder, ".jsonl")? {
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("read {}", path.display()))?;
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            out.extend(cuts_of(&file, &text, patterns));
        }
    }
    ensure!(!out.is_empty(), "{} holds no long session", data.display());
    Ok(out)
}

fn cuts_of(file: &str, text: &str, patterns: &NamePatterns) -> Vec<Cut> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let values = lines.iter().map(|line| serde_json::from_str(line));
    let values: Vec<Value> = values.map(Result::unwrap_or_default).collect();
    let said: Vec<(usize, Said<'_>)> = values
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, said(line)?)))
        .collect();
    let (own, talk): (Vec<_>, Vec<_>) = said.iter().partition(|(_, said)| said.summary.is_some());
    let mut places: BTreeSet<usize> = own.iter().map(|(at, _)| *at).collect();
    let steps = (EVERY..talk.len().saturating_sub(NEXT)).step_by(EVERY);
    places.extend(steps.map(|n| talk[n].0));
    let cut = |place: usize| {
        let (before, after) = talk.split_at(talk.partition_point(|(at, _)| *at < place));
        let after = &after[..after.len().min(NEXT)];
        let past: Vec<&str> = before.iter().map(|(_, said)| said.text.as_str()).collect();
        let past = past.join("\n");
        let calls = after.iter().flat_map(|(_, said)| &said.calls);
        let mut needed: BTreeSet<CalledName> =
            calls.flat_map(|call| patterns.names(call)).collect();
        needed.retain(|thing| past.contains(&thing.name));
        let typed = before.iter().map(|(_, said)| said.typed.clone());
        let theirs = own.iter().find(|(at, _)| *at == place);
        (before.len() >= 60 && after.len() >= 10 && needed.len() >= 3).then(|| Cut {
            file: file.to_owned(),
            line: place,
            before: lines[..place].concat().into_bytes(),
            past,
            needed,
            typed: typed.filter(|text| is_request(text)).collect(),
            theirs: theirs.and_then(|(_, said)| said.summary.clone()),
        })
    };
    places.into_iter().filter_map(cut).collect()
}

/// Whether a text is a request as a user types it.
fn is_request(text: &str) -> bool {
    let by_program = ["<", "Caveat", "[Request", "This session is being continued"];
    let is_typed = !by_program.iter().any(|start| text.starts_with(start));
    !text.is_empty() && is_typed && text.chars().count() <= LONGEST
}

/// Reads a line of Claude Code or pi; `None` for other lines and sub-agents.
fn said(line: &Value) -> Option<Said<'_>> {
    let mut said = Said {
        text: String::new(),
        calls: Vec::new(),
        summary: None,
        typed: String::new(),
    };
    let message = &line["message"];
    let is_user = match kind(line) {
        "user" | "assistant" if is(line, "isSidechain") => return None,
        "user" => !is(line, "isMeta") && !is(line, "isCompactSummary"),
        "assistant" => false,
        "message" => message["role"] == "user",
        "compaction" => {
            said.summary = Some(line["summary"].as_str()?.to_owned());
            return Some(said);
        }
        _ => return None,
    };
    let mut parts: Vec<&str> = message["content"].as_str().into_iter().collect();
    for block in blocks(line) {
        match kind(block) {
            "text" => parts.extend(block["text"].as_str()),
            "tool_result" => strings(&block["content"], &mut parts),
            name @ ("tool_use" | "toolCall") => {
                let key = if name == "tool_use" {
                    "input"
                } else {
                    "arguments"
                };
                strings(&block[key], &mut parts);
                said.calls.push(&block[key]);
            }
            _ => {}
        }
    }
    if message["role"] == "bashExecution" {
        parts.extend([&message["command"], &message["output"]].map(|v| v.as_str().unwrap_or("")));
    }
    said.text = parts.join("\n");
    let typed = texts(line).join("\n");
    if is(line, "isCompactSummary") {
        said.summary = Some(typed);
    } else if is_user {
        typed.trim().clone_into(&mut said.typed);
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_needs_what_the_past_names() {
        let user =
            r#"{"type":"user","message":{"content":"Look at one_name, two_name and 8080."}}"#;
        let aside = r#"{"type":"user","isSidechain":true,"message":{"content":"aside"}}"#;
        let summary = r#"{"type":"user","isCompactSummary":true,"message":{"content":"All."}}"#;
        let call = r#"{"type":"assistant","message":{"content":[{"type":"tool_use",
            "input":{"command":"grep one_name two_name new_name 8080","prompt":"two_name"}}]}}"#;
        let call = call.replace('\n', "");
        let mut lines = vec![aside];
        lines.extend([user; 60]);
        lines.push(summary);
        lines.extend([call.as_str(); 10]);
        let cuts = cuts_of("x", &lines.join("\n"), &NamePatterns::new().unwrap());
        let [cut] = cuts.as_slice() else {
            panic!("{} cuts", cuts.len())
        };
        assert_eq!((cut.line, cut.typed.len()), (61, 60));
        assert_eq!(cut.theirs.as_deref(), Some("All."));
        let needed: Vec<&str> = cut.needed.iter().map(|thing| thing.name.as_str()).collect();
        assert_eq!(needed, ["one_name", "two_name", "8080"]);
        assert!(cuts_of("x", &lines[2..].join("\n"), &NamePatterns::new().unwrap()).is_empty());
    }
}

//! The transcripts that retention is measured on.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use memory_model::{EntryKind, Message, Part, ResultContent};
use message_formats::ReadOptions;
use token_estimate::{Calibrated, TokenEstimator};

/// The shares of a transcript's tokens that a summary may take: one third and one tenth.
pub(crate) const RATIOS: [u64; 2] = [3, 10];
/// The estimator that budgets are held against.
pub(crate) const ESTIMATOR: Calibrated = Calibrated::O200k;
/// Conversations below this many tokens are left out.
const SMALLEST: u64 = 3_000;

/// A conversation of the corpus.
pub(crate) struct Transcript {
    /// Format and file name.
    pub(crate) name: String,
    pub(crate) messages: Vec<Message>,
    /// The messages as plain lines.
    pub(crate) plain: String,
    /// What the plain lines cost.
    pub(crate) tokens: u64,
}

/// The folder of transcripts: the argument, or `AGENT_MEMORY_CORPUS`.
///
/// # Errors
/// When neither is given; `command` is what the message tells to run.
pub(crate) fn corpus(given: Option<PathBuf>, command: &str) -> anyhow::Result<PathBuf> {
    given
        .or_else(|| std::env::var_os("AGENT_MEMORY_CORPUS").map(PathBuf::from))
        .with_context(|| {
            format!(
                "no folder of transcripts: run `{command} --data DIR` or set AGENT_MEMORY_CORPUS"
            )
        })
}

/// All conversations of at least 3,000 tokens below a folder, sorted by name; never none.
pub(crate) fn transcripts(data: &Path) -> anyhow::Result<Vec<Transcript>> {
    let mut files = Vec::new();
    walk(data, &mut files)?;
    files.sort();
    let mut out = Vec::new();
    for file in files {
        let Ok(read) = message_formats::read_file(&file, &ReadOptions::default()) else {
            continue;
        };
        if read.format == "jsonl" {
            continue;
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        for (n, session) in read.sessions.into_iter().enumerate() {
            let plain = plain(&session.messages);
            let tokens = ESTIMATOR.text(&plain);
            if tokens < SMALLEST {
                continue;
            }
            let name = match n {
                0 => format!("{}/{stem}", read.format),
                _ => format!("{}/{stem}#{n}", read.format),
            };
            out.push(Transcript {
                name,
                messages: session.messages,
                plain,
                tokens,
            });
        }
    }
    ensure!(
        !out.is_empty(),
        "{} holds no transcript: name a folder of transcripts",
        data.display()
    );
    Ok(out)
}

fn walk(folder: &Path, out: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, out)?;
        } else if path
            .extension()
            .is_some_and(|e| e == "jsonl" || e == "json")
        {
            out.push(path);
        }
    }
    Ok(())
}

/// The messages as plain lines, `[role] text`, without notes.
pub(crate) fn plain(messages: &[Message]) -> String {
    let mut out = String::new();
    for message in messages.iter().filter(|m| m.kind == EntryKind::Message) {
        for part in &message.parts {
            let text = match part {
                Part::Text { text } => text.clone(),
                Part::ToolCall {
                    name, arguments, ..
                } => format!("{name} {}", arguments.decoded_strings()),
                Part::ToolResult { content, .. } => match content {
                    ResultContent::Text(text) => text.clone(),
                    ResultContent::Parts(_) => content.text().into_owned(),
                },
                _ => continue,
            };
            out.push_str(&format!("[{}] {}\n", message.role, text.trim()));
        }
    }
    out
}

//! Codex's tools for notes.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ITEM_CHARS, LIMIT, or_default};
use crate::arguments::{Arguments, Reach};
use crate::error::{Error, ErrorKind, Result};
use crate::notes::{Change, Texts, check_new, clean, size};
use crate::noting::{numbered, rows_that_fit};
use crate::retrieval::Retrieval;
use crate::text::{clip, on_one_line, short};
use crate::tool::{Call, ToolAnswer};

/// Returns the path of a note. Accepts the absolute form of Codex, `/root/notes/plan.md`.
fn path_of(path: &str) -> Result<String> {
    let cleaned = clean(path.trim())?;
    let rest = cleaned.strip_prefix("root/notes");
    let rest = rest.filter(|rest| path.trim().starts_with('/') && !rest.starts_with(|c| c != '/'));
    Ok(rest
        .map_or(cleaned.as_str(), |rest| rest.trim_start_matches('/'))
        .to_owned())
}

/// Arguments of `notes_list_files_by_prefix`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ListNotesArgs {
    /// The beginning of the paths; all files if not given.
    prefix: Option<String>,
    /// Maximum number of files; 20 if not given.
    max_results: usize,
}

impl Arguments for ListNotesArgs {
    const NAME: &'static str = "notes_list_files_by_prefix";
    const TITLE: &'static str = "List notes";
    const DESCRIPTION: &'static str =
        "List the files of your notes, which outlast every compaction and session.";
    const REACH: Reach = Reach::Set;
}

impl Call for ListNotesArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let prefix = path_of(self.prefix.as_deref().unwrap_or_default())?;
        let texts = tools.notes(Self::NAME)?.texts().await?;
        let found: Vec<_> = texts
            .iter()
            .filter(|(path, _)| path.starts_with(&prefix))
            .collect();
        let rows = found
            .iter()
            .take(or_default(self.max_results, LIMIT))
            .map(|(path, text)| format!("{path} ({})\n", size(text.len())));
        let head = format!("Files: {}\n", found.len());
        let text = rows_that_fit(tools, head, found.len(), rows);
        Ok(ToolAnswer::of_text(text))
    }
}

/// Arguments of `notes_read_file`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["path"]))]
pub(crate) struct ReadNoteArgs {
    /// The file, such as plan.md.
    path: String,
    /// The first line; 1 if not given.
    start_line: usize,
    /// The last line; the last one of the file if not given.
    stop_line: Option<usize>,
}

impl Arguments for ReadNoteArgs {
    const NAME: &'static str = "notes_read_file";
    const TITLE: &'static str = "Read a note";
    const DESCRIPTION: &'static str = "Read a file of your notes, with line numbers.";
    const REACH: Reach = Reach::Set;
}

impl Call for ReadNoteArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let path = path_of(&self.path)?;
        let texts = tools.notes(Self::NAME)?.texts().await?;
        let text = texts.get(&path).ok_or_else(|| {
            let message = format!(
                "there is no note {}: list them with {}",
                short(&path),
                ListNotesArgs::NAME
            );
            Error::new(ErrorKind::NotFound, message)
        })?;
        let lines: Vec<&str> = text.lines().collect();
        let (first, count) = (self.start_line.max(1), lines.len());
        let last = self.stop_line.map_or(count, |last| last.min(count));
        let range = lines.get(first - 1..last).unwrap_or_default();
        let head = format!("{path} has {count} lines:\n");
        let (mut out, end) = numbered(tools, head, range, first);
        if end < last {
            let _ = writeln!(out, "There is more: start_line {} goes on.", end + 1);
        }
        Ok(ToolAnswer::of_text(out))
    }
}

/// Arguments of `notes_search_contents`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["query"]))]
pub(crate) struct SearchNotesArgs {
    /// The text to find in a line exactly as it is written; upper and lower case count.
    #[schemars(extend("format" = "text"))]
    query: String,
    /// Only files with this beginning of the path.
    path_prefix: Option<String>,
    /// Maximum number of lines; 20 if not given.
    max_results: usize,
}

impl Arguments for SearchNotesArgs {
    const NAME: &'static str = "notes_search_contents";
    const TITLE: &'static str = "Search notes";
    const DESCRIPTION: &'static str = "Find the lines of your notes that have a text.";
    const REACH: Reach = Reach::Set;
}

impl Call for SearchNotesArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        if self.query.is_empty() {
            return Err(Error::invalid("query is required: give some text to find"));
        }
        let prefix = path_of(self.path_prefix.as_deref().unwrap_or_default())?;
        let texts = tools.notes(Self::NAME)?.texts().await?;
        let mut found = Vec::new();
        for (path, text) in texts.iter().filter(|(path, _)| path.starts_with(&prefix)) {
            let lines = (1..).zip(text.lines());
            let lines = lines.filter(|(_, line)| line.contains(&self.query));
            found.extend(lines.map(|(at, line)| (path, at, line)));
        }
        let rows = found.iter().take(or_default(self.max_results, LIMIT));
        let rows = rows.map(|(path, at, line)| {
            format!("{path}:{at}: {}\n", clip(&on_one_line(line), ITEM_CHARS))
        });
        let head = format!("Lines: {}\n", found.len());
        let text = rows_that_fit(tools, head, found.len(), rows);
        Ok(ToolAnswer::of_text(text))
    }
}

/// Arguments of `notes_append_to_file`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["path", "text"]))]
pub(crate) struct AppendNoteArgs {
    /// The file, such as plan.md. It is created if needed.
    path: String,
    /// The text to add at the end.
    text: String,
}

impl Arguments for AppendNoteArgs {
    const NAME: &'static str = "notes_append_to_file";
    const TITLE: &'static str = "Add to a note";
    const DESCRIPTION: &'static str = "Add a text at the end of a file of your notes. Begin it with a line break to \
        begin a line.";
    const REACH: Reach = Reach::Set;
    const WRITES: bool = true;
}

impl Call for AppendNoteArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let path = path_of(&self.path)?;
        let append = |texts: &Texts| {
            check_new(texts, &path)?;
            let before = texts.get(&path).map_or(0, String::len);
            let change = Change::Append(path.clone(), self.text.clone());
            Ok((vec![change], written(&path, before + self.text.len())))
        };
        let notes = tools.notes(Self::NAME)?;
        Ok(ToolAnswer::of_text(notes.change(append).await?))
    }
}

fn written(path: &str, bytes: usize) -> String {
    format!("{path} now has {bytes} bytes.\n")
}

/// Arguments of `notes_write_file`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["path", "text"]))]
pub(crate) struct WriteNoteArgs {
    /// The file, such as plan.md. It is created if needed.
    path: String,
    /// The whole new text of the file.
    text: String,
}

impl Arguments for WriteNoteArgs {
    const NAME: &'static str = "notes_write_file";
    const TITLE: &'static str = "Write a note";
    const DESCRIPTION: &'static str = "Write a file of your notes, which outlast every compaction and session. The \
        text takes the place of the whole file.";
    const REACH: Reach = Reach::Set;
    const WRITES: bool = true;
}

impl Call for WriteNoteArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let path = path_of(&self.path)?;
        let write = |texts: &Texts| {
            check_new(texts, &path)?;
            let change = Change::Write(path.clone(), self.text.clone());
            Ok((vec![change], written(&path, self.text.len())))
        };
        let notes = tools.notes(Self::NAME)?;
        Ok(ToolAnswer::of_text(notes.change(write).await?))
    }
}

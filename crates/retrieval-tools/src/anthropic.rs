//! The tool `memory` of the Claude API (`memory_20250818`) over [`Notes`](crate::Notes).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::{Arguments, Reach};
use crate::error::{Error, ErrorKind, Result};
use crate::notes::{Change, Texts, check_new, clean, is_in, size};
use crate::noting::{numbered, rows_that_fit};
use crate::retrieval::Retrieval;
use crate::text::short;
use crate::tool::{Call, ToolAnswer};

/// The folder of the notes in the paths of this tool.
const ROOT: &str = "/memories";

/// Number of levels that a list of a folder shows.
const LEVELS: usize = 2;

/// Number of lines that an answer shows before and after a replaced text.
const AROUND: usize = 2;

/// Arguments of the tool `memory`. The comments of the fields are also their descriptions for a model.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["command"]))]
pub(crate) struct MemoryArgs {
    /// What to do.
    #[schemars(extend("enum" = ["view", "create", "str_replace", "insert", "delete", "rename"]))]
    command: String,
    /// The file or folder, under /memories.
    path: String,
    /// For view: the first and the last line to show; -1 for the last line of the file.
    view_range: Vec<i64>,
    /// For create: the text of the new file.
    #[schemars(extend("format" = "text"))]
    file_text: String,
    /// For str_replace: the text to replace, which must occur once.
    #[schemars(extend("format" = "text"))]
    old_str: String,
    /// For str_replace: the new text.
    #[schemars(extend("format" = "text"))]
    new_str: String,
    /// For insert: the number of the line after which the text is inserted; 0 for the beginning.
    insert_line: Option<usize>,
    /// For insert: the text.
    #[schemars(extend("format" = "text"))]
    insert_text: String,
    /// For rename: the present path.
    old_path: String,
    /// For rename: the new path.
    new_path: String,
}

impl Arguments for MemoryArgs {
    const NAME: &'static str = "memory";
    const TITLE: &'static str = "Keep notes";
    const DESCRIPTION: &'static str = "Keep notes for later work in files under /memories: view a file or folder, \
        create a file, replace a text that occurs once (str_replace), insert lines, delete or rename a file or folder. \
        They outlast every compaction and session: view /memories before you begin.";
    const REACH: Reach = Reach::Set;
    const WRITES: bool = true;
}

impl Call for MemoryArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let notes = tools.notes(Self::NAME)?;
        let text = match self.command.as_str() {
            "view" => self.view(tools, &notes.texts().await?)?,
            "create" => notes.change(|texts| self.create(texts)).await?,
            "str_replace" => {
                let replace = |texts: &Texts| self.str_replace(tools, texts);
                notes.change(replace).await?
            }
            "insert" => notes.change(|texts| self.insert(texts)).await?,
            "delete" => notes.change(|texts| self.delete(texts)).await?,
            "rename" => notes.change(|texts| self.rename(texts)).await?,
            _ => return Err(Error::invalid("command is required: give one such as view")),
        };
        Ok(ToolAnswer::of_text(text))
    }
}

/// Returns the path of a note from a path under `/memories`. Empty for `/memories` itself.
fn inside(name: &str, path: &str) -> Result<String> {
    let rest = path.trim().strip_prefix(ROOT);
    match rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => clean(rest),
        None => Err(Error::invalid(format!(
            "{name} is {}: give a path that begins with {ROOT}, such as {ROOT}/plan.md",
            short(path)
        ))),
    }
}

fn shown(path: &str) -> String {
    match path {
        "" => ROOT.to_owned(),
        path => format!("{ROOT}/{path}"),
    }
}

fn missing(path: &str) -> Error {
    let message = format!(
        "{} does not exist: view {ROOT} lists the files",
        shown(path)
    );
    Error::new(ErrorKind::NotFound, message)
}

/// Returns the lines of a text. A line break at the end begins no other line.
fn lines_of(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    lines
}

impl MemoryArgs {
    /// Returns the path and the text of the file that the call names.
    fn file<'a>(&self, texts: &'a Texts) -> Result<(String, &'a str)> {
        let path = inside("path", &self.path)?;
        match texts.get(&path) {
            Some(text) => Ok((path, text)),
            None if texts.keys().any(|known| is_in(known, &path)) || path.is_empty() => {
                Err(Error::invalid(format!(
                    "{} is a folder: give the path of a file",
                    shown(&path)
                )))
            }
            None => Err(missing(&path)),
        }
    }

    fn view(&self, tools: &Retrieval, texts: &Texts) -> Result<String> {
        let path = inside("path", &self.path)?;
        let Some(text) = texts.get(&path) else {
            return list(tools, texts, &path);
        };
        let lines = lines_of(text);
        let count = lines.len();
        let at = |line: i64| match usize::try_from(line) {
            Ok(line) => line.min(count),
            Err(_) => count,
        };
        let (first, last) = match self.view_range.as_slice() {
            [] => (1, count),
            [first, last] if *first >= 1 && (*last == -1 || last >= first) => {
                (usize::try_from(*first).unwrap_or(usize::MAX), at(*last))
            }
            _ => {
                return Err(Error::invalid(
                    "view_range is not two line numbers: give the smaller one first, such as [1, 20] or [21, -1]",
                ));
            }
        };
        let range = lines.get(first.saturating_sub(1)..last).unwrap_or_default();
        let head = format!("{} with line numbers:\n", shown(&path));
        let (mut out, end) = numbered(tools, head, range, first);
        if end < last {
            out += &format!(
                "Lines {} to {last} are left out: view_range [{}, {last}] shows them.\n",
                end + 1,
                end + 1
            );
        } else if range.is_empty() {
            out += &format!("No such lines: the file has {count}.\n");
        }
        Ok(out)
    }

    fn create(&self, texts: &Texts) -> Result<(Vec<Change>, String)> {
        let path = inside("path", &self.path)?;
        check_new(texts, &path)?;
        if texts.contains_key(&path) {
            return Err(Error::invalid(format!(
                "{} already exists: change it with str_replace or insert, or delete it first",
                shown(&path)
            )));
        }
        let answer = format!("Created {}.\n", shown(&path));
        Ok((vec![Change::Write(path, self.file_text.clone())], answer))
    }

    fn str_replace(&self, tools: &Retrieval, texts: &Texts) -> Result<(Vec<Change>, String)> {
        let (path, text) = self.file(texts)?;
        if self.old_str.is_empty() {
            return Err(Error::invalid(
                "old_str is required: give a text that occurs once",
            ));
        }
        let line_at = |at: usize| text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        let found = text.match_indices(&self.old_str);
        let found: Vec<usize> = found.map(|(at, _)| line_at(at)).collect();
        let line = match found.as_slice() {
            [line] => *line,
            [] => {
                return Err(Error::invalid(format!(
                    "old_str does not occur in {}: view the file and copy the text exactly",
                    shown(&path)
                )));
            }
            [..] => {
                let first: Vec<String> = found.iter().take(9).map(usize::to_string).collect();
                return Err(Error::invalid(format!(
                    "old_str occurs {} times in {}, in lines {}: give more of the text around it",
                    found.len(),
                    shown(&path),
                    first.join(", ")
                )));
            }
        };
        let new = text.replacen(&self.old_str, &self.new_str, 1);
        let lines = lines_of(&new);
        let first = line.saturating_sub(AROUND).max(1);
        let end = (line + AROUND).min(lines.len());
        let around = lines.get(first - 1..end).unwrap_or_default();
        let head = format!("Edited {}. The lines around the change:\n", shown(&path));
        let answer = numbered(tools, head, around, first).0;
        Ok((vec![Change::Write(path, new)], answer))
    }

    fn insert(&self, texts: &Texts) -> Result<(Vec<Change>, String)> {
        let (path, text) = self.file(texts)?;
        let mut lines = lines_of(text);
        let line = self.insert_line.filter(|line| *line <= lines.len());
        let Some(line) = line else {
            return Err(Error::invalid(format!(
                "insert_line is not a line of {}: give a number from 0 to {}",
                shown(&path),
                lines.len()
            )));
        };
        lines.insert(line, self.insert_text.trim_end_matches('\n'));
        let answer = format!("Edited {}.\n", shown(&path));
        Ok((vec![Change::Write(path, lines.join("\n") + "\n")], answer))
    }

    fn delete(&self, texts: &Texts) -> Result<(Vec<Change>, String)> {
        let path = inside("path", &self.path)?;
        let inside = files_in(texts, &path)?;
        let answer = format!("Deleted {}.\n", shown(&path));
        let changes = inside.map(|(known, _)| Change::Delete(known.clone()));
        Ok((changes.collect(), answer))
    }

    fn rename(&self, texts: &Texts) -> Result<(Vec<Change>, String)> {
        let old = inside("old_path", &self.old_path)?;
        let new = inside("new_path", &self.new_path)?;
        if is_in(&new, &old) {
            return Err(Error::invalid(format!(
                "new_path {} lies in old_path: give another",
                shown(&new)
            )));
        }
        if texts.keys().any(|known| is_in(known, &new)) {
            return Err(Error::invalid(format!(
                "{} already exists: give another new_path, or delete it first",
                shown(&new)
            )));
        }
        let mut changes = Vec::new();
        for (known, text) in files_in(texts, &old)? {
            let to = format!("{new}{}", known.strip_prefix(&old).unwrap_or_default());
            check_new(texts, &to)?;
            changes.push(Change::Write(clean(&to)?, text.clone()));
            changes.push(Change::Delete(known.clone()));
        }
        let answer = format!("Renamed {} to {}.\n", shown(&old), shown(&new));
        Ok((changes, answer))
    }
}

/// Returns the files at or in a path. An error if there are none, or for the folder of all files.
fn files_in<'a>(
    texts: &'a Texts,
    path: &'a str,
) -> Result<impl Iterator<Item = (&'a String, &'a String)>> {
    if path.is_empty() {
        return Err(Error::invalid(format!(
            "{ROOT} itself stays: give a path in it"
        )));
    }
    let found = move |(known, _): &(&String, &String)| is_in(known, path);
    match texts.iter().any(|one| found(&one)) {
        true => Ok(texts.iter().filter(found)),
        false => Err(missing(path)),
    }
}

/// Lists the files and folders in a folder, with their sizes.
fn list(tools: &Retrieval, texts: &Texts, folder: &str) -> Result<String> {
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in texts.iter().filter(|(path, _)| is_in(path, folder)) {
        let rest = path.strip_prefix(folder).unwrap_or_default();
        let rest = rest.trim_start_matches('/');
        *sizes.entry(String::new()).or_default() += text.len();
        let ends = rest.match_indices('/').map(|(at, _)| at + 1);
        for end in ends.chain([rest.len()]).take(LEVELS) {
            let name = rest.get(..end).unwrap_or_default();
            *sizes.entry(name.to_owned()).or_default() += text.len();
        }
    }
    if sizes.is_empty() {
        if !folder.is_empty() {
            return Err(missing(folder));
        }
        return Ok(format!("{ROOT} has no files yet: write one with create.\n"));
    }
    let rows = sizes.iter().map(|(name, bytes)| {
        let slash = if name.is_empty() { "" } else { "/" };
        format!("{}\t{}{slash}{name}\n", size(*bytes), shown(folder))
    });
    let head = format!(
        "Files and folders in {}, {LEVELS} levels deep:\n",
        shown(folder)
    );
    Ok(rows_that_fit(tools, head, sizes.len(), rows))
}

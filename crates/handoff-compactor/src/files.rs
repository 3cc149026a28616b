//! The files that a conversation read, created, changed and deleted.

use std::collections::BTreeMap;

use compaction_plan::JobSource;
use memory_model::conventions::{AgentConventions, ToolAction, ToolUse};
use memory_model::{
    Accounting, LogEntry, Part, RankedLine, RawJson, Role, Seq, Summary, SummaryBody,
};
use serde::{Deserialize, Serialize};

use crate::removals::removed;

/// Tags around the lists of a footer: of files that were only read, and of modified files.
const TAGS: [&str; 2] = ["read-files", "modified-files"];
/// Beginning of the line of files that the text of a summary does not name.
const FILES: &str = "Files: ";

/// Record of the files that a conversation read, created, changed and deleted, over all of its handoffs.
///
/// [`AgentConventions`] map each tool to an action. A tool call in an assistant's message counts as soon as it has a
/// result that is not an error. A file counts as created if a call writes the whole file and the record has no earlier
/// use of it, or has it as deleted. The operands of `rm`, `unlink` and `git rm` in shell commands count as deleted.
///
/// The field [`FileLedger::FACT`] of [`Summary::meta`] stores the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Lists", into = "Lists")]
pub struct FileLedger {
    files: BTreeMap<String, FileRecord>,
    unknown_tools: BTreeMap<String, u64>,
    owners: BTreeMap<String, FileOwner>,
    /// Tool calls without a result so far, by call id.
    open: BTreeMap<String, OpenCall>,
}

/// Agent that made the last change of a file, and position of that change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOwner {
    /// Name of the agent, as its messages give it.
    pub agent: String,
    /// Position of the message that holds the tool call of the change.
    pub at: Seq,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenCall {
    tool: String,
    used: ToolUse,
    /// Agent that made the call; `None` if the message has no name.
    owner: Option<FileOwner>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FileRecord {
    created: bool,
    updated: bool,
    deleted: bool,
}

/// Stored form of a [`FileLedger`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Lists {
    read: Vec<String>,
    created: Vec<String>,
    updated: Vec<String>,
    deleted: Vec<String>,
    unknown_tools: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    owners: BTreeMap<String, FileOwner>,
}

impl From<FileLedger> for Lists {
    fn from(ledger: FileLedger) -> Self {
        let owned = |paths: Vec<&str>| paths.into_iter().map(str::to_owned).collect();
        Self {
            read: owned(ledger.read()),
            created: owned(ledger.created()),
            updated: owned(ledger.updated()),
            deleted: owned(ledger.deleted()),
            unknown_tools: ledger.unknown_tools,
            owners: ledger.owners,
        }
    }
}

impl From<Lists> for FileLedger {
    fn from(lists: Lists) -> Self {
        let mut files: BTreeMap<String, FileRecord> = BTreeMap::new();
        for path in lists.read {
            files.entry(path).or_default();
        }
        for path in lists.created {
            files.entry(path).or_default().created = true;
        }
        for path in lists.updated {
            files.entry(path).or_default().updated = true;
        }
        for path in lists.deleted {
            files.entry(path).or_default().deleted = true;
        }
        Self {
            files,
            unknown_tools: lists.unknown_tools,
            owners: lists.owners,
            open: BTreeMap::new(),
        }
    }
}

impl FileLedger {
    /// Name of the field of [`Summary::meta`] that holds the ledger.
    pub const FACT: &'static str = "files";

    /// Returns the ledger in a summary's metadata; `None` if there is none.
    pub fn of(summary: &Summary) -> Option<Self> {
        #[derive(Deserialize)]
        struct Meta {
            files: Option<FileLedger>,
        }
        let meta = summary.meta.as_ref().map(RawJson::as_str)?;
        serde_json::from_str::<Meta>(meta).ok()?.files
    }

    /// Adds the tool calls and results of a message, or the ledger in a summary's metadata.
    pub fn add(&mut self, source: &JobSource<'_>, conventions: &dyn AgentConventions) {
        match source {
            JobSource::Entry(entry) => self.add_entry(entry, conventions),
            JobSource::Summary(summary) => {
                if let Some(earlier) = Self::of(summary) {
                    self.add_ledger(&earlier);
                }
            }
        }
    }

    /// Adds a message's calls and results.
    pub(crate) fn add_entry(&mut self, entry: &LogEntry, conventions: &dyn AgentConventions) {
        for part in &entry.parts {
            match part {
                Part::ToolCall {
                    id,
                    name,
                    arguments,
                } if entry.role == Role::Assistant => {
                    let used = conventions.tool_use(name, arguments.as_str());
                    let owner = entry.name.clone().map(|agent| FileOwner {
                        agent,
                        at: entry.seq,
                    });
                    let tool = name.clone();
                    self.open.insert(id.clone(), OpenCall { tool, used, owner });
                }
                Part::ToolResult {
                    call_id,
                    content,
                    is_error,
                } => {
                    let Some(call) = self.open.remove(call_id) else {
                        continue;
                    };
                    let text = content.text();
                    let outcome =
                        conventions.tool_result(Some(&call.used), &text, is_error == &Some(true));
                    if !outcome.is_error && outcome.rejection.is_none() {
                        self.add_use(&call);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds everything that `later` records. `later` is a ledger of later messages of the same conversation.
    pub fn add_ledger(&mut self, later: &Self) {
        for (path, after) in &later.files {
            let before = self.files.entry(path.clone()).or_default();
            before.created |= after.created;
            before.updated |= after.updated;
            let written = after.created || after.updated;
            before.deleted = after.deleted || (before.deleted && !written);
        }
        for path in later.modified() {
            self.owners.remove(path);
        }
        for (path, owner) in &later.owners {
            self.owners.insert(path.clone(), owner.clone());
        }
        for (tool, calls) in &later.unknown_tools {
            *self.unknown_tools.entry(tool.clone()).or_default() += calls;
        }
    }

    /// Forgets the calls that have no result yet. Call it after the last message.
    pub fn end(&mut self) {
        self.open.clear();
    }

    fn add_use(&mut self, call: &OpenCall) {
        let used = &call.used;
        let whole = !used.edits.is_empty() && used.edits.iter().all(|edit| edit.old.is_empty());
        for file in &used.files {
            let is_new = !self.files.contains_key(&file.path);
            let record = self.files.entry(file.path.clone()).or_default();
            if file.changed {
                match whole && (is_new || record.deleted) {
                    true => record.created = true,
                    false => record.updated = true,
                }
                record.deleted = false;
                match &call.owner {
                    Some(owner) => self.owners.insert(file.path.clone(), owner.clone()),
                    // The last change was made by an agent without a name.
                    None => self.owners.remove(&file.path),
                };
            }
        }
        match used.action {
            ToolAction::RunCommand => {
                for path in removed(&used.subject) {
                    self.owners.remove(&path);
                    self.files.entry(path).or_default().deleted = true;
                }
            }
            ToolAction::Other if used.files.is_empty() => {
                *self.unknown_tools.entry(call.tool.clone()).or_default() += 1;
            }
            _ => {}
        }
    }

    fn paths(&self, wanted: impl Fn(&FileRecord) -> bool) -> Vec<&str> {
        let files = self.files.iter().filter(|(_, record)| wanted(record));
        files.map(|(path, _)| path.as_str()).collect()
    }

    /// Returns the paths of files that were read and never changed, in alphabetical order.
    pub fn read(&self) -> Vec<&str> {
        self.paths(|file| *file == FileRecord::default())
    }

    /// Returns the paths of files that were created and not deleted since, in alphabetical order.
    pub fn created(&self) -> Vec<&str> {
        self.paths(|file| file.created && !file.deleted)
    }

    /// Returns the paths of files that were changed in part, or written again, and not deleted since, in alphabetical
    /// order. A file that was created and later changed is both here and in [`created`](Self::created).
    pub fn updated(&self) -> Vec<&str> {
        self.paths(|file| file.updated && !file.deleted)
    }

    /// Returns the paths of files that were deleted and not written since, in alphabetical order.
    pub fn deleted(&self) -> Vec<&str> {
        self.paths(|file| file.deleted)
    }

    /// Returns the paths of all files that were created, changed or deleted, in alphabetical order.
    pub fn modified(&self) -> Vec<&str> {
        self.paths(|file| *file != FileRecord::default())
    }

    /// Returns the names of tools that the conventions do not know, each with the number of its calls.
    pub fn unknown_tools(&self) -> &BTreeMap<String, u64> {
        &self.unknown_tools
    }

    /// Returns the agent that made the last change of each file, by the file's path. Leaves out deleted files and
    /// changes by agents without a name.
    pub fn owners(&self) -> &BTreeMap<String, FileOwner> {
        &self.owners
    }

    /// Returns whether the ledger records no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the ledger as text for the end of a summary: between tags, one sorted list of the files that were only
    /// read and one of the files that were modified. The text is empty if the ledger records no file.
    pub fn footer(&self) -> String {
        self.lists(|_| true)
    }

    /// Returns a summary's body that ends with the [`footer`](Self::footer) in place of its line of files. The footer
    /// costs at most `most` tokens: it has as many paths as fit, modified files first, and the number of the others.
    /// If the body is shortened, the footer is dropped first. `None` if there is no footer, or if the text has one.
    pub fn with_footer(
        &self,
        body: &SummaryBody,
        most: u64,
        accounting: &dyn Accounting,
    ) -> Option<SummaryBody> {
        let mut left = most;
        let footer = self.lists(|line| {
            let rest = left.checked_sub(accounting.text(line) + 1);
            rest.inspect(|rest| left = *rest).is_some()
        });
        let has_footer = TAGS
            .iter()
            .any(|tag| body.text().contains(&format!("<{tag}>")));
        if footer.is_empty() || has_footer {
            return None;
        }
        let mut lines: Vec<RankedLine<'_>> = body.lines().collect();
        lines.pop_if(|line| line.text.starts_with(FILES));
        let rank = lines.iter().map(|line| line.rank).min().unwrap_or_default();
        let text = footer.trim_start();
        let end = ["", text].map(|text| RankedLine {
            text,
            rank: rank.saturating_sub(1),
        });
        Some(SummaryBody::ranked(lines.into_iter().chain(end)))
    }

    /// Returns the lists of files between tags. A list ends before the first line for which `fits` returns false.
    fn lists(&self, mut fits: impl FnMut(&str) -> bool) -> String {
        let mut list = |tag: &str, paths: Vec<&str>| {
            let all = paths.len();
            if all == 0 || !fits(&format!("<{tag}>\nand {all} more\n</{tag}>")) {
                return String::new();
            }
            let mut lines: Vec<String> = Vec::new();
            lines.extend(
                paths
                    .into_iter()
                    .take_while(|path| fits(path))
                    .map(str::to_owned),
            );
            let left = all - lines.len();
            lines.extend((left > 0).then(|| format!("and {left} more")));
            format!("\n\n<{tag}>\n{}\n</{tag}>", lines.join("\n"))
        };
        let [read, modified] = TAGS;
        let modified = list(modified, self.modified());
        list(read, self.read()) + &modified
    }

    /// Returns a line with the paths of files that a text does not name. Modified files come first. The line has as
    /// many paths as fit in `room` tokens, and the number of the others.
    pub(crate) fn unnamed(
        &self,
        text: &str,
        room: Option<u64>,
        accounting: &dyn Accounting,
    ) -> Option<String> {
        let name = |path: &str| path.rsplit(['/', '\\']).next().map_or(path.len(), str::len);
        let is_named = |path: &&str| {
            let name = path.get(path.len() - name(path)..).unwrap_or(path);
            text.contains(name)
        };
        let lists = [
            ("created", self.created()),
            ("changed", self.updated()),
            ("deleted", self.deleted()),
            ("read", self.read()),
        ];
        let room = room.unwrap_or(u64::MAX);
        let (mut sections, mut left) = (Vec::new(), 0_usize);
        let count = |left: usize| format!("{FILES}; and {left} more");
        let mut spent = accounting.text(&count(self.files.len()));
        for (what, paths) in lists {
            let mut listed: Vec<&str> = Vec::new();
            for path in paths.into_iter().filter(|path| !is_named(path)) {
                let cost = accounting.text(path) + 2;
                match left == 0 && spent.saturating_add(cost) <= room {
                    true => {
                        spent += cost;
                        listed.push(path);
                    }
                    false => left += 1,
                }
            }
            if !listed.is_empty() {
                sections.push(format!("{what} {}", listed.join(", ")));
            }
        }
        if left > 0 {
            sections.push(format!("and {left} more"));
        }
        (!sections.is_empty()).then(|| format!("{FILES}{}", sections.join("; ")))
    }
}

//! Arguments and answer of `files`.

use std::fmt::Write as _;
use std::ops::Not;

use memory_model::conventions::{ToolAction, ToolUse};
use memory_model::{Seq, Timestamp};
use memory_search::{composed, fold_case};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::grep::DEFAULT_LIMIT;
use crate::text::{Moment, clip, go_on, moment, quoted, short};

/// Maximum length of a command in an answer, in characters. A longer command is cut and ends with `…`.
pub(crate) const MAX_COMMAND_CHARS: usize = 1_000;

/// Kind of action of a tool call in a [`FileUse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UseKind {
    /// The tool read a file or searched for files.
    Read,
    /// The tool changed a file.
    Changed,
    /// The tool ran a command.
    Ran,
}

impl UseKind {
    /// Returns the name of the kind, such as `read`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Changed => "changed",
            Self::Ran => "ran",
        }
    }
}

/// Outcome of the tool call in a [`FileUse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UseOutcome {
    /// The log contains a result of the call that does not report a failure.
    Done,
    /// The log contains a result of the call that reports a failure.
    Failed,
    /// The user did not permit the call.
    Refused,
    /// No result of the call was found.
    Unanswered,
}

/// Arguments of [`Retrieval::files`](crate::Retrieval::files), the tool `memory_files`. The answer lists the tool calls
/// that read or changed files or ran commands, and that satisfy all given conditions. Without conditions, it lists all
/// of these calls. The comments of the fields are also their descriptions for a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FilesArgs {
    /// A file's path or the end of it, such as main.rs; a folder ends with /.
    pub path: Option<String>,
    /// Text that occurs in the command, such as cargo test.
    pub command: Option<String>,
    /// Only uses of this kind; all if not given.
    #[schemars(with = "String", extend("enum" = ["read", "changed", "ran"]))]
    pub action: Option<UseKind>,
    /// Maximum number of uses; 20 if not given.
    #[schemars(extend("default" = DEFAULT_LIMIT))]
    pub limit: usize,
    /// The cursor of an earlier answer, to go on after it; the other arguments stay the same.
    pub cursor: Option<String>,
}

impl Default for FilesArgs {
    fn default() -> Self {
        Self {
            path: None,
            command: None,
            action: None,
            limit: DEFAULT_LIMIT,
            cursor: None,
        }
    }
}

impl Arguments for FilesArgs {
    const NAME: &'static str = "memory_files";
    const TITLE: &'static str = "Find uses of files and commands";
    const DESCRIPTION: &'static str = "Find out who read or changed a file and how something was run, from the tool \
        calls of the whole conversation: positions, tools, paths, commands and outcomes, the last first. Without path \
        and command it lists all uses.";
}

/// Answer of [`Retrieval::files`](crate::Retrieval::files). Serializes to JSON for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilesAnswer {
    /// The path in the request. `None` if the request has no path.
    pub path: Option<String>,
    /// The text in the request that the commands must contain. `None` if the request has no such text.
    pub command: Option<String>,
    /// Whether this answer reaches the earliest call, so that no more calls follow.
    pub complete: bool,
    /// Text to pass in [`FilesArgs::cursor`] of a second request, which then lists the tool calls before those of this
    /// answer. `None` if the answer is complete. A cursor is valid only for the same conversation and the same other
    /// arguments.
    pub cursor: Option<String>,
    /// Whether the time limit of the call ended before all messages were read. The answer may then list fewer tool
    /// calls than requested.
    #[serde(skip_serializing_if = "Not::not")]
    pub stopped: bool,
    /// Tool calls that read or changed files or ran commands, the latest call first.
    pub uses: Vec<FileUse>,
}

/// A tool call that read or changed files, or ran a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileUse {
    /// Position of the message that contains the call.
    pub seq: Seq,
    /// Position of the message that contains the result of the call. `None` if no result was found.
    pub result_seq: Option<Seq>,
    /// Name of the called tool.
    pub tool: String,
    /// Kind of action: the call read files, changed files or ran a command.
    pub action: UseKind,
    /// Paths of the files, as written in the call. May be empty for a command.
    pub paths: Vec<String>,
    /// The command, cut to at most 1,000 characters. `None` if the call does not run a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Outcome of the call, as reported by its result.
    pub outcome: UseOutcome,
    /// Time of the message that contains the call.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
}

impl FileUse {
    /// Returns the line for a model, with a placeholder for its number.
    pub(crate) fn line(&self) -> String {
        let mut line = String::from("100. ");
        self.write(&mut line);
        line
    }

    /// Shortens the paths and the command until the line fits.
    pub(crate) fn shorten(&mut self, fits: impl Fn(&Self) -> bool) {
        let mut chars = MAX_COMMAND_CHARS;
        while !fits(self) && chars > 0 {
            chars /= 2;
            self.paths.truncate(chars.max(1));
            for text in self.paths.iter_mut().chain(&mut self.command) {
                *text = clip(text.trim_end_matches('…'), chars);
            }
        }
    }

    /// Writes the line for a model, without its number.
    fn write(&self, out: &mut String) {
        let _ = write!(
            out,
            "message:{}{} {} by {}",
            self.seq,
            Moment(self.created_at),
            self.action.as_str(),
            short(&self.tool)
        );
        for path in &self.paths {
            let _ = write!(out, " {}", quoted(path));
        }
        if let Some(command) = &self.command {
            let _ = write!(out, " {}", quoted(command));
        }
        out.push_str(match self.outcome {
            UseOutcome::Done => "; done",
            UseOutcome::Failed => "; failed",
            UseOutcome::Refused => "; refused by the user",
            UseOutcome::Unanswered => "; no result",
        });
        if let Some(seq) = self.result_seq {
            let _ = write!(out, ", result in message:{seq}");
        }
        out.push('\n');
    }
}

impl FilesAnswer {
    /// Returns the answer as text for a model: one numbered line for each tool call, and the cursor if there are more.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        if self.uses.is_empty() {
            let so_far = if self.stopped { " so far" } else { "" };
            let _ = writeln!(out, "No uses found{so_far}.");
        }
        for (index, one) in self.uses.iter().enumerate() {
            let _ = write!(out, "{}. ", index + 1);
            one.write(&mut out);
        }
        match &self.cursor {
            None if self.uses.is_empty() => {}
            None => out.push_str("These are all uses.\n"),
            Some(cursor) => {
                let next = go_on("There are earlier ones:", self.stopped, cursor);
                let _ = writeln!(out, "{next}.");
            }
        }
        out
    }
}

/// Conditions that listed tool calls must satisfy.
#[derive(Debug)]
pub(crate) struct UseFilter {
    path: Option<String>,
    command: Option<String>,
    action: Option<UseKind>,
}

impl UseFilter {
    pub(crate) fn new(args: &FilesArgs) -> Self {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        Self {
            path: given(&args.path).map(|path| plain(path.trim())),
            command: given(&args.command).map(|text| fold_case(text.trim())),
            action: args.action,
        }
    }

    /// Returns the kind of action, the paths and the command of a call that satisfies the conditions. `None` for other
    /// calls.
    pub(crate) fn of(&self, used: &ToolUse) -> Option<(UseKind, Vec<String>, Option<String>)> {
        let ran = used.action == ToolAction::RunCommand;
        let kind = match () {
            () if ran => UseKind::Ran,
            () if used.files.iter().any(|file| file.changed) => UseKind::Changed,
            () if !used.files.is_empty() => UseKind::Read,
            () => return None,
        };
        if self.action.is_some_and(|action| action != kind) {
            return None;
        }
        if let Some(text) = &self.command
            && !(ran && fold_case(&used.subject).contains(text.as_str()))
        {
            return None;
        }
        let mut paths: Vec<String> = used.files.iter().map(|file| file.path.clone()).collect();
        if let Some(wanted) = &self.path {
            let named = ran && names(&used.subject, wanted);
            paths.retain(|path| is_at(&plain(path), wanted));
            if paths.is_empty() && !named {
                return None;
            }
        }
        Some((
            kind,
            paths,
            ran.then(|| clip(&used.subject, MAX_COMMAND_CHARS)),
        ))
    }
}

/// Returns a path with `/` as separator, without a leading `./`, and in composed Unicode form. macOS writes file names
/// in another Unicode form.
fn plain(path: &str) -> String {
    let path = composed(path).replace('\\', "/");
    let mut rest = path.as_str();
    while let Some(inner) = rest.strip_prefix("./") {
        rest = inner.trim_start_matches('/');
    }
    rest.to_owned()
}

/// Returns whether a path equals the wanted path, ends with its components, or is in the wanted folder.
fn is_at(path: &str, wanted: &str) -> bool {
    let whole = |at: usize| {
        at == 0 || wanted.starts_with('/') || path.get(..at).is_some_and(|head| head.ends_with('/'))
    };
    if wanted.ends_with('/') {
        return path.match_indices(wanted).any(|(at, _)| whole(at));
    }
    // Agents change folders. A relative path in the log may therefore be the end of the wanted path as well.
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|head| head.is_empty() || head.ends_with('/') || short.starts_with('/'))
    };
    ends(path, wanted) || path.contains('/') && ends(wanted, path)
}

/// Returns whether a word of a command line is the wanted path, ends with its components, or is in the wanted folder.
fn names(command: &str, wanted: &str) -> bool {
    let is_break = |c: char| c.is_whitespace() || "'\"`;|&<>()=,:".contains(c);
    let words = command.split(is_break).filter(|word| !word.is_empty());
    let mut words = words.map(plain);
    words.any(|word| is_at(&word, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_whole_names() {
        for (path, wanted, found) in [
            ("src/main.rs", "main.rs", true),
            ("src/main.rs", "src/main.rs", true),
            ("/home/u/p/src/main.rs", "src/main.rs", true),
            ("src/main.rs", "/home/u/p/src/main.rs", true),
            ("src/domain.rs", "main.rs", false),
            ("main.rs", "/other/main.rs", false),
            ("src/main.rs.bak", "main.rs", false),
            ("src/a/b.rs", "src/", true),
            ("src/a/b.rs", "a/", true),
            ("extra/b.rs", "a/", false),
            ("/src/b.rs", "/src/", true),
        ] {
            assert_eq!(is_at(path, wanted), found, "{path} {wanted}");
        }
        assert_eq!(plain("././a\\b.rs"), "a/b.rs");
        // The same name as a keyboard writes it, and as macOS does.
        let wanted = plain("résumé-Zoë.pdf");
        assert!(is_at(
            &plain("~/re\u{301}sume\u{301}-Zoe\u{308}.pdf"),
            &wanted
        ));
        assert!(names("open ~/re\u{301}sume\u{301}-Zoe\u{308}.pdf", &wanted));
    }

    #[test]
    fn commands_name_paths_as_words() {
        for (command, wanted, found) in [
            ("sed -i s/a/b/ src/main.rs", "main.rs", true),
            ("cat 'src/main.rs'; ls", "src/main.rs", true),
            ("grep x --include=main.rs .", "main.rs", true),
            ("cargo test --test main", "main.rs", false),
            ("cat domain.rs", "main.rs", false),
            ("ls src/a", "src/", true),
        ] {
            assert_eq!(names(command, wanted), found, "{command} {wanted}");
        }
    }
}

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

/// Maximum length of a command in an answer, in characters; longer ones end with `…`.
pub(crate) const MAX_COMMAND_CHARS: usize = 1_000;

/// Kind of action in a [`FileUse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UseKind {
    /// A tool read a file or searched for files.
    Read,
    /// A tool changed a file.
    Changed,
    /// A tool ran a command.
    Ran,
}

impl UseKind {
    /// The kind's name.
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
    /// The call has a result that does not report a failure.
    Done,
    /// The call has a result that reports a failure.
    Failed,
    /// The user refused to permit the call.
    Refused,
    /// No result of the call was found.
    Unanswered,
}

/// Arguments of [`Retrieval::files`](crate::Retrieval::files), the tool `memory_files`. The answer lists the uses of
/// files and commands that satisfy all given conditions; without conditions, it lists all uses. One answer lists at
/// most [`limit`](FilesArgs::limit) uses.
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

/// Answer of [`Retrieval::files`](crate::Retrieval::files). It serializes to JSON for scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FilesAnswer {
    /// The path in the request; `None` if the request named none.
    pub path: Option<String>,
    /// The text in the request that the commands must contain; `None` if the request named none.
    pub command: Option<String>,
    /// Whether this answer contains the earliest uses: there are no more after it.
    pub complete: bool,
    /// Cursor for the earlier uses, to pass in [`FilesArgs::cursor`]; `None` if the answer is complete. It is valid
    /// only for this session and the same request.
    pub cursor: Option<String>,
    /// Whether the time for the call ended before all messages were read. The answer may then have fewer uses than
    /// requested.
    #[serde(skip_serializing_if = "Not::not")]
    pub stopped: bool,
    /// Tool calls that read or changed files or ran commands, the latest call first.
    pub uses: Vec<FileUse>,
}

/// One tool call that read or changed files or ran a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileUse {
    /// Position of the message that contains the tool call.
    pub seq: Seq,
    /// Position of the message that contains the call's result; `None` if no result was found.
    pub result_seq: Option<Seq>,
    /// Name of the called tool.
    pub tool: String,
    /// Whether the call read or changed files or ran a command.
    pub action: UseKind,
    /// Paths of the files, as the call names them; empty for a command.
    pub paths: Vec<String>,
    /// The command, cut at 1,000 characters; `None` for a call that runs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Outcome of the call, as its result reports it.
    pub outcome: UseOutcome,
    /// Time of the message that contains the call.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
}

impl FileUse {
    /// The line with a number.
    pub(crate) fn line(&self) -> String {
        let mut line = String::from("100. ");
        self.write(&mut line);
        line
    }

    /// Cuts the long fields until the use fits.
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

    /// The line for a model, without its number.
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
    /// Returns the answer as text for a model: one numbered line for each use, and the cursor if there are more.
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

/// Conditions on the calls.
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

    /// Returns the kind, the files and the command of a call that satisfies the conditions.
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

/// A path with `/` between its names, without `./` before them, in composed form: macOS writes combining marks after
/// letters in file names.
fn plain(path: &str) -> String {
    let path = composed(path).replace('\\', "/");
    let mut rest = path.as_str();
    while let Some(inner) = rest.strip_prefix("./") {
        rest = inner.trim_start_matches('/');
    }
    rest.to_owned()
}

/// Whether a path is the wanted one, ends with its names, or lies in its folder.
fn is_at(path: &str, wanted: &str) -> bool {
    let whole = |at: usize| {
        at == 0 || wanted.starts_with('/') || path.get(..at).is_some_and(|head| head.ends_with('/'))
    };
    if wanted.ends_with('/') {
        return path.match_indices(wanted).any(|(at, _)| whole(at));
    }
    // A short path in the log may be the end of the wanted one as well: agents change folders.
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|head| head.is_empty() || head.ends_with('/') || short.starts_with('/'))
    };
    ends(path, wanted) || path.contains('/') && ends(wanted, path)
}

/// Whether a command line names a path, as a word or the end of one.
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
        // As a keyboard writes it, and as macOS does.
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

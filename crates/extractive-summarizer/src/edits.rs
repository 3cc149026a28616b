//! Changes of a file edit, as a few lines of a diff.

use std::collections::BTreeSet;

use memory_model::conventions::TextEdit;
use similar::{ChangeTag, TextDiff};

use crate::text::{clip, squeeze, window};

/// Maximum length of a text that is compared, in bytes.
const BYTES: usize = 16 * 1024;
/// Maximum length of a line, in characters.
const CHARS: usize = 90;
/// Maximum number of lines of a new file that is shown as an edit.
const SHORT_FILE: usize = 3;
/// Maximum number of changed places of one call, each with a removed and an added line.
const PLACES: usize = 3;
/// Maximum number of newly defined names that are shown.
const NAMES: usize = 8;

/// Maximum length of a new name, in characters.
const NAME_CHARS: usize = 40;
/// First characters of comments and imports, which are less informative than other lines.
const ASIDE: [&str; 12] = [
    "//", "/*", "* ", "-- ", "<!--", "import ", "from ", "use ", "using ", "#include", "package ",
    "require",
];

/// Words that may precede the keyword of a definition.
const BEFORE: &[&str] = &[
    "pub",
    "pub(crate)",
    "pub(crate)",
    "export",
    "default",
    "async",
    "static",
    "public",
    "private",
    "protected",
    "internal",
    "abstract",
    "final",
    "override",
    "unsafe",
    "declare",
    "inline",
];
/// Keywords that precede the name of a definition.
const DEFINES: &[&str] = &[
    "fn",
    "func",
    "function",
    "def",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "type",
    "module",
    "protocol",
    "fun",
    "macro_rules!",
];
/// Keywords that define a name only if the line is not indented.
const DEFINES_OUTSIDE: &[&str] = &["const", "let", "var", "static", "val"];

/// Returns the changes that edits make, as lines: removed lines (`- `), added lines (`+ `), newly defined names, and
/// the number of changed lines. Empty if no text changes. A long new file gives only names and the number of lines.
///
/// If `prose` is true, the new headings are the new names.
pub(crate) fn changes(edits: &[TextEdit], prose: bool) -> Vec<String> {
    let (mut come, mut go) = (0, 0);
    let mut written = false;
    let mut all: Vec<&str> = Vec::new();
    let mut out: Vec<String> = Vec::new();
    for edit in edits {
        let (before, after) = (lines(&edit.old), lines(&edit.new));
        let known = names(&before, prose);
        let mut new = names(&after, prose);
        new.retain(|name| !known.contains(name));
        if before.is_empty() && after.len() > SHORT_FILE {
            come += edit.new.lines().count();
            written = true;
            all.extend(new);
            continue;
        }
        let (gone, added) = changed_lines(&before, &after);
        (come, go) = (come + added.len(), go + gone.len());
        if out.len() < 2 * PLACES {
            let first: &[&str] = if prose { &[] } else { &new };
            let goes = telling(&gone, &added, &[]);
            let comes = telling(&added, &gone, first);
            out.extend(goes.map(|line| format!("- {line}")));
            out.extend(comes.map(|line| format!("+ {line}")));
        }
        all.extend(new);
    }
    let told = out.len();
    let mut more: Vec<&str> = Vec::new();
    for name in all {
        let shown = out.iter().any(|line| line.contains(name));
        if !shown && !more.contains(&name) && more.len() < NAMES {
            more.push(name);
        }
    }
    if !more.is_empty() {
        let more: Vec<String> = more.iter().map(|name| clip(name, NAME_CHARS)).collect();
        out.push(format!("new: {}", more.join(", ")));
    }
    if written || (come + go > told && told > 0) {
        out.push(format!("+{come} -{go} lines"));
    }
    out
}

/// Returns the lines that a diff from `old` to `new` removes, and the lines that it adds.
fn changed_lines<'a>(old: &[&'a str], new: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut gone, mut added) = (Vec::new(), Vec::new());
    let trimmed = |lines: &[&'a str]| lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>();
    let (old, new) = (trimmed(old), trimmed(new));
    for change in TextDiff::from_slices(&old, &new).iter_all_changes() {
        match change.tag() {
            ChangeTag::Delete => gone.push(change.value()),
            ChangeTag::Insert => added.push(change.value()),
            ChangeTag::Equal => {}
        }
    }
    (gone, added)
}

fn lines(text: &str) -> Vec<&str> {
    window(text, BYTES, 0).0.lines().collect()
}

/// Returns the most informative line that is not in `others`. This is the first line that defines one of `names`,
/// otherwise the first line with words that is no comment or import, otherwise the first line with words.
fn telling(lines: &[&str], others: &[&str], names: &[&str]) -> Option<String> {
    let others: BTreeSet<&str> = others.iter().map(|line| line.trim()).collect();
    let letters = |line: &str| line.chars().filter(|c| c.is_alphanumeric()).count();
    let all = || {
        let lines = lines.iter().map(|line| line.trim());
        lines.filter(|line| letters(line) > 2 && !others.contains(line))
    };
    let aside = |line: &str| {
        let quoted = line.starts_with(['"', '\'']) && !line.contains(' ');
        quoted || letters(line) < 5 || ASIDE.iter().any(|mark| line.starts_with(mark))
    };
    let defines = |line: &&str| definition(line).is_some_and(|name| names.contains(&name));
    let line = all()
        .find(defines)
        .or_else(|| all().find(|line| !aside(line)))
        .or_else(|| all().next())?;
    Some(clip(&squeeze(window(line, 600, 0).0), CHARS))
}

/// Returns the names that lines define, in order. In prose, these are the headings.
fn names<'a>(lines: &[&'a str], prose: bool) -> Vec<&'a str> {
    let heading = |line: &&'a str| {
        line.starts_with('#')
            .then(|| line.trim_start_matches(['#', ' ']))
    };
    match prose {
        true => lines.iter().filter_map(heading).collect(),
        false => lines.iter().filter_map(|line| definition(line)).collect(),
    }
}

/// Returns the name that a line defines, in the syntax of most languages.
fn definition(line: &str) -> Option<&str> {
    let outside = !line.starts_with([' ', '\t']);
    let mut rest = line.trim_start();
    loop {
        let (word, after) = rest.split_once(' ')?;
        let after = after.trim_start();
        if DEFINES.contains(&word) || (outside && DEFINES_OUTSIDE.contains(&word)) {
            // `const fn`, `const enum`.
            if after
                .split_once(' ')
                .is_some_and(|(next, _)| DEFINES.contains(&next))
            {
                rest = after;
                continue;
            }
            return name(after);
        }
        if !BEFORE.contains(&word) {
            return None;
        }
        rest = after;
    }
}

/// Returns the name at the start of a text, after the receiver of a method.
fn name(text: &str) -> Option<&str> {
    let text = match text.strip_prefix('(') {
        Some(receiver) => receiver.split_once(')')?.1.trim_start(),
        None => text,
    };
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let end = text.find(|c: char| !part(c)).unwrap_or(text.len());
    let name = text.get(..end)?;
    (name.len() > 2 && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

#[cfg(test)]
mod tests {
    use memory_model::conventions::ToolArguments;

    use super::*;

    fn of(arguments: &str) -> Vec<String> {
        changes(&ToolArguments::parse(arguments).edits(&["content"]), false)
    }

    #[test]
    fn an_edit_is_told_by_what_goes_and_what_comes() {
        assert_eq!(
            of(
                r#"{"file_path":"a.rs","old_string":"fn a() {\n    one();\n}","new_string":"fn a() {\n    two();\n}"}"#
            ),
            ["- one();", "+ two();"]
        );
        // However the keys are spelt; a list of edits.
        assert_eq!(
            of(
                r#"{"path":"a","edits":[{"oldText":"abc","newText":"abd"},{"oldText":"x1y","newText":""}]}"#
            ),
            ["- abc", "+ abd", "- x1y"]
        );
        assert_eq!(of(r#"{"old_string":"same","new_string":"same"}"#), [""; 0]);
        assert_eq!(of(r#"{"command":"ls"}"#), [""; 0]);
        assert_eq!(of("[]"), [""; 0]);
    }

    #[test]
    fn new_names_are_told_and_known_ones_are_not() {
        let old = "import x\nfunc kept() {}\n";
        let new = "import x\n// Says why.\nfunc kept() {}\nfunc (s *Store) Opened(id int) {\n\tlocal := 1\n}\ntype Row struct {\n}\n";
        let call = serde_json::json!({ "old_string": old, "new_string": new });
        assert_eq!(
            of(&call.to_string()),
            [
                "+ func (s *Store) Opened(id int) {",
                "new: Row",
                "+6 -0 lines"
            ]
        );
        let call = serde_json::json!({ "content": "# Title\n\nText.\n## Use\ndef code():\n" });
        assert_eq!(
            changes(
                &ToolArguments::parse(&call.to_string()).edits(&["content"]),
                true
            ),
            ["new: Title, Use", "+5 -0 lines"]
        );
        // An import is less informative than the use of its name.
        let call =
            serde_json::json!({ "old_string": "a", "new_string": "import beta\nbeta.run()\na" });
        assert_eq!(of(&call.to_string()), ["+ beta.run()", "+2 -0 lines"]);
    }

    #[test]
    fn definitions_of_several_languages() {
        for (line, name) in [
            ("pub(crate) async fn read_all<T>(", Some("read_all")),
            ("pub const fn new() -> Self {", Some("new")),
            ("export default class Timer {", Some("Timer")),
            ("export const limit = 3", Some("limit")),
            ("  const local = 3", None),
            ("    def close(self):", Some("close")),
            ("func (a *A) Name() string {", Some("Name")),
            ("type of thing is clear", Some("of")),
            ("return x", None),
            ("fn", None),
        ] {
            let name = name.filter(|name| name.len() > 2);
            assert_eq!(definition(line), name, "{line}");
        }
    }
}

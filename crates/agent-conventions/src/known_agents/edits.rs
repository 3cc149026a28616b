//! Reads the files and edits that a call names: by a patch, by a move, or by blocks to search and replace.

use memory_model::conventions::{FileAccess, TextEdit, ToolArguments, is_path};

/// Names of arguments with the old and the new path of a moved file.
const MOVES: [[&str; 2]; 4] = [
    ["source", "destination"],
    ["source_path", "destination_path"],
    ["old_path", "new_path"],
    ["from", "to"],
];
/// First line of a patch in Codex's form.
pub(super) const PATCH: &str = "*** Begin Patch";
/// Beginnings of a patch's lines that name a file.
const PATCHED: [&str; 4] = [
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Returns the files of a patch in Codex's form.
pub(super) fn patched_files(text: &str) -> Vec<FileAccess> {
    if !text.contains("*** ") {
        return Vec::new();
    }
    let path = |line: &str| {
        let path = PATCHED.iter().find_map(|mark| line.strip_prefix(mark))?;
        Some(FileAccess {
            path: path.trim().to_owned(),
            changed: true,
        })
    };
    text.lines().filter_map(path).collect()
}

/// Returns the two paths of a call that moves a file.
pub(super) fn moved_files(arguments: &ToolArguments) -> Vec<FileAccess> {
    let pair = |[old, new]: &[&str; 2]| Some([arguments.text(old)?, arguments.text(new)?]);
    let paths = MOVES.iter().find_map(pair);
    let paths = paths.filter(|paths| paths.iter().any(|path| is_path(path)));
    let file = |path| FileAccess {
        path,
        changed: true,
    };
    paths.into_iter().flatten().map(file).collect()
}

/// Returns the edits of the patches in a call's arguments.
pub(super) fn patches(arguments: &ToolArguments, subject: &str) -> Vec<TextEdit> {
    let mut out = Vec::new();
    let others = arguments.others(None);
    let texts = others.iter().map(|(_, text)| text.as_str());
    let mut found = false;
    for text in texts.filter(|text| text.contains(PATCH)) {
        patch(text, &mut out);
        found = true;
    }
    if !found && subject.contains(PATCH) {
        patch(subject, &mut out);
    }
    for (_, text) in &others {
        searched(text, &mut out);
    }
    out
}

/// Adds the edits of a patch: runs of lines that begin with `-` or `+`.
fn patch(text: &str, out: &mut Vec<TextEdit>) {
    let (mut old, mut new): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in text.lines().chain([""]) {
        if let Some(line) = line.strip_prefix('-') {
            old.push(line);
        } else if let Some(line) = line.strip_prefix('+') {
            new.push(line);
        } else if !old.is_empty() || !new.is_empty() {
            let (old, new) = (std::mem::take(&mut old), std::mem::take(&mut new));
            let (old, new) = (old.join("\n"), new.join("\n"));
            out.push(TextEdit { old, new });
        }
    }
}

/// Adds the edits of Cline's form: blocks of a text to search and the text that replaces it.
fn searched(text: &str, out: &mut Vec<TextEdit>) {
    let is = |line: &str, mark: char, word: &str| {
        line.starts_with([mark, '-', '+']) && line.trim_end().ends_with(word) && line.len() < 20
    };
    let mut lines = text.lines();
    while lines.any(|line| is(line, '<', " SEARCH")) {
        let old: Vec<&str> = lines
            .by_ref()
            .take_while(|line| !line.starts_with("======="))
            .collect();
        let new = lines.by_ref().take_while(|line| !is(line, '>', " REPLACE"));
        let new: Vec<&str> = new.collect();
        let (old, new) = (old.join("\n"), new.join("\n"));
        out.push(TextEdit { old, new });
    }
}

#[cfg(test)]
mod tests {
    use memory_model::conventions::AgentConventions;

    use super::*;
    use crate::KnownAgents;

    #[test]
    fn blocks_of_search_and_replace_are_edits() {
        for diff in [
            "------- SEARCH\nlet a = 1;\n=======\nlet a = 2;\n+++++++ REPLACE\n",
            "<<<<<<< SEARCH\nlet a = 1;\n=======\nlet a = 2;\n>>>>>>> REPLACE",
        ] {
            let arguments = serde_json::json!({ "path": "a.rs", "diff": diff }).to_string();
            let edits = KnownAgents.tool_use("replace_in_file", &arguments).edits;
            let (old, new) = ("let a = 1;".to_owned(), "let a = 2;".to_owned());
            assert_eq!(edits, [TextEdit { old, new }]);
        }
    }

    #[test]
    fn a_patch_is_read_like_an_edit_of_its_files() {
        let patch = "*** Begin Patch\n*** Update File: a.py\n@@\n def a():\n-    return 1\n+    return 2\n*** End Patch";
        let arguments = serde_json::json!({ "input": patch }).to_string();
        let used = KnownAgents.tool_use("apply_patch", &arguments);
        assert_eq!(used.subject, "a.py");
        let edit = |old: &str, new: &str| TextEdit {
            old: old.to_owned(),
            new: new.to_owned(),
        };
        assert_eq!(used.edits, [edit("    return 1", "    return 2")]);
    }
}

//! Files that a source changed, read from its tool calls.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use extractive_summarizer::Source;
use memory_model::Part;

use super::form::Form;
use crate::request::SummaryRequest;

/// Returns the names of the files that the source changed, without their folders.
pub(super) fn names<'a>(request: &SummaryRequest<'a>) -> BTreeSet<Cow<'a, str>> {
    if let Some(files) = request.changed_files {
        return files
            .iter()
            .map(|path| Cow::Borrowed(file_name(path)))
            .collect();
    }
    // Files by the id of the call that changes them, until its result says that it failed.
    let mut calls: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for piece in request.source {
        let Source::Message(entry) = piece else {
            continue;
        };
        for part in &entry.parts {
            match part {
                Part::ToolCall {
                    id,
                    name,
                    arguments,
                } => {
                    let files = request.conventions.tool_use(name, arguments.as_str()).files;
                    let changed = files
                        .into_iter()
                        .filter(|file| file.changed && !is_passing(&file.path));
                    let names: Vec<String> = changed
                        .map(|file| file_name(&file.path).to_owned())
                        .collect();
                    if !names.is_empty() {
                        calls.insert(id, names);
                    }
                }
                Part::ToolResult {
                    call_id,
                    content,
                    is_error,
                    ..
                } if calls.contains_key(call_id.as_str()) => {
                    let text = content.text();
                    let outcome =
                        request
                            .conventions
                            .tool_result(None, &text, *is_error == Some(true));
                    if outcome.is_error || outcome.rejection.is_some() || outcome.is_interrupted {
                        calls.remove(call_id.as_str());
                    }
                }
                _ => {}
            }
        }
    }
    calls.into_values().flatten().map(Cow::Owned).collect()
}

/// Returns whether a file is gone with the machine's next start, so that no summary needs to name it.
fn is_passing(path: &str) -> bool {
    ["/tmp/", "/private/tmp/", "/var/tmp/", "/dev/"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

fn file_name(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns whether an answer has a line of files that names none, although files were changed.
pub(super) fn denies(form: &Form<'_>, changed: &BTreeSet<Cow<'_, str>>) -> bool {
    let names_file = |line: &str| {
        let mut words = line
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '（' | '）' | '`'));
        words.any(|word| {
            let word = word.trim_end_matches(['.', ':', ';']);
            word.contains(['/', '.', '\\']) || changed.contains(word)
        })
    };
    let mut lines = form.files().peekable();
    !changed.is_empty() && lines.peek().is_some() && !lines.any(names_file)
}

#[cfg(test)]
mod tests {
    use memory_model::{Message, RawJson};
    use token_estimate::HeuristicEstimator;

    use super::*;
    use crate::testing;

    fn write(id: &str, path: &str) -> Message {
        let arguments =
            RawJson::from_value(&serde_json::json!({"file_path": path, "content": "x"})).unwrap();
        Message::tool_call(id, "Write", arguments)
    }

    #[test]
    fn a_file_is_changed_unless_its_call_failed() {
        let log = testing::log(
            vec![
                write("a", "/code/tide/table.rs"),
                Message::tool_result("a", "written"),
                write("b", "/code/tide/gauge.rs"),
                Message::failed_result("b", "no such folder"),
                write("c", "/tmp/out.txt"),
            ],
            &HeuristicEstimator::Bytes4,
        );
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
        assert_eq!(
            names(&request).into_iter().collect::<Vec<_>>(),
            ["table.rs"]
        );
        let told = ["docs/Makefile".to_owned()];
        let request = SummaryRequest {
            changed_files: Some(&told),
            ..request
        };
        assert_eq!(
            names(&request).into_iter().collect::<Vec<_>>(),
            ["Makefile"]
        );
    }

    #[test]
    fn a_line_without_files_denies_what_changed() {
        let changed = BTreeSet::from([Cow::Borrowed("Makefile")]);
        for (text, denied) in [
            ("It works.\nFiles: none", true),
            ("直した。\nFiles: なし（変更なし）", true),
            ("It works.\nFiles: Makefile (changed)", false),
            ("It works.\n**Files:** `src/a.rs` (changed)", false),
            ("It works.", false),
        ] {
            assert_eq!(denies(&Form::of(text), &changed), denied, "{text}");
            assert!(!denies(&Form::of(text), &BTreeSet::new()), "{text}");
        }
    }
}

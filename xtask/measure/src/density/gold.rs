//! What a context should carry, by the structure of the raw transcript: who typed, what tools were
//! called with, which results are errors. Shares no code with what writes or reads summaries.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use super::cases::{blocks, is, kind, texts};
use super::words::{folded, head, is_number, names, sentences, telling_words};
use crate::retention::gold::is_identifier;

/// The columns, in the order of the tables.
pub(super) const COLUMNS: [&str; 7] = [
    "directives",
    "error lines",
    "paths",
    "commands",
    "after cd",
    "identifiers",
    "numbers",
];
pub(super) const DIRECTIVES: usize = 0;
pub(super) const ERRORS: usize = 1;
pub(super) const PATHS: usize = 2;
pub(super) const COMMANDS: usize = 3;
const AFTER_CD: usize = 4;
pub(super) const IDENTIFIERS: usize = 5;
const NUMBERS: usize = 6;

/// A typed message of more bytes is a pasted document: only its first lines count.
const LONGEST_TYPED: usize = 3_000;
/// How many lines of a pasted document count.
const FIRST_LINES: usize = 5;
/// A sentence with fewer telling words is no directive.
const FEWEST_WORDS: usize = 2;
/// The share of its telling words that a kept directive has in the text, in per cent.
const WORDS_KEPT: usize = 70;
/// Characters of an error line that count.
const ERROR_HEAD: usize = 80;
/// Characters of a command that count.
const COMMAND_HEAD: usize = 60;
/// In how many messages an identifier or a number occurs at least.
const MESSAGES: usize = 3;
/// The arguments that are paths.
const PATH_KEYS: [&str; 4] = ["file_path", "path", "notebook_path", "filePath"];
/// How the result of a call begins that the user rejected.
const REJECTED: &str = "The user doesn't want to";

/// How many items of each column a text keeps, and of how many.
pub(super) type Counts = [(usize, usize); COLUMNS.len()];

/// Everything that is to be kept, column by column, in the order of the transcript.
#[derive(Default)]
pub(super) struct Gold {
    items: [Vec<String>; COLUMNS.len()],
    seen: [HashSet<String>; COLUMNS.len()],
}

/// The messages that a word occurs in.
type Occurrences<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

impl Gold {
    /// Reads what the lines of a transcript hold.
    pub(super) fn of(lines: &[Value]) -> Self {
        let mut gold = Self::default();
        let (mut identifiers, mut numbers) = (Occurrences::new(), Occurrences::new());
        for line in lines {
            let message = line["message"]["id"].as_str().or(line["uuid"].as_str());
            let message = message.unwrap_or_default();
            let mut said = typed(line);
            said.iter().for_each(|text| gold.directives(text));
            if kind(line) == "assistant" {
                said.extend(texts(line));
            }
            for block in blocks(line) {
                match kind(block) {
                    "tool_use" => {
                        gold.call(&block["input"]);
                        strings(&block["input"], &mut said);
                    }
                    "tool_result" if is(block, "is_error") => {
                        gold.extend(ERRORS, error_line(&result(block)));
                    }
                    _ => {}
                }
            }
            for word in said.into_iter().flat_map(names) {
                let column = match word {
                    word if is_number(word) => &mut numbers,
                    word if is_identifier(word) => &mut identifiers,
                    _ => continue,
                };
                column.entry(word).or_default().insert(message);
            }
        }
        let frequent = |words: Occurrences<'_>| {
            let words = words.into_iter().filter(|(_, m)| m.len() >= MESSAGES);
            words.map(|(word, _)| word.to_owned()).collect::<Vec<_>>()
        };
        gold.extend(IDENTIFIERS, frequent(identifiers));
        gold.extend(NUMBERS, frequent(numbers));
        gold
    }

    /// Adds the items that are not there yet.
    fn extend(&mut self, column: usize, items: impl IntoIterator<Item = String>) {
        for item in items {
            if self.seen[column].insert(item.clone()) {
                self.items[column].push(item);
            }
        }
    }

    /// Adds the sentences of what the user typed.
    fn directives(&mut self, text: &str) {
        let mut fenced = false;
        let lines = text.lines().filter(|line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence && !line.trim().is_empty()
        });
        let most = match text.len() {
            ..=LONGEST_TYPED => usize::MAX,
            _ => FIRST_LINES,
        };
        for line in lines.take(most) {
            let line = folded(line);
            let telling = sentences(&line)
                .into_iter()
                .filter(|s| telling_words(s).len() >= FEWEST_WORDS);
            self.extend(DIRECTIVES, telling.map(str::to_owned));
        }
    }

    /// Adds the paths and the command among the arguments of a call.
    fn call(&mut self, arguments: &Value) {
        for key in PATH_KEYS {
            let path = arguments[key].as_str().unwrap_or_default();
            let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
            if let (Some(file), Some(folder)) = (parts.next(), parts.next()) {
                self.extend(PATHS, [format!("{folder}/{file}")]);
            }
        }
        let command = arguments["command"].as_str().unwrap_or_default();
        let line = folded(command.trim().lines().next().unwrap_or_default());
        if !line.is_empty() {
            self.extend(COMMANDS, [head(&line, COMMAND_HEAD)]);
            self.extend(AFTER_CD, [head(after_cd(&line), COMMAND_HEAD)]);
        }
    }

    /// The items of a column.
    pub(super) fn items(&self, column: usize) -> &[String] {
        &self.items[column]
    }

    /// Counts what a text keeps.
    pub(super) fn kept(&self, text: &str) -> Counts {
        let text = Carrier::of(text);
        std::array::from_fn(|column| {
            let items = &self.items[column];
            let kept = items.iter().filter(|item| text.carries(column, item));
            (kept.count(), items.len())
        })
    }

    /// Returns the items of a column that a text does not keep.
    pub(super) fn missing(&self, column: usize, text: &str) -> Vec<&str> {
        let text = Carrier::of(text);
        let items = self.items[column].iter();
        let missing = items.filter(|item| !text.carries(column, item));
        missing.map(String::as_str).collect()
    }
}

/// A text that items are looked for in.
struct Carrier {
    flat: String,
    lower: String,
    names: HashSet<String>,
}

impl Carrier {
    fn of(text: &str) -> Self {
        let flat = folded(text);
        Self {
            lower: flat.to_lowercase(),
            names: names(&flat).map(str::to_owned).collect(),
            flat,
        }
    }

    fn carries(&self, column: usize, item: &str) -> bool {
        match column {
            DIRECTIVES => {
                let words = telling_words(item);
                let kept = words.iter().filter(|word| self.lower.contains(*word));
                kept.count() * 100 >= words.len() * WORDS_KEPT
            }
            IDENTIFIERS | NUMBERS => self.names.contains(item),
            _ => self.flat.contains(item),
        }
    }
}

/// Returns what the user typed in a line: no results, nothing that a program wrote.
fn typed(line: &Value) -> Vec<&str> {
    let by_user = kind(line) == "user"
        && !["isMeta", "isSidechain", "isCompactSummary"]
            .into_iter()
            .any(|mark| is(line, mark))
        && !blocks(line).iter().any(|b| kind(b) == "tool_result");
    if !by_user {
        return Vec::new();
    }
    let mut typed = texts(line);
    typed.retain(|text| {
        let start = text.trim_start();
        !["<", "[Request interrupted", "Caveat:"]
            .into_iter()
            .any(|sign| start.starts_with(sign))
    });
    typed
}

/// Collects all strings among the arguments of a call.
fn strings<'a>(value: &'a Value, out: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => out.push(text),
        Value::Array(list) => list.iter().for_each(|value| strings(value, out)),
        Value::Object(map) => map.values().for_each(|value| strings(value, out)),
        _ => {}
    }
}

/// Returns the text of a result.
fn result(block: &Value) -> String {
    if let Some(text) = block["content"].as_str() {
        return text.to_owned();
    }
    let parts = block["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = parts.iter().filter_map(|p| p["text"].as_str()).collect();
    texts.join("\n")
}

/// Returns the head of the first line that tells what failed; none where the user rejected the call.
fn error_line(result: &str) -> Option<String> {
    if result.contains(REJECTED) {
        return None;
    }
    let result = result
        .replace("<tool_use_error>", "")
        .replace("</tool_use_error>", "");
    let line = result.lines().map(folded).find(|line| {
        let code = line.strip_prefix("Exit code ");
        let is_code = code.is_some_and(|code| code.bytes().all(|b| b.is_ascii_digit()));
        let letters = line.chars().filter(|c| c.is_alphabetic()).count();
        !is_code && !line.starts_with('<') && letters >= 4
    });
    line.map(|line| head(&line, ERROR_HEAD))
}

/// Returns a command without a leading `cd DIR &&`.
fn after_cd(command: &str) -> &str {
    let rest = command.strip_prefix("cd ").and_then(|rest| {
        let (folder, rest) = rest.split_once("&&")?;
        (!folder.trim().contains(' ')).then_some(rest.trim())
    });
    rest.filter(|rest| !rest.is_empty()).unwrap_or(command)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(text: &str) -> Value {
        json!({"type": "user", "uuid": text, "message": {"content": text}})
    }

    fn call(id: &str, input: Value) -> Value {
        let block = json!({"type": "tool_use", "name": "T", "input": input});
        json!({"type": "assistant", "message": {"id": id, "content": [block]}})
    }

    fn failed(text: &str) -> Value {
        let block = json!({"type": "tool_result", "is_error": true, "content": text});
        json!({"type": "user", "message": {"content": [block]}})
    }

    #[test]
    fn directives_are_what_the_user_typed() {
        let mut meta = user("Never mind these words here.");
        meta["isMeta"] = json!(true);
        let long = (0..9)
            .map(|n| format!("pasted document line{n}\n"))
            .collect::<String>();
        let gold = Gold::of(&[
            user("Rename the parser module. Then run tests\n```\nquoted code here\n```\nok"),
            user("<command-name>/clear</command-name>"),
            user("[Request interrupted by user for tool use]"),
            meta,
            user("Rename the parser module."),
            user(&format!("{long}{}", "z".repeat(LONGEST_TYPED))),
        ]);
        let mut expected = vec![
            "Rename the parser module.".to_owned(),
            "Then run tests".to_owned(),
        ];
        expected.extend((0..FIRST_LINES).map(|n| format!("pasted document line{n}")));
        assert_eq!(gold.items(DIRECTIVES), expected);
        let kept = |text| gold.kept(text)[DIRECTIVES].0;
        assert_eq!(kept("the PARSER, a new module"), 0);
        assert_eq!(kept("RENAME: parser, submodules"), 1);
    }

    #[test]
    fn errors_are_told_by_their_first_telling_line() {
        let gold = Gold::of(&[
            failed("Exit code 1\n\n\u{1b}[31merror\u{1b}[0m: no  such crate\nmore"),
            failed("<tool_use_error>File has not been read yet.</tool_use_error>"),
            failed("The user doesn't want to proceed with this tool use."),
            json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "content": "error: not marked"}]}}),
        ]);
        assert_eq!(
            gold.items(ERRORS),
            ["error: no such crate", "File has not been read yet."]
        );
        assert_eq!(gold.kept("- error: no\nsuch crate `x`")[ERRORS], (1, 2));
        assert_eq!(
            gold.missing(ERRORS, "error: no such crate"),
            ["File has not been read yet."]
        );
    }

    #[test]
    fn paths_and_commands_of_calls() {
        let gold = Gold::of(&[
            call("1", json!({"file_path": "/home/me/src/lib.rs"})),
            call(
                "2",
                json!({"path": "src", "command": "cd /a/b && cargo  test\nmore"}),
            ),
            call("3", json!({"command": "cargo test"})),
        ]);
        assert_eq!(gold.items(PATHS), ["src/lib.rs"]);
        assert_eq!(
            gold.items(COMMANDS),
            ["cd /a/b && cargo test", "cargo test"]
        );
        assert_eq!(gold.items(AFTER_CD), ["cargo test"]);
        let kept = gold.kept("lib.rs in src/, ran cargo test");
        assert_eq!(
            (kept[PATHS], kept[COMMANDS], kept[AFTER_CD]),
            ((0, 1), (1, 2), (1, 1))
        );
    }

    #[test]
    fn identifiers_and_numbers_occur_in_some_messages() {
        let gold = Gold::of(&[
            user("read_file, port 8080"),
            call("1", json!({"x": ["read_file", "8080", "once_here"]})),
            call("1", json!({"x": "once_here"})),
            call("2", json!({"x": {"y": "read_file:8080 once_here"}})),
        ]);
        assert_eq!(gold.items(IDENTIFIERS), ["read_file"]);
        assert_eq!(gold.items(NUMBERS), ["8080"]);
        let kept = gold.kept("read_files at 18080; port :8080.");
        assert_eq!((kept[IDENTIFIERS], kept[NUMBERS]), ((0, 1), (1, 1)));
    }
}

//! What SQLite's full-text search finds with its own stemmer and ranking.

use std::collections::BTreeSet;

use anyhow::Context as _;
use rusqlite::Connection;

use super::cases::Case;
use super::measure::{ByCategory, ask, merged};
use crate::mode::root;

/// Number of messages that are asked for. The first one that answers is rarely later.
const DEPTH: usize = 200;

/// Asks all questions of all conversations: any word but stop words, by `bm25()`.
///
/// # Errors
/// When the database or the list of stop words cannot be read.
pub(super) fn floor(cases: &[Case]) -> anyhow::Result<ByCategory> {
    let list = root().join("crates/sentence-model/src/words/lists/english.txt");
    let list = std::fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let stop = list.lines().find_map(|line| line.strip_prefix("stop:"));
    let stop: BTreeSet<&str> = stop.unwrap_or_default().split_whitespace().collect();
    let figures: anyhow::Result<Vec<ByCategory>> =
        cases.iter().map(|case| of_case(case, &stop)).collect();
    Ok(merged(figures?))
}

fn of_case(case: &Case, stop: &BTreeSet<&str>) -> anyhow::Result<ByCategory> {
    let database = Connection::open_in_memory()?;
    database.execute_batch(
        "CREATE VIRTUAL TABLE turns USING fts5(body, tokenize = 'porter unicode61')",
    )?;
    let mut insert = database.prepare("INSERT INTO turns (rowid, body) VALUES (?, ?)")?;
    for (at, turn) in case.turns.iter().enumerate() {
        insert.execute((i64::try_from(at)?, &turn.text))?;
    }
    let select = format!(
        "SELECT rowid FROM turns WHERE turns MATCH ? ORDER BY bm25(turns), rowid LIMIT {DEPTH}"
    );
    let mut select = database.prepare(&select)?;
    let mut failed = None;
    let figures = ask(case, |question| {
        let mut answer = || -> anyhow::Result<Vec<usize>> {
            let rows = select.query_map([any_word(question, stop)], |row| row.get::<_, i64>(0))?;
            rows.map(|row| Ok(usize::try_from(row?)?)).collect()
        };
        answer().unwrap_or_else(|error| {
            failed = Some(error);
            Vec::new()
        })
    });
    failed.map_or(Ok(figures), Err)
}

/// A question as a query for any of its words.
fn any_word(question: &str, stop: &BTreeSet<&str>) -> String {
    let lower = question.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty() && !stop.contains(word));
    let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    match words.is_empty() {
        true => "\"\"".to_owned(),
        false => words.join(" OR "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_become_any_of_their_words() {
        let stop = BTreeSet::from(["did", "the"]);
        assert_eq!(
            any_word("Did the \"cat\" purr?", &stop),
            "\"cat\" OR \"purr\""
        );
        assert_eq!(any_word("Did the?", &stop), "\"\"");
    }
}

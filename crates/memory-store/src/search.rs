//! Substring search by scanning: always right, on any store.

use std::fmt;
use std::str::FromStr;

use memory_model::{
    ConversationId, EntryKind, LogEntry, Role, Seq, SeqRange, Summary, SummaryId, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::store::Store;
use crate::types::{ConversationRef, LogRead};

/// Where to search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Messages only.
    Messages,
    /// Summaries only.
    Summaries,
    /// Both: messages first (anna's default).
    #[default]
    Both,
}

impl Scope {
    /// The scope's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Messages => "messages",
            Scope::Summaries => "summaries",
            Scope::Both => "both",
        }
    }
}

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The text to find, literally, whatever its case. No character has a special meaning.
    pub pattern: String,
    /// Where.
    pub scope: Scope,
    /// At most so many hits in all; at least 1 is used.
    pub limit: usize,
    /// Where an earlier answer stopped.
    pub cursor: Option<Cursor>,
    /// How many characters of text around the match a hit shows.
    pub snippet_chars: usize,
}

impl Query {
    /// Looks in messages and summaries for at most 20 hits, showing 500 characters each (anna's
    /// defaults).
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            scope: Scope::Both,
            limit: 20,
            cursor: None,
            snippet_chars: 500,
        }
    }

    /// Sets where to look.
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the largest number of hits.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Goes on where an earlier answer stopped.
    pub fn with_cursor(mut self, cursor: Cursor) -> Self {
        self.cursor = Some(cursor);
        self
    }
}

/// Where a search goes on: after a message, or after a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Cursor {
    /// After this message.
    AfterMessage(Seq),
    /// After all messages and this summary.
    AfterSummary(SummaryId),
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cursor::AfterMessage(seq) => write!(f, "m{seq}"),
            Cursor::AfterSummary(id) => write!(f, "s{id}"),
        }
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

impl TryFrom<String> for Cursor {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(seq) = text
            .strip_prefix('m')
            .and_then(|digits| digits.parse().ok())
        {
            return Ok(Cursor::AfterMessage(Seq(seq)));
        }
        match text.strip_prefix('s') {
            Some(id) if id.starts_with("sum_") => Ok(Cursor::AfterSummary(SummaryId::new(id))),
            _ => Err(Error::new(
                ErrorKind::Invalid,
                format!("{text:?} is not a search cursor: pass one that a search returned"),
            )),
        }
    }
}

/// One find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// What was found.
    pub found: Found,
    /// The text around the first match, with `…` where it was cut.
    pub snippet: String,
    /// When it was said or made.
    pub created_at: Timestamp,
}

/// What a hit is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A message.
    Message {
        /// Its position.
        seq: Seq,
        /// The source's id of it.
        external_id: Option<String>,
        /// Who said it.
        role: Role,
    },
    /// A summary.
    Summary {
        /// Which one.
        id: SummaryId,
        /// What it covers.
        range: SeqRange,
    },
}

/// An answer: hits, and everything needed to know what they are worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits {
    /// The finds: messages in log order, then summaries in the order of their making.
    pub hits: Vec<Hit>,
    /// How the search was done.
    pub strategy: &'static str,
    /// Where it looked.
    pub scope: Scope,
    /// Whether these are all hits from the cursor on.
    pub complete: bool,
    /// Where to go on when they are not.
    pub cursor: Option<Cursor>,
}

/// The name of the strategy that reads everything.
pub const SCAN: &str = "literal-scan";

/// Searches by reading everything, page by page.
///
/// # Errors
/// `NotFound` for the conversation; `Invalid` for an empty pattern; whatever reading gives.
pub async fn scan<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    query: &Query,
) -> Result<Hits> {
    if query.pattern.is_empty() {
        return Err(Error::new(
            ErrorKind::Invalid,
            "the pattern is empty: give some text to find",
        ));
    }
    let found = store
        .conversation(&ConversationRef::Id(conversation))
        .await?;
    let Some(found) = found else {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("there is no conversation {conversation}"),
        ));
    };
    // One more than asked for, to know whether there are more.
    let limit = query.limit.max(1);
    let mut hits = Hits {
        hits: Vec::new(),
        strategy: SCAN,
        scope: query.scope,
        complete: true,
        cursor: None,
    };
    let pattern = fold(&query.pattern);

    let mut range = match &query.cursor {
        _ if query.scope == Scope::Summaries => None,
        None => found.range(),
        Some(Cursor::AfterMessage(seq)) => SeqRange::new(seq.next(), found.head),
        Some(Cursor::AfterSummary(_)) => None,
    };
    while let Some(rest) = range {
        let page = store.read(conversation, &LogRead::new(rest)).await?;
        for entry in &page.items {
            if entry.kind == EntryKind::Note {
                continue;
            }
            if let Some(snippet) = entry_snippet(entry, &pattern, query.snippet_chars) {
                let found = Found::Message {
                    seq: entry.seq,
                    external_id: entry.external_id.clone(),
                    role: entry.role,
                };
                let created_at = entry.created_at;
                if !push(
                    &mut hits,
                    limit,
                    Hit {
                        found,
                        snippet,
                        created_at,
                    },
                ) {
                    return Ok(hits);
                }
            }
        }
        range = page.next;
    }

    if query.scope == Scope::Messages {
        return Ok(hits);
    }
    let mut after = match &query.cursor {
        Some(Cursor::AfterSummary(id)) => Some(id.clone()),
        _ => None,
    };
    loop {
        let page = store.summary_log(conversation, after.as_ref(), 256).await?;
        for summary in &page.items {
            if let Some(snippet) = summary_snippet(summary, &pattern, query.snippet_chars) {
                let found = Found::Summary {
                    id: summary.id.clone(),
                    range: summary.range,
                };
                let created_at = summary.created_at;
                if !push(
                    &mut hits,
                    limit,
                    Hit {
                        found,
                        snippet,
                        created_at,
                    },
                ) {
                    return Ok(hits);
                }
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(hits),
        }
    }
}

/// Adds a hit; at the limit notes instead that there are more, and returns false.
fn push(hits: &mut Hits, limit: usize, hit: Hit) -> bool {
    if hits.hits.len() < limit {
        hits.hits.push(hit);
        return true;
    }
    hits.complete = false;
    hits.cursor = hits.hits.last().map(|last| match &last.found {
        Found::Message { seq, .. } => Cursor::AfterMessage(*seq),
        Found::Summary { id, .. } => Cursor::AfterSummary(id.clone()),
    });
    false
}

fn entry_snippet(entry: &LogEntry, pattern: &str, chars: usize) -> Option<String> {
    let mut found = None;
    entry.visit_texts(&mut |text| {
        if found.is_none() {
            found = snippet(&text, pattern, chars);
        }
    });
    found
}

fn summary_snippet(summary: &Summary, pattern: &str, chars: usize) -> Option<String> {
    snippet(&summary.text, pattern, chars).or_else(|| {
        let messages = summary.messages.as_ref()?;
        snippet(&messages.decoded_strings(), pattern, chars)
    })
}

/// Text with case differences removed, so that equal folds mean the same word.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.chars().flat_map(fold_char).collect()
    }
}

/// A character's lower case; a final sigma is a sigma.
fn fold_char(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c })
}

/// The text around the first place where `pattern` (folded) occurs; `None` when it does not.
fn snippet(text: &str, pattern: &str, chars: usize) -> Option<String> {
    let folded = fold(text);
    let at = folded.find(pattern)?;
    // From a byte offset in the folded text to a character offset in the text.
    let mut folded_bytes = 0;
    let start = text
        .chars()
        .take_while(|c| {
            folded_bytes += fold_char(*c).map(char::len_utf8).sum::<usize>();
            folded_bytes <= at
        })
        .count();
    let width = chars.max(1);
    let pattern_chars = pattern.chars().count().min(width);
    let total = text.chars().count();
    let before = (width - pattern_chars) / 2;
    let from = start
        .saturating_sub(before)
        .min(total.saturating_sub(width));
    let mut out = String::new();
    if from > 0 {
        out.push('…');
    }
    out.extend(text.chars().skip(from).take(width));
    if from + width < total {
        out.push('…');
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_ignored_in_every_script() {
        for (text, pattern) in [
            ("The Tests are GREEN", "tests ARE green"),
            ("Привет МИР", "мир"),
            ("ΟΔΟΣ", "οδο"),
            ("İstanbul today", "TODAY"),
            ("テストは緑", "緑"),
            ("100% done_now", "0% DONE_"),
        ] {
            assert!(
                snippet(text, &fold(pattern), 500).is_some(),
                "{pattern} in {text}"
            );
        }
        assert!(snippet("100 done", &fold("100%"), 500).is_none());
    }

    #[test]
    fn snippets_are_cut_around_the_match() {
        let text = format!("{}needle{}", "a".repeat(100), "b".repeat(100));
        let cut = snippet(&text, "needle", 20).unwrap();
        assert_eq!(cut, "…aaaaaaaneedlebbbbbbb…");
        assert_eq!(snippet("needle", "needle", 20).unwrap(), "needle");
        assert_eq!(snippet("needle bbbb", "needle", 8).unwrap(), "needle b…");
        assert_eq!(snippet("aaaa needle", "needle", 8).unwrap(), "…a needle");
        // Lower case may be longer than the original; the window still holds the match.
        let text = format!("{}needle", "İ".repeat(50));
        assert!(snippet(&text, "needle", 10).unwrap().contains("needle"));
    }

    #[test]
    fn cursors_read_back() {
        for cursor in [
            Cursor::AfterMessage(Seq(7)),
            Cursor::AfterSummary("sum_ab".into()),
        ] {
            assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        }
        assert!("x7".parse::<Cursor>().is_err());
    }
}

//! The mode that tries the others.

use memory_model::ConversationId;

use crate::error::{Error, ErrorKind, Result};
use crate::fallback::Fallback;
use crate::hits::Hits;
use crate::query::{Query, SearchMode};
use crate::search::Search;

/// The modes that [`Auto`](SearchMode::Auto) tries, in this order. Each entry has the letter at the beginning of its
/// cursors, the mode, and the [`Fallback`] that answers in this mode report.
pub const AUTO_STAGES: [(char, SearchMode, Option<Fallback>); 3] = [
    ('l', SearchMode::Literal, None),
    ('w', SearchMode::Words, Some(Fallback::AllWords)),
    ('p', SearchMode::Prose, Some(Fallback::AnyWord)),
];

/// Answers a query in the mode [`Auto`](SearchMode::Auto) with a search that supports other modes. It searches for the
/// exact phrase; if that has no hits, for all of its words; and if that has none either, for any of its words. The
/// answer's `fallback` says which search had hits. It tries no further mode after one that the search does not support.
///
/// # Errors
/// `Invalid` for a cursor that this function did not return. Also the errors of the search.
pub async fn search_auto<S: Search + ?Sized>(
    search: &S,
    conversation: ConversationId,
    query: &Query,
) -> Result<Hits> {
    let (first, cursor) = match &query.cursor {
        Some(cursor) => stage_of(cursor).map(|(stage, cursor)| (stage, Some(cursor)))?,
        // No text and no list of words to be found whole.
        None if query.has_long_pattern() => (AUTO_STAGES.len() - 1, None),
        None => (0, None),
    };
    let mut answer = None;
    for (letter, mode, fallback) in AUTO_STAGES.into_iter().skip(first) {
        let mut stage = query.clone().with_mode(mode);
        stage.cursor = cursor.clone();
        let hits = search.search(conversation, &stage).await;
        let mut hits = match (hits, answer) {
            (Err(error), Some(before)) if error.kind() == ErrorKind::Unsupported => {
                return Ok(before);
            }
            (hits, _) => hits?,
        };
        let cursors = hits.hits.iter_mut().map(|hit| &mut hit.cursor);
        cursors
            .chain(&mut hits.cursor)
            .for_each(|cursor| cursor.insert(0, letter));
        hits.fallback = hits.fallback.or(fallback);
        if cursor.is_some() || !hits.hits.is_empty() || !hits.complete {
            return Ok(hits);
        }
        answer = Some(hits);
    }
    answer.ok_or_else(|| Error::new(ErrorKind::Unsupported, "the search has no mode"))
}

/// Splits a cursor into the stage that it belongs to, and the stage's own cursor.
fn stage_of(cursor: &str) -> Result<(usize, String)> {
    let mut stages = AUTO_STAGES.iter().enumerate();
    let own = stages.find_map(|(stage, (letter, ..))| Some((stage, cursor.strip_prefix(*letter)?)));
    own.map(|(stage, own)| (stage, own.to_owned()))
        .ok_or_else(|| {
            let message =
                format!("{cursor:?} is not a search cursor: pass one that a search returned");
            Error::new(ErrorKind::Invalid, message)
        })
}

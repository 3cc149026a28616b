//! The search mode that tries the other modes in turn.

use memory_model::ConversationId;

use crate::error::{Error, ErrorKind, Result};
use crate::fallback::Fallback;
use crate::hits::Hits;
use crate::query::{Query, SearchMode};
use crate::search::Search;

/// The modes that a search in the mode [`Auto`](SearchMode::Auto) tries, in this order. Each entry consists of a
/// letter, the mode, and the [`Fallback`] that an answer in this mode reports. Cursors of answers in this mode begin
/// with the letter.
pub const AUTO_STAGES: [(char, SearchMode, Option<Fallback>); 3] = [
    ('l', SearchMode::Literal, None),
    ('w', SearchMode::Words, Some(Fallback::AllWords)),
    ('p', SearchMode::Prose, Some(Fallback::AnyWord)),
];

/// Answers a query in the mode [`Auto`](SearchMode::Auto) with a search that supports only other modes. The function
/// searches for the exact phrase. If there are no hits, it searches for all words of the phrase, and if there are still
/// none, for any of them. [`Hits::fallback`] reports which of these searches had hits. The function stops at the first
/// mode that `search` does not support, and returns the previous answer.
///
/// # Errors
/// `Invalid` for a cursor that this function did not return. Also the errors of `search`.
pub async fn search_auto<S: Search + ?Sized>(
    search: &S,
    conversation: ConversationId,
    query: &Query,
) -> Result<Hits> {
    let (first, cursor) = match &query.cursor {
        Some(cursor) => stage_of(cursor).map(|(stage, cursor)| (stage, Some(cursor)))?,
        // The pattern is too long for the modes `Literal` and `Words`.
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

/// Splits a cursor into the index of its stage in [`AUTO_STAGES`] and the cursor within this stage.
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

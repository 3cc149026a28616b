//! What a summarizer is asked for.

use compaction_plan::Request;

use crate::RULE;

/// A request to leave out lines until the text costs about `target` tokens, and at most `most`.
pub(crate) fn request(target: u64, most: u64) -> Request {
    Request::default()
        .with_target_tokens(target)
        .with_max_tokens(most)
        .with_details(RULE)
        .with_drop_lines(true)
}

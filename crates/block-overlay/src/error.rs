//! The error of this crate.

/// Error of a compaction, or of building a context from loops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The session has no loop with the given id.
    #[error(
        "the session `{session_id}` has no loop `{loop_id}`: add it to its loops before its children"
    )]
    UnknownLoop {
        /// Id of the session that was searched.
        session_id: String,
        /// Id of the loop that does not exist.
        loop_id: String,
    },
    /// The last turn alone costs more than the maximum cost of a context.
    #[error(
        "the newest turn{} costs {needed} tokens, but only {budget} are allowed: raise the budget",
        of_loop(loop_id)
    )]
    BudgetTooSmall {
        /// Id of the loop that holds the turn; empty for a list of messages without a session.
        loop_id: String,
        /// Cost of the smallest possible context, in tokens.
        needed: u64,
        /// Maximum cost of a context, in tokens.
        budget: u64,
    },
    /// A summarizer could not write the summary of a loop.
    #[error("loop `{loop_id}` could not be summarized ({source}): try again, or use one-liners")]
    Summarizer {
        /// Id of the loop that was to be summarized.
        loop_id: String,
        /// Error that the summarizer returned.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn of_loop(loop_id: &str) -> String {
    match loop_id.is_empty() {
        true => String::new(),
        false => format!(" of loop `{loop_id}`"),
    }
}

/// Result of an operation that fails with this crate's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

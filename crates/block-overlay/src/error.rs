//! The error of this crate.

/// Error of a compaction or of building a context.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The session has no loop with that id.
    #[error(
        "the session `{session_id}` has no loop `{loop_id}`: add it to its loops before its children"
    )]
    UnknownLoop {
        /// Id of the session.
        session_id: String,
        /// Id of the loop.
        loop_id: String,
    },
    /// The last turn costs more than the maximum of a context.
    #[error(
        "the newest turn{} costs {needed} tokens, but only {budget} are allowed: raise the budget",
        of_loop(loop_id)
    )]
    BudgetTooSmall {
        /// Id of the loop; empty for a list of messages.
        loop_id: String,
        /// Cost of the smallest possible context, in tokens.
        needed: u64,
        /// Maximum cost of a context, in tokens.
        budget: u64,
    },
    /// A summarizer failed.
    #[error("loop `{loop_id}` could not be summarized ({source}): try again, or use one-liners")]
    Summarizer {
        /// Id of the loop.
        loop_id: String,
        /// Error of the summarizer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn of_loop(loop_id: &str) -> String {
    match loop_id.is_empty() {
        true => String::new(),
        false => format!(" of loop `{loop_id}`"),
    }
}

/// Result with this crate's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

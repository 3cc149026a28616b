//! Errors of compactions and of building contexts.

/// Error of compacting a session's loops, or of building a context from them. A loop is one run of the agent's loop: a
/// prompt and the turns up to its answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The session has no loop (run of the agent) with the id that the caller gave.
    #[error(
        "the session `{session_id}` has no loop `{loop_id}`: add it to its loops before its children"
    )]
    UnknownLoop {
        /// Id of the session that was searched.
        session_id: String,
        /// Id of the loop (run of the agent) that was not found.
        loop_id: String,
    },
    /// The last turn alone costs more than the maximum cost of a context.
    #[error(
        "the newest turn{} costs {needed} tokens, but only {budget} are allowed: raise the budget",
        of_loop(loop_id)
    )]
    BudgetTooSmall {
        /// Id of the loop (run of the agent) that contains the last turn. Empty if the context is built from a list of
        /// messages, which has no loops.
        loop_id: String,
        /// Cost of the smallest possible context, in tokens.
        needed: u64,
        /// Maximum cost of a context, in tokens.
        budget: u64,
    },
    /// A summarizer could not write the summary of a loop (a run of the agent).
    #[error("loop `{loop_id}` could not be summarized ({source}): try again, or use one-liners")]
    Summarizer {
        /// Id of the loop (run of the agent) to summarize.
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

/// Result with this crate's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

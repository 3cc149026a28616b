//! Checks that every store makes before it changes a conversation.

use memory_model::{ConversationId, Seq};
use token_estimate::EstimatorId;

use crate::error::{Error, ErrorKind, Result};
use crate::types::{Append, AppendAt, Conversation, JobKey};

/// Checks that an append fits the log: the log ends at the expected position, and its estimator is the append's.
///
/// # Errors
/// - `HeadMoved` if the log ends at another position than the append expects.
/// - `EstimatorMismatch` if the conversation uses another estimator.
pub fn check_append(info: &Conversation, append: &Append) -> Result<()> {
    match append.at {
        AppendAt::Head(head) if head != info.head => {
            let (key, end) = (&info.key, info.head);
            let message = format!("the log of {key} ends at {end}, not at {head}");
            Err(Error::new(ErrorKind::HeadMoved, message))
        }
        _ => check_estimator(info, &append.estimator),
    }
}

/// Checks that a conversation can be forked at a position, with an estimator for the fork.
///
/// # Errors
/// - `Invalid` if the position is after the end of the log.
/// - `EstimatorMismatch` if the conversation uses another estimator.
pub(crate) fn check_fork(parent: &Conversation, at: Seq, estimator: &EstimatorId) -> Result<()> {
    if at > parent.head {
        let (key, end) = (&parent.key, parent.head);
        let message = format!("cannot fork {key} at {at}: its log ends at {end}");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    check_estimator(parent, estimator)
}

fn check_estimator(info: &Conversation, given: &EstimatorId) -> Result<()> {
    if info.estimator == *given {
        return Ok(());
    }
    let (key, own) = (&info.key, &info.estimator);
    let message = format!("{key} is counted with {own}, not with {given}: recount first");
    Err(Error::new(ErrorKind::EstimatorMismatch, message))
}

/// Returns the `NotFound` error for a conversation that does not exist.
pub fn no_conversation(id: ConversationId) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("there is no conversation {id}"),
    )
}

/// Returns the `Stale` error for a job whose lease was lost to another owner.
pub fn lease_lost(key: &JobKey) -> Error {
    Error::new(
        ErrorKind::Stale,
        format!("the lease on job {:?} is lost: claim it again", key.0),
    )
}

//! The agent's own runner: the model client that holds the conversation.

use std::fmt::Debug;

use async_trait::async_trait;
use model_client::Failure;

/// Runs an agent's turns. A runner is a client that holds a conversation, or a process such as an agent's command line.
#[async_trait]
pub trait Runner: Send + Sync + Debug {
    /// Sends a prompt to the model and returns the answer. The runner may use a system prompt of its own in addition to
    /// `system`.
    ///
    /// # Errors
    /// A failure if there is no complete answer.
    async fn generate(&self, system: &str, user: &str) -> std::result::Result<String, Failure>;

    /// Returns whether the runner holds the conversation itself. Such a runner is left unchanged after a handoff. Any
    /// other runner is reset, so that it begins with the summary.
    fn stateful(&self) -> bool {
        false
    }

    /// Ends the conversation that the runner holds. The next turn passes the new context to the runner.
    ///
    /// # Errors
    /// A failure if the runner cannot be started again. The handoff is published even then.
    async fn reset(&self) -> std::result::Result<(), Failure>;

    /// Returns the name of the model that the runner calls; `None` if the model cannot be chosen.
    fn model(&self) -> Option<String> {
        None
    }

    /// Changes the model that the runner calls.
    ///
    /// # Errors
    /// A failure if the runner does not have the model.
    async fn set_model(&self, _model: &str) -> std::result::Result<(), Failure> {
        Ok(())
    }
}

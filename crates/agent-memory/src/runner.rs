//! The agent's own runner: the client or process that runs the agent's turns.

use std::fmt::Debug;

use async_trait::async_trait;
use model_client::Failure;

/// Runs an agent's turns: a client that holds a conversation, or a process such as an agent's command line.
#[async_trait]
pub trait Runner: Send + Sync + Debug {
    /// Sends a prompt to the model and returns the answer. The runner may have a system prompt and send it in addition
    /// to `system`.
    ///
    /// # Errors
    /// A failure if there is no complete answer.
    async fn generate(&self, system: &str, user: &str) -> std::result::Result<String, Failure>;

    /// Returns whether the runner manages its conversation itself. A handoff leaves such a runner unchanged. Any other
    /// runner is reset after a handoff, so that its next turn begins with the summary. Default: false.
    fn stateful(&self) -> bool {
        false
    }

    /// Ends the conversation that the runner holds. The next turn passes the new context to the runner.
    ///
    /// # Errors
    /// A failure if the runner cannot be started again. The handoff is already published and stays.
    async fn reset(&self) -> std::result::Result<(), Failure>;

    /// Returns the name of the model that the runner calls; `None` if the model cannot be changed.
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

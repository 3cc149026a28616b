//! The agent's own runner: the model client that holds the conversation.

use std::fmt::Debug;

use async_trait::async_trait;
use model_client::Failure;

/// Runs an agent's turns: a client that holds a conversation, or a process such as an agent's command line.
#[async_trait]
pub trait Runner: Send + Sync + Debug {
    /// Answers a prompt. The runner may also keep a system prompt that it already has.
    ///
    /// # Errors
    /// When there is no complete answer.
    async fn generate(&self, system: &str, user: &str) -> std::result::Result<String, Failure>;

    /// Whether it keeps the conversation itself. A stateful runner is left unchanged after a handoff. Another one is
    /// reset, so that it begins with the summary.
    fn stateful(&self) -> bool {
        false
    }

    /// Ends the conversation that it holds. The next turn passes it the new context.
    ///
    /// # Errors
    /// When the runner cannot be started again. The handoff is published even then.
    async fn reset(&self) -> std::result::Result<(), Failure>;

    /// Returns the model that it calls; `None` if it has no choice.
    fn model(&self) -> Option<String> {
        None
    }

    /// Changes the model that it calls.
    ///
    /// # Errors
    /// When it does not have the model.
    async fn set_model(&self, _model: &str) -> std::result::Result<(), Failure> {
        Ok(())
    }
}

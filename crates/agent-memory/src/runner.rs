//! The agent's own runner: the model that holds the conversation.

use std::fmt::Debug;

use async_trait::async_trait;
use model_client::Failure;

/// What runs an agent's turns: a client with a conversation of its own, or a process such as an agent's command line.
#[async_trait]
pub trait Runner: Send + Sync + Debug {
    /// Answers a prompt. A system prompt that it has of its own may stay.
    ///
    /// # Errors
    /// When no answer came, or only a part of one.
    async fn generate(&self, system: &str, user: &str) -> std::result::Result<String, Failure>;

    /// Whether it keeps the conversation itself. Such a runner is left as it is after a handoff; another one is reset,
    /// so that it begins with the summary.
    fn stateful(&self) -> bool {
        false
    }

    /// Ends the conversation that it holds: the next turn gives it the new context.
    ///
    /// # Errors
    /// When the runner cannot be started again. The handoff is published then.
    async fn reset(&self) -> std::result::Result<(), Failure>;

    /// The model that it asks; `None` where it has no choice.
    fn model(&self) -> Option<String> {
        None
    }

    /// Changes the model that it asks.
    ///
    /// # Errors
    /// When it does not have the model.
    async fn set_model(&self, _model: &str) -> std::result::Result<(), Failure> {
        Ok(())
    }
}

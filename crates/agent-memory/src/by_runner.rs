//! Handoffs with a summary by the agent's own runner.

use std::sync::Arc;

use async_trait::async_trait;
use model_client::{Failure, FailureKind};
use summarize_escalation::prompt::PromptSet;
use summarize_escalation::{
    Error as SummarizerError, Summarizer, SummarizerResponse, SummaryRequest,
};

use crate::error::Result;
use crate::handing_over::{HandOver, HandOverOutcome};
use crate::runner::Runner;
use crate::session::Session;

/// A summarizer that sends its prompts to the agent's own [`Runner`].
#[derive(Debug)]
struct AskRunner {
    id: String,
    runner: Arc<dyn Runner>,
    model: Option<String>,
    prompts: PromptSet,
}

#[async_trait]
impl Summarizer for AskRunner {
    fn id(&self) -> &str {
        &self.id
    }

    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> std::result::Result<SummarizerResponse, SummarizerError> {
        let prompt = self.prompts.render(request);
        let answer = self.runner.generate(&prompt.system, &prompt.user).await;
        let text = answer.map_err(|failure| SummarizerError::provider(&self.id, failure))?;
        if text.trim().is_empty() {
            let failure = Failure::new(FailureKind::Empty, "empty summary response");
            return Err(SummarizerError::provider(&self.id, failure));
        }
        Ok(SummarizerResponse::new(self.prompts.read(&text)))
    }
}

impl Session {
    /// Hands the session over with a summary by the agent's own runner, and restores the runner's model afterwards.
    /// After a completed handoff, a runner that is not stateful is reset once. If the handoff is skipped or fails, no
    /// runner is reset.
    pub(crate) async fn hand_over_by(
        &self,
        runner: &Arc<dyn Runner>,
        request: &HandOver,
    ) -> Result<HandOverOutcome> {
        let fast_model = request.runner_model.as_deref();
        let usual = runner.model();
        if let Some(model) = fast_model {
            runner.set_model(model).await?;
        }
        let model = fast_model.map(str::to_owned).or(usual.clone());
        let prompts = PromptSet::handoff_sections();
        let writer = AskRunner {
            id: format!(
                "runner:{}/{}",
                model.as_deref().unwrap_or("own"),
                prompts.id
            ),
            runner: Arc::clone(runner),
            model,
            prompts,
        };
        let outcome = self.hand_over_with(request, &writer).await;
        if let (Some(usual), Some(_)) = (usual, fast_model) {
            runner.set_model(&usual).await?;
        }
        let outcome = outcome?;
        if matches!(outcome, HandOverOutcome::Done(_)) && !runner.stateful() {
            runner.reset().await?;
        }
        Ok(outcome)
    }
}

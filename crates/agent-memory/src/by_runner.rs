//! Handoffs with a summary by the agent's own runner.

use std::sync::Arc;

use async_trait::async_trait;
use summarize_escalation::prompt::PromptSet;
use summarize_escalation::{
    Error as SummarizerError, Summarizer, SummarizerResponse, SummaryRequest,
};

use crate::error::Result;
use crate::runner::Runner;

/// A summarizer that sends its prompts to the agent's own [`Runner`].
#[derive(Debug)]
pub(crate) struct AskRunner {
    id: String,
    runner: Arc<dyn Runner>,
    /// Model that the runner uses for the handoff; `None` for its current model.
    fast_model: Option<String>,
    /// Model of the runner before the handoff.
    usual: Option<String>,
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
        Ok(SummarizerResponse::new(self.prompts.read(&text)))
    }
}

impl AskRunner {
    /// Creates a summarizer that asks this runner, with this model; `None` for the runner's current model.
    pub(crate) fn new(runner: &Arc<dyn Runner>, fast_model: Option<&str>) -> Self {
        let usual = runner.model();
        let model = fast_model.map(str::to_owned).or(usual.clone());
        let prompts = PromptSet::handoff_sections();
        Self {
            id: format!(
                "runner:{}/{}",
                model.as_deref().unwrap_or("own"),
                prompts.id
            ),
            runner: Arc::clone(runner),
            fast_model: fast_model.map(str::to_owned),
            usual,
            model,
            prompts,
        }
    }

    /// Gives the runner the model for the handoff.
    pub(crate) async fn begin(&self) -> Result<()> {
        match &self.fast_model {
            Some(model) => Ok(self.runner.set_model(model).await?),
            None => Ok(()),
        }
    }

    /// Gives the runner its previous model again. After a completed handoff, resets a runner that is not stateful.
    pub(crate) async fn end(&self, is_done: bool) -> Result<()> {
        if let (Some(usual), Some(_)) = (&self.usual, &self.fast_model) {
            self.runner.set_model(usual).await?;
        }
        if is_done && !self.runner.stateful() {
            self.runner.reset().await?;
        }
        Ok(())
    }
}

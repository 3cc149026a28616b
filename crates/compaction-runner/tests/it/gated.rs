//! Summarizers that wait for a permit of the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use summarize_escalation::testing::Scripted;
use summarize_escalation::{Error, Summarizer, SummarizerResponse, SummaryRequest};
use tokio::sync::{Barrier, Semaphore};

/// A summarizer that answers once for each permit of its gate.
#[derive(Debug, Clone)]
pub(crate) struct Gated {
    id: String,
    label: String,
    provisional: bool,
    pub(crate) gate: Arc<Semaphore>,
    /// Barrier at which the first call waits for the first call of another summarizer.
    meet: Option<Arc<Barrier>>,
    calls: Arc<AtomicU32>,
    writer: Scripted,
}

impl Gated {
    pub(crate) fn new(id: &str, label: &str) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            provisional: false,
            gate: Arc::new(Semaphore::new(0)),
            meet: None,
            calls: Arc::default(),
            writer: Scripted::head_cut(),
        }
    }

    pub(crate) fn provisional(mut self) -> Self {
        self.provisional = true;
        self
    }

    pub(crate) fn meeting(mut self, at: &Arc<Barrier>) -> Self {
        self.meet = Some(Arc::clone(at));
        self
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Summarizer for Gated {
    fn id(&self) -> &str {
        &self.id
    }

    fn provisional(&self) -> bool {
        self.provisional
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if let (0, Some(meet)) = (call, &self.meet) {
            meet.wait().await;
        }
        self.gate.acquire().await.expect("the gate stays").forget();
        let request = SummaryRequest {
            target_tokens: request.target_tokens.saturating_sub(4),
            ..*request
        };
        let written = self.writer.summarize(&request).await?;
        Ok(SummarizerResponse::new(format!(
            "{} {}",
            self.label, written.text
        )))
    }
}

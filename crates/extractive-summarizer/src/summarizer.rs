//! Entry point of the crate: [`ExtractiveSummarizer`].

use std::borrow::Cow;
use std::sync::Arc;

use memory_model::SummaryBody;
use memory_model::conventions::{AgentConventions, GenericConventions};
use token_estimate::TokenEstimator;

use crate::source::Source;
use crate::{compose, gather};

/// Name and version of the extracts.
const ID: &str = "extractive@10";

/// Summarizes conversations without a model, by extracting their most important lines. The same source gives the same
/// text.
///
/// From messages, the extract takes the user's rules in their latest form, the user's requests, and the assistant's
/// explanations, conclusions and decisions. It also takes errors and the words right after them, the actions of tools
/// and their outcomes, the changes of edits, and the files read and changed. From summaries, it takes the most valuable
/// lines. In conversations with hardly any tool calls, users' words come before the assistant's. Later lines rank
/// higher. The items of an extract are in the order of the conversation, and each begins with the position of its
/// message in brackets, such as `[12]`. The first line and the lists of files and commands have no position.
///
/// Takes time proportional to the length of the source. Only the beginning and the end of a huge message are read.
///
/// An agent's conventions define the actions of its tools and the texts that its programs add; the default conventions
/// know no agent.
#[derive(Debug, Clone)]
#[must_use]
pub struct ExtractiveSummarizer {
    id: Cow<'static, str>,
    conventions: Option<Arc<dyn AgentConventions>>,
}

impl Default for ExtractiveSummarizer {
    fn default() -> Self {
        Self::new()
    }
}

impl ExtractiveSummarizer {
    /// Creates a summarizer with default conventions, which know no particular agent.
    pub const fn new() -> Self {
        Self {
            id: Cow::Borrowed(ID),
            conventions: None,
        }
    }

    /// Sets the conventions of the agent that took part in the conversations.
    pub fn with_conventions(mut self, conventions: Arc<dyn AgentConventions>) -> Self {
        self.id = Cow::Owned(format!("{ID}+{}", conventions.id()));
        self.conventions = Some(conventions);
        self
    }

    /// Returns the summarizer's name and version, such as `extractive@10`. Summarizers that may write different texts
    /// have different ids.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns an extract of `source` that costs at most `max_tokens` tokens, as `estimator` counts them. If no whole
    /// line fits, the extract is the beginning of the most important line. A budget of 0 gives an empty text.
    pub fn extract(
        &self,
        source: &[Source<'_>],
        max_tokens: u64,
        estimator: &dyn TokenEstimator,
    ) -> String {
        let body = self.extract_ranked(source, max_tokens, estimator);
        body.text().to_owned()
    }

    /// Returns an extract like [`extract`](Self::extract), together with the rank of each line. The lines with the
    /// highest rank are the headline: see [`rank_of`](crate::rank_of).
    pub fn extract_ranked(
        &self,
        source: &[Source<'_>],
        max_tokens: u64,
        estimator: &dyn TokenEstimator,
    ) -> SummaryBody {
        let conventions: &dyn AgentConventions = match &self.conventions {
            Some(conventions) => &**conventions,
            None => &GenericConventions,
        };
        let mut gathered = gather::gather(source, conventions);
        compose::compose(&mut gathered, source, max_tokens, estimator)
    }
}

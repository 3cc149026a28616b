//! The entry point.

use std::borrow::Cow;
use std::sync::Arc;

use memory_model::SummaryBody;
use memory_model::conventions::{AgentConventions, GenericConventions};
use token_estimate::TokenEstimator;

use crate::source::Source;
use crate::{compose, gather};

/// Name and version of the extracts.
const ID: &str = "extractive@9";

/// Makes extracts of conversations: deterministic, without a model.
///
/// From messages it takes the user's rules in their latest form, the user's requests, and the assistant's explanations,
/// conclusions and decisions. It also takes errors and the words right after them, the actions of tools and their
/// outcomes, the changes of edits, and the files read and changed. From summaries it takes their most valuable lines.
/// In conversations with hardly any calls of tools, users' words come before the assistant's. Newer material ranks
/// higher, and lines are printed in the order of the conversation. Each line carries the `[seq]` of its message.
///
/// Time is linear in the source; a huge message is read at its head and its tail.
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
    /// Returns a summarizer with conventions that know no agent.
    pub const fn new() -> Self {
        Self {
            id: Cow::Borrowed(ID),
            conventions: None,
        }
    }

    /// Sets the conventions of the agent in the conversations.
    pub fn with_conventions(mut self, conventions: Arc<dyn AgentConventions>) -> Self {
        self.id = Cow::Owned(format!("{ID}+{}", conventions.id()));
        self.conventions = Some(conventions);
        self
    }

    /// Returns the name and version, such as `extractive@9`. Summarizers that may write different texts
    /// have different ids.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns an extract of `source` that costs at most `max_tokens`, as `estimator` counts. A
    /// budget too small for one whole line gives the beginning of the most important one; a budget
    /// of 0 gives an empty text.
    pub fn extract(
        &self,
        source: &[Source<'_>],
        max_tokens: u64,
        estimator: &dyn TokenEstimator,
    ) -> String {
        let body = self.extract_ranked(source, max_tokens, estimator);
        body.text().to_owned()
    }

    /// Returns an extract as [`extract`](Self::extract) does, with the rank of each line. The lines of the
    /// highest rank are its headline: see [`rank_of`](crate::rank_of).
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

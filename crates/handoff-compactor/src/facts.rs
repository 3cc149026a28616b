//! Data that a handoff stores in the metadata of its summary.

use compaction_plan::Request;
use memory_model::{Purpose, RawJson, Summary};
use serde::{Deserialize, Serialize};

use crate::policy::HandoffPolicy;

/// Request for the summary of a handoff. It is stored with the summary, so that the same summary can be requested
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandoffFacts {
    purpose: Purpose,
    target_tokens: u64,
    max_tokens: u64,
}

impl HandoffFacts {
    pub(crate) const FACT: &'static str = "handoff";

    pub(crate) fn of(request: &Request) -> Self {
        Self {
            purpose: request.purpose,
            target_tokens: request.target_tokens,
            max_tokens: request.max_tokens,
        }
    }

    /// Returns the request that is stored in the metadata of a summary. `None` if the summary is not from a handoff.
    pub(crate) fn read(summary: &Summary) -> Option<Self> {
        #[derive(Deserialize)]
        struct Meta {
            handoff: Option<HandoffFacts>,
        }
        let meta = summary.meta.as_ref().map(RawJson::as_str)?;
        serde_json::from_str::<Meta>(meta).ok()?.handoff
    }

    pub(crate) fn request(&self, policy: &HandoffPolicy, rule: String) -> Request {
        Request {
            purpose: self.purpose,
            target_tokens: self.target_tokens,
            max_tokens: self.max_tokens,
            details: Some(rule),
            prompts: policy.prompts.clone(),
            ..Request::default()
        }
    }
}

/// Returns the purpose of a handoff's summary: to replace its sources, or to replace the beginning of a turn. `None` if
/// the summary is not from a handoff.
pub fn purpose(summary: &Summary) -> Option<Purpose> {
    HandoffFacts::read(summary).map(|facts| facts.purpose)
}

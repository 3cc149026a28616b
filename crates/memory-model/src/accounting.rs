//! Costs of messages and summaries, by a token estimator.

use std::fmt;

use token_estimate::{EstimatorId, Role, TokenEstimator};

use crate::borrowed::PartsOf;
use crate::hash::Hash;
use crate::ids::{RenderingId, SeqRange};
use crate::message::{EntryKind, Message};
use crate::part::Part;
use crate::summary::{Child, Recipe, Summary, SummaryFigures};
use crate::time::Timestamp;

/// Counts costs in tokens, from the rendered form: every cost that is stored, planned or compared with a budget.
pub trait Accounting: Send + Sync + fmt::Debug {
    /// Token estimator with which all costs are counted.
    fn estimator(&self) -> &dyn TokenEstimator;

    /// Rendering for which [`Accounting::summary`] counts a summary's cost.
    fn rendering(&self) -> RenderingId;

    /// Cost of a summary in a context, in tokens, when it is rendered by [`Accounting::rendering`].
    fn summary(&self, summary: &Summary) -> u64;

    /// Name and version of the token estimator. Costs counted by different estimators are never added.
    fn estimator_id(&self) -> EstimatorId {
        self.estimator().id()
    }

    /// Cost of a text by itself, in tokens.
    fn text(&self, text: &str) -> u64 {
        self.estimator().text(text)
    }

    /// Cost of a rendered message of these parts, in tokens.
    fn parts(&self, role: Role, parts: &[Part]) -> u64 {
        self.estimator().message(&PartsOf { role, parts })
    }

    /// Cost of a message rendered by itself, in tokens; 0 for a note.
    fn message(&self, message: &Message) -> u64 {
        match message.kind {
            EntryKind::Message => self.parts(message.role, &message.parts),
            EntryKind::Note => 0,
        }
    }
}

/// Returns the tokens that rendering adds to a summary's text in a context, counted as the cost of a summary of these
/// sources with an empty text.
pub fn summary_overhead(
    accounting: &dyn Accounting,
    range: SeqRange,
    depth: u32,
    sources: &[Child],
) -> u64 {
    // Times as long as times get in practice: microseconds that do not end in zero.
    let at = Timestamp(1_000_000_000_123_456);
    // Figures as long as they get in practice.
    let figures = SummaryFigures {
        descendant_count: 10 * range.len(),
        ..SummaryFigures::default()
    };
    let figures = std::collections::BTreeMap::from([("figures", figures)]);
    let sources = sources.to_vec();
    accounting.summary(&Summary {
        meta: crate::RawJson::from_value(&figures).ok(),
        earliest_at: at,
        latest_at: at,
        created_at: at,
        ..Summary::new(range, depth, sources, Hash::ZERO, Recipe::new(""), "")
    })
}

#[cfg(test)]
mod tests {
    use token_estimate::HeuristicEstimator;

    use super::*;
    use crate::json::RawJson;
    use crate::part::{Media, MediaSource};

    #[test]
    fn a_message_is_counted_by_its_parts() {
        let call = Message::tool_call("c1", "read", RawJson::parse(r#"{"a":1}"#).unwrap());
        assert_eq!(HeuristicEstimator::Bytes4.message(&call), 3);
        let result = Message::tool_result("c1", "x".repeat(40));
        assert_eq!(HeuristicEstimator::Bytes4.message(&result), 10);
        let image = Part::Image(Media {
            media_type: "image/png".to_owned(),
            source: MediaSource::Data("A".repeat(100_000)),
        });
        assert_eq!(
            HeuristicEstimator::Bytes4.message(&Message::new(Role::User, vec![image])),
            1200
        );
        let note = Message::note(Role::System, vec![Part::text("model changed")]);
        assert_eq!(HeuristicEstimator::Bytes4.message(&note), 0);
    }
}

//! Costs of messages and summaries, counted by a token estimator.

use std::fmt;

use token_estimate::{EstimatorId, Role, TokenEstimator};

use crate::borrowed::PartsOf;
use crate::hash::Hash;
use crate::ids::{RenderingId, SeqRange};
use crate::message::{EntryKind, Message};
use crate::part::Part;
use crate::summary::{Child, Recipe, Summary, SummaryFigures};
use crate::time::Timestamp;

/// Counts the tokens that messages and summaries cost in a context. Every cost that is stored, planned or compared with
/// a budget is counted by it.
pub trait Accounting: Send + Sync + fmt::Debug {
    /// Returns the token estimator that counts all costs.
    fn estimator(&self) -> &dyn TokenEstimator;

    /// Returns the id of the form in which a context shows summaries. [`Accounting::summary`] counts the cost of this
    /// form.
    fn rendering(&self) -> RenderingId;

    /// Returns the cost of a summary in a context, in tokens, in the form that [`Accounting::rendering`] names.
    fn summary(&self, summary: &Summary) -> u64;

    /// Returns the name and version of the token estimator. Costs counted by different estimators are never added.
    fn estimator_id(&self) -> EstimatorId {
        self.estimator().id()
    }

    /// Returns the cost of a text alone, in tokens.
    fn text(&self, text: &str) -> u64 {
        self.estimator().text(text)
    }

    /// Returns the cost of a message with these parts in a context, in tokens.
    fn parts(&self, role: Role, parts: &[Part]) -> u64 {
        self.estimator().message(&PartsOf { role, parts })
    }

    /// Returns the cost of a message in a context, in tokens; 0 for a note.
    fn message(&self, message: &Message) -> u64 {
        match message.kind {
            EntryKind::Message => self.parts(message.role, &message.parts),
            EntryKind::Note => 0,
        }
    }
}

/// Returns the number of tokens that rendering adds to the text of a summary in a context. This is the cost of a
/// summary with these sources and an empty text.
pub fn summary_overhead(
    accounting: &dyn Accounting,
    range: SeqRange,
    depth: u32,
    sources: &[Child],
) -> u64 {
    // A time that takes as many characters as usual: its microseconds do not end in zero.
    let at = Timestamp(1_000_000_000_123_456);
    // Figures with about as many digits as usual.
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

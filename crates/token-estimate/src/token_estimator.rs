use std::fmt::Debug;
use std::sync::Arc;

use crate::tool::{self, ToolView};
use crate::{EstimatorId, MessageView, SafetyFactor};

/// Estimates or counts the tokens of texts and messages.
///
/// Implementations are pure: the same input gives the same figure under the same [`id`]. Arithmetic saturates, and
/// methods do not panic.
///
/// [`id`]: TokenEstimator::id
pub trait TokenEstimator: Send + Sync + Debug {
    /// Returns the name and version of the estimator's formula. Store them with every figure that the estimator
    /// returns.
    fn id(&self) -> EstimatorId;

    /// Returns the cost of a text alone, in tokens. Does not allocate memory.
    fn text(&self, text: &str) -> u64;

    /// Returns the cost of a text, in tokens, if it is at most `limit`. Returns `None` otherwise. Some estimators stop
    /// reading when the limit is exceeded.
    fn fits(&self, text: &str, limit: u64) -> Option<u64> {
        let tokens = self.text(text);
        (tokens <= limit).then_some(tokens)
    }

    /// Returns the cost of one message, in tokens, including its fixed costs. Returns 0 for a note, which is never sent
    /// to a model.
    fn message(&self, message: &dyn MessageView) -> u64;

    /// Returns the number of tokens that a request costs in addition to its messages. The cost of a message does not
    /// include them, so subtract them from the budget.
    fn request_overhead(&self) -> u64 {
        0
    }

    /// Returns the cost of a tool's definition in a request, in tokens.
    ///
    /// It is the cost of the tool's name, description and JSON Schema as texts, plus 16 for the text that providers
    /// write around a tool, plus 2 for each element of an array.
    ///
    /// OpenAI renders tools as declarations in TypeScript, which are shorter than the JSON of the same schema except
    /// for the items of an `enum`. Anthropic renders them as JSON. The returned cost is an upper bound for both if the
    /// estimator counts texts exactly. `docs/measurements/tokens.md` in the repository lists the difference.
    fn tool(&self, tool: &ToolView<'_>) -> u64 {
        tool.cost(&|text| self.text(text))
    }

    /// Returns the number of tokens that a request with at least one tool costs in addition to its messages, its tools
    /// and [`request_overhead`](Self::request_overhead). An example is the system prompt that Anthropic adds. Default
    /// 12, which is OpenAI's figure.
    fn tools_overhead(&self) -> u64 {
        tool::REQUEST
    }

    /// Returns the factor by which to divide a budget before comparing estimates with it. It is an upper quantile of
    /// the ratio of real to estimated tokens of whole contexts. [`Calibration`](crate::Calibration) replaces it by a
    /// factor learnt from reported usage. Default 1, as for exact counts and heuristics.
    fn safety_factor(&self) -> SafetyFactor {
        SafetyFactor::ONE
    }
}

/// Methods that every [`TokenEstimator`] has in addition.
pub trait TokenEstimatorExt: TokenEstimator {
    /// Returns the cost of a list of messages, in tokens: the sum of their costs.
    fn messages<M: MessageView>(&self, messages: impl IntoIterator<Item = M>) -> u64 {
        messages
            .into_iter()
            .fold(0, |sum: u64, m| sum.saturating_add(self.message(&m)))
    }

    /// Returns the cost of all tools of a request, in tokens: the sum of their costs plus
    /// [`tools_overhead`](TokenEstimator::tools_overhead). Returns 0 without tools.
    fn tools<'a>(&self, tools: impl IntoIterator<Item = ToolView<'a>>) -> u64 {
        tools
            .into_iter()
            .map(|tool| self.tool(&tool))
            .reduce(u64::saturating_add)
            .map_or(0, |sum| sum.saturating_add(self.tools_overhead()))
    }
}

impl<E: TokenEstimator + ?Sized> TokenEstimatorExt for E {}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<E: TokenEstimator + ?Sized> TokenEstimator for $pointer {
            fn id(&self) -> EstimatorId {
                (**self).id()
            }

            fn text(&self, text: &str) -> u64 {
                (**self).text(text)
            }

            fn fits(&self, text: &str, limit: u64) -> Option<u64> {
                (**self).fits(text, limit)
            }

            fn message(&self, message: &dyn MessageView) -> u64 {
                (**self).message(message)
            }

            fn request_overhead(&self) -> u64 {
                (**self).request_overhead()
            }

            fn tool(&self, tool: &ToolView<'_>) -> u64 {
                (**self).tool(tool)
            }

            fn tools_overhead(&self) -> u64 {
                (**self).tools_overhead()
            }

            fn safety_factor(&self) -> SafetyFactor {
                (**self).safety_factor()
            }
        }
    )*};
}

forward!(&E, Box<E>, Arc<E>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeuristicEstimator, MessageParts, PartView, Role};

    #[test]
    fn pointers_forward_to_the_estimator() {
        let parts = [PartView::Text("four letters")];
        let message = MessageParts::new(Role::User, &parts);
        let plain = HeuristicEstimator::Bytes3_5;
        let shared: Arc<dyn TokenEstimator> = Arc::new(plain);
        let boxed: Box<dyn TokenEstimator> = Box::new(&plain);
        for any in [&shared as &dyn TokenEstimator, &boxed, &&plain] {
            assert_eq!(any.id(), plain.id());
            assert_eq!(any.text("four letters"), 3);
            assert_eq!(
                (any.fits("four letters", 3), any.fits("four letters", 2)),
                (Some(3), None)
            );
            assert_eq!(any.request_overhead(), 100);
            assert_eq!(any.messages([&message, &message]), 26);
            assert_eq!(any.messages::<MessageParts<'_>>([]), 0);
        }
    }

    #[test]
    fn no_tools_are_free_and_tools_cost_the_overhead_once() {
        let plain = HeuristicEstimator::Bytes4;
        let tool = ToolView::new("read", "Reads a file.", "{}");
        assert_eq!(plain.tools([]), 0);
        assert_eq!(plain.tools([tool]), plain.tool(&tool) + 12);
        assert_eq!(plain.tools([tool, tool]), 2 * plain.tool(&tool) + 12);
    }

    #[test]
    fn pointers_forward_the_tool_costs_of_an_estimator() {
        /// An estimator that overrides both methods for tools.
        #[derive(Debug)]
        struct OwnTools;

        impl TokenEstimator for OwnTools {
            fn id(&self) -> EstimatorId {
                HeuristicEstimator::Bytes4.id()
            }
            fn text(&self, _: &str) -> u64 {
                0
            }
            fn message(&self, _: &dyn MessageView) -> u64 {
                0
            }
            fn tool(&self, _: &ToolView<'_>) -> u64 {
                7
            }
            fn tools_overhead(&self) -> u64 {
                100
            }
        }

        let shared: Arc<dyn TokenEstimator> = Arc::new(OwnTools);
        let boxed: Box<dyn TokenEstimator> = Box::new(&OwnTools);
        let tool = ToolView::new("", "", "");
        for any in [&shared as &dyn TokenEstimator, &boxed, &&OwnTools] {
            assert_eq!(any.tools([tool, tool]), 114);
        }
    }
}

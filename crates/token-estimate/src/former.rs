//! Former versions of estimators, for stored token counts that they computed.

use crate::media::MediaRules;
use crate::{EstimatorId, MessageView, SafetyFactor, TokenEstimator, ToolView};

/// An estimator whose version before this one differs only in how it counts documents and other binary data.
pub(crate) trait Counting: TokenEstimator {
    /// Returns the cost of one message by these rules, in tokens.
    fn message_by(&self, message: &dyn MessageView, rules: MediaRules) -> u64;
}

/// The version of an estimator that counted a document as one image, and Base64 in unknown parts as text.
#[derive(Debug)]
pub(crate) struct Former<E>(pub(crate) E);

impl<E: Counting> TokenEstimator for Former<E> {
    fn id(&self) -> EstimatorId {
        self.0.id().before()
    }

    fn text(&self, text: &str) -> u64 {
        self.0.text(text)
    }

    fn fits(&self, text: &str, limit: u64) -> Option<u64> {
        self.0.fits(text, limit)
    }

    fn message(&self, message: &dyn MessageView) -> u64 {
        self.0.message_by(message, MediaRules::Before)
    }

    fn request_overhead(&self) -> u64 {
        self.0.request_overhead()
    }

    fn tool(&self, tool: &ToolView<'_>) -> u64 {
        self.0.tool(tool)
    }

    fn tools_overhead(&self) -> u64 {
        self.0.tools_overhead()
    }

    fn safety_factor(&self) -> SafetyFactor {
        self.0.safety_factor()
    }
}

#[cfg(test)]
mod tests {
    use crate::media::tests::pdf;
    use crate::{MessageParts, PartView, Role, TokenEstimator, estimator_names, registry};

    fn cost(estimator: &dyn TokenEstimator, part: PartView<'_>) -> u64 {
        estimator.message(&MessageParts::new(Role::Assistant, &[part]))
    }

    #[test]
    fn base64_is_never_text_and_former_ids_keep_their_figures() {
        let data = "aB3/".repeat(10_000);
        let json = format!(r#"{{"type":"image_generation_call","result":"iVBORw0KGgo{data}"}}"#);
        let sound = format!(r#"{{"type":"resource","resource":{{"blob":"{data}"}}}}"#);
        let text = format!("data:image/png;base64,{data}");
        let one = [PartView::Text(&text)];
        let result = PartView::ToolResult {
            call_id: "c",
            name: None,
            content: &one,
            is_error: false,
        };
        for name in estimator_names() {
            let now = registry::estimator(name).unwrap();
            let before = registry::estimator(now.id().before().as_str()).unwrap();
            assert_eq!(before.id(), now.id().before());
            for part in [PartView::Other(&json), PartView::Other(&sound), result] {
                let (now, before) = (cost(&*now, part), cost(&*before, part));
                assert!(now < 1_800, "{name}: {now}");
                assert!(before > 9_000, "{name}: {before}");
            }
            let words = PartView::Other(r#"{"type":"x","url":"https://a.b"}"#);
            assert_eq!(cost(&*now, words), cost(&*before, words), "{name}");
        }
    }

    #[test]
    fn documents_cost_by_their_pages() {
        let (short, long) = (pdf(1, true), pdf(90, true));
        for name in estimator_names() {
            let now = registry::estimator(name).unwrap();
            let before = registry::estimator(now.id().before().as_str()).unwrap();
            let pages = |pdf| cost(&*now, PartView::File { data: pdf });
            assert_eq!(pages(&long) - pages(&short), 89 * 3_000, "{name}");
            let former = |pdf| cost(&*before, PartView::File { data: pdf });
            assert_eq!(former(&long), former(&short), "{name}");
        }
    }
}

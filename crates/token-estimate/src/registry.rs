//! Looks up the estimators of this build by name or id.

use std::sync::Arc;

use crate::{Calibrated, Error, HeuristicEstimator, TokenEstimator};

/// Default estimator for new conversations.
const DEFAULT: Calibrated = Calibrated::O200k;

/// Returns the default estimator for new conversations: the calibrated estimator for `o200k_base`.
pub fn default_estimator() -> Arc<dyn TokenEstimator> {
    shared(DEFAULT)
}

/// Returns every estimator of this build: calibrated, exact (with the feature `exact`), heuristic.
fn all() -> impl Iterator<Item = Arc<dyn TokenEstimator>> {
    let all = Calibrated::ALL.into_iter().map(shared);
    #[cfg(feature = "exact")]
    let all = all.chain(crate::Exact::ALL.into_iter().map(shared));
    all.chain(HeuristicEstimator::ALL.into_iter().map(shared))
}

fn shared(estimator: impl TokenEstimator + 'static) -> Arc<dyn TokenEstimator> {
    Arc::new(estimator)
}

/// Returns the estimator with a name such as `calibrated`, or with an id such as `calibrated@5`.
///
/// # Errors
///
/// [`UnknownEstimator`](crate::ErrorKind::UnknownEstimator) for any other text; the message lists the known names.
pub fn estimator(name_or_id: &str) -> Result<Arc<dyn TokenEstimator>, Error> {
    all()
        .find(|estimator| {
            let id = estimator.id();
            id.name() == name_or_id || id.as_str() == name_or_id
        })
        .ok_or_else(|| Error::unknown_estimator(name_or_id, estimator_names()))
}

/// Returns the names that [`estimator`] accepts: the calibrated, the exact (with the feature `exact`) and the heuristic
/// estimators.
pub fn estimator_names() -> impl Iterator<Item = &'static str> {
    let names = Calibrated::ALL.into_iter().map(Calibrated::name);
    #[cfg(feature = "exact")]
    let names = names.chain(crate::Exact::ALL.into_iter().map(crate::Exact::name));
    names.chain(
        HeuristicEstimator::ALL
            .into_iter()
            .map(HeuristicEstimator::name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::pdf;
    use crate::{ErrorKind, MessageParts, PartView, Role};

    fn cost(estimator: &dyn TokenEstimator, part: PartView<'_>) -> u64 {
        estimator.message(&MessageParts::new(Role::Assistant, &[part]))
    }

    #[test]
    fn base64_is_never_text() {
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
        for estimator in all() {
            for part in [PartView::Other(&json), PartView::Other(&sound), result] {
                let cost = cost(&*estimator, part);
                assert!(cost < 1_800, "{}: {cost}", estimator.id());
            }
        }
    }

    #[test]
    fn documents_cost_by_their_pages() {
        let (short, long) = (pdf(1, true), pdf(90, true));
        for estimator in all() {
            let pages = |pdf| cost(&*estimator, PartView::File { data: pdf });
            assert_eq!(
                pages(&long) - pages(&short),
                89 * 3_000,
                "{}",
                estimator.id()
            );
        }
    }

    #[test]
    fn names_and_ids_resolve_to_their_estimator() {
        for name in estimator_names() {
            let id = estimator(name).unwrap().id();
            assert_eq!(id.name(), name);
            assert_eq!(estimator(id.as_str()).unwrap().id(), id);
        }
        let default = default_estimator().id();
        assert!(estimator_names().any(|name| name == default.name()));
    }

    #[test]
    fn unknown_name_error_lists_the_known_names() {
        let error = estimator("anna@9").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownEstimator);
        let exact = if cfg!(feature = "exact") {
            " o200k, cl100k,"
        } else {
            ""
        };
        assert_eq!(
            error.to_string(),
            format!(
                "there is no estimator \"anna@9\": choose one of calibrated, calibrated-cl100k, \
                 calibrated-unknown,{exact} anna, anna-handoff, operator-use, pi, koda, phi-core"
            )
        );
    }
}

use std::fmt::Debug;
use std::sync::Arc;

use crate::{
    Calibrated, Error, ErrorKind, EstimatorId, HeuristicEstimator, MessageView, SafetyFactor,
};

/// Estimates or counts the tokens of texts and messages.
///
/// Implementations are pure: the same input gives the same figure under the same [`id`].
/// Arithmetic saturates; nothing panics.
///
/// [`id`]: TokenEstimator::id
pub trait TokenEstimator: Send + Sync + Debug {
    /// Name and version of the formula. Store it beside every figure.
    fn id(&self) -> EstimatorId;

    /// Cost of a text by itself, in tokens. Does not allocate.
    fn text(&self, text: &str) -> u64;

    /// Cost of a text in tokens if it is at most `limit`, else `None`. Estimators that can stop early do.
    fn fits(&self, text: &str, limit: u64) -> Option<u64> {
        let tokens = self.text(text);
        (tokens <= limit).then_some(tokens)
    }

    /// Cost of one message in tokens, its fixed costs included; 0 for a note.
    fn message(&self, message: &dyn MessageView) -> u64;

    /// Tokens that a request costs besides its messages. Not part of any message's cost: subtract it
    /// from the budget.
    fn request_overhead(&self) -> u64 {
        0
    }

    /// Factor that a budget is divided by before it is compared with estimates: an upper quantile of
    /// real / estimated tokens of whole contexts. Used until [`Calibration`](crate::Calibration) has
    /// learnt a better one. 1 for exact counts and heuristics.
    fn safety_factor(&self) -> SafetyFactor {
        SafetyFactor::ONE
    }
}

/// Extension methods for every [`TokenEstimator`].
pub trait TokenEstimatorExt: TokenEstimator {
    /// Cost of a list of messages in tokens: the sum over its messages.
    fn messages<M: MessageView>(&self, messages: impl IntoIterator<Item = M>) -> u64 {
        messages
            .into_iter()
            .fold(0, |sum: u64, m| sum.saturating_add(self.message(&m)))
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

            fn safety_factor(&self) -> SafetyFactor {
                (**self).safety_factor()
            }
        }
    )*};
}

forward!(&E, Box<E>, Arc<E>);

/// Estimator of new conversations.
const DEFAULT: Calibrated = Calibrated::O200k;

/// Returns the estimator for new conversations: `calibrated`, for `o200k_base`.
pub fn default_estimator() -> Arc<dyn TokenEstimator> {
    shared(DEFAULT)
}

/// Every estimator of this build: calibrated, exact (feature `exact`), heuristic.
fn all() -> impl Iterator<Item = Arc<dyn TokenEstimator>> {
    let all = Calibrated::ALL.into_iter().map(shared);
    #[cfg(feature = "exact")]
    let all = all.chain(crate::Exact::ALL.into_iter().map(shared));
    all.chain(HeuristicEstimator::ALL.into_iter().map(shared))
}

fn shared(estimator: impl TokenEstimator + 'static) -> Arc<dyn TokenEstimator> {
    Arc::new(estimator)
}

/// Returns the estimator with this name (`calibrated`) or id (`calibrated@3`).
///
/// # Errors
///
/// [`ErrorKind::UnknownEstimator`] for any other text; the message lists the known names.
pub fn estimator(name_or_id: &str) -> Result<Arc<dyn TokenEstimator>, Error> {
    all()
        .find(|estimator| {
            let id = estimator.id();
            id.name() == name_or_id || id.as_str() == name_or_id
        })
        .ok_or_else(|| Error::new(ErrorKind::UnknownEstimator, name_or_id))
}

/// Names that [`estimator`] accepts: calibrated, exact (feature `exact`), heuristic.
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
    use crate::{MessageParts, PartView, Role};

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
}

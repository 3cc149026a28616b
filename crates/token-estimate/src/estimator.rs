use std::fmt::Debug;
use std::sync::Arc;

use crate::calibrated::Version2;
use crate::{Calibrated, CountedMessage, Error, ErrorKind, EstimatorId, Preset};

/// Says what text and messages cost, in tokens.
///
/// Implementations are pure: the same input gives the same figure under the same [`id`].
/// Arithmetic saturates; nothing panics.
///
/// [`id`]: TokenEstimator::id
pub trait TokenEstimator: Send + Sync + Debug {
    /// The formula's name and version, to be recorded beside every figure.
    fn id(&self) -> EstimatorId;

    /// The cost of a text by itself. Allocates nothing.
    fn text(&self, text: &str) -> u64;

    /// The cost of a text if it is at most `limit` tokens, else `None`. Estimators that can stop early do.
    fn fits(&self, text: &str, limit: u64) -> Option<u64> {
        let tokens = self.text(text);
        (tokens <= limit).then_some(tokens)
    }

    /// The cost of one message, its own overhead included.
    fn message(&self, message: &dyn CountedMessage) -> u64;

    /// What a request costs besides its messages. It is in no message's cost; a caller that wants
    /// it leaves that much of the budget free.
    fn request_overhead(&self) -> u64 {
        0
    }

    /// By how much the real count may be above the estimate of a whole context: an upper quantile of
    /// real / estimated, in thousandths. A budget is divided by it before estimates are held against
    /// it, as long as nothing better was learnt ([`Calibration`](crate::Calibration)). 1,000, which
    /// changes nothing, for exact counts and for presets, which are taken at their word.
    fn upper_permille(&self) -> u32 {
        1_000
    }
}

/// What can be said of every [`TokenEstimator`].
pub trait TokenEstimatorExt: TokenEstimator {
    /// The cost of a list: the sum over its messages.
    fn messages<M: CountedMessage>(&self, messages: impl IntoIterator<Item = M>) -> u64 {
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

            fn message(&self, message: &dyn CountedMessage) -> u64 {
                (**self).message(message)
            }

            fn request_overhead(&self) -> u64 {
                (**self).request_overhead()
            }

            fn upper_permille(&self) -> u32 {
                (**self).upper_permille()
            }
        }
    )*};
}

forward!(&E, Box<E>, Arc<E>);

/// What new conversations are counted with.
const DEFAULT: Calibrated = Calibrated::O200k;

/// The estimator for new conversations: `calibrated`, for o200k.
pub fn default_estimator() -> Arc<dyn TokenEstimator> {
    shared(DEFAULT)
}

/// Every estimator of this build: calibrated, exact (feature `exact`), presets.
fn all() -> impl Iterator<Item = Arc<dyn TokenEstimator>> {
    let all = Calibrated::ALL.into_iter().map(shared);
    #[cfg(feature = "exact")]
    let all = all.chain(crate::Exact::ALL.into_iter().map(shared));
    all.chain(Preset::ALL.into_iter().map(shared))
}

fn shared(estimator: impl TokenEstimator + 'static) -> Arc<dyn TokenEstimator> {
    Arc::new(estimator)
}

/// The estimator of that name (`calibrated`) or id (`calibrated@3`). By id there are former versions too, for what was
/// counted with them.
///
/// # Errors
///
/// [`ErrorKind::UnknownEstimator`], which lists the names there are.
pub fn estimator(name_or_id: &str) -> Result<Arc<dyn TokenEstimator>, Error> {
    let former = Calibrated::ALL.map(|family| shared(Version2(family)));
    all()
        .chain(former)
        .find(|estimator| {
            let id = estimator.id();
            id.name() == name_or_id || id.as_str() == name_or_id
        })
        .ok_or_else(|| Error::new(ErrorKind::UnknownEstimator, name_or_id))
}

/// The names that [`estimator`] knows: the calibrated ones, the exact ones (feature `exact`), the presets.
pub fn estimator_names() -> impl Iterator<Item = &'static str> {
    let names = Calibrated::ALL.into_iter().map(Calibrated::name);
    #[cfg(feature = "exact")]
    let names = names.chain(crate::Exact::ALL.into_iter().map(crate::Exact::name));
    names.chain(Preset::ALL.into_iter().map(Preset::name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageParts, Piece, Role};

    #[test]
    fn every_name_and_every_id_finds_its_estimator() {
        for name in estimator_names() {
            let found = estimator(name).unwrap();
            assert_eq!(found.id().name(), name);
            assert_eq!(estimator(found.id().as_str()).unwrap().id(), found.id());
        }
        let default = default_estimator().id();
        assert!(estimator_names().any(|name| name == default.name()));
    }

    #[test]
    fn what_a_former_version_counted_is_counted_alike() {
        for family in Calibrated::ALL {
            let name = family.name();
            let former = estimator(&format!("{name}@2")).unwrap();
            assert_eq!(former.id().as_str(), format!("{name}@2"));
            assert_eq!(former.text("a word"), family.text("a word"));
            assert_eq!(estimator(name).unwrap().id(), family.id());
        }
        let former = estimator("calibrated@2").unwrap();
        let marks = (' '..='~').map(|mark| format!("{mark} x"));
        assert!(
            marks
                .into_iter()
                .any(|text| former.text(&text) < Calibrated::O200k.text(&text))
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
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
    fn pointers_to_an_estimator_are_estimators() {
        let parts = [Piece::Text("four letters")];
        let message = MessageParts::new(Role::User, &parts);
        let plain = Preset::Koda;
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

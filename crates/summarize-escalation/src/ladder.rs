//! The ladder: the order in which methods of summarizing are tried.

use std::collections::BTreeSet;

use memory_model::FieldHasher;
use serde::{Deserialize, Serialize};

use crate::criteria::Gate;
use crate::error::{Error, ErrorKind};
use crate::request::SummaryKind;
use crate::rules::{OnEmpty, OnError};
use crate::target::{TargetRule, Tolerance};
use crate::tier::Tier;

/// Methods of summarizing (tiers) that are tried in order until a summary is accepted, and the rules by which a summary
/// is accepted.
///
/// [`Ladder::default`] asks the model twice, then makes an extract, then cuts. Its result is always shorter than the
/// source, even if the model fails. If the model declines, or the summary is incomplete, as long as its source, or
/// fails the [`Gate`], the result is refused and the next tier is tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[must_use]
pub struct Ladder {
    /// Tiers in the order in which they are tried. Each may occur once.
    pub tiers: Vec<Tier>,
    /// Maximum length of an accepted summary, as a multiple of its target length.
    pub accept: Tolerance,
    /// Rule that applies if the summarizer fails.
    pub on_error: OnError,
    /// Rule that applies if the summarizer returns no text.
    pub on_empty: OnEmpty,
    /// Gate that measures the content of each summary and refuses a summary that fails a check. Summaries that were
    /// written without a model are measured but never refused. With `None`, the content of summaries is neither
    /// measured nor checked.
    pub gate: Option<Gate>,
    /// Target length of a summary of messages, if the request sets none.
    pub leaf: TargetRule,
    /// Target length of a summary with other summaries among its sources, if the request sets none.
    pub condensed: TargetRule,
}

impl Default for Ladder {
    fn default() -> Self {
        Self {
            tiers: vec![Tier::Normal, Tier::Aggressive, Tier::Extractive, Tier::Cut],
            accept: Tolerance::DEFAULT,
            on_error: OnError::default(),
            on_empty: OnEmpty::default(),
            gate: Some(Gate::default()),
            leaf: TargetRule::LEAF,
            condensed: TargetRule::CONDENSED,
        }
    }
}

impl Ladder {
    /// Returns the ladder's name, as recipes contain it: `default@2`, or `custom-` and a hash of its values.
    pub fn id(&self) -> String {
        if *self == Self::default() {
            "default@2".to_owned()
        } else {
            let mut hasher = FieldHasher::new("agent-memory ladder 1");
            // A ladder consists of enums and numbers, which always have a JSON form.
            hasher.bytes(&serde_json::to_vec(self).unwrap_or_default());
            let hash = hasher.finish().to_string();
            format!("custom-{}", hash.get(..12).unwrap_or(&hash))
        }
    }

    /// Returns the rule for the target length of a request that sets none.
    pub(crate) fn target_rule(&self, kind: SummaryKind) -> TargetRule {
        match kind {
            SummaryKind::Leaf => self.leaf,
            SummaryKind::Condensed => self.condensed,
        }
    }

    /// Checks that the ladder can be used.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidLadder`] if it has no tier, if a tier occurs twice, or if a rule would divide by zero.
    pub fn validate(&self) -> Result<(), Error> {
        let invalid = |what: &str| Err(Error::new(ErrorKind::InvalidLadder, what));
        if self.tiers.is_empty() {
            return invalid(
                "the ladder has no tiers: name at least one of normal, aggressive, extractive, cut",
            );
        }
        if self.tiers.iter().collect::<BTreeSet<_>>().len() < self.tiers.len() {
            return invalid("the ladder has a tier twice: name each at most once");
        }
        if self.accept.denominator == 0 {
            return invalid("the ladder's accept.denominator is 0: set it to 1 or more");
        }
        if self.leaf.divide_by == 0 || self.condensed.divide_by == 0 {
            return invalid("the ladder's divide_by is 0: set it to 1 or more");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_integer_arithmetic() {
        for (target, limit) in [
            (0, 0),
            (1, 1),
            (2, 3),
            (3, 4),
            (10, 15),
            (11, 16),
            (99, 148),
        ] {
            assert_eq!(Tolerance::DEFAULT.limit(target), limit, "{target}");
        }
        assert_eq!(Tolerance::DEFAULT.limit(u64::MAX), u64::MAX);
    }

    #[test]
    fn targets_are_a_third_and_a_half_and_at_least_ten() {
        for (source, leaf, condensed) in [(0, 10, 10), (29, 10, 14), (32, 10, 16), (33, 11, 16)] {
            assert_eq!(TargetRule::LEAF.target(source), leaf);
            assert_eq!(TargetRule::CONDENSED.target(source), condensed);
        }
    }

    #[test]
    fn a_ladder_is_a_config_value() {
        let text = r#"{"tiers":["normal","cut"],"on_error":"next_tier","leaf":{"divide_by":5,"at_least":20}}"#;
        let ladder: Ladder = serde_json::from_str(text).unwrap();
        assert_eq!(ladder.tiers, [Tier::Normal, Tier::Cut]);
        assert_eq!(ladder.condensed, TargetRule::CONDENSED);
        let again: Ladder = serde_json::from_str(&serde_json::to_string(&ladder).unwrap()).unwrap();
        assert_eq!(again, ladder);
        assert!(serde_json::from_str::<Ladder>(r#"{"tier":[]}"#).is_err());
        assert_eq!(
            serde_json::from_str::<Ladder>("{}").unwrap(),
            Ladder::default()
        );
    }

    #[test]
    fn ids_name_the_default_and_tell_others_apart() {
        assert_eq!(Ladder::default().id(), "default@2");
        let a = Ladder {
            tiers: vec![Tier::Cut],
            ..Ladder::default()
        }
        .id();
        let b = Ladder {
            tiers: vec![Tier::Extractive],
            ..Ladder::default()
        }
        .id();
        assert!(a.starts_with("custom-") && b.starts_with("custom-"));
        assert_ne!(a, b);
    }

    #[test]
    fn a_ladder_that_cannot_be_climbed_is_refused() {
        let ladder = Ladder::default();
        assert!(ladder.validate().is_ok());
        let mut zero = ladder.clone();
        zero.accept.denominator = 0;
        let mut none = ladder.clone();
        none.leaf.divide_by = 0;
        for bad in [
            Ladder {
                tiers: vec![],
                ..ladder.clone()
            },
            Ladder {
                tiers: vec![Tier::Cut, Tier::Cut],
                ..ladder
            },
            zero,
            none,
        ] {
            assert_eq!(bad.validate().unwrap_err().kind(), ErrorKind::InvalidLadder);
        }
    }
}

//! The ladder: a policy value.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::FieldHasher;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::gate::Gate;
use crate::request::SummaryKind;
use crate::rules::{OnCutOff, OnEmpty, OnError, OnGate, OnGrowth, OnRefusal, Rules};
use crate::target::{TargetRule, Tolerance};
use crate::tier::Tier;

/// Rule by which the last tier cuts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CutRule {
    /// Cuts to the target in tokens; see [`cut_to_tokens`](crate::cut_to_tokens). The default.
    #[default]
    Tokens,
    /// Cuts to four characters for each token of the target; see
    /// [`cut_to_chars`](crate::cut_to_chars).
    Characters,
}

/// The tiers to try, in order, until a summary is accepted, and what is accepted.
///
/// [`Ladder::default`] asks twice, then makes an extract, then cuts; its result is always shorter
/// than the source, and a failing model does not stop it. [`Ladder::anna`] is the preset anna.
///
/// | | default | anna |
/// |---|---|---|
/// | tiers | normal, aggressive, extractive, cut | normal, aggressive, cut |
/// | accepted at | ≤ 150 % of the target and < source | ≤ 150 % of the target |
/// | provider fails | extractive, so provisional | error |
/// | nothing but white space | next tier | accepted if within the limit |
/// | as long as the source | next tier | accepted if within the limit |
/// | declined, cut off, or fails the [`Gate`] | next tier | accepted if within the limit |
/// | cut | in the estimator's unit | at target × 4 characters |
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[must_use]
#[non_exhaustive]
pub struct Ladder {
    /// Tiers in order; none occurs twice.
    pub tiers: Vec<Tier>,
    /// Largest accepted length of a summary.
    pub accept: Tolerance,
    /// Rule for a summarizer that fails.
    pub on_error: OnError,
    /// Rule for an empty summary.
    pub on_empty: OnEmpty,
    /// Rule for a summary that is not shorter than its source.
    pub on_growth: OnGrowth,
    /// Rule for a summarizer that declines.
    pub on_refusal: OnRefusal,
    /// Rule for a summary that the provider cut off.
    pub on_cut_off: OnCutOff,
    /// Rule for a summary that fails the gate.
    pub on_gate: OnGate,
    /// Acceptance gate; `None` measures nothing. Summaries made without a model are measured and
    /// not judged.
    pub gate: Option<Gate>,
    /// Rules of single tiers, in the place of the six above.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub per_tier: BTreeMap<Tier, Rules>,
    /// Rule by which the last tier cuts.
    pub cut: CutRule,
    /// Target of a summary of messages, when the request names none.
    pub leaf: TargetRule,
    /// Target of a summary with summaries among its sources, when the request names none.
    pub condensed: TargetRule,
}

impl Default for Ladder {
    fn default() -> Self {
        Self {
            tiers: vec![Tier::Normal, Tier::Aggressive, Tier::Extractive, Tier::Cut],
            accept: Tolerance::DEFAULT,
            on_error: OnError::default(),
            on_empty: OnEmpty::default(),
            on_growth: OnGrowth::default(),
            on_refusal: OnRefusal::default(),
            on_cut_off: OnCutOff::default(),
            on_gate: OnGate::default(),
            gate: Some(Gate::default()),
            per_tier: BTreeMap::new(),
            cut: CutRule::default(),
            leaf: TargetRule::LEAF,
            condensed: TargetRule::CONDENSED,
        }
    }
}

impl Ladder {
    /// Returns the preset anna: normal, aggressive, and the aggressive text cut at a line or sentence.
    pub fn anna() -> Self {
        Self {
            tiers: vec![Tier::Normal, Tier::Aggressive, Tier::Cut],
            on_error: OnError::Fail,
            on_empty: OnEmpty::Accept,
            on_growth: OnGrowth::Accept,
            on_refusal: OnRefusal::Accept,
            on_cut_off: OnCutOff::Accept,
            on_gate: OnGate::Accept,
            gate: None,
            cut: CutRule::Characters,
            ..Self::default()
        }
    }

    /// Sets the tiers.
    pub fn with_tiers(mut self, tiers: impl IntoIterator<Item = Tier>) -> Self {
        self.tiers = tiers.into_iter().collect();
        self
    }

    /// Sets the rule for a summarizer that fails.
    pub fn with_on_error(mut self, rule: OnError) -> Self {
        self.on_error = rule;
        self
    }

    /// Sets the rule for an empty summary.
    pub fn with_on_empty(mut self, rule: OnEmpty) -> Self {
        self.on_empty = rule;
        self
    }

    /// Sets how far a summary may exceed its target; [`Tolerance::NONE`] makes the target a budget.
    pub fn with_accept(mut self, accept: Tolerance) -> Self {
        self.accept = accept;
        self
    }

    /// Sets the acceptance gate.
    pub fn with_gate(mut self, gate: Option<Gate>) -> Self {
        self.gate = gate;
        self
    }

    /// Sets the rules of one tier.
    pub fn with_rules(mut self, tier: Tier, rules: Rules) -> Self {
        self.per_tier.insert(tier, rules);
        self
    }

    /// Returns the rules of a tier.
    pub fn rules(&self, tier: Tier) -> Rules {
        self.per_tier.get(&tier).copied().unwrap_or(Rules {
            on_error: self.on_error,
            on_empty: self.on_empty,
            on_growth: self.on_growth,
            on_refusal: self.on_refusal,
            on_cut_off: self.on_cut_off,
            on_gate: self.on_gate,
        })
    }

    /// Returns the ladder's name in recipes: `default@2`, `anna@1`, or `custom-` and a hash of its
    /// values.
    pub fn id(&self) -> String {
        if *self == Self::default() {
            "default@2".to_owned()
        } else if *self == Self::anna() {
            "anna@1".to_owned()
        } else {
            let mut hasher = FieldHasher::new("agent-memory ladder 1");
            // A ladder of plain enums and numbers always has a JSON form.
            hasher.bytes(&serde_json::to_vec(self).unwrap_or_default());
            let hash = hasher.finish().to_string();
            format!("custom-{}", hash.get(..12).unwrap_or(&hash))
        }
    }

    /// Returns the rule for the target of a request that names none.
    pub fn target_rule(&self, kind: SummaryKind) -> TargetRule {
        match kind {
            SummaryKind::Leaf => self.leaf,
            SummaryKind::Condensed => self.condensed,
        }
    }

    /// Checks the ladder.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidLadder`] when there is no tier, a tier is there twice, or a rule would
    /// divide by zero.
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
    fn ids_name_presets_and_tell_others_apart() {
        assert_eq!(Ladder::default().id(), "default@2");
        assert_eq!(Ladder::anna().id(), "anna@1");
        let a = Ladder::default().with_tiers([Tier::Cut]).id();
        let b = Ladder::default().with_tiers([Tier::Extractive]).id();
        assert!(a.starts_with("custom-") && b.starts_with("custom-"));
        assert_ne!(a, b);
    }

    #[test]
    fn a_ladder_that_cannot_be_climbed_is_refused() {
        let ladder = Ladder::default();
        assert!(ladder.validate().is_ok());
        assert!(Ladder::anna().validate().is_ok());
        let mut zero = ladder.clone();
        zero.accept.denominator = 0;
        let mut none = ladder.clone();
        none.leaf.divide_by = 0;
        for bad in [
            ladder.clone().with_tiers([]),
            ladder.with_tiers([Tier::Cut, Tier::Cut]),
            zero,
            none,
        ] {
            assert_eq!(bad.validate().unwrap_err().kind(), ErrorKind::InvalidLadder);
        }
    }
}

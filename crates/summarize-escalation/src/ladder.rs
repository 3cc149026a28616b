use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use memory_model::{FieldHasher, JobKind};
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Gate};

/// One rung of a [`Ladder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tier {
    /// The summarizer, asked in the normal style.
    Normal,
    /// The summarizer, asked in the aggressive style.
    Aggressive,
    /// An extract, made without a model: [`Extractive`](crate::Extractive).
    Extractive,
    /// What the tier before wrote, or else the source itself, cut to fit.
    Cut,
}

impl Tier {
    /// The tier's name, as a summary records it.
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Normal => "normal",
            Tier::Aggressive => "aggressive",
            Tier::Extractive => "extractive",
            Tier::Cut => "cut",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What to do when the summarizer fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnError {
    /// Make no summary (anna's rule).
    Fail,
    /// Go on with the next tier.
    NextTier,
    /// Go on with the next tier that needs no model. The default: a provider that just failed is
    /// not asked again for the same summary.
    #[default]
    Offline,
}

/// What to do when the summarizer returns nothing but white space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnEmpty {
    /// Take it: the messages then have an empty summary (anna's rule).
    Accept,
    /// Make no summary (the rule of anna's handoff and of koda).
    Fail,
    /// Go on with the next tier. The default.
    #[default]
    NextTier,
}

/// What to do when a summary is within its limit, but costs as much as its source or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnGrowth {
    /// Take it (anna's rule).
    Accept,
    /// Go on with the next tier. The default.
    #[default]
    NextTier,
}

/// What to do when the summarizer declines, in its text or by its provider's word, or the
/// provider's filter withholds what it wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnRefusal {
    /// Take it as a summary (anna's rule: nothing looks at the text).
    Accept,
    /// Make no summary.
    Fail,
    /// Go on with the next tier. The default: what is asked in another style may be done.
    #[default]
    NextTier,
    /// Go on with the next tier that needs no model.
    Offline,
}

/// What to do when the provider stopped the answer at its limit of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnCutOff {
    /// Take it (anna's rule).
    Accept,
    /// Go on with the next tier. The default: a summary without its end hides that it has none.
    #[default]
    NextTier,
}

/// What to do when a summary fails the [`Gate`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnGate {
    /// Take it; its scores say what it lacks.
    Accept,
    /// Go on with the next tier. The default.
    #[default]
    NextTier,
}

/// What to do about a tier's result, case by case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Rules {
    /// When the summarizer fails.
    pub on_error: OnError,
    /// When it returns nothing.
    pub on_empty: OnEmpty,
    /// When a summary is not shorter than its source.
    pub on_growth: OnGrowth,
    /// When it declines.
    pub on_refusal: OnRefusal,
    /// When it was cut off.
    pub on_cut_off: OnCutOff,
    /// When it fails the gate.
    pub on_gate: OnGate,
}

/// How the last tier cuts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CutRule {
    /// [`cut_to_tokens`](crate::cut_to_tokens): in the estimator's own unit. The default.
    #[default]
    Tokens,
    /// [`cut_like_anna`](crate::cut_like_anna): at four characters a token.
    Anna,
}

/// How long a summary should be, given its source: a share of it, but not below a minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetRule {
    /// The source's tokens are divided by this, rounding down.
    pub divide_by: u64,
    /// The target is at least this many tokens.
    pub at_least: u64,
}

impl TargetRule {
    /// anna's rule for a summary of messages: max(Σ / 3, 10).
    pub const LEAF: Self = Self {
        divide_by: 3,
        at_least: 10,
    };
    /// anna's rule for a summary of summaries: max(Σ / 2, 10).
    pub const CONDENSED: Self = Self {
        divide_by: 2,
        at_least: 10,
    };

    /// The target for a source of so many tokens.
    pub fn target(&self, source_tokens: u64) -> u64 {
        let share = source_tokens.checked_div(self.divide_by);
        share.unwrap_or(source_tokens).max(self.at_least)
    }
}

impl fmt::Display for TargetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1/{}>={}", self.divide_by, self.at_least)
    }
}

/// How far above its target a summary is still taken: `target × numerator / denominator`, in
/// integers, rounding down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// Multiplies the target.
    pub numerator: u64,
    /// Divides the product; not 0.
    pub denominator: u64,
}

impl Tolerance {
    /// anna's 150 %.
    pub const ANNA: Self = Self {
        numerator: 3,
        denominator: 2,
    };

    /// The largest accepted cost for a target, in tokens, inclusive.
    pub fn limit(&self, target: u64) -> u64 {
        let wide = u128::from(target) * u128::from(self.numerator);
        let limit = wide.checked_div(u128::from(self.denominator)).unwrap_or(0);
        u64::try_from(limit).unwrap_or(u64::MAX)
    }
}

/// What to try, in which order, until a summary is short enough: a policy value.
///
/// [`Ladder::default`] asks twice, then makes an extract, then cuts; its result is always shorter
/// than the source, and a failing model does not stop it. [`Ladder::anna`] is the ladder of the
/// system that had the idea, exactly.
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
pub struct Ladder {
    /// The tiers, first to last, none twice.
    pub tiers: Vec<Tier>,
    /// How far above its target a summary is still taken.
    pub accept: Tolerance,
    /// What to do when the summarizer fails.
    pub on_error: OnError,
    /// What to do when it returns nothing.
    pub on_empty: OnEmpty,
    /// What to do when a summary is not shorter than its source.
    pub on_growth: OnGrowth,
    /// What to do when the summarizer declines.
    pub on_refusal: OnRefusal,
    /// What to do when its provider cut it off.
    pub on_cut_off: OnCutOff,
    /// What to do when a summary fails the gate.
    pub on_gate: OnGate,
    /// What is asked of a summary besides being short; `None` does not even measure. What is made
    /// without a model is measured and not judged.
    pub gate: Option<Gate>,
    /// Tiers for which other rules hold than the six above.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub per_tier: BTreeMap<Tier, Rules>,
    /// How the last tier cuts.
    pub cut: CutRule,
    /// The target for a summary of messages, when the request names none.
    pub leaf: TargetRule,
    /// The target for a summary with summaries among its sources, when the request names none.
    pub condensed: TargetRule,
}

impl Default for Ladder {
    fn default() -> Self {
        Self {
            tiers: vec![Tier::Normal, Tier::Aggressive, Tier::Extractive, Tier::Cut],
            accept: Tolerance::ANNA,
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
    /// anna's three tiers: normal, aggressive, and the aggressive text cut at a line or sentence.
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
            cut: CutRule::Anna,
            ..Self::default()
        }
    }

    /// Sets the tiers.
    pub fn with_tiers(mut self, tiers: impl IntoIterator<Item = Tier>) -> Self {
        self.tiers = tiers.into_iter().collect();
        self
    }

    /// Sets what to do when the summarizer fails.
    pub fn with_on_error(mut self, rule: OnError) -> Self {
        self.on_error = rule;
        self
    }

    /// Sets what to do when the summarizer returns nothing.
    pub fn with_on_empty(mut self, rule: OnEmpty) -> Self {
        self.on_empty = rule;
        self
    }

    /// Sets what is asked of a summary besides being short.
    pub fn with_gate(mut self, gate: Option<Gate>) -> Self {
        self.gate = gate;
        self
    }

    /// Sets other rules for one tier.
    pub fn with_rules(mut self, tier: Tier, rules: Rules) -> Self {
        self.per_tier.insert(tier, rules);
        self
    }

    /// The rules that hold for a tier.
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

    /// The name of the ladder in recipes: `default@2`, `anna@1`, or `custom-` and a hash of its
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

    /// The rule that gives the target when the request names none.
    pub fn target_rule(&self, kind: JobKind) -> TargetRule {
        match kind {
            JobKind::Leaf => self.leaf,
            JobKind::Condensed => self.condensed,
        }
    }

    /// Checks that the ladder can be climbed.
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
            assert_eq!(Tolerance::ANNA.limit(target), limit, "{target}");
        }
        assert_eq!(Tolerance::ANNA.limit(u64::MAX), u64::MAX);
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

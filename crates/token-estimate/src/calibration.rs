use std::collections::{BTreeMap, VecDeque};

/// How a model's own counts compare with the estimates, learnt as usage figures come in.
///
/// It never touches a count: stored figures stay what the estimator said, and only budgets are scaled, by an upper
/// quantile of what was seen, so that an estimate within the scaled budget is rarely above the real one. Integer
/// arithmetic and no clock: the same observations in the same order give the same factors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Calibration {
    /// The newest ratios of each model, oldest first, in thousandths.
    models: BTreeMap<String, VecDeque<u32>>,
}

/// Observations kept for each model.
const WINDOW: usize = 64;
/// From so many observations on a budget may also grow.
const ENOUGH: usize = 8;
/// Estimates below this many tokens say too little about a ratio.
const LEAST: u64 = 100;
/// Ratios further off come from something else than the tokenizer (a hidden prompt, a truncated request).
const RATIOS: (u32, u32) = (250, 4_000);
/// The quantile in percent.
const QUANTILE: usize = 95;
const WHOLE: u32 = 1_000;

impl Calibration {
    /// A calibration that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that what was estimated at so many tokens really was so many, and says whether that counts. Both must be of
    /// the same text: a whole request, or what was added between two requests. Estimates below 100 tokens and counts of
    /// 0 are ignored; of each model the newest 64 observations are kept.
    pub fn observe(&mut self, model: &str, estimated: u64, real: u64) -> bool {
        if estimated < LEAST || real == 0 {
            return false;
        }
        let ratio = u128::from(real) * u128::from(WHOLE) / u128::from(estimated);
        let ratio = u32::try_from(ratio)
            .unwrap_or(u32::MAX)
            .clamp(RATIOS.0, RATIOS.1);
        let seen = match self.models.get_mut(model) {
            Some(seen) => seen,
            None => self.models.entry(model.to_owned()).or_default(),
        };
        seen.push_back(ratio);
        while seen.len() > WINDOW {
            seen.pop_front();
        }
        true
    }

    /// How many observations of the model are kept.
    pub fn observations(&self, model: &str) -> usize {
        self.models.get(model).map_or(0, VecDeque::len)
    }

    /// The upper factor of the model in thousandths: the 95th percentile of real / estimated over the kept observations
    /// (the largest of them, below twenty). 1,000 for a model that was not seen, and never below 1,000 before the eighth
    /// observation.
    pub fn upper_permille(&self, model: &str) -> u32 {
        self.upper_permille_or(model, WHOLE)
    }

    /// As [`upper_permille`](Self::upper_permille), with what is known beforehand in place of the 1,000: what the
    /// estimator says of itself ([`TokenEstimator::upper_permille`](crate::TokenEstimator::upper_permille)).
    pub fn upper_permille_or(&self, model: &str, known: u32) -> u32 {
        let Some(seen) = self.models.get(model).filter(|seen| !seen.is_empty()) else {
            return known;
        };
        let mut sorted: Vec<u32> = seen.iter().copied().collect();
        sorted.sort_unstable();
        let place = (sorted.len() * QUANTILE).div_ceil(100).max(1) - 1;
        let upper = sorted.get(place).copied().unwrap_or(WHOLE).max(RATIOS.0);
        if sorted.len() < ENOUGH {
            upper.max(known)
        } else {
            upper
        }
    }

    /// The middle of real / estimated over the kept observations in thousandths, for reports; 1,000 for a model that
    /// was not seen.
    pub fn median_permille(&self, model: &str) -> u32 {
        let mut sorted: Vec<u32> = self
            .models
            .get(model)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(WHOLE)
    }

    /// The budget to hold estimates against when the model takes `budget` real tokens: rounded down.
    pub fn scale_budget(&self, model: &str, budget: u64) -> u64 {
        let scaled =
            u128::from(budget) * u128::from(WHOLE) / u128::from(self.upper_permille(model));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// What an estimate may come to in real tokens: rounded up.
    pub fn upper(&self, model: &str, estimated: u64) -> u64 {
        let scaled = (u128::from(estimated) * u128::from(self.upper_permille(model)))
            .div_ceil(u128::from(WHOLE));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// Forgets a model, for example after its provider changed the tokenizer.
    pub fn forget(&mut self, model: &str) {
        self.models.remove(model);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_unknown_model_scales_nothing() {
        let none = Calibration::new();
        assert_eq!(
            (none.upper_permille("m"), none.median_permille("m")),
            (1_000, 1_000)
        );
        assert_eq!(
            (none.scale_budget("m", 8_000), none.upper("m", 8_000)),
            (8_000, 8_000)
        );
        assert_eq!(none.scale_budget("m", u64::MAX), u64::MAX);
    }

    #[test]
    fn what_is_known_beforehand_holds_until_enough_was_seen() {
        let mut seen = Calibration::new();
        assert_eq!(seen.upper_permille_or("m", 1_040), 1_040);
        for n in 1..=8 {
            seen.observe("m", 1_000, 1_010);
            let upper = seen.upper_permille_or("m", 1_040);
            assert_eq!(upper, if n < 8 { 1_040 } else { 1_010 });
        }
        seen.observe("m", 1_000, 1_300);
        assert_eq!(seen.upper_permille_or("m", 1_040), 1_300);
    }

    #[test]
    fn the_first_observation_shrinks_a_budget_and_only_the_eighth_may_raise_it() {
        let mut seen = Calibration::new();
        assert!(seen.observe("m", 1_000, 1_250));
        assert_eq!(
            (seen.scale_budget("m", 10_000), seen.upper("m", 1_000)),
            (8_000, 1_250)
        );
        assert_eq!(seen.scale_budget("other", 10_000), 10_000);
        let mut low = Calibration::new();
        for n in 1..=8 {
            low.observe("m", 1_000, 800);
            assert_eq!(
                low.scale_budget("m", 8_000),
                if n < 8 { 8_000 } else { 10_000 }
            );
        }
    }

    #[test]
    fn the_upper_factor_is_the_95th_percentile_of_the_newest_64() {
        let mut seen = Calibration::new();
        for n in 0..200_u64 {
            seen.observe("m", 1_000, 1_000 + n);
        }
        assert_eq!(seen.observations("m"), 64);
        // 136..=199, the 61st of them.
        assert_eq!(seen.upper_permille("m"), 1_000 + 136 + 60);
        assert_eq!(seen.median_permille("m"), 1_000 + 136 + 32);
        seen.forget("m");
        assert_eq!(seen, Calibration::new());
    }

    #[test]
    fn small_empty_and_wild_observations_are_kept_in_bounds() {
        let mut seen = Calibration::new();
        assert!(!seen.observe("m", 99, 200));
        assert!(!seen.observe("m", 1_000, 0));
        assert!(seen.observe("m", 1_000, u64::MAX));
        assert_eq!(seen.upper_permille("m"), 4_000);
        assert_eq!(seen.upper("m", u64::MAX), u64::MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn an_estimate_within_the_scaled_budget_is_within_the_budget(
            seen in prop::collection::vec((100_u64..100_000, 1_u64..200_000), 0..80),
            budget in any::<u64>(),
        ) {
            let mut calibration = Calibration::new();
            for (estimated, real) in seen {
                calibration.observe("m", estimated, real);
            }
            let scaled = calibration.scale_budget("m", budget);
            prop_assume!(scaled < u64::MAX);
            prop_assert!(calibration.upper("m", scaled) <= budget);
        }
    }
}

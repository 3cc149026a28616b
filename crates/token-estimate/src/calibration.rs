use std::collections::{BTreeMap, VecDeque};

use crate::SafetyFactor;

/// Learns how the real token counts of models, as reported by providers, compare with the estimates.
///
/// Stored estimates never change. Instead, divide a budget by the [safety factor](Self::safety_factor_or), an upper
/// quantile of the observed ratios. A context with an estimate within the divided budget then rarely exceeds the real
/// one. The same observations in the same order always give the same factors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Calibration {
    /// Latest ratios of real to estimated tokens for each model, in thousandths, oldest first.
    models: BTreeMap<String, VecDeque<u32>>,
}

/// Maximum number of observations kept per model.
const WINDOW: usize = 64;
/// Number of observations from which the factor may be below the estimator's own factor.
const ENOUGH: usize = 8;
/// Minimum estimate of a recorded observation, in tokens. Smaller estimates are too inaccurate.
const LEAST: u64 = 100;
/// Smallest and largest ratio, in thousandths. Ratios outside of these limits have other causes than the tokenizer,
/// such as a hidden prompt or a truncated request.
const RATIOS: (u32, u32) = (250, 4_000);
/// Quantile of the ratios that is the safety factor, in percent.
const QUANTILE: usize = 95;
const WHOLE: u32 = 1_000;

impl Calibration {
    /// Creates a calibration without observations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a pair of estimated and real token counts for `model`. Returns whether the pair was used.
    ///
    /// Both counts must be of the same text: a whole request, or the text added between two requests. Estimates below
    /// 100 tokens and real counts of 0 are ignored. Keeps the latest 64 pairs of each model.
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

    /// Returns the safety factor of `model`: the factor by which real token counts may exceed estimates. It is the 95th
    /// percentile of the ratios real / estimated of the recorded pairs, or with fewer than twenty pairs their maximum.
    ///
    /// `known` is the estimator's own factor, [`TokenEstimator::safety_factor`](crate::TokenEstimator::safety_factor).
    /// It is returned for a model without pairs. With fewer than eight pairs the result is at least `known`.
    pub fn safety_factor_or(&self, model: &str, known: SafetyFactor) -> SafetyFactor {
        let sorted = self.sorted(model);
        if sorted.is_empty() {
            return known;
        }
        let place = (sorted.len() * QUANTILE).div_ceil(100).max(1) - 1;
        let upper = sorted.get(place).copied().unwrap_or(WHOLE).max(RATIOS.0);
        let upper = SafetyFactor::from_thousandths(upper);
        if sorted.len() < ENOUGH {
            upper.max(known)
        } else {
            upper
        }
    }

    /// Returns the recorded ratios of a model in thousandths, in ascending order.
    fn sorted(&self, model: &str) -> Vec<u32> {
        let ratios = self.models.get(model).into_iter().flatten();
        let mut ratios: Vec<u32> = ratios.copied().collect();
        ratios.sort_unstable();
        ratios
    }

    /// Discards all pairs of `model`, for example after its provider changed the tokenizer.
    pub fn forget(&mut self, model: &str) {
        self.models.remove(model);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(thousandths: u32) -> SafetyFactor {
        SafetyFactor::from_thousandths(thousandths)
    }

    #[test]
    fn an_unknown_model_has_the_factor_one() {
        let none = Calibration::new();
        assert_eq!(
            none.safety_factor_or("m", SafetyFactor::ONE),
            SafetyFactor::ONE
        );
    }

    #[test]
    fn the_known_factor_is_the_minimum_before_the_eighth_observation() {
        let mut seen = Calibration::new();
        assert_eq!(seen.safety_factor_or("m", factor(1_040)), factor(1_040));
        for n in 1..=8 {
            seen.observe("m", 1_000, 1_010);
            let upper = seen.safety_factor_or("m", factor(1_040));
            assert_eq!(upper, factor(if n < 8 { 1_040 } else { 1_010 }));
        }
        seen.observe("m", 1_000, 1_300);
        assert_eq!(seen.safety_factor_or("m", factor(1_040)), factor(1_300));
    }

    #[test]
    fn the_first_observation_raises_the_factor_and_only_the_eighth_may_lower_it() {
        let mut seen = Calibration::new();
        assert!(seen.observe("m", 1_000, 1_250));
        assert_eq!(seen.safety_factor_or("m", SafetyFactor::ONE), factor(1_250));
        assert_eq!(
            seen.safety_factor_or("other", SafetyFactor::ONE),
            SafetyFactor::ONE
        );
        let mut low = Calibration::new();
        for n in 1..=8 {
            low.observe("m", 1_000, 800);
            assert_eq!(
                low.safety_factor_or("m", SafetyFactor::ONE),
                factor(if n < 8 { 1_000 } else { 800 })
            );
        }
    }

    #[test]
    fn the_upper_factor_is_the_95th_percentile_of_the_latest_64() {
        let mut seen = Calibration::new();
        for n in 0..200_u64 {
            seen.observe("m", 1_000, 1_000 + n);
        }
        // The ratios are 1,136 to 1,199 thousandths. The 61st of these 64 is the 95th percentile.
        assert_eq!(
            seen.safety_factor_or("m", SafetyFactor::ONE),
            factor(1_000 + 136 + 60)
        );
        seen.forget("m");
        assert_eq!(seen, Calibration::new());
    }

    #[test]
    fn small_empty_and_wild_observations_are_kept_in_bounds() {
        let mut seen = Calibration::new();
        assert!(!seen.observe("m", 99, 200));
        assert!(!seen.observe("m", 1_000, 0));
        assert!(seen.observe("m", 1_000, u64::MAX));
        assert_eq!(seen.safety_factor_or("m", SafetyFactor::ONE), factor(4_000));
    }
}

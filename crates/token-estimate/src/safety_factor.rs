//! The factor by which real token counts may exceed estimates.

use std::fmt;

/// Factor by which real token counts may exceed estimates, from 0.001 to 1,000,000, exact to a thousandth.
///
/// Divide a budget by the factor before comparing estimates with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "f64", into = "f64"))]
pub struct SafetyFactor {
    thousandths: u32,
}

impl SafetyFactor {
    /// The factor 1, which has no effect.
    pub const ONE: Self = Self::from_thousandths(1_000);

    /// Largest factor, in thousandths.
    const MAX: u32 = 1_000_000_000;

    /// Creates a factor, rounded to the nearest thousandth. Values below 0.001 or above 1,000,000 become the nearest
    /// limit, and NaN becomes 1.
    pub fn new(factor: f64) -> Self {
        if factor.is_nan() {
            return Self::ONE;
        }
        // The conversion saturates: a float out of range becomes the nearest integer.
        Self::from_thousandths((factor * 1_000.0).round() as u32)
    }

    /// Creates a factor from thousandths: 1,060 is 1.06. Values outside of the type's limits become the nearest limit.
    pub const fn from_thousandths(thousandths: u32) -> Self {
        let thousandths = match thousandths {
            0 => 1,
            Self::MAX.. => Self::MAX,
            _ => thousandths,
        };
        Self { thousandths }
    }

    /// Returns the factor in thousandths: 1,060 for 1.06.
    pub const fn thousandths(self) -> u32 {
        self.thousandths
    }

    /// Returns the factor as a floating-point number.
    pub fn get(self) -> f64 {
        f64::from(self.thousandths) / 1_000.0
    }

    /// Returns the highest estimate that a budget of `tokens` real tokens allows: `tokens` divided by the factor,
    /// rounded down. Saturates.
    pub fn divide(self, tokens: u64) -> u64 {
        saturate(u128::from(tokens) * 1_000 / u128::from(self.thousandths))
    }

    /// Returns the highest real count to expect for an estimate of `tokens`: `tokens` times the factor, rounded up.
    /// Saturates.
    pub fn multiply(self, tokens: u64) -> u64 {
        saturate((u128::from(tokens) * u128::from(self.thousandths)).div_ceil(1_000))
    }
}

fn saturate(tokens: u128) -> u64 {
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

impl Default for SafetyFactor {
    fn default() -> Self {
        Self::ONE
    }
}

impl From<f64> for SafetyFactor {
    fn from(factor: f64) -> Self {
        Self::new(factor)
    }
}

impl From<SafetyFactor> for f64 {
    fn from(factor: SafetyFactor) -> Self {
        factor.get()
    }
}

impl fmt::Display for SafetyFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn factors_are_rounded_to_thousandths_and_limited() {
        for (given, expected) in [
            (1.25, 1_250),
            (1.0604, 1_060),
            (0.0, 1),
            (-3.0, 1),
            (f64::INFINITY, 1_000_000_000),
            (f64::NAN, 1_000),
        ] {
            let factor = SafetyFactor::new(given);
            assert_eq!(factor.thousandths(), expected, "{given}");
        }
        assert_eq!(SafetyFactor::from_thousandths(1_075).to_string(), "1.075");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn every_factor_survives_its_float(thousandths in 1..=1_000_000_000_u32) {
            let factor = SafetyFactor::from_thousandths(thousandths);
            prop_assert_eq!(SafetyFactor::new(factor.get()), factor);
        }

        #[test]
        fn an_estimate_within_the_quotient_stays_within_the_budget(
            thousandths in 1..5_000_u32,
            budget in prop_oneof![0..100_000_u64, any::<u64>()],
        ) {
            let factor = SafetyFactor::from_thousandths(thousandths);
            let limit = factor.divide(budget);
            prop_assume!(limit < u64::MAX);
            prop_assert!(factor.multiply(limit) <= budget);
            prop_assert!(factor.multiply(limit + 1) > budget);
        }
    }
}

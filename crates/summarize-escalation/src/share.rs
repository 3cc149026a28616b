//! A share of a whole, as a fraction.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A fraction from 0 to 1, exact to a thousandth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "f64", into = "f64")]
pub struct Share {
    thousandths: u16,
}

impl Share {
    /// The share 1: the whole.
    pub const ONE: Self = Self { thousandths: 1_000 };

    /// Creates a share, rounded to the nearest thousandth. A fraction below 0 becomes 0, a fraction above 1 becomes 1,
    /// and a value that is not a number becomes 0.
    pub fn new(fraction: f64) -> Self {
        Self {
            thousandths: (fraction.clamp(0.0, 1.0) * 1_000.0).round() as u16,
        }
    }

    /// Returns the share as a fraction from 0 to 1.
    pub fn get(self) -> f64 {
        f64::from(self.thousandths) / 1_000.0
    }

    /// Multiplies `number` by the share and rounds the product down.
    pub fn of(self, number: u32) -> u32 {
        let product = u64::from(number) * u64::from(self.thousandths) / 1_000;
        u32::try_from(product).unwrap_or(u32::MAX)
    }
}

impl From<f64> for Share {
    fn from(fraction: f64) -> Self {
        Self::new(fraction)
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.get()
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_fractions_in_thousandths() {
        for (given, expected) in [(0.3, 0.3), (0.1234, 0.123), (-1.0, 0.0), (7.0, 1.0)] {
            assert_eq!(Share::new(given).get(), expected, "{given}");
        }
        assert_eq!(Share::new(f64::NAN), Share::new(0.0));
        assert_eq!((Share::new(0.1).of(19), Share::new(0.1).of(20)), (1, 2));
        assert_eq!(Share::ONE.of(u32::MAX), u32::MAX);
        for thousandths in 0..=1_000 {
            let share = Share { thousandths };
            assert_eq!(Share::new(share.get()), share);
        }
    }
}

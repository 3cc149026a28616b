//! Ranks of lines: which of them a shorter form of a summary keeps.

use memory_model::{RankedLine, SummaryBody};
use token_estimate::TokenEstimator;

/// Cost of a headline, the shortest form of a summary, in tokens.
pub const HEADLINE_TOKENS: u64 = 60;

/// Factor, in thousandths, by which a form may cost more than the form with the next higher rank.
const STEP: u64 = 1_030;

/// Returns the rank of a line with which a form costs `tokens`: 255 up to [`HEADLINE_TOKENS`], and one
/// less for each 3 % more.
///
/// So the ranks of any body say what its forms cost, nearly: all lines of at least this rank cost about
/// `tokens` together.
pub fn rank_of(tokens: u64) -> u8 {
    let (mut rank, mut reach) = (u8::MAX, HEADLINE_TOKENS * 1_000);
    while rank > 0 && reach / 1_000 < tokens {
        reach = reach.saturating_mul(STEP) / 1_000;
        rank -= 1;
    }
    rank
}

/// Ranks the lines of a text: earlier lines rank higher.
pub fn rank_lines(text: &str, estimator: &dyn TokenEstimator) -> SummaryBody {
    let mut cost = 0_u64;
    let lines = text.split('\n').map(|text| {
        cost = cost.saturating_add(estimator.text(text) + 1);
        let rank = rank_of(cost);
        RankedLine { text, rank }
    });
    SummaryBody::ranked(lines.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_fall_by_one_for_each_three_per_cent() {
        assert_eq!((rank_of(0), rank_of(60), rank_of(61)), (255, 255, 254));
        assert!(rank_of(500) < rank_of(480));
        assert!(rank_of(100_000) > 0 && rank_of(u64::MAX) == 0);
    }
}

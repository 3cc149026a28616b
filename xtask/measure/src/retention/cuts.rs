//! The cuts that an extract is compared with: the beginning, the end, or half of each.

use token_estimate::TokenEstimator;

/// The longest beginning of at most `budget` tokens.
pub(crate) fn head(text: &str, budget: u64, estimator: &dyn TokenEstimator) -> String {
    let cut = |bytes: usize| &text[..text.floor_char_boundary(bytes)];
    cut(longest(text.len(), |n| estimator.text(cut(n)) <= budget)).to_owned()
}

/// The longest end of at most `budget` tokens.
pub(crate) fn tail(text: &str, budget: u64, estimator: &dyn TokenEstimator) -> String {
    let cut = |bytes: usize| &text[text.ceil_char_boundary(text.len() - bytes)..];
    cut(longest(text.len(), |n| estimator.text(cut(n)) <= budget)).to_owned()
}

/// Half of the budget for each.
pub(super) fn head_and_tail(text: &str, budget: u64, estimator: &dyn TokenEstimator) -> String {
    let head = head(text, budget / 2, estimator);
    let rest = &text[head.len()..];
    format!("{head}\n{}", tail(rest, budget - budget / 2, estimator))
}

/// The largest `n` for which `fits` holds; it holds for all smaller ones.
fn longest(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

//! Cutting of a text to a maximum cost.

use token_estimate::TokenEstimator;

use crate::text::head as first_bytes;

/// Last line that [`cut_to_tokens`] appends to a text that was cut, if the line fits.
pub const CUT_NOTE: &str = "[Cut here: expand for the rest]";

/// Returns the longest beginning of `text` that costs at most `limit` tokens. It ends after a line if this keeps more
/// than half of the longest possible text, otherwise after a sentence under the same condition. Otherwise it ends
/// between any two characters.
///
/// [`CUT_NOTE`] is appended as a separate line if it costs at most a quarter of the limit. The result never costs more
/// than `limit`. `None` if not even one character fits that is not white space. If the estimator never returns less for
/// a longer text, the time is proportional to the length of the result.
pub fn cut_to_tokens(text: &str, limit: u64, estimator: &dyn TokenEstimator) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    if fits(text, limit, estimator) {
        return Some(text.to_owned());
    }
    if estimator.text(CUT_NOTE).saturating_mul(4) <= limit {
        // Together the two texts may cost a little more than separately.
        for spare in 1..=4 {
            let room = limit
                .saturating_sub(estimator.text(CUT_NOTE))
                .saturating_sub(spare);
            let Some(head) = head(text, room, estimator) else {
                break;
            };
            let noted = format!("{head}\n{CUT_NOTE}");
            if estimator.text(&noted) <= limit {
                return Some(noted);
            }
        }
    }
    head(text, limit, estimator).map(str::to_owned)
}

fn fits(text: &str, limit: u64, estimator: &dyn TokenEstimator) -> bool {
    // No tokenizer joins more than 64 bytes of prose into one token. Checking only the start first keeps the time for a
    // huge text proportional to the limit.
    let probe = usize::try_from(limit)
        .unwrap_or(usize::MAX)
        .saturating_mul(64)
        .saturating_add(64);
    if text.len() > probe && estimator.text(first_bytes(text, probe)) > limit {
        return false;
    }
    estimator.text(text) <= limit
}

fn head<'a>(text: &'a str, limit: u64, estimator: &dyn TokenEstimator) -> Option<&'a str> {
    // Find an upper bound by doubling, then the boundary by halving.
    let mut high = 64.min(text.len());
    while high < text.len() && estimator.text(first_bytes(text, high)) <= limit {
        high = high.saturating_mul(2).min(text.len());
    }
    let mut low = 0;
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if estimator.text(first_bytes(text, middle)) <= limit {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let mut kept = first_bytes(text, low);
    kept = at_boundary(kept);
    // With some estimators a shorter text can cost more, so the text is shortened until it fits.
    while !kept.is_empty() && estimator.text(kept) > limit {
        kept = first_bytes(kept, kept.len() - 1).trim_end();
    }
    (!kept.is_empty()).then_some(kept)
}

fn at_boundary(text: &str) -> &str {
    let half = text.len() / 2;
    let line = text.rfind('\n').filter(|at| *at > half);
    let end = line.or_else(|| sentence_end(text).filter(|at| *at > half));
    let cut = end
        .map_or(text, |at| text.get(..at).unwrap_or(text))
        .trim_end();
    if cut.is_empty() { text.trim_end() } else { cut }
}

/// Returns the byte offset after the last sentence that ends with a mark.
fn sentence_end(text: &str) -> Option<usize> {
    let spaced = [". ", "! ", "? "]
        .iter()
        .filter_map(|mark| text.rfind(mark).map(|at| at + 1))
        .max();
    let wide = ['。', '！', '？', '．']
        .iter()
        .filter_map(|mark| text.rfind(*mark).map(|at| at + mark.len_utf8()))
        .max();
    spaced.max(wide)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use token_estimate::HeuristicEstimator;

    use super::*;

    #[test]
    fn tokens_are_cut_at_lines_and_sentences() {
        let cut =
            |text: &str, limit| cut_to_tokens(text, limit, &HeuristicEstimator::Bytes4).unwrap();
        assert_eq!(cut("one two three.\nfour five six", 5), "one two three.");
        assert_eq!(cut("one two three. four five six", 5), "one two three.");
        assert_eq!(cut("一二三四。五六七八", 5), "一二三四。");
        assert_eq!(cut("no boundary whatever here", 3), "no boundary");
        assert_eq!(cut("short", 3), "short");
        assert_eq!(cut_to_tokens("  \n ", 3, &HeuristicEstimator::Bytes4), None);
        assert_eq!(cut_to_tokens("x", 0, &HeuristicEstimator::Bytes4), None);
        let long = "A line of words.\n".repeat(100);
        let cut = cut(&long, 100);
        assert!(cut.ends_with(CUT_NOTE), "{cut}");
        assert_eq!(cut.lines().count(), 22);
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[a-z \n.]{0,400}",
            "[あ-んア-ン一-龠。、！\n]{0,200}",
            "[🦀🎉👩🏽e\u{301}]{0,120}",
            "[a-z]{0,900}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_cut_fits(text in any_text(), limit in 0_u64..120) {
            for preset in HeuristicEstimator::ALL {
                match cut_to_tokens(&text, limit, &preset) {
                    Some(cut) => {
                        prop_assert!(preset.text(&cut) <= limit);
                        prop_assert!(!cut.trim().is_empty());
                        let kept = cut.strip_suffix(CUT_NOTE).unwrap_or(&cut);
                        prop_assert!(text.contains(kept.trim_end()));
                    }
                    None => prop_assert!(text.trim().is_empty() || limit < 2),
                }
            }
        }
    }
}

//! Answers with ranked lines.

use extractive_summarizer::rank_of;
use memory_model::{RankedLine, SummaryBody};
use token_estimate::TokenEstimator;

/// Rank of a line without a mark.
const MIDDLE: u8 = 2;
/// The marks of a line, with the most important one first.
const MARKS: [(&str, u8); 3] = [("[1]", 1), ("[2]", 2), ("[3]", 3)];

/// Reads an answer with lines that begin with `[1]`, `[2]` or `[3]`. Removes the marks, and ranks the lines: a shorter form
/// of the summary has the lines with `[1]` first, then those with `[2]`, each in their order. A line without a mark
/// has the mark of the line before it.
///
/// An answer without a mark has no ranks.
pub(crate) fn read_ranked(answer: &str, estimator: &dyn TokenEstimator) -> SummaryBody {
    let mut before = None;
    let lines: Vec<(Option<u8>, &str)> = answer
        .lines()
        .map(|line| {
            let (mark, text) = marked(line);
            before = mark.or(before);
            (before, text)
        })
        .collect();
    if before.is_none() {
        return answer.into();
    }
    let level = |mark: Option<u8>| mark.unwrap_or(MIDDLE);
    let mut ranks = vec![0; lines.len()];
    let mut cost = 0_u64;
    for (_, now) in MARKS {
        for ((mark, text), rank) in lines.iter().zip(&mut ranks) {
            if level(*mark) == now {
                cost = cost.saturating_add(estimator.text(text) + 1);
                *rank = rank_of(cost);
            }
        }
    }
    let ranked = lines.iter().zip(ranks);
    let ranked = ranked.map(|((_, text), rank)| RankedLine { text, rank });
    SummaryBody::ranked(ranked.collect::<Vec<_>>())
}

/// Returns the mark at the beginning of a line, also behind the sign of a list, and the line without it.
fn marked(line: &str) -> (Option<u8>, &str) {
    let start = line.trim_start();
    let start = start.strip_prefix("- ").unwrap_or(start);
    let found = MARKS.iter().find_map(|(mark, level)| {
        let rest = start.strip_prefix(mark)?;
        (rest.is_empty() || rest.starts_with([' ', ':'])).then_some((Some(*level), rest))
    });
    match found {
        Some((mark, rest)) => (mark, rest.trim_start_matches([' ', ':'])),
        None => (None, line),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use token_estimate::HeuristicEstimator;

    use super::*;

    fn read(answer: &str) -> SummaryBody {
        read_ranked(answer, &HeuristicEstimator::Bytes4)
    }

    #[test]
    fn marks_become_ranks() {
        let long = "word ".repeat(60);
        let answer = format!("[2] {long}\n[1] Never push. [4]\n  - [3] {long}\n- [1]: Next: test.");
        let body = read(&answer);
        let text = format!("{long}\nNever push. [4]\n{long}\nNext: test.");
        assert_eq!(body.text(), text);
        let ranks = body.ranks().unwrap();
        assert!(ranks[1] >= ranks[3] && ranks[3] > ranks[0] && ranks[0] > ranks[2]);
        // A less important line costs the lines with `[1]` nothing, wherever it stands.
        assert_eq!(ranks[1], u8::MAX);
        // A citation, and a text without marks, are no marks.
        assert_eq!(read("[12] said so.\nIt works.").ranks(), None);
        assert_eq!(read("[1](url)").text(), "[1](url)");
        // A line without a mark goes on with the line before.
        let body = read(&format!("[1] a\n[3] {long}\ngoes on {long}\n[1] b"));
        let ranks = body.ranks().unwrap();
        assert!(ranks[2] < ranks[1] && ranks[1] < ranks[3]);
    }

    proptest! {
        #[test]
        fn no_words_are_lost(lines in prop::collection::vec("(\\[[1-4]\\] )?[a-z ]{0,9}", 0..8)) {
            let body = read(&lines.join("\n"));
            let words = |text: &str| {
                let words = text.split_whitespace();
                let words = words.filter(|word| !["[1]", "[2]", "[3]"].contains(word));
                words.map(str::to_owned).collect::<Vec<_>>()
            };
            prop_assert_eq!(words(body.text()), words(&lines.join("\n")));
        }
    }
}

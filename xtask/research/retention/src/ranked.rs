//! Extracts of the lines that a ranking library scores highest.

use keyword_extraction::text_rank::{TextRank, TextRankParams};
use keyword_extraction::tf_idf::{TfIdf, TfIdfParams};
use token_estimate::TokenEstimator;

/// Lines by the mean TF-IDF of their words, a line being a document.
pub(crate) fn tf_idf(text: &str, budget: u64, estimator: &dyn TokenEstimator) -> String {
    let lines = lines(text);
    let ranked = TfIdf::new(TfIdfParams::UnprocessedDocuments(&lines, &stop(), None));
    best(&lines, budget, estimator, |word| ranked.get_score(word))
}

/// Lines by the mean TextRank of their words.
pub(crate) fn text_rank(text: &str, budget: u64, estimator: &dyn TokenEstimator) -> String {
    let lines = lines(text);
    let stop = stop();
    let ranked = TextRank::new(TextRankParams::WithDefaults(&lines.join("\n"), &stop));
    best(&lines, budget, estimator, |word| {
        ranked.get_word_score(word)
    })
}

/// Lines of some length, none twice.
fn lines(text: &str) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| (8..2_000).contains(&line.len()) && seen.insert(*line))
        .map(str::to_owned)
        .collect()
}

fn best(
    lines: &[String],
    budget: u64,
    estimator: &dyn TokenEstimator,
    score: impl Fn(&str) -> f32,
) -> String {
    let mut ranked: Vec<(i64, usize)> = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let lower = line.to_lowercase();
        let words: Vec<&str> = lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let sum: f32 = words.iter().map(|word| score(word)).sum();
        // In whole numbers: the library adds in the order of a hash map.
        ranked.push((-(sum / words.len().max(1) as f32 * 1e4) as i64, n));
    }
    ranked.sort_unstable();
    let mut room = budget;
    let mut chosen = Vec::new();
    for (_, n) in ranked {
        let cost = estimator.text(&lines[n]) + 1;
        if cost <= room {
            room -= cost;
            chosen.push(n);
        }
    }
    chosen.sort_unstable();
    let kept: Vec<&str> = chosen.iter().map(|n| lines[*n].as_str()).collect();
    kept.join("\n")
}

fn stop() -> Vec<String> {
    "a an and are as at be but by can do for from has have i if in into is it its me my no not of on or our \
     so that the their them then there these they this to was we were what when which will with you your"
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

//! What an extract is measured against: cuts, and sentences ranked by a library.

use keyword_extraction::text_rank::{TextRank, TextRankParams};
use keyword_extraction::tf_idf::{TfIdf, TfIdfParams};
use memory_model::{EntryKind, Message, Part, ResultContent};
use token_estimate::TokenEstimator;

/// The transcript as plain lines, `[role] text`: what a cut cuts.
pub(super) fn plain(messages: &[Message]) -> String {
    let mut out = String::new();
    for message in messages.iter().filter(|m| m.kind == EntryKind::Message) {
        for part in &message.parts {
            let text = match part {
                Part::Text { text } => text.clone(),
                Part::ToolCall {
                    name, arguments, ..
                } => format!("{name} {}", arguments.decoded_strings()),
                Part::ToolResult { content, .. } => match content {
                    ResultContent::Text(text) => text.clone(),
                    ResultContent::Parts(_) => content.text().into_owned(),
                },
                _ => continue,
            };
            out.push_str(&format!("[{}] {}\n", message.role, text.trim()));
        }
    }
    out
}

/// The longest beginning of at most `budget` tokens.
pub(super) fn head(text: &str, budget: u64, estimator: &dyn TokenEstimator) -> String {
    let cut = |bytes: usize| &text[..text.floor_char_boundary(bytes)];
    cut(longest(text.len(), |n| estimator.text(cut(n)) <= budget)).to_owned()
}

/// The longest end of at most `budget` tokens.
pub(super) fn tail(text: &str, budget: u64, estimator: &dyn TokenEstimator) -> String {
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

/// Lines by the mean TF-IDF of their words, a line being a document.
pub(super) fn tf_idf(text: &str, budget: u64, estimator: &dyn TokenEstimator) -> String {
    let lines = lines(text);
    let ranked = TfIdf::new(TfIdfParams::UnprocessedDocuments(&lines, &stop(), None));
    best(&lines, budget, estimator, |word| ranked.get_score(word))
}

/// Lines by the mean TextRank of their words.
pub(super) fn text_rank(text: &str, budget: u64, estimator: &dyn TokenEstimator) -> String {
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

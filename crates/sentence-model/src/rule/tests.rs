use std::collections::BTreeSet;

use super::clauses::{Clauses, Token};
use super::cues::{all_meanings, meanings, phrases};
use super::*;

fn clauses(sentence: &str) -> Vec<String> {
    let read = Clauses::of(sentence).clauses.into_iter();
    let words = read.map(|clause| {
        let words = clause.into_iter().map(|token| match token {
            Token::Word(word) => word,
            Token::Run(run) => format!("<{run}>"),
        });
        words.collect::<Vec<_>>().join(" ")
    });
    words.collect()
}

#[test]
fn sentences_are_divided_into_clauses_and_words() {
    for (sentence, parts) in [
        ("Ask first, then push.", &["ask first", "then push"][..]),
        (
            "- Keep `a, b` and don’t touch src/gen.rs",
            &["keep qq", "don't touch qq"],
        ),
        (
            "Use 4 spaces - never tabs!",
            &["use 0 spaces", "never tabs"],
        ),
        (
            "Names start with 'f_' (as before)",
            &["names start with qq", "as before"],
        ),
        (
            "コミットは小さく、PRは英語で。",
            &["<コミットは小さく>", "pr <は英語で>"],
        ),
        (
            "커밋은 작게 나눠 주세요.",
            &["<커밋은> <작게> <나눠> <주세요>"],
        ),
        ("no --no-verify", &["no qq"]),
        ("", &[]),
    ] {
        assert_eq!(clauses(sentence), parts, "{sentence}");
    }
}

#[test]
fn the_longest_phrase_counts() {
    let counts = meanings(&Clauses::of("From now on, do it now and always."));
    assert_eq!(counts.get("lasting"), Some(&1));
    assert_eq!(counts.get("once"), Some(&1));
    assert_eq!(counts.get("all"), Some(&1));
    assert_eq!(
        meanings(&Clauses::of("今後は必ず")).get("lasting"),
        Some(&1)
    );
}

#[test]
fn rules_are_told_from_tasks_reports_and_descriptions() {
    for rule in [
        "From now on, write the changelog in German.",
        "Please never push to main.",
        "Always run the linter before you commit.",
        "deploy only after the tests are green, small commits, and tell me when a fix needs a decision",
        "今後はコメントを英語で書いてください。",
        "앞으로 main에는 절대 직접 푸시하지 마세요.",
        "从现在开始用中文回答。",
        "Ab jetzt bitte keine Emojis mehr.",
    ] {
        assert!(is_rule(rule), "{rule}: {}", rule_probability(rule));
    }
    for other in [
        "The cat always sleeps on the chair, and she never bites.",
        "Can you make sure that it always returns a list?",
        "Fix the build.",
        "The handler must never return null.",
        "ありがとうございます。",
        "さっきのPRのメッセージを直して",
        "Warum schlägt der Test immer fehl?",
        "",
    ] {
        assert!(!is_rule(other), "{other}: {}", rule_probability(other));
    }
    assert_eq!(rule_probability(&"never push ".repeat(60)), 0.0);
}

/// Of a phrase that is listed twice, only one meaning would count.
#[test]
fn no_phrase_is_listed_twice() {
    let mut phrases = phrases();
    let count = phrases.len();
    phrases.sort_unstable();
    phrases.dedup();
    assert_eq!(phrases.len(), count);
}

/// A weight of a feature that was renamed, or that no sentence has, would never be used.
#[test]
fn each_weight_is_of_a_feature_that_a_sentence_has() {
    let kinds = [
        "run",
        "ever",
        "ever-not",
        "dont",
        "verb",
        "bare",
        "own",
        "us",
        "addressed",
        "other",
        "when",
        "question",
        "ing",
        "name",
        "word",
        "lasting",
    ];
    let kinds = kinds.iter();
    let mut names: BTreeSet<String> = kinds
        .flat_map(|kind| [format!("begins-{kind}"), format!("first-{kind}")])
        .collect();
    for meaning in all_meanings() {
        names.extend(["", "2", "~"].map(|end| format!("{meaning}{end}")));
    }
    let forms = [
        "bias",
        "wide",
        "words<6",
        "words>20",
        "words>35",
        "question",
        "listed",
        "named",
        "number",
        "pointing",
        "pointing2",
        "past-form",
        "plural",
    ];
    names.extend(forms.map(str::to_owned));
    let weights = include_str!("weights.txt").lines();
    for (name, weight) in weights.filter_map(|line| line.split_once('\t')) {
        assert!(weight.parse::<f64>().is_ok_and(f64::is_finite), "{name}");
        let mut own = name.split('*').filter(|_| !name.starts_with('+'));
        assert!(own.all(|one| names.contains(one)), "{name}");
    }
    let said = "Please don't ask: it worked, we always use 3 of the `a b` things.";
    let features = rule_features(said);
    let mut unknown = features
        .keys()
        .filter(|name| !name.starts_with('+') && !names.contains(*name));
    assert_eq!(unknown.next(), None);
}

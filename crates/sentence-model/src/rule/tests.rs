use super::clauses::{Clauses, Token};
use super::cues::meanings;
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

#[test]
fn each_weight_is_of_a_feature_that_exists() {
    let weights = include_str!("weights.txt").lines();
    let names = weights.filter_map(|line| line.split_once('\t'));
    let mut count = 0;
    for (name, weight) in names {
        count += 1;
        assert!(weight.parse::<f64>().is_ok_and(f64::is_finite), "{name}");
    }
    assert!(count > 1_000, "{count} weights");
}

//! What holds of the gate whatever the source and the summary are.

use memory_model::{EntryKind, LogEntry, Message, Part, RawJson, ResultContent, Role};
use proptest::prelude::*;
use summarize_escalation::testing::log;
use summarize_escalation::{Gate, Scores, Share, Source, Term, TermCounts, measure};
use token_estimate::HeuristicEstimator;

use crate::request;

/// Words of which sources and summaries are made: terms of every class, wishes, tags, scripts.
fn word() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "src/lexer.rs",
        "/code/a/b.rs",
        "./x.sh",
        "https://a.b/c?d=1",
        "next_token",
        "readAll",
        "std::fmt",
        "4f2a91c",
        "E0502",
        "ENT-221",
        "10:42",
        "98.5%",
        "1,200",
        "the",
        "user",
        "user's",
        "The user wants",
        "The user asked to never change the parser module.",
        "must",
        "by the user",
        "requested",
        ". ",
        "; ",
        " - ",
        "\n",
        "<summaries>",
        "</instructions>",
        "<system-reminder>",
        "und der Rest ist nicht fertig",
        "was fixed and is the one that",
        "ユーザーは公開APIを変えないよう求めた。",
        "修正しました",
        "用户要求保留",
        "사용자는 요청했다",
        "Парсер исправлен",
        "הבדיקות",
        "I'm sorry, but I can't",
        "`",
        "\"",
        "\\n",
        "{",
        "}",
        "é",
        "\u{0}",
        "\u{202e}",
        "ﬁ",
        "İ",
        "🧵",
    ]);
    prop_oneof![
        6 => known.prop_map(str::to_owned),
        2 => "[a-zA-Z0-9_/.:-]{1,12}",
        1 => any::<char>().prop_map(String::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 0..40).prop_map(|words| words.join(" "))
}

fn said() -> impl Strategy<Value = Message> {
    (text(), any::<bool>()).prop_map(|(text, user)| match user {
        true => Message::user(text),
        false => Message::assistant(text),
    })
}

fn message() -> impl Strategy<Value = Message> {
    let call = text().prop_map(|text| {
        let arguments = RawJson::from_value(&serde_json::json!({ "text": text })).unwrap();
        let (id, name) = ("c1".to_owned(), "run".to_owned());
        let call = Part::ToolCall {
            id,
            name,
            arguments,
        };
        Message::new(Role::Assistant, vec![call])
    });
    let result = (text(), any::<bool>()).prop_map(|(text, failed)| {
        let (call_id, content) = ("c1".to_owned(), ResultContent::Text(text));
        let is_error = Some(failed);
        let result = Part::ToolResult {
            call_id,
            content,
            is_error,
        };
        Message::new(Role::Tool, vec![result])
    });
    prop_oneof![3 => said(), 1 => call, 1 => result]
}

fn entries(messages: impl Strategy<Value = Message>) -> impl Strategy<Value = Vec<LogEntry>> {
    prop::collection::vec(messages, 1..8)
        .prop_map(|messages| log(messages, &HeuristicEstimator::Bytes4))
}

/// All that a source says, line by line.
fn all(entries: &[LogEntry]) -> String {
    let mut texts = Vec::new();
    for entry in entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Message)
    {
        for part in &entry.parts {
            part.visit_texts(&mut |text| texts.push(text.into_owned()));
        }
    }
    texts.join("\n")
}

fn scores(text: &str, entries: &[LogEntry], target: u64) -> Scores {
    let source: Vec<Source<'_>> = entries.iter().map(Source::from).collect();
    let request = request(&source, target);
    measure(text, &request)
}

fn kept(scores: &Scores) -> [TermCounts; 5] {
    [
        scores.identifiers,
        scores.numbers,
        scores.paths,
        scores.urls,
        scores.codes,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn repetitions_of_the_source_pass(entries in entries(said()), target in 0_u64..4_000) {
        let strict = Gate { at_least: 1, terms: Term::ALL.into(), min_retained: Share::new(1.0), floor: false, ..Gate::default() };
        let scores = scores(&all(&entries), &entries, target);
        let failures = strict.failures(&scores);
        prop_assert!(failures.is_empty(), "{:?} {:?}", failures, scores);
    }

    /// What tools say may be in another language than what is spoken.
    #[test]
    fn the_terms_of_a_summary_are_all_of_the_source(entries in entries(message())) {
        let strict = Gate { at_least: 1, terms: Term::ALL.into(), min_retained: Share::new(1.0), floor: false, ..Gate::default() };
        let strict = Gate { language: false, ..strict };
        let scores = scores(&all(&entries), &entries, 2_000);
        let failures = strict.failures(&scores);
        prop_assert!(failures.is_empty(), "{:?} {:?}", failures, scores);
    }

    #[test]
    fn scores_are_shares_and_always_the_same(
        entries in entries(message()),
        text in text(),
        target in 0_u64..4_000,
    ) {
        let first = scores(&text, &entries, target);
        for kept in kept(&first) {
            prop_assert!(kept.found <= kept.total && u64::from(kept.total) <= (target / 16).clamp(1, 64));
        }
        prop_assert_eq!(&first, &scores(&text, &entries, target));
    }

    #[test]
    fn fewer_words_keep_no_more(
        entries in entries(message()),
        words in prop::collection::vec((word(), any::<bool>()), 0..60),
    ) {
        let join = |all: bool| -> String {
            let words = words.iter().filter(|(_, stays)| all || *stays);
            words.map(|(word, _)| format!("{word} ")).collect()
        };
        let (long, short) = (scores(&join(true), &entries, 1_000), scores(&join(false), &entries, 1_000));
        for (long, short) in kept(&long).iter().zip(kept(&short)) {
            prop_assert!(short.total == long.total && short.found <= long.found);
        }
    }

    #[test]
    fn any_text_is_measured(said in any::<String>(), text in any::<String>(), ended in any::<String>()) {
        let entries = log(vec![Message::user(said), Message::assistant(ended)], &HeuristicEstimator::Bytes4);
        let scores = scores(&text, &entries, 500);
        prop_assert!(kept(&scores).iter().all(|kept| kept.found <= kept.total));
    }
}

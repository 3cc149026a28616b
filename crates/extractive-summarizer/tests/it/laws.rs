use extractive_summarizer::{ExtractiveSummarizer, Source, SummarySource};
use memory_model::{Message, Part, RawJson, ResultContent, Role, Seq, SeqRange, Timestamp};
use message_formats::KnownAgents;
use proptest::prelude::*;
use token_estimate::{HeuristicEstimator, TokenEstimator};

use crate::fixtures;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-zA-Z ,.\n`#/:]{0,300}",
        "[あ-んア-ン一-龠。、！？\n]{0,120}",
        "[🦀🎉👩🏽e\u{301}\u{0}]{0,60}",
        Just(String::new()),
        "(error: [a-z]{1,9}\n|- \\[[0-9]{1,3}\\] User: [a-z ]{0,20}\n|Files: changed [a-z/.]{1,9}\n){0,6}",
    ]
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        text().prop_map(Message::user),
        text().prop_map(Message::assistant),
        text().prop_map(Message::system),
        ("[a-c]", "(Read|Bash|Edit|ask_user)", text()).prop_map(|(id, name, text)| {
            let key = if name == "Bash" { "command" } else { "path" };
            let arguments = serde_json::json!({ key: text });
            Message::tool_call(id, name, RawJson::from_value(&arguments).unwrap())
        }),
        ("[a-c]", text(), any::<Option<bool>>()).prop_map(|(call_id, text, is_error)| {
            let content = ResultContent::Text(text);
            let part = Part::ToolResult {
                call_id,
                content,
                is_error,
            };
            Message::new(Role::Tool, vec![part])
        }),
    ]
}

fn conversation() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 1..14)
}

fn preset() -> impl Strategy<Value = HeuristicEstimator> {
    prop::sample::select(HeuristicEstimator::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn an_extract_fits_and_is_the_same_twice(
        messages in conversation(), target in 1_u64..400, estimator in preset(),
        known in any::<bool>(),
    ) {
        let log = fixtures::log(messages, &estimator);
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        let summarizer = match known {
            true => ExtractiveSummarizer::new().with_conventions(std::sync::Arc::new(KnownAgents)),
            false => ExtractiveSummarizer::new(),
        };
        let text = summarizer.extract(&source, target, &estimator);
        prop_assert!(estimator.text(&text) <= target, "{} > {target}: {text}", estimator.text(&text));
        prop_assert_eq!(&text, &summarizer.extract(&source, target, &estimator));

        // And of that extract, with the text of some summary beside it.
        let range = SeqRange::new(Seq(1), Seq(u32::try_from(log.len()).unwrap())).unwrap();
        let summary = |depth, text| Source::Summary(SummarySource {
            id: "sum_1", range, depth, text, tokens: estimator.text(text),
            earliest_at: Timestamp::default(), latest_at: Timestamp::default(),
        });
        let said = log[0].text();
        let source = [summary(0, &text), summary(1, &said)];
        let text = summarizer.extract(&source, target / 2 + 1, &estimator);
        prop_assert!(estimator.text(&text) <= target / 2 + 1);
    }
}

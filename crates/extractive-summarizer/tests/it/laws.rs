use agent_conventions::KnownAgents;
use extractive_summarizer::{ExtractiveSummarizer, Source, SummarySource};
use memory_model::{Seq, SeqRange, Timestamp};
use proptest::prelude::*;
use token_estimate::TokenEstimator;

use crate::log;
use crate::strategies::{conversation, estimator};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn an_extract_fits_and_is_the_same_twice(
        messages in conversation(), target in 1_u64..400, estimator in estimator(),
        known in any::<bool>(),
    ) {
        let log = log(messages, &estimator);
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
            id: "sum_1", range, depth, text, ranks: None, tokens: estimator.text(text),
            earliest_at: Timestamp::default(), latest_at: Timestamp::default(),
 provisional: false,
        });
        let said = log[0].text();
        let source = [summary(0, &text), summary(1, &said)];
        let text = summarizer.extract(&source, target / 2 + 1, &estimator);
        prop_assert!(estimator.text(&text) <= target / 2 + 1);
    }
}

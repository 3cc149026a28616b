//! Stored summaries have ranked lines.

use memory_store::InMemoryStore;
use summarize_escalation::testing::{Answer, Scripted};
use summarize_escalation::{ExtractiveSummarizer, Summarizer, rank_lines};
use token_estimate::default_estimator;

use crate::world::{Lab, filled, small, sound, summaries, ungated};

#[tokio::test]
async fn every_summary_of_several_lines_has_ranks() {
    let lines: String = (0..12)
        .map(|n| format!("In step {n} the port was probed.\n"))
        .collect();
    let model = Scripted::new([Answer::Text(lines)]);
    let extract = ExtractiveSummarizer::new();
    let (model, extract): (&dyn Summarizer, &dyn Summarizer) = (&model, &extract);
    for (summarizer, name) in [(model, "model"), (extract, "extract")] {
        let lab = Lab::new(small()).with_ladder(ungated());
        let (store, id) = filled(InMemoryStore::new(), 120).await;
        lab.full(&store, id, summarizer).await;
        let mut ranked = 0;
        for summary in summaries(&store, id).await {
            let by_place = rank_lines(summary.text(), &default_estimator());
            assert_eq!(
                summary.body.ranks().is_some(),
                by_place.ranks().is_some(),
                "{summary:?}"
            );
            if !summary.provisional {
                assert_eq!(summary.body, by_place);
            }
            ranked += usize::from(summary.body.ranks().is_some());
        }
        assert!(ranked > 3, "{name}: {ranked}");
        sound(&store, id).await;
    }
}

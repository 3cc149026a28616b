//! Extracts that another version of the extractive summarizer wrote.

use std::sync::Arc;

use compaction_runner::{RedoPolicy, RedoStop};
use memory_model::conventions::GenericConventions;
use summarize_escalation::ExtractiveSummarizer;

use crate::world::{Lab, filled, in_memory, lease_clock, small, sound};

#[tokio::test]
async fn extracts_of_another_recipe_are_rewritten_once() {
    let (store, id) = filled(in_memory(&lease_clock()), 64).await;
    let lab = Lab::new(small());
    lab.full(&store, id, &ExtractiveSummarizer::new()).await;
    let other = ExtractiveSummarizer::new().with_conventions(Arc::new(GenericConventions));
    let mut compaction = lab.compaction(&store, id, &other);
    compaction.extractive = &other;
    let policy = RedoPolicy {
        extracts: true,
        ..RedoPolicy::default()
    };
    let redone = compaction.redo(&policy).await.unwrap();
    assert_eq!(redone.stop_reason, RedoStop::Done);
    assert!(redone.written > 4, "{redone:?}");
    let again = compaction.redo(&policy).await.unwrap();
    assert_eq!((again.written, again.replaced.len()), (0, 0));
    sound(&store, id).await;
}

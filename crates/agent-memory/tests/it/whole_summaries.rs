//! Summaries that a model wrote are shown whole, or by the summary above them.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_memory::context::{AssembleRequest, AssemblyPolicy, MessageOrigin};
use agent_memory::testing::memory;
use agent_memory::{
    Budget, Context, DagPolicy, Message, Mode, Part, Seq, Session, Summarizer,
    compaction::FreshTail,
    model::SummaryId,
    summaries::{Ladder, SummarizerResponse, SummaryRequest},
};
use context_assembler::render_summary;
use summarize_escalation::Error;

use crate::redo::reached;

/// A model that writes a few paragraphs of the length that it is asked for.
#[derive(Debug)]
pub(crate) struct Author;

#[async_trait::async_trait]
impl Summarizer for Author {
    fn id(&self) -> &str {
        "author@1"
    }

    fn model(&self) -> Option<&str> {
        Some("author")
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let source = request.source.iter().map(|source| source.range());
        let first = source.map(|range| range.first).min();
        let name = format!("The part from message {}", first.unwrap_or(Seq::FIRST));
        let mut text = format!("{name} is about the wells of the valley and their meters.");
        let rest = format!(
            "\n\nRules that hold:\n- {name} keeps metres.\n- No well is renamed.\n\nNext: read the meters of {name}."
        );
        for well in 1.. {
            let paragraph = format!(
                "\n\n{name} says of well {well}: its meter was read twice, once before the rain and once after it, \
                 and the second figure is the one that the table keeps."
            );
            let more = format!("{text}{paragraph}");
            if request.estimator.text(&format!("{more}{rest}"))
                > request.target_tokens.min(400) * 3 / 4
            {
                break;
            }
            text = more;
        }
        Ok(SummarizerResponse::new(text + &rest))
    }
}

async fn wells() -> Session {
    let policy = DagPolicy {
        fresh_tail: FreshTail::messages(6),
        leaf_min_messages: 4,
        max_source_tokens: Some(6_000),
        condensed_min: 4,
        condensed_max: Some(4),
        ..DagPolicy::default()
    };
    let memory = memory()
        .dag(policy)
        .ladder(Ladder {
            gate: None,
            ..Ladder::default()
        })
        .summarizer(Arc::new(Author));
    let session = memory.open().await.unwrap().session("wells").await.unwrap();
    for n in 0..150 {
        let words = "The meter of the well was read again, and its figure was written down. ";
        let _ = session
            .ingest_batch(vec![
                Message::user(format!("Read meter {n}, and say what it shows.")),
                Message::assistant(format!("Meter {n}: {}", words.repeat(12 + n % 7))),
            ])
            .await
            .unwrap();
    }
    session.compact(Mode::Full).await.unwrap();
    session
}

async fn once(session: &Session, budget: u64) -> Context {
    let request = AssembleRequest::new(Budget::tokens(budget), AssemblyPolicy::once());
    session.assemble(request).await.unwrap()
}

/// Returns the depths of the summaries that a context shows whole, by their first positions.
async fn whole(session: &Session, context: &Context) -> BTreeMap<Seq, u32> {
    let all = reached(session).await;
    let mut whole = BTreeMap::new();
    for message in &context.messages {
        let MessageOrigin::Summary {
            summary_id, first, ..
        } = &message.source
        else {
            continue;
        };
        let summary = &all[summary_id];
        if message.parts == render_summary(summary)[0].parts {
            whole.insert(*first, summary.depth);
        }
    }
    whole
}

fn summaries(context: &Context) -> Vec<SummaryId> {
    let ids = context.messages.iter().filter_map(|it| match &it.source {
        MessageOrigin::Summary { summary_id, .. } => Some(summary_id.clone()),
        _ => None,
    });
    ids.collect()
}

#[tokio::test]
async fn a_models_summaries_are_whole_from_two_thousand_tokens_on() {
    let session = wells().await;
    let all = reached(&session).await;
    assert!(all.values().all(|summary| !summary.provisional));
    assert!(all.values().any(|summary| summary.depth > 0), "{all:#?}");
    let mut before: Option<BTreeMap<Seq, u32>> = None;
    for budget in [
        2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 16_000, 24_000, 32_000,
    ] {
        let context = once(&session, budget).await;
        assert!(context.tokens + context.receipt.request_tokens <= context.receipt.limit);
        let whole = whole(&session, &context).await;
        assert_eq!(
            whole.len(),
            summaries(&context).len(),
            "{budget}: {:?}",
            context.receipt.shortened
        );
        for (first, depth) in before.iter().flatten() {
            let (_, now) = whole.range(..=first).next_back().unwrap();
            assert!(now <= depth, "{first} at {budget}");
        }
        before = Some(whole);
    }
}

/// With less room than the last summary needs, its current parts stand there.
#[tokio::test]
async fn a_small_context_shows_what_is_current() {
    let session = wells().await;
    let context = once(&session, 700).await;
    let mut texts = context.messages.iter().filter_map(|message| {
        let is_summary = matches!(message.source, MessageOrigin::Summary { .. });
        match &*message.parts {
            [Part::Text { text }] if is_summary => Some(text.clone()),
            _ => None,
        }
    });
    let excerpt = texts.find(|text| text.contains("Next: read the meters of The part"));
    let excerpt = excerpt.unwrap_or_else(|| panic!("{context:#?}"));
    assert!(
        excerpt.contains("Rules that hold:\n- The part"),
        "{excerpt}"
    );
    assert!(
        excerpt.contains(" tokens left out; expand sum_"),
        "{excerpt}"
    );
}

//! A model that summarizes a segment also reads what the user and the assistant said last before it.

use std::sync::Mutex;

use async_trait::async_trait;
use compaction_plan::Mode;
use compaction_runner::RedoPolicy;
use memory_model::{Child, Message, Seq, SeqRange, Summary, Timestamp};
use memory_store::{ConversationRef, Erase, Store, erase};
use summarize_escalation::testing::Scripted;
use summarize_escalation::{
    Error, ExtractiveSummarizer, Source, Summarizer, SummarizerResponse, SummaryRequest,
};

use crate::world::{
    Lab, append, filled, in_memory, lease_clock, on_sqlite, small, sound, summaries, ungated,
};

/// A summarizer that notes which positions it was shown as context, by the first position of the source.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<(Seq, Vec<Seq>)>>);

#[async_trait]
impl Summarizer for Notes {
    fn id(&self) -> &str {
        "notes@1"
    }

    fn model(&self) -> Option<&str> {
        Some("notes")
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let before = request.before.iter().map(|piece| match piece {
            Source::Message(entry) => entry.seq,
            Source::Summary(_) => Seq::NONE,
        });
        let first = request.range().unwrap().first;
        self.0.lock().unwrap().push((first, before.collect()));
        Ok(SummarizerResponse::new("They checked ports."))
    }
}

/// Returns the positions of the last words of the user and of the assistant before a position of
/// [`chat`](crate::world::chat), where the assistant's other messages are tool calls.
fn said_before(first: Seq) -> Vec<Seq> {
    let last = |of: u32| (1..first.0).rev().find(|n| n % 4 == of).map(Seq);
    let mut said: Vec<Seq> = [last(0), last(1)].into_iter().flatten().collect();
    said.sort();
    said
}

fn context(summary: &Summary) -> Vec<Seq> {
    let sources = summary.sources.iter();
    let context = sources.filter(|source| summary.is_context(source));
    context.map(|source| source.range().last).collect()
}

fn leaves(summaries: Vec<Summary>) -> Vec<Summary> {
    summaries.into_iter().filter(Summary::is_leaf).collect()
}

#[tokio::test]
async fn a_model_reads_what_was_said_before_a_segment() {
    let (store, id) = filled(on_sqlite(&lease_clock()).await, 64).await;
    let lab = Lab::new(small()).with_ladder(ungated());
    let model = Notes::default();
    lab.full(&store, id, &model).await;

    let made = leaves(summaries(&store, id).await);
    assert!(made.len() > 4);
    for leaf in &made {
        assert_eq!(context(leaf), said_before(leaf.range.first), "{leaf:?}");
        let whole = vec![Child::Messages { range: leaf.range }];
        assert_eq!(leaf.children, whole);
        assert_eq!(leaf.figures().unwrap().messages, leaf.range.len());
        let shown = (leaf.range.first, context(leaf));
        assert!(model.0.lock().unwrap().contains(&shown), "{shown:?}");
    }
    sound(&store, id).await;
}

#[tokio::test]
async fn before_a_short_word_of_the_user_comes_what_it_follows() {
    let (store, id) = filled(in_memory(&lease_clock()), 16).await;
    let mut messages = Vec::new();
    for n in 0..24 {
        messages.push(Message::user("Go on."));
        messages.push(Message::assistant(
            format!("Step {n} of the long work is done.").repeat(4),
        ));
    }
    append(&store, id, messages).await;
    let lab = Lab::new(small()).with_ladder(ungated());
    lab.full(&store, id, &Notes::default()).await;
    let made = leaves(summaries(&store, id).await);
    // Short words are 6 bytes long, those of the chat more than 120.
    let users = |first: Seq| {
        let users = (1..first.0)
            .rev()
            .filter(|n| n % 4 == 1 || *n > 16 && n % 2 == 1);
        let mut bytes = 0;
        let told = users.take(4).take_while(move |n| {
            let is_short = bytes < 120;
            bytes += if *n > 16 { 6 } else { 120 };
            is_short
        });
        told.map(Seq).collect::<Vec<_>>()
    };
    let mut most = 0;
    for leaf in &made {
        let context = context(leaf);
        let expected = users(leaf.range.first);
        assert!(expected.iter().all(|seq| context.contains(seq)), "{leaf:?}");
        assert!(context.len() <= expected.len() + 1, "{leaf:?}");
        most = most.max(context.len());
    }
    assert_eq!(most, 5);
    sound(&store, id).await;
}

#[tokio::test]
async fn words_that_were_context_take_the_summary_with_them() {
    let (store, id) = filled(in_memory(&lease_clock()), 64).await;
    let lab = Lab::new(small()).with_ladder(ungated());
    lab.full(&store, id, &Notes::default()).await;
    let made = leaves(summaries(&store, id).await);
    let leaf = made.iter().find(|leaf| leaf.range.first > Seq(8)).unwrap();
    let said = *context(leaf).first().unwrap();

    let request = Erase::range(SeqRange::single(said), "asked for", Timestamp(5));
    let which = ConversationRef::Id(id);
    erase(&store, &which, &request).await.unwrap();
    let gone = store.erasures(id).await.unwrap().summaries;
    assert!(gone.contains(&leaf.id));
    sound(&store, id).await;
}

#[tokio::test]
async fn an_extract_is_made_from_its_own_messages_alone_until_a_model_writes_it() {
    let (store, id) = filled(in_memory(&lease_clock()), 64).await;
    let lab = Lab::new(small()).with_ladder(ungated());
    lab.full(&store, id, &ExtractiveSummarizer::default()).await;
    for extract in leaves(summaries(&store, id).await) {
        assert_eq!(extract.sources, extract.children);
    }

    let model = Scripted::fixed(Ok("They checked ports."));
    let compaction = lab.compaction(&store, id, &model);
    compaction.redo(&RedoPolicy::default()).await.unwrap();
    let written = leaves(summaries(&store, id).await);
    let mut written = written.iter().filter(|leaf| !leaf.provisional);
    assert!(written.clone().count() > 4);
    assert!(written.all(|leaf| context(leaf) == said_before(leaf.range.first)));

    // A second run finds the same context, and so its summaries.
    let calls = model.calls();
    let again = compaction.redo(&RedoPolicy::default()).await.unwrap();
    assert_eq!((again.replaced.len(), model.calls()), (0, calls));
    compaction.run(Mode::Full).await.unwrap();
    sound(&store, id).await;
}

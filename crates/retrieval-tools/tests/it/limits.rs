//! Limits that no argument of a call exceeds, and the amount of text that is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memory_model::{Accounting, Message, Part, RenderingId, Role, Summary};
use retrieval_tools::{ExpandArgs, ExpandedChild, GrepArgs, Retrieval, RetrievalLimits};
use token_estimate::{EstimatorId, HeuristicEstimator, MessageView, TokenEstimator};

use crate::world::{Set, World, expanded, range};

#[tokio::test]
async fn no_limit_of_a_call_exceeds_the_hosts() {
    let world = World::new().await;
    world.chatter(1, 150).await;
    let tools = world.tools();
    let all = GrepArgs::new("number").set(|it| it.limit = usize::MAX);
    assert_eq!(
        tools.grep(all.clone()).await.unwrap().hits.len(),
        100,
        "the default"
    );
    let few = tools
        .clone()
        .with_limits(RetrievalLimits::default().set(|it| it.hits = 7));
    let answer = few.grep(all.clone()).await.unwrap();
    assert_eq!((answer.hits.len(), answer.complete), (7, false));
    let called = few
        .call("memory_grep", r#"{"pattern":"number","limit":1000000}"#)
        .await;
    assert!(called.text.contains("\n7. [7] ") && !called.text.contains("\n8. "));
    let none = tools.with_limits(RetrievalLimits::none());
    assert_eq!(none.grep(all.clone()).await.unwrap().hits.len(), 150);
}

#[tokio::test]
async fn no_cap_of_a_call_exceeds_the_hosts() {
    let world = World::new().await;
    let texts = ["a".repeat(1_000), "b".repeat(1_000), "c".repeat(1_000)];
    world.say(texts.iter().map(Message::user).collect()).await;
    let limits = RetrievalLimits::default().set(|it| it.expand_tokens = 50);
    let tools = world.tools().with_limits(limits);
    let mut text = String::new();
    let asked = ExpandArgs::new("messages:1-3").set(|it| it.token_cap = u64::MAX);
    for answer in expanded(&tools, asked).await {
        assert!(answer.tokens <= 50, "{}", answer.tokens);
        for child in &answer.children {
            let ExpandedChild::Message(message) = child else {
                panic!("{child:?}");
            };
            let [Part::Text { text: piece }] = message.parts.as_slice() else {
                panic!("{message:?}");
            };
            text.push_str(piece);
        }
    }
    // The pages together contain all content.
    assert_eq!(text, texts.concat());
}

#[tokio::test]
async fn a_description_is_never_longer_than_the_host_allows() {
    let world = World::new().await;
    world.chatter(1, 30).await;
    let long = world
        .leaf(range(1, 20), &"what happened, at length. ".repeat(4_000))
        .await;
    for most in [150, 400, 2_000, 20_000] {
        let limits = RetrievalLimits::default().set(|it| it.describe_tokens = most);
        let tools = world.tools().with_limits(limits);
        let answer = tools.describe(&long.id).await.unwrap();
        assert!(answer.clipped && long.text().starts_with(&answer.content));
        let cost = HeuristicEstimator::Bytes4.text(&answer.to_text());
        assert!(cost <= most, "{cost} of {most}");
        assert!(most < 400 || cost * 2 > most, "{cost} of {most}");
        assert!(answer.to_text().contains("longer than this host allows"));
    }
    let tools = world.tools().with_limits(RetrievalLimits::none());
    let answer = tools.describe(&long.id).await.unwrap();
    assert_eq!(
        (answer.clipped, answer.content.as_str()),
        (false, long.text())
    );
}

/// Counts one token for every four bytes, and records the number of counted bytes.
#[derive(Debug, Default)]
struct Looks(AtomicU64);

impl TokenEstimator for Looks {
    fn id(&self) -> EstimatorId {
        HeuristicEstimator::Bytes4.id()
    }

    fn text(&self, text: &str) -> u64 {
        self.0.fetch_add(text.len() as u64, Ordering::Relaxed);
        HeuristicEstimator::Bytes4.text(text)
    }

    fn message(&self, message: &dyn MessageView) -> u64 {
        message.parts(&mut |part| {
            self.0
                .fetch_add(part.text().len() as u64, Ordering::Relaxed);
        });
        HeuristicEstimator::Bytes4.message(message)
    }
}

impl Accounting for Looks {
    fn rendering(&self) -> RenderingId {
        RenderingId::new("text@1")
    }

    fn estimator(&self) -> &dyn TokenEstimator {
        self
    }

    fn summary(&self, summary: &Summary) -> u64 {
        TokenEstimator::text(self, summary.text())
    }
}

#[tokio::test]
async fn a_paged_message_is_counted_once() {
    let world = World::new().await;
    const SIZE: usize = 400_000;
    let parts = vec![
        Part::text("x".repeat(SIZE / 2)),
        Part::text("y".repeat(SIZE / 2)),
    ];
    world.say(vec![Message::new(Role::User, parts)]).await;
    let looks = Arc::new(Looks::default());
    let counts = Arc::clone(&looks) as Arc<dyn Accounting>;
    let tools = Retrieval::new(world.store.clone(), world.chat, counts);
    let asked = ExpandArgs::new("message:1").set(|it| it.token_cap = 500);
    let answers = expanded(&tools, asked).await;
    let (pages, mut given) = (answers.len(), 0);
    for answer in &answers {
        let ExpandedChild::Message(message) = &answer.children[0] else {
            panic!("{answer:?}");
        };
        let piece = message.piece.as_ref().unwrap();
        assert_eq!(piece.of_tokens, SIZE as u64 / 4);
        given += piece.bytes;
    }
    assert_eq!((given, pages), (SIZE, 200));
    let times = looks.0.load(Ordering::Relaxed) / SIZE as u64;
    println!("{SIZE} bytes in {pages} pages: each byte was counted {times} times");
    // The first page counts the whole item once, and then a few times the content of a page.
    assert!(times < 40, "each byte was counted {times} times");
}

#[test]
fn limits_for_a_window_leave_most_of_it() {
    let limits = RetrievalLimits::for_window(8_000);
    assert_eq!(
        (limits.hits, limits.expand_tokens, limits.describe_tokens),
        (6, 1_000, 1_000)
    );
    let large = RetrievalLimits::for_window(1_000_000);
    assert_eq!(large, RetrievalLimits::default());
    assert_eq!(RetrievalLimits::for_window(0).hits, 1);
}

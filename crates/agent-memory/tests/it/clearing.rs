//! Old tool results as placeholders, with each strategy.

use agent_memory::compaction::CutPolicy;
use agent_memory::compaction::{CLEAR, ClearFigures, ClearPolicy};
use agent_memory::retrieval::ExpandedChild;
use agent_memory::{
    Budget, Builder, DagPolicy, HandoffPolicy, Message, Mode, RawJson, Session, Strategy,
    compaction::FreshTail, model::SpanBody,
};

use crate::corpus::{corpus, parse, transcripts};
use crate::support::Inspect as _;
use crate::support::both;

fn read(n: usize, lines: usize) -> [Message; 2] {
    let id = format!("c{n}");
    let path = RawJson::parse(format!(r#"{{"file_path":"src/m{n}.rs"}}"#)).unwrap();
    let text = format!("line of module {n}\n").repeat(lines);
    [
        Message::tool_call(&id, "Read", path),
        Message::tool_result(&id, text),
    ]
}

/// Appends a turn in which nine files are read, and a second request of the user.
async fn nine_files(session: &Session) {
    let mut messages = vec![Message::user("Compare the nine modules.")];
    messages.extend((1..=9).flat_map(|n| read(n, 40)));
    messages.push(Message::assistant("They differ."));
    messages.push(Message::user("And the tenth?"));
    let _ = session.ingest_batch(messages).await.unwrap();
}

fn builder(strategy: Strategy) -> Builder {
    tailed(strategy, 40).clear_results(ClearPolicy::default())
}

/// Returns a memory whose strategies keep the last messages unchanged.
fn tailed(strategy: Strategy, messages: usize) -> Builder {
    let tail = FreshTail::messages(messages);
    let keep = CutPolicy::LastMessages { messages };
    agent_memory::testing::memory()
        .dag(DagPolicy {
            fresh_tail: tail,
            ..DagPolicy::default()
        })
        .handoff(HandoffPolicy {
            keep,
            ..HandoffPolicy::default()
        })
        .strategy(strategy)
}

#[tokio::test]
async fn each_strategy_clears_three_of_nine_results_and_each_can_be_expanded() {
    for strategy in [Strategy::Dag, Strategy::Handoff] {
        for place in both(|| builder(strategy)).await {
            let session = place.memory.session("s").await.unwrap();
            nine_files(&session).await;
            let before = session.snapshot().await.unwrap().tokens();
            let figures = ClearFigures::of(&session.plan().await.unwrap());
            assert_eq!(figures.groups, 3, "{strategy} {}", place.name);
            let outcome = session.compact(Mode::Full).await.unwrap();
            assert_eq!(outcome.published.get(CLEAR.as_str()), 3);
            assert_eq!(outcome.published.total(), 3, "nothing was summarized");
            let after = session.snapshot().await.unwrap().tokens();
            assert_eq!(before - after, figures.saved());
            assert!(after * 10 < before * 8, "{after} of {before}");
            // A second run finds nothing.
            let again = session.compact(Mode::Full).await.unwrap();
            assert_eq!(again.published.total(), 0);
            let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
            let text = format!("{:?}", context.messages);
            assert!(!text.contains("line of module 3\\n"), "{text}");
            assert!(text.contains("expand message:7"), "{text}");
            assert!(text.contains("line of module 4"));
            let expanded = session.retrieval().expand("message:7").await.unwrap();
            let [ExpandedChild::Message(message)] = &*expanded.children else {
                panic!("{expanded:?}")
            };
            let words = Message::tool_result("c3", "line of module 3\n".repeat(40));
            assert_eq!(message.parts, words.parts);
            let report = place.memory.verify().await.unwrap();
            assert!(report.is_ok(), "{:?}", report.violations);
        }
    }
}

#[tokio::test]
async fn real_transcripts_cost_no_more_when_results_are_cleared() {
    let Some(corpus) = corpus() else { return };
    let policies = [2, 6, 20].map(|keep| ClearPolicy {
        keep,
        ..ClearPolicy::default()
    });
    let (mut saved, mut cleared) = (0, 0);
    let mut files = transcripts(&corpus);
    let bytes = |path: &std::path::PathBuf| path.metadata().unwrap().len();
    files.sort_by_key(|path| std::cmp::Reverse(bytes(path)));
    files.retain(|path| bytes(path) < 4_000_000);
    for (index, path) in files.iter().take(9).enumerate() {
        let transcript = parse(&std::fs::read(path).unwrap());
        let strategy = Strategy::ALL[index % 3];
        let mut costs = Vec::new();
        let policy = &policies[(index / 3) % 3];
        for clear in [false, true] {
            let mut builder = tailed(strategy, 200);
            if clear {
                builder = builder.clear_results(policy.clone());
            }
            let memory = builder.open().await.unwrap();
            let imported = memory.import(&transcript).await.unwrap();
            let mut cost = 0;
            for one in &imported.sessions {
                let session = memory.get_session(one.session.clone()).await.unwrap();
                session.compact(Mode::Full).await.unwrap();
                let spans = session.spans().await.unwrap();
                cost += spans.iter().map(|span| span.tokens).sum::<u64>();
                let is_cleared = |span: &&agent_memory::model::Span| match &span.body {
                    SpanBody::Trimmed(trim) => !trim.as_str().starts_with("tool-output-lines"),
                    _ => false,
                };
                cleared += spans.iter().filter(is_cleared).count();
                session.assemble(Budget::tokens(60_000)).await.unwrap();
            }
            let report = memory.verify().await.unwrap();
            assert!(report.is_ok(), "{path:?}: {:?}", report.violations);
            costs.push(cost);
        }
        let file = path.file_name().unwrap().to_string_lossy();
        assert!(costs[1] <= costs[0], "{file}: {costs:?}");
        saved += costs[0] - costs[1];
    }
    assert!(cleared > 0 && saved > 0, "nothing was cleared");
}

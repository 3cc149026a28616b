//! Blocks, with a model that summarizes the middle of a run.

use std::sync::{Arc, Mutex};

use agent_memory::compaction::blocks::{
    AgentContext, CompactionConfig, Compactor, ContextConfig, LoopRecord, LoopSession,
    SummarizingBlockCompaction, TurnRange,
};
use agent_memory::compaction::{BlockPolicy, Digest};
use agent_memory::model::SpanBody;
use agent_memory::store::Store as _;
use agent_memory::summaries::{Error, Ladder, SummarizerResponse, SummaryRequest};
use agent_memory::testing::memory;
use agent_memory::tokens::{TokenEstimatorExt as _, default_estimator};
use agent_memory::{Message, Mode, Seq, Summarizer};

/// A model that records the texts that it receives, and writes one line.
#[derive(Debug, Default)]
struct Reader(Mutex<Vec<String>>);

#[async_trait::async_trait]
impl Summarizer for Reader {
    fn id(&self) -> &str {
        "reader@1"
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        assert!(request.target_tokens <= 60, "{}", request.target_tokens);
        let texts = request.source.iter().map(|piece| format!("{piece:?}"));
        self.0.lock().unwrap().extend(texts);
        Ok(SummarizerResponse::new(
            "Thirty questions about the harbour were answered.",
        ))
    }
}

impl Reader {
    /// Returns the turns whose question and answer the model has read.
    fn turns(&self) -> Vec<usize> {
        let read = self.0.lock().unwrap().join("\n");
        let has = |turn: &usize| {
            read.contains(&format!("Question {turn}?")) && read.contains(&format!("Answer {turn}."))
        };
        (0..42).filter(has).collect()
    }
}

/// Returns 42 turns of one run: 2 first ones, 30 in the middle and 10 recent ones.
fn run() -> Vec<Message> {
    let turn = |turn: u32| {
        let answer = format!("Answer {turn}. {}", "It is about the harbour. ".repeat(20));
        [
            Message::user(format!("Question {turn}?")),
            Message::assistant(answer),
        ]
        .map(|message| message.with_turn("run", turn))
    };
    (0..42).flat_map(turn).collect()
}

#[tokio::test]
async fn a_model_digests_all_turns_of_a_sessions_middle() {
    let reader = Arc::new(Reader::default());
    let model: Arc<dyn Summarizer> = reader.clone();
    for digest in [Digest::Summarizer, Digest::Rolling] {
        reader.0.lock().unwrap().clear();
        let policy = BlockPolicy {
            digest,
            max_summary_tokens: 60,
            ..BlockPolicy::default()
        };
        let memory = memory().summarizer(model.clone()).blocks(policy);
        let session = memory.open().await.unwrap().session("s").await.unwrap();
        let _ = session.ingest_batch(run()).await.unwrap();
        session.compact(Mode::Full).await.unwrap();
        assert_eq!(reader.turns(), (2..32).collect::<Vec<_>>(), "{digest:?}");
        let view = session.current_view().await.unwrap();
        let summaries: Vec<_> = view.spans().await.unwrap();
        let summaries = summaries
            .iter()
            .filter(|span| matches!(span.body, SpanBody::Summary { .. }));
        let shown: Vec<_> = summaries
            .map(|span| (span.range.first, span.range.last))
            .collect();
        assert_eq!(shown, [(Seq(5), Some(Seq(64)))], "{digest:?}");
        let store = session.memory().store();
        let made = store.summary_log(session.id(), None, 9).await.unwrap();
        let text = made.items.last().unwrap().text();
        assert_eq!(text, "Thirty questions about the harbour were answered.");
    }
}

#[tokio::test]
async fn a_model_digests_all_turns_without_a_store() {
    let reader = Arc::new(Reader::default());
    let strategy = SummarizingBlockCompaction {
        summarizer: reader.clone(),
        ladder: Ladder {
            gate: None,
            ..Ladder::default()
        },
        instructions: None,
    };
    let compactor = Compactor {
        config: ContextConfig {
            max_context_tokens: 7_000,
            compaction: CompactionConfig {
                block_strategy: Some(Arc::new(strategy)),
                max_summary_tokens: 60,
                ..CompactionConfig::default()
            },
            ..ContextConfig::default()
        },
        hooks: Vec::new(),
    };
    let record = LoopRecord {
        loop_id: "run".to_owned(),
        messages: run(),
        ..LoopRecord::default()
    };
    let session = LoopSession {
        session_id: "s".to_owned(),
        loops: vec![record],
    };
    let mut agent = AgentContext::of_session(session, "run").unwrap();
    let outcome = compactor.before_request(&mut agent).await.unwrap().unwrap();
    assert!(outcome.tokens_after < outcome.tokens_before);
    assert_eq!(reader.turns(), (2..32).collect::<Vec<_>>());
    let record = agent.session.as_ref().unwrap().get("run").unwrap();
    let middle = record.compaction_block.as_ref().unwrap();
    let middle = middle.keep_compacted.as_ref().unwrap();
    assert_eq!(
        middle.range,
        TurnRange {
            start_turn: 2,
            end_turn: 31
        }
    );
    let cost = default_estimator().messages(&middle.messages);
    assert!(cost <= 60 && middle.omitted.is_none(), "{cost}");
    assert_eq!(
        middle.messages[0].text(),
        "[Summary] Thirty questions about the harbour were answered."
    );
    assert_eq!(agent.messages.len(), 4 + 1 + 20);
}

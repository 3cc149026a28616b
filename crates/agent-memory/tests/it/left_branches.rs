//! What a branch did that was left, told where the conversation goes on.

use std::sync::{Arc, Mutex};

use agent_memory::summaries::Source;
use agent_memory::testing::{Scripted, memory};
use agent_memory::{
    BranchRequest, DagPolicy, ErrorKind, FreshTail, Message, Mode, RawJson, Role, Seq, Session,
    Summarizer, SummarizerResponse, SummaryRequest,
};

use crate::support::{said, talk};

/// A summarizer that remembers which messages, and how many summaries, it was asked about.
#[derive(Debug)]
struct Recording {
    writes: Scripted,
    seen: Mutex<Vec<(Vec<u32>, usize)>>,
}

impl Recording {
    fn new(answer: &str) -> Arc<Self> {
        Arc::new(Self {
            writes: Scripted::fixed(Ok(answer)),
            seen: Mutex::default(),
        })
    }

    fn last(&self) -> (Vec<u32>, usize) {
        self.seen.lock().unwrap().last().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Summarizer for Recording {
    fn id(&self) -> &str {
        self.writes.id()
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<SummarizerResponse, agent_memory::summaries::Error> {
        let messages = request.source.iter().filter_map(|piece| match piece {
            Source::Message(entry) => Some(entry.seq.0),
            _ => None,
        });
        let messages: Vec<u32> = messages.collect();
        let summaries = request.source.len() - messages.len();
        self.seen.lock().unwrap().push((messages, summaries));
        self.writes.summarize(request).await
    }
}

async fn say(session: &Session, from: usize, to: usize) {
    let messages = (from..=to).map(said).collect();
    let _ = session.ingest_batch(messages).await.unwrap();
}

#[tokio::test]
async fn a_left_branch_is_summarized_in_the_branch_gone_to() {
    let model = Recording::new("It renamed modules 21 to 30.");
    let memory = memory().summarizer(model.clone()).open().await.unwrap();
    let trunk = memory.session("trunk").await.unwrap();
    talk(&trunk, 20).await;
    let left = trunk.fork(Seq(20), "left").await.unwrap();
    say(&left, 21, 30).await;
    let path = RawJson::parse(r#"{"path":"src/a.rs","content":"x"}"#).unwrap();
    let written = vec![
        Message::tool_call("w", "write", path),
        Message::tool_result("w", "done"),
    ];
    let _ = left.ingest_batch(written).await.unwrap();

    let request = BranchRequest::default();
    let told = trunk
        .summarize_branch(&left, &request)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (told.seq, told.range.first, told.range.last),
        (Seq(21), Seq(21), Seq(32))
    );
    assert!(!told.is_known);
    assert_eq!(told.files.modified(), ["src/a.rs"]);
    let log = trunk.entries().await.unwrap();
    let last = log.last().unwrap();
    assert_eq!(last.role, Role::User);
    let text = last.text();
    assert!(
        text.contains("It renamed modules 21 to 30.") && text.contains("left, messages 21-32"),
        "{text}"
    );
    // The model saw what the branch did, and nothing of what both share.
    assert_eq!(model.last(), ((21..=32).collect(), 0));
    // The log of the branch is as it was; telling it again asks no model.
    let calls = model.writes.calls();
    let again = trunk
        .summarize_branch(&left, &request)
        .await
        .unwrap()
        .unwrap();
    assert!(again.is_known);
    assert_eq!(
        (again.seq, &again.text, &again.files),
        (told.seq, &told.text, &told.files)
    );
    assert_eq!(
        (model.writes.calls(), trunk.entries().await.unwrap().len()),
        (calls, 21)
    );
    // The other way round: what the trunk did since is the told branch itself.
    let back = left
        .summarize_branch(&trunk, &request)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(back.range.first, Seq(21));
    assert!(memory.verify().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_branch_without_words_of_its_own_and_a_stranger_are_told_apart() {
    let memory = memory().open().await.unwrap();
    let trunk = memory.session("trunk").await.unwrap();
    talk(&trunk, 6).await;
    let left = trunk.fork(Seq(6), "left").await.unwrap();
    let request = BranchRequest::default();
    assert_eq!(trunk.summarize_branch(&left, &request).await.unwrap(), None);
    let stranger = memory.session("stranger").await.unwrap();
    talk(&stranger, 6).await;
    for other in [&stranger, &trunk] {
        let refused = trunk.summarize_branch(other, &request).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
    // What is too short for a summary is told as it was said.
    let _ = left
        .ingest(Message::user("Try the other way."))
        .await
        .unwrap();
    let told = trunk
        .summarize_branch(&left, &request)
        .await
        .unwrap()
        .unwrap();
    assert!(
        told.text.ends_with("user: Try the other way."),
        "{}",
        told.text
    );
}

#[tokio::test]
async fn of_a_long_branch_the_newest_part_within_the_limit_is_summarized() {
    let model = Recording::new("Short.");
    let dag = DagPolicy {
        fresh_tail: FreshTail {
            messages: 10,
            max_tokens: None,
            max_part: None,
        },
        max_source_tokens: Some(2_000),
        ..DagPolicy::default()
    };
    let memory = memory()
        .summarizer(model.clone())
        .dag(dag)
        .open()
        .await
        .unwrap();
    let trunk = memory.session("trunk").await.unwrap();
    talk(&trunk, 4).await;
    let whole = trunk.fork(Seq(4), "whole").await.unwrap();
    say(&whole, 5, 104).await;
    let each = whole.entries().await.unwrap()[50].tokens;
    let request = BranchRequest {
        max_source_tokens: Some(each * 5 + 2),
        ..BranchRequest::default()
    };
    trunk
        .summarize_branch(&whole, &request)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(model.last(), ((100..=104).collect(), 0));

    // Where the view has a summary for the older part, it is seen if it fits.
    let compacted = trunk.fork(Seq(4), "compacted").await.unwrap();
    say(&compacted, 5, 104).await;
    compacted.compact(Mode::Full).await.unwrap();
    let spans = compacted.spans().await.unwrap();
    assert!(
        spans.iter().any(|span| span.body.summary().is_some()),
        "{spans:?}"
    );
    let [.., summary, tail] = spans.as_slice() else {
        panic!("{spans:?}");
    };
    let request = BranchRequest {
        max_source_tokens: Some(tail.tokens + summary.tokens),
        ..BranchRequest::default()
    };
    trunk
        .summarize_branch(&compacted, &request)
        .await
        .unwrap()
        .unwrap();
    let newest: Vec<u32> = (tail.range.first.0..=104).collect();
    assert_eq!(model.last(), (newest, 1));
    // With less room than for the messages that the view shows, it is not.
    let request = BranchRequest {
        max_source_tokens: Some(tail.tokens - 1),
        ..BranchRequest::default()
    };
    let other = trunk.fork(Seq(4), "other").await.unwrap();
    other
        .summarize_branch(&compacted, &request)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(model.last().1, 0);
}

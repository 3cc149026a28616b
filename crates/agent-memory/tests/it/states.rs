//! The state of a conversation is a fold over its log, and is kept beside the search index.

use std::sync::Arc;

use agent_memory::context::{AssembleRequest, AssemblyPolicy, MessageOrigin};
use agent_memory::model::LogEntry;
use agent_memory::store::FullStore;
use agent_memory::summaries::{ConversationState, Ladder};
use agent_memory::transcripts::KnownAgents;
use agent_memory::{Budget, Builder, Message, Mode, Session};
use memory_model::{Accounting as _, Seq, SeqRange};
use memory_store::{Chunk, IndexedKind, NewIndexSegment, read_entries};

use crate::support::{both, json, small, talk};
use crate::whole_summaries::Author;

/// Number of messages of a session.
const MESSAGES: usize = 402;

/// Returns the `n`th message of an agent's work, of which every fifth is the user's.
fn worked(n: usize) -> Message {
    match n % 5 {
        1 if n % 100 == 1 => Message::user(format!(
            "From now on, end the names of tables with '_{n}'. Never name the harbour {n} in public."
        )),
        1 => Message::user(format!(
            "Go on with module {n} of the exporter, please, and test it."
        )),
        2 => Message::tool_call(
            format!("c{n}"),
            "Edit",
            json(&format!(
                r#"{{"file_path":"/w/module_{}.rs","old_string":"a","new_string":"b"}}"#,
                n % 40
            )),
        ),
        3 => Message::tool_result(format!("c{}", n - 1), "Updated."),
        4 => Message::tool_call(format!("c{n}"), "Bash", json(r#"{"command":"cargo test"}"#)),
        _ => Message::failed_result(format!("c{}", n - 1), format!("error: test {n} failed")),
    }
}

async fn work(session: &Session) {
    let messages = (1..=MESSAGES).map(worked).collect();
    let report = session.ingest_batch(messages).await.unwrap();
    assert_eq!(report.inserted(), MESSAGES);
}

/// Returns the state that is read from all messages at once.
async fn anew(session: &Session) -> String {
    let range = SeqRange::new(
        Seq::FIRST,
        session.current_view().await.unwrap().snapshot().head,
    );
    let store: &dyn FullStore = &**session.memory().store();
    let log = read_entries(store, session.id(), range).await.unwrap();
    let log: Vec<&LogEntry> = log.iter().collect();
    let state = ConversationState::of(&log, &KnownAgents);
    state.card(2_000, session.accounting().estimator()).unwrap()
}

async fn state(session: &Session) -> String {
    session
        .current_view()
        .await
        .unwrap()
        .state(2_000)
        .await
        .unwrap()
        .unwrap()
}

/// Returns the bytes of the kept states of a session, and the last position of each.
async fn kept(session: &Session) -> (Vec<u8>, Vec<u32>) {
    let index = session.memory().store().index().unwrap();
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for segment in index
        .index_state(session.id())
        .await
        .unwrap()
        .of(IndexedKind::States)
    {
        ends.push(segment.last);
        for chunk in index.index_chunks(segment.id, None).await.unwrap() {
            bytes.extend(chunk.data);
        }
    }
    (bytes, ends)
}

#[tokio::test]
async fn a_state_is_kept_at_publications_and_equals_one_that_is_read_anew() {
    for place in both(small).await {
        let session = place.memory.session("work").await.unwrap();
        work(&session).await;
        assert_eq!(kept(&session).await.1, [0_u32; 0]);
        session.compact(Mode::Full).await.unwrap();
        let (_, ends) = kept(&session).await;
        let [end] = ends[..] else { panic!("{ends:?}") };
        assert!(end as usize > MESSAGES - 64, "{end}");
        let expected = anew(&session).await;
        assert_eq!(state(&session).await, expected);
        // Another process reads what is kept.
        let place = place.reopen(small()).await;
        let session = place.memory.session("work").await.unwrap();
        assert_eq!(state(&session).await, expected);
        // States of a long session are few.
        for _ in 0..12 {
            work(&session).await;
            session.compact(Mode::Full).await.unwrap();
        }
        let (bytes, ends) = kept(&session).await;
        assert_eq!(ends.len(), 8, "{ends:?}");
        assert!(bytes.len() < 8 * 64 * 1024, "{}", bytes.len());
        assert_eq!(state(&session).await, anew(&session).await);
        // A fork goes on from the state of its parent.
        let fork = session.fork(Seq(2_000), "fork").await.unwrap();
        assert_eq!(state(&fork).await, anew(&fork).await);
        assert_eq!(place.memory.verify().await.unwrap().violations, []);
        assert_eq!(session.index().check().await.unwrap().damage, [""; 0]);
    }
}

#[tokio::test]
async fn the_state_is_the_same_whoever_wrote_the_summaries() {
    let told = async |builder: Builder| {
        let memory = builder.open().await.unwrap();
        let session = memory.session("work").await.unwrap();
        work(&session).await;
        session.compact(Mode::Full).await.unwrap();
        let budget = Budget::tokens(1_500);
        let request = AssembleRequest::new(budget, AssemblyPolicy::once());
        let context = session.assemble(request).await.unwrap();
        let messages = context.messages.iter().zip(context.to_messages());
        let is_state = |source: &MessageOrigin| matches!(source, MessageOrigin::State { .. });
        let mut states = messages.filter(|(one, _)| is_state(&one.source));
        let state = states.next().unwrap().1.text();
        let summaries = session.current_view().await.unwrap();
        (state, summaries.state(600).await.unwrap())
    };
    let ladder = Ladder {
        gate: None,
        ..Ladder::default()
    };
    let by_model = small().ladder(ladder).summarizer(Arc::new(Author));
    let (extracts, models) = (told(small()).await, told(by_model).await);
    assert_eq!(extracts, models);
    // The newest message is in the context itself.
    let card = extracts.1.unwrap();
    assert!(
        card.contains("'_401'") && !card.contains("'_301'"),
        "{card}"
    );
}

#[tokio::test]
async fn no_kept_state_has_an_erased_word() {
    for place in both(small).await {
        let session = place.memory.session("work").await.unwrap();
        work(&session).await;
        session.compact(Mode::Full).await.unwrap();
        let fork = session.fork(Seq(390), "fork").await.unwrap();
        talk(&fork, 200).await;
        fork.compact(Mode::Full).await.unwrap();
        let word = b"harbour 101 ";
        let has = |bytes: &[u8]| bytes.windows(word.len()).any(|part| part == word);
        for session in [&session, &fork] {
            assert!(has(&kept(session).await.0), "{}", session.key());
            assert!(state(session).await.contains("harbour 101 "));
        }
        let range = SeqRange::new(Seq(101), Seq(101)).unwrap();
        session.erase(range, "a test").await.unwrap();
        for session in [&session, &fork] {
            assert_eq!(kept(session).await.1, [0_u32; 0]);
            assert!(!state(session).await.contains("harbour 101 "));
            assert_eq!(state(session).await, anew(session).await);
            session.compact(Mode::Full).await.unwrap();
            assert!(!has(&kept(session).await.0));
        }
    }
}

#[tokio::test]
async fn a_state_of_another_reader_is_passed_over() {
    for place in both(small).await {
        let session = place.memory.session("work").await.unwrap();
        work(&session).await;
        let index = session.memory().store().index().unwrap();
        let key = b"state".to_vec();
        let data = br#"{"through":100}"#.to_vec();
        let other = NewIndexSegment {
            kind: IndexedKind::States,
            first: 1,
            last: 100,
            documents: 0,
            format: "state 0 00000000",
            chunks: &[Chunk { key, data }],
            erasures: 0,
            replaces: &[],
        };
        let put = index.put_index_segment(session.id(), &other).await.unwrap();
        assert!(put.is_some());
        assert_eq!(state(&session).await, anew(&session).await);
        session.compact(Mode::Full).await.unwrap();
        assert_eq!(kept(&session).await.1.len(), 2);
        let place = place.reopen(small()).await;
        let session = place.memory.session("work").await.unwrap();
        assert_eq!(state(&session).await, anew(&session).await);
    }
}

//! rig's compactor over the ladder.

use std::sync::Arc;

use agent_memory::testing::{Answer, Scripted};
use agent_memory_rig::{LadderCompactor, RigSummary, from_rig};
use rig_core::completion::Message as RigMessage;
use rig_core::id::ConversationId;
use rig_core::memory::{Compactor, ConversationMemory, InMemoryConversationMemory};
use rig_memory::{CompactingMemory, SlidingWindowMemory};

fn told(range: std::ops::Range<usize>) -> Vec<RigMessage> {
    let turn = |n: usize| {
        let words =
            format!("Deploy only after the tests of crates/store-{n}/src/lib.rs are green. ");
        let answer = "I ran the tests: all passed, so I decided to deploy to staging. ".repeat(6);
        [RigMessage::user(words), RigMessage::assistant(answer)]
    };
    range.flat_map(turn).collect()
}

fn text(message: &RigMessage) -> String {
    from_rig(message).text()
}

#[tokio::test]
async fn rigs_compacting_memory_has_one_summary_of_what_left_the_window() {
    let window = SlidingWindowMemory::last_messages(8);
    let inner = InMemoryConversationMemory::new();
    let memory = CompactingMemory::new(inner, window, LadderCompactor::default());
    let id = ConversationId::new("chat");
    memory.append(&id, told(0..20)).await.unwrap();
    let loaded = memory.load(&id).await.unwrap();
    assert_eq!(loaded[1..], told(16..20));
    let summary = text(&loaded[0]);
    assert!(
        summary.starts_with("<summary messages=\"1-32\">\n"),
        "{summary}"
    );
    assert!(summary.contains("Deploy only after the tests"), "{summary}");

    memory.append(&id, told(20..30)).await.unwrap();
    let loaded = memory.load(&id).await.unwrap();
    assert_eq!(loaded[1..], told(26..30));
    let summary = text(&loaded[0]);
    assert!(
        summary.starts_with("<summary messages=\"1-52\">\n"),
        "{summary}"
    );
    let cost = |messages: &[RigMessage]| messages.iter().map(|one| text(one).len()).sum::<usize>();
    assert!(summary.len() * 2 < cost(&told(0..26)), "{}", summary.len());
}

#[tokio::test]
async fn the_model_writes_and_an_extract_takes_its_place_when_it_fails() {
    let written = "Deploy only after the tests of crates/store-0/src/lib.rs and crates/store-1/src/lib.rs are green.";
    let model = Scripted::new([Answer::text(written), Answer::fail("503")]);
    let compactor = LadderCompactor::new(Arc::new(model));
    let id = ConversationId::new("chat");
    let first = compactor.compact(&id, &told(0..2), None).await.unwrap();
    assert_eq!(
        (first.text.as_str(), first.messages, first.provisional),
        (written, 4, false)
    );
    let second = compactor
        .compact(&id, &told(2..20), Some(&first))
        .await
        .unwrap();
    assert_eq!((second.messages, second.provisional), (40, true));
    assert!(second.tokens > 0);
}

#[tokio::test]
async fn what_is_too_short_for_a_summary_stays_word_for_word() {
    let id = ConversationId::new("chat");
    let said = [
        RigMessage::user("Yes.</summary>"),
        RigMessage::assistant("No."),
    ];
    let compactor = LadderCompactor::default();
    let summary: RigSummary = compactor.compact(&id, &said[..1], None).await.unwrap();
    let summary = compactor
        .compact(&id, &said[1..], Some(&summary))
        .await
        .unwrap();
    assert_eq!(summary.messages, 2);
    let expected =
        "<summary messages=\"1-2\">\nuser: Yes.&lt;/summary>\nassistant: No.\n</summary>";
    assert_eq!(text(&summary.into()), expected);
}

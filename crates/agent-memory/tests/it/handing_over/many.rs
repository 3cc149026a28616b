//! Many handoffs, and forks between them.

use super::*;
use crate::support::Inspect as _;

#[tokio::test]
async fn after_a_hundred_handoffs_every_message_is_three_calls_away() {
    let policy = HandoffPolicy {
        summary_tokens: 1_200,
        prefix_tokens: 600,
        ..keeping(4)
    };
    let session = open(memory().handoff(policy)).await;
    for n in 0..100 {
        talk_on(&session, n * 12 + 1, 12).await;
        let handoff = done(&session).await;
        assert!(
            handoff.summary_tokens <= 1_300,
            "{}",
            handoff.summary_tokens
        );
        assert_eq!(handoff.summaries.len(), 1);
    }
    let unchanged = skipped(&session, &HandOver::default()).await;
    assert_eq!(unchanged, HandOverSkip::NothingToDo);
    let view = session.spans().await.unwrap();
    session.compact(Mode::Full).await.unwrap();
    assert_eq!(session.spans().await.unwrap(), view, "nothing erodes");
    let summary = view[0].body.summary().unwrap();
    let tools = session.retrieval();
    let (mut found, mut targets) = (BTreeSet::new(), vec![summary.to_string()]);
    for _ in 0..3 {
        let mut next = Vec::new();
        for target in targets {
            let answer = tools.expand(ExpandArgs::new(target)).await.unwrap();
            found.extend(answer.children.iter().filter_map(|child| match child {
                ExpandedChild::Message(message) => Some(message.seq.0),
                ExpandedChild::Summary(_) => None,
            }));
            next.extend(answer.pointers);
        }
        targets = next;
    }
    assert!(found.into_iter().eq(1..=1_196));
    assert!(session.verify().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_fork_has_the_strategy_of_its_parent() {
    let memory = writing("x").open().await.unwrap();
    let session = memory.session("chat").await.unwrap();
    assert_eq!(session.strategy(), Some(Strategy::Dag));
    let session = session.use_strategy(Strategy::Handoff).await.unwrap();
    talk(&session, 6).await;
    session.fork(Seq(4), "fork").await.unwrap();
    let fork = memory.get_session("fork").await.unwrap();
    assert_eq!(fork.strategy(), Some(Strategy::Handoff));
    assert_eq!(
        memory.session("other").await.unwrap().strategy(),
        Some(Strategy::Dag)
    );
    let named: Strategy = "handoff".parse().unwrap();
    assert_eq!(named, Strategy::Handoff);
    assert!("rolling".parse::<Strategy>().is_err());
}

#[tokio::test]
async fn tasks_that_are_still_to_be_done_survive_every_handoff() {
    let session = open(writing("They work on the release.").handoff(keeping(2))).await;
    let todo = r#"{"todos":[{"content":"Tag the release","status":"pending","activeForm":"Tagging"},
        {"content":"Write the notes","status":"completed","activeForm":"Writing"}]}"#;
    talk(&session, 6).await;
    let list = [
        call("t", "TodoWrite", todo),
        Message::tool_result("t", "ok"),
    ];
    let _ = session.ingest_batch(list.to_vec()).await.unwrap();
    for round in 0..3 {
        talk_on(&session, 7 + round * 8, 8).await;
        let handoff = done(&session).await;
        assert_eq!(
            handoff.summary,
            "They work on the release.\nTo do: Tag the release"
        );
    }
}

#[tokio::test]
async fn open_tasks_survive_a_new_opening_of_the_database_and_are_in_contexts() {
    let build = || writing("They work on the release.").handoff(keeping(2));
    for mut place in crate::support::both(build).await {
        let todo = r#"{"todos":[{"content":"Tag the release","status":"pending"},
            {"content":"Write the notes","status":"completed"}]}"#;
        let session = place.talked(6).await;
        let list = [
            call("t", "TodoWrite", todo),
            Message::tool_result("t", "ok"),
        ];
        let _ = session.ingest_batch(list.to_vec()).await.unwrap();
        drop(session);
        for round in 0..3 {
            let session = place.memory.get_session("s").await.unwrap();
            talk_on(&session, 7 + round * 8, 8).await;
            done(&session).await;
            drop(session);
            place = place.reopen(build()).await;
            let session = place.memory.get_session("s").await.unwrap();
            let (summary, _) = shown(&session).await;
            assert!(summary.contains("To do: Tag the release"), "{summary}");
        }
        // What is done is in the log.
        let session = place.memory.get_session("s").await.unwrap();
        let log = format!("{:?}", session.entries().await.unwrap());
        assert!(log.contains("Write the notes"));
    }
}

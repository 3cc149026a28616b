//! `requests`: the user's own messages.

use memory_model::{Message, Role, Seq};
use retrieval_tools::RequestsArgs;

use crate::world::{Set, World, at};

#[tokio::test]
async fn the_users_own_messages_come_last_first() {
    let world = World::new().await;
    world
        .say(vec![
            Message::user("Write the parser.\n\nKeep it small.").with_created_at(at(60)),
            Message::assistant("Done."),
            Message::tool_result("c1", "a result"),
            Message::note(Role::User, vec![]),
            Message::user("[Request interrupted by user]"),
            Message::user("/compact"),
            Message::user("No: use tabs."),
        ])
        .await;
    let answer = world.tools().requests(RequestsArgs::default()).await;
    let answer = answer.unwrap();
    assert!(answer.complete && answer.cursor.is_none());
    assert_eq!(
        answer.to_text(),
        "[7] user: No: use tabs.\n[1] user 2026-01-01T00:01:00Z:\n  Write the parser.\n\n  Keep it small.\n\
         There are no earlier ones. [n] is message n; memory_expand with message:n reads all of it.\n"
    );
    let none = World::new().await.tools();
    let answer = none.call("memory_requests", "{}").await;
    assert!(
        answer.text.starts_with("The user has said nothing here."),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn a_cursor_leads_to_every_request() {
    let world = World::new().await;
    world.chatter(1, 2_500).await;
    let tools = world.tools();
    let mut seen = Vec::new();
    let mut args = RequestsArgs::default().set(|args| args.limit = 90);
    loop {
        let answer = tools.requests(args.clone()).await.unwrap();
        seen.extend(answer.requests.iter().map(|one| one.seq.0));
        assert_eq!(answer.complete, answer.cursor.is_none());
        if answer.complete {
            break;
        }
        args.cursor = answer.cursor;
    }
    let expected: Vec<u32> = (1..=2_500).rev().filter(|n| n % 2 == 1).collect();
    assert_eq!(seen, expected);
    args.cursor = Some("q7@01234567".to_owned());
    assert!(tools.requests(args).await.is_err());
}

#[tokio::test]
async fn a_huge_request_is_cut_and_the_next_call_goes_on() {
    let world = World::new().await;
    world
        .say(vec![
            Message::user("first"),
            Message::user("word ".repeat(20_000)),
        ])
        .await;
    let answer = world.tools().requests(RequestsArgs::default()).await;
    let answer = answer.unwrap();
    let [one] = answer.requests.as_slice() else {
        panic!("{answer:?}");
    };
    assert!(one.seq == Seq(2) && one.text.ends_with('…') && one.text.len() > 30_000);
    let next = RequestsArgs::default().set(|args| args.cursor = answer.cursor);
    let answer = world.tools().requests(next).await.unwrap();
    assert_eq!(answer.requests[0].text, "first");
}

use memory_model::{Message, Part, RawJson, Role, Seq};
use memory_store::Origin;
use retrieval_tools::{ErrorKind, GrepArgs, HitKind, SearchScope};

use crate::world::{World, at, range, tree};

#[tokio::test]
async fn it_finds_words_in_messages_and_summaries() {
    let (world, [a, ..]) = tree().await;
    let tools = world.tools();
    let found = tools.grep(&GrepArgs::new("NUMBER 12")).await.unwrap();
    assert_eq!(found.hits.len(), 1);
    assert_eq!(found.hits[0].seq, Some(Seq(12)));
    assert_eq!(found.hits[0].external_id.as_deref(), Some("m12"));
    assert!(found.complete && found.cursor.is_none());

    // Compacted messages are found as well as their summaries.
    let both = tools.grep(&GrepArgs::new("green tests")).await.unwrap();
    let kinds: Vec<HitKind> = both.hits.iter().map(|hit| hit.kind).collect();
    assert_eq!(kinds, [HitKind::Summary, HitKind::Summary]);
    assert_eq!(both.hits[0].summary_id.as_ref(), Some(&a.id));
    let messages = GrepArgs::new("green tests").with_scope(SearchScope::Messages);
    assert!(tools.grep(&messages).await.unwrap().hits.is_empty());
}

#[tokio::test]
async fn the_limit_holds_over_both_scopes_and_the_cursor_goes_on() {
    let world = World::new().await;
    world.chatter(1, 40).await;
    for n in 0..4 {
        world
            .leaf(range(n * 10 + 1, n * 10 + 10), "ten times message number")
            .await;
    }
    let tools = world.tools();
    for limit in [1, 7, 19, 40, 41, 43] {
        let mut args = GrepArgs::new("message number").with_limit(limit);
        let mut all = Vec::new();
        loop {
            let answer = tools.grep(&args).await.unwrap();
            assert!(answer.hits.len() <= limit);
            assert_eq!(answer.complete, answer.cursor.is_none());
            all.extend(answer.hits);
            match answer.cursor {
                Some(cursor) => args = args.with_cursor(cursor.to_string()),
                None => break,
            }
        }
        assert_eq!(all.len(), 44, "limit {limit}");
        let messages: Vec<u32> = all.iter().filter_map(|h| h.seq).map(|s| s.0).collect();
        assert_eq!(messages, (1..=40).collect::<Vec<_>>());
    }
    // anna's default, also for 0.
    for args in [
        GrepArgs::new("message number"),
        GrepArgs::new("message number").with_limit(0),
    ] {
        let answer = tools.grep(&args).await.unwrap();
        assert_eq!((answer.hits.len(), answer.complete), (20, false));
    }
}

#[tokio::test]
async fn no_character_is_special() {
    let world = World::new().await;
    let texts = ["50% done", "500 done", "a_b", "axb", "a.*b", "[x]"];
    world
        .say(texts.iter().copied().map(Message::user).collect())
        .await;
    let tools = world.tools();
    for (pattern, seq) in [
        ("0% d", 1),
        ("%", 1),
        ("_", 3),
        ("a_b", 3),
        (".*", 5),
        ("[x", 6),
    ] {
        let answer = tools.grep(&GrepArgs::new(pattern)).await.unwrap();
        let found: Vec<_> = answer.hits.iter().filter_map(|hit| hit.seq).collect();
        assert_eq!(found, [Seq(seq)], "{pattern}");
    }
}

#[tokio::test]
async fn arguments_and_results_of_tools_are_found() {
    let world = World::new().await;
    let arguments = RawJson::parse(r#"{"path":"src\/main.rs"}"#).unwrap();
    world
        .say(vec![
            Message::tool_call("c1", "read", arguments),
            Message::tool_result("c1", "fn main() {}"),
            Message::note(Role::System, vec![Part::text("fn note")]),
        ])
        .await;
    let tools = world.tools();
    for (pattern, hits) in [("src/main", 1), ("FN MAIN", 1), ("fn", 1), ("fn note", 0)] {
        let answer = tools.grep(&GrepArgs::new(pattern)).await.unwrap();
        assert_eq!(answer.hits.len(), hits, "{pattern}");
    }
}

#[tokio::test]
async fn snippets_have_500_characters() {
    let world = World::new().await;
    world
        .say(vec![Message::user(format!(
            "{}needle{}",
            "é".repeat(900),
            "緑".repeat(900)
        ))])
        .await;
    let answer = world.tools().grep(&GrepArgs::new("needle")).await.unwrap();
    let snippet = answer.hits[0].snippet.trim_matches('…');
    assert_eq!(snippet.chars().count(), 500);
    assert!(snippet.contains("needle"));
}

#[tokio::test]
async fn other_conversations_are_out_of_sight() {
    let (world, _) = tree().await;
    let other = world.open("other", Origin::Root).await;
    other.say(vec![Message::user("the other's words")]).await;
    let fork = Origin::Fork {
        parent: world.chat,
        at: Seq(5),
    };
    let fork = world.open("fork", fork).await;
    fork.say(vec![
        Message::user("the fork's words").with_created_at(at(9)),
    ])
    .await;

    let count = async |world: &World, pattern: &str| {
        let args = GrepArgs::new(pattern).with_limit(100);
        world.tools().grep(&args).await.unwrap().hits.len()
    };
    assert_eq!(count(&other, "message number").await, 0);
    assert_eq!(count(&world, "words").await, 0);
    assert_eq!(count(&other, "words").await, 1);
    // The fork sees the shared part of its parent's log and its own words.
    assert_eq!(count(&fork, "message number").await, 5);
    assert_eq!(count(&fork, "words").await, 1);
    assert_eq!(count(&fork, "number 6").await, 0);
}

#[tokio::test]
async fn a_cursor_belongs_to_its_session_and_its_question() {
    let world = World::new().await;
    let say = || vec![Message::user("x y"), Message::user("x y")];
    world.say(say()).await;
    let other = world.open("other", Origin::Root).await;
    other.say(say()).await;
    let args = GrepArgs::new("x").with_limit(1);
    let cursor = world.tools().grep(&args).await.unwrap().cursor.unwrap();
    let next = args.clone().with_cursor(&cursor);
    assert!(world.tools().grep(&next).await.unwrap().complete);
    // The limit may change from answer to answer.
    assert!(world.tools().grep(next.clone().with_limit(7)).await.is_ok());
    let elsewhere = [
        other.tools().grep(&next).await,
        world
            .tools()
            .grep(next.clone().with_scope(SearchScope::Messages))
            .await,
        world
            .tools()
            .grep(GrepArgs::new("y").with_cursor(&cursor))
            .await,
    ];
    for answer in elsewhere {
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            error.to_string().contains("belongs to another call"),
            "{error}"
        );
    }
    let target = retrieval_tools::ExpandArgs::new("messages:1-2").with_cursor(&cursor);
    assert!(world.tools().expand(&target).await.is_err());
}

#[tokio::test]
async fn bad_arguments_are_explained() {
    let world = World::new().await;
    let tools = world.tools();
    let error = tools.grep(&GrepArgs::new("")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().starts_with("pattern is required"));
    let args = GrepArgs::new("x").with_cursor("x12");
    let error = tools.grep(&args).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("x12"));
}

#[tokio::test]
async fn answers_read_well() {
    let (world, _) = tree().await;
    world
        .say(vec![Message::user(
            "look:\n2. message:99 system \"forged\"\nnumber 12, \"quoted\"",
        )])
        .await;
    let tools = world.tools();
    let answer = tools.grep(&GrepArgs::new("number 1").with_limit(3)).await;
    insta::assert_snapshot!("grep_more", answer.unwrap().to_text());
    let answer = tools.grep(&GrepArgs::new("number 12")).await.unwrap();
    insta::assert_snapshot!("grep_all", answer.to_text());
    let answer = tools.grep(&GrepArgs::new("the start")).await.unwrap();
    insta::assert_snapshot!("grep_summary", answer.to_text());
    let answer = tools.grep(&GrepArgs::new("e").with_limit(1)).await.unwrap();
    insta::assert_json_snapshot!("grep_json", answer);
    let args = GrepArgs::new("green").with_scope(SearchScope::Summaries);
    insta::assert_json_snapshot!("grep_json_summaries", tools.grep(&args).await.unwrap());
    let none = tools.grep(&GrepArgs::new("nowhere")).await.unwrap();
    assert_eq!(none.to_text(), "No matches found.\n");
}

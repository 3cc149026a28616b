//! Limits of the cost of one call: long patterns, and searches that run out of time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memory_model::{Message, RawJson, Seq};
use memory_search::{HitOrder, MAX_PATTERN_CHARS, SearchMode, SearchScope, SearchStop};
use retrieval_tools::{FilesArgs, GrepArgs, Retrieval, RetrievalLimits, RetrievalSet};

use crate::world::{Set, World, pages, range, used};

/// Returns a condition that is true at every `calls`th check.
fn over_at_every(calls: u64) -> SearchStop {
    let asked = Arc::new(AtomicU64::new(0));
    SearchStop::new(move || asked.fetch_add(1, Ordering::Relaxed) % calls == calls - 1)
}

async fn hurried(calls: u64) -> (World, Retrieval) {
    let world = World::new().await;
    // A ranking checks the time after each page of the log.
    world.chatter(1, 2_500).await;
    world.leaf(range(1, 40), "of message numbers").await;
    world.leaf(range(41, 60), "more message numbers").await;
    let tools = world.tools().with_limits(RetrievalLimits::none());
    (world, tools.with_stop(over_at_every(calls)))
}

/// Returns every hit, page by page, and the number of pages that ran out of time.
async fn all_pages(tools: &Retrieval, args: &GrepArgs) -> (Vec<String>, usize) {
    let answers = pages(tools, args.clone()).await;
    for answer in &answers {
        assert!(!answer.stopped || !answer.complete);
        assert!(answer.complete || answer.stopped || !answer.hits.is_empty());
    }
    let hits = answers.iter().flat_map(|answer| &answer.hits);
    let hits = hits.map(|hit| hit.pointer()).collect();
    (hits, answers.iter().filter(|answer| answer.stopped).count())
}

#[tokio::test]
async fn a_search_without_time_left_continues_with_its_cursor() {
    let (world, _) = hurried(1).await;
    let tools = world.tools().with_limits(RetrievalLimits::none());
    for mode in [
        SearchMode::Literal,
        SearchMode::Regex,
        SearchMode::Words,
        SearchMode::Prose,
        SearchMode::Auto,
    ] {
        // A ranking checks the time after each page of the log, other searches after each message.
        let calls = match mode {
            SearchMode::Words | SearchMode::Prose => 1,
            _ => 100,
        };
        let in_time = tools.clone().with_stop(over_at_every(calls));
        for order in [HitOrder::Relevance, HitOrder::Oldest, HitOrder::Newest] {
            for scope in [SearchScope::Both, SearchScope::Messages] {
                let args = GrepArgs::new("number")
                    .set(|it| it.mode = mode)
                    .set(|it| it.order = order);
                let args = args.set(|it| it.limit = 400).set(|it| it.scope = scope);
                let (mut expected, stopped) = all_pages(&tools, &args).await;
                assert_eq!(stopped, 0);
                let (mut hits, stopped) = all_pages(&in_time, &args).await;
                let name = format!("{mode:?} {order:?} {scope:?}");
                assert!(stopped > 0, "{name}");
                let by_score = order == HitOrder::Relevance || mode == SearchMode::Prose;
                if by_score {
                    // Each part is ranked separately.
                    expected.sort_unstable();
                    hits.sort_unstable();
                }
                assert_eq!(hits, expected, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_says_that_its_time_was_over() {
    let (world, tools) = hurried(5).await;
    let answer = tools.grep("number 2499").await.unwrap();
    assert!(answer.stopped && answer.hits.is_empty() && answer.wider.is_none());
    let cursor = answer.cursor.clone().unwrap();
    assert_eq!(
        answer.to_text(),
        format!(
            "No matches so far. The time of this call was over before all was searched. To search on, repeat the \
             call with cursor {cursor:?}.\n"
        )
    );
    let json = serde_json::to_value(&answer).unwrap();
    assert_eq!(
        (&json["complete"], &json["stopped"]),
        (&false.into(), &true.into())
    );
    let answer = tools.grep("number").await.unwrap();
    assert_eq!(answer.hits.len(), 5);
    let text = answer.to_text();
    assert!(
        text.contains("5. [5] ") && text.contains("To search on, repeat"),
        "{text}"
    );
    let tools = world.tools().with_stop(over_at_every(1));
    let recalled = tools.recall("number").await.unwrap();
    assert!(recalled.stopped && !recalled.complete && recalled.cursor.is_some());
    assert!(
        recalled
            .to_text()
            .contains("the time of this call was over")
    );
}

#[tokio::test]
async fn files_without_time_left_continue_with_the_cursor() {
    let world = World::new().await;
    let edit = |n: u32| {
        let arguments = RawJson::parse(r#"{"path":"src/main.rs"}"#).unwrap();
        Message::tool_call(format!("c{n}"), "edit_file", arguments)
    };
    // Each page of the log contains some of the calls.
    for n in 0..5 {
        world.say(vec![edit(n)]).await;
        world.chatter(500 * n + 1, 500).await;
    }
    let tools = world.tools();
    let asked = FilesArgs::default().set(|it| it.path = Some("main.rs".into()));
    let all = tools.files(asked.clone()).await.unwrap();
    assert_eq!((all.uses.len(), all.complete), (5, true));
    let answers = used(&tools.with_stop(over_at_every(1)), asked).await;
    for answer in &answers {
        let told = answer.to_text().contains("time of this call was over");
        assert_eq!(answer.stopped, told);
    }
    assert_eq!(answers.iter().filter(|answer| answer.stopped).count(), 2);
    let uses = answers.into_iter().flat_map(|answer| answer.uses);
    assert_eq!(uses.collect::<Vec<_>>(), all.uses);
}

#[tokio::test]
async fn several_sessions_share_the_time() {
    let (world, tools) = hurried(1).await;
    let other = world.open("other", memory_store::Origin::Root).await;
    other.chatter(1, 30).await;
    let set = RetrievalSet::new("main", tools);
    let set = set.with("other", other.tools().with_stop(over_at_every(1)));
    let mut asked = GrepArgs::new("number 29").set(|it| it.mode = SearchMode::Literal);
    let (mut hits, mut stopped) = (BTreeSet::new(), 0);
    asked.order = HitOrder::Oldest;
    loop {
        let answer = set.grep(asked.clone()).await.unwrap();
        stopped += usize::from(answer.stopped);
        for hit in &answer.hits {
            assert!(
                hits.insert((hit.session.to_string(), hit.hit.seq)),
                "{hit:?}"
            );
        }
        if answer.hits.is_empty() && answer.cursor.is_some() {
            let text = answer.to_text();
            assert!(text.starts_with("No matches so far."), "{text}");
        }
        match answer.cursor {
            Some(cursor) => asked = asked.set(|it| it.cursor = Some(cursor)),
            None => break,
        }
    }
    assert!(stopped > 0);
    assert!(hits.contains(&("main".to_owned(), Some(Seq(29)))));
    assert!(hits.contains(&("other".to_owned(), Some(Seq(29)))));
    assert_eq!(
        hits.iter().filter(|(session, _)| session == "main").count(),
        11
    );
}

#[tokio::test]
async fn a_long_pattern_is_refused_or_cut() {
    let world = World::new().await;
    world.chatter(1, 40).await;
    let tools = world.tools();
    let long = "number 7 ".repeat(MAX_PATTERN_CHARS / 8);
    let chars = long.chars().count();
    for mode in [SearchMode::Literal, SearchMode::Regex, SearchMode::Words] {
        let error = tools
            .grep(GrepArgs::new(&*long).set(|it| it.mode = mode))
            .await;
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains(&format!(
                "the pattern has {chars} characters, and at most 10000"
            )),
            "{text}"
        );
    }
    let other = world.open("other", memory_store::Origin::Root).await;
    let set = RetrievalSet::new("main", tools.clone()).with("other", other.tools());
    let prose = GrepArgs::new(&*long).set(|it| it.mode = SearchMode::Prose);
    let prose = tools.grep(prose).await.unwrap();
    let auto = tools.grep(&*long).await.unwrap();
    let recalled = tools.recall(&*long).await.unwrap();
    assert!(!prose.hits.is_empty() && !auto.hits.is_empty() && !recalled.passages.is_empty());
    let note = format!(
        "Note: the pattern has {chars} characters: any word of its first 10000 was searched for.\n"
    );
    for text in [
        prose.to_text(),
        auto.to_text(),
        recalled.to_text(),
        set.grep(&*long).await.unwrap().to_text(),
    ] {
        assert!(text.starts_with(&note), "{text}");
    }
    let unknown = "zebra ".repeat(MAX_PATTERN_CHARS);
    let nothing = tools.grep(&*unknown).await.unwrap();
    assert!(nothing.hits.is_empty() && nothing.to_text().starts_with("Note: the pattern has"));
    // A pattern of the maximum length.
    let most = "7".repeat(MAX_PATTERN_CHARS);
    let answer = tools
        .grep(GrepArgs::new(most).set(|it| it.mode = SearchMode::Literal))
        .await;
    assert!(answer.unwrap().hits.is_empty());
}

#[tokio::test]
async fn an_answer_without_hits_names_the_fallback() {
    let world = World::new().await;
    world.say(vec![Message::user("the harbour is open")]).await;
    let tools = world.tools();
    let broken = GrepArgs::new("closed (for|now").set(|it| it.mode = SearchMode::Regex);
    let text = tools.grep(broken.clone()).await.unwrap().to_text();
    assert!(
        text.starts_with("Note: the pattern is no regular expression (unclosed group)"),
        "{text}"
    );
    let other = world.open("other", memory_store::Origin::Root).await;
    let set = RetrievalSet::new("main", tools).with("other", other.tools());
    let text = set.grep(broken.clone()).await.unwrap().to_text();
    assert!(
        text.contains("is no regular expression (unclosed group)"),
        "{text}"
    );
    assert!(text.contains("No matches found"), "{text}");
}

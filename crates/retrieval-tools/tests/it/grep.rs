use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use memory_model::{ConversationId, Message, Part, RawJson, Role, Seq};
use memory_search::{Hits, Query, Search, SegmentSearch};
use memory_store::Origin;
use retrieval_tools::{
    ErrorKind, Fallback, GrepArgs, HitKind, HitOrder, RetrievalLimits, SearchMode, SearchScope,
};
use token_estimate::{HeuristicEstimator, TokenEstimator};

use crate::world::{Set, World, at, pages, range, tree};

fn literal(pattern: &str) -> GrepArgs {
    GrepArgs::new(pattern).set(|it| it.mode = SearchMode::Literal)
}

#[tokio::test]
async fn it_finds_words_in_messages_and_summaries() {
    let (world, [a, ..]) = tree().await;
    let tools = world.tools();
    let found = tools.grep(GrepArgs::new("NUMBER 12")).await.unwrap();
    assert_eq!(found.hits.len(), 1);
    assert_eq!(found.hits[0].seq, Some(Seq(12)));
    assert_eq!(found.hits[0].external_id.as_deref(), Some("m12"));
    assert!(found.complete && found.cursor.is_none());

    // Messages that a summary replaced in the context are found, and so is the summary.
    let both = tools.grep(GrepArgs::new("green tests")).await.unwrap();
    let kinds: Vec<HitKind> = both.hits.iter().map(|hit| hit.kind).collect();
    assert_eq!(kinds, [HitKind::Summary, HitKind::Summary]);
    assert_eq!(both.hits[0].summary_id.as_ref(), Some(&a.id));
    let messages = literal("green tests").set(|it| it.scope = SearchScope::Messages);
    assert!(tools.grep(messages.clone()).await.unwrap().hits.is_empty());
}

#[tokio::test]
async fn the_limit_holds_over_both_scopes_and_the_cursor_continues() {
    let world = World::new().await;
    world.chatter(1, 40).await;
    for n in 0..4 {
        world
            .leaf(range(n * 10 + 1, n * 10 + 10), "ten times message number")
            .await;
    }
    let tools = world.tools();
    for limit in [1, 7, 19, 40, 41, 43] {
        let args = GrepArgs::new("message number").set(|it| it.limit = limit);
        let answers = pages(&tools, args).await;
        assert!(answers.iter().all(|answer| answer.hits.len() <= limit));
        let all: Vec<_> = answers.into_iter().flat_map(|answer| answer.hits).collect();
        assert_eq!(all.len(), 44, "limit {limit}");
        let messages: Vec<u32> = all.iter().filter_map(|h| h.seq).map(|s| s.0).collect();
        assert_eq!(messages, (1..=40).collect::<Vec<_>>());
    }
    // The default limit of 20 applies, also for 0.
    for args in [
        GrepArgs::new("message number"),
        GrepArgs::new("message number").set(|it| it.limit = 0),
    ] {
        let answer = tools.grep(args.clone()).await.unwrap();
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
        let answer = tools.grep(literal(pattern)).await.unwrap();
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
        let answer = tools.grep(literal(pattern)).await.unwrap();
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
    let answer = world.tools().grep(GrepArgs::new("needle")).await.unwrap();
    let snippet = answer.hits[0].snippet.trim_matches('…');
    assert_eq!(snippet.chars().count(), 500);
    assert!(snippet.contains("needle"));
}

#[tokio::test]
async fn a_cursor_belongs_to_its_session_and_its_question() {
    let world = World::new().await;
    let say = || vec![Message::user("x y"), Message::user("x y")];
    world.say(say()).await;
    let other = world.open("other", Origin::Root).await;
    other.say(say()).await;
    let tools = world.tools();
    let args = GrepArgs::new("x").set(|it| it.limit = 1);
    let cursor = tools.grep(args.clone()).await.unwrap().cursor;
    let next = args.clone().set(|it| it.cursor = cursor.clone());
    // The limit may change from answer to answer.
    for limit in [1, 7] {
        let next = next.clone().set(|it| it.limit = limit);
        assert!(tools.grep(next).await.unwrap().complete);
    }
    let elsewhere = "belongs to another call";
    for (tools, args, told) in [
        (&other.tools(), next.clone(), elsewhere),
        (
            &tools,
            next.clone().set(|it| it.scope = SearchScope::Messages),
            elsewhere,
        ),
        (&tools, next.set(|it| it.pattern = "y".into()), elsewhere),
        (&tools, args.set(|it| it.cursor = Some("x12".into())), "x12"),
        (&tools, GrepArgs::new(""), "pattern is required"),
    ] {
        let error = tools.grep(args).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(told), "{error}");
    }
    let target = retrieval_tools::ExpandArgs::new("messages:1-2").set(|it| it.cursor = cursor);
    assert!(tools.expand(target).await.is_err());
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
    let answer = tools
        .grep(GrepArgs::new("number 1").set(|it| it.limit = 3))
        .await;
    insta::assert_snapshot!("grep_more", answer.unwrap().to_text());
    let answer = tools.grep(GrepArgs::new("number 12")).await.unwrap();
    insta::assert_snapshot!("grep_all", answer.to_text());
    let answer = tools.grep(GrepArgs::new("the start")).await.unwrap();
    insta::assert_snapshot!("grep_summary", answer.to_text());
    let answer = tools
        .grep(GrepArgs::new("e").set(|it| it.limit = 1))
        .await
        .unwrap();
    insta::assert_json_snapshot!("grep_json", answer);
    let args = GrepArgs::new("green").set(|it| it.scope = SearchScope::Summaries);
    insta::assert_json_snapshot!(
        "grep_json_summaries",
        tools.grep(args.clone()).await.unwrap()
    );
    let none = tools.grep(GrepArgs::new("nowhere")).await.unwrap();
    assert_eq!(none.to_text(), "No matches found.\n");
}

fn seqs(answer: &retrieval_tools::GrepAnswer) -> Vec<u32> {
    let seqs = answer.hits.iter().filter_map(|hit| hit.seq);
    seqs.map(|seq| seq.0).collect()
}

/// Creates a conversation of five messages about a build.
async fn build() -> World {
    let world = World::new().await;
    world
        .say(vec![
            Message::user("Why did the build fail on Tuesday?").with_created_at(at(10)),
            Message::assistant("The linker ran out of memory. The BUILD was restarted.")
                .with_created_at(at(20)),
            Message::user("And the deployment?").with_created_at(at(30)),
            Message::assistant("Failing builds stop every deployment.").with_created_at(at(40)),
            Message::tool_result("c", "error[E0308]: mismatched types").with_created_at(at(50)),
        ])
        .await;
    world
}

#[tokio::test]
async fn without_a_mode_a_phrase_comes_before_words_and_words_before_prose() {
    let world = build().await;
    let tools = world.tools();
    for (pattern, strategy, fallback, found) in [
        ("the build fail", "literal-scan", None, vec![1]),
        (
            "memory linker",
            "words-scan",
            Some(Fallback::AllWords),
            vec![2],
        ),
        (
            "linker zebra",
            "prose-scan",
            Some(Fallback::AnyWord),
            vec![2],
        ),
    ] {
        let answer = tools.grep(pattern).await.unwrap();
        assert_eq!(answer.strategy, strategy, "{pattern}");
        assert_eq!(answer.fallback, fallback, "{pattern}");
        assert_eq!(seqs(&answer)[..1], found[..], "{pattern}");
        let text = answer.to_text();
        let told = fallback
            .as_ref()
            .map_or(String::new(), |fallback| format!("Note: {fallback}."));
        assert!(text.starts_with(&told), "{text}");
        assert!(text.contains(&format!("messages and summaries, by {strategy}.")));
        let json = serde_json::to_value(&answer).unwrap();
        let words = fallback.map(|fallback| fallback.to_string());
        assert_eq!(
            json.get("fallback").cloned(),
            words.map(serde_json::Value::from)
        );
    }
}

#[tokio::test]
async fn each_mode_reads_the_pattern_in_its_own_way() {
    let world = build().await;
    let tools = world.tools();
    for (mode, pattern, found) in [
        (SearchMode::Literal, "memory linker", vec![]),
        (SearchMode::Regex, r"fail\w*\s+(on|builds)", vec![1, 4]),
        (SearchMode::Regex, r"e\d{4}", vec![5]),
        (SearchMode::Words, "deployments build", vec![4]),
    ] {
        let args = GrepArgs::new(pattern).set(|it| it.mode = mode);
        let answer = tools.grep(args.clone()).await.unwrap();
        assert_eq!(seqs(&answer), found, "{mode:?} {pattern}");
        assert_eq!((answer.mode, answer.fallback), (mode, None));
    }
    let broken = GrepArgs::new("E0308]: (").set(|it| it.mode = SearchMode::Regex);
    let answer = tools.grep(broken.clone()).await.unwrap();
    assert!(matches!(
        answer.fallback,
        Some(Fallback::InvalidRegex { .. })
    ));
    let smart = GrepArgs::new("BUILD").set(|it| it.mode = SearchMode::Literal);
    assert_eq!(seqs(&tools.grep(smart.clone()).await.unwrap()), [1, 2, 4]);
    let answer = tools
        .grep(smart.set(|it| it.smart_case = true))
        .await
        .unwrap();
    assert_eq!(seqs(&answer), [2]);
}

#[tokio::test]
async fn filters_and_orders_hold() {
    let world = build().await;
    let tools = world.tools();
    let args = literal("e");
    for (args, found) in [
        (
            args.clone()
                .set(|it| it.roles = [Role::User, Role::Tool].into()),
            vec![1, 3, 5],
        ),
        (
            args.clone()
                .set(|it| (it.first, it.last) = (Some(range(2, 3).first), Some(range(2, 3).last))),
            vec![2, 3],
        ),
        (
            args.clone()
                .set(|it| it.since = Some(at(20)))
                .set(|it| it.until = Some(at(40))),
            vec![2, 3],
        ),
        (
            args.clone().set(|it| it.order = HitOrder::Newest),
            vec![5, 4, 3, 2, 1],
        ),
    ] {
        assert_eq!(
            seqs(&tools.grep(args.clone()).await.unwrap()),
            found,
            "{args:?}"
        );
        // The same hits, page by page.
        let answers = pages(&tools, args.clone().set(|it| it.limit = 1)).await;
        let all: Vec<u32> = answers.iter().flat_map(seqs).collect();
        assert_eq!(all, found, "{args:?}");
        for answer in answers {
            // A cursor is bound to all arguments of the search.
            let other = args.clone().set(|it| it.smart_case = true);
            if answer.cursor.is_some() {
                let other = other.set(|it| it.cursor = answer.cursor);
                assert!(tools.grep(other).await.is_err());
            }
        }
    }
}

/// Creates the call of a tool and its result.
fn used(id: &str, tool: &str, result: &str) -> [Message; 2] {
    let arguments = RawJson::parse(r#"{"pattern":"heron"}"#).unwrap();
    [
        Message::tool_call(id, tool, arguments),
        Message::tool_result(id, result),
    ]
}

#[tokio::test]
async fn a_fact_that_is_looked_up_again_and_again_has_one_hit() {
    let world = World::new().await;
    let fact = "The heron service listens on port 7411.";
    let mut said = vec![Message::user(fact)];
    for round in 0..30 {
        let tool = ["memory_grep", "mcp__memory__memory_recall"][round % 2];
        said.extend(used(
            &format!("c{round}"),
            tool,
            &format!("1. message:1 {fact}"),
        ));
    }
    said.push(Message::user(
        "Correction: the heron service now listens on port 7999.",
    ));
    said.extend(used("f", "read_file", "heron.port = 7411"));
    world.say(said).await;
    let tools = world.tools();
    let asked = GrepArgs::new("heron service port").set(|it| it.corrections = true);
    let answer = tools.grep(asked.clone()).await.unwrap();
    assert_eq!(seqs(&answer), [62, 1], "{answer:?}");
    // The correction is shown with the older hit, in the text too.
    let later = answer.hits[1].later.as_ref().unwrap();
    assert_eq!(later.seq, Seq(62));
    let text = answer.to_text();
    let line = "\nchanged later: [62] user";
    assert_eq!(text.matches(line).count(), 1, "{text}");
    // No later message contradicts the correction.
    assert_eq!(answer.hits[0].later, None);
    let oldest = GrepArgs::new("heron service")
        .set(|it| it.order = HitOrder::Oldest)
        .set(|it| it.corrections = true);
    let oldest = tools.grep(oldest.clone()).await.unwrap();
    assert!(oldest.hits.iter().all(|hit| hit.later.is_none()));

    let recalled = tools
        .recall("which port does the heron service listen on?")
        .await;
    let recalled = recalled.unwrap();
    let seqs_of: Vec<u32> = recalled.passages.iter().map(|one| one.seq.0).collect();
    assert!(seqs_of.contains(&1) && seqs_of.contains(&62), "{seqs_of:?}");
    assert!(
        seqs_of.iter().all(|seq| *seq == 1 || *seq > 61),
        "{seqs_of:?}"
    );

    let all = literal("heron")
        .set(|it| it.echoes = true)
        .set(|it| it.limit = 100);
    assert_eq!(tools.grep(all.clone()).await.unwrap().hits.len(), 64);
    // A text that only echoes contain is not found, and the answer reports this.
    let answer = tools.grep("message:1 The heron").await.unwrap();
    assert_ne!(answer.strategy, "literal-scan", "its words are found");
    let answer = tools.grep(literal("1. message:1 the")).await.unwrap();
    assert!(answer.hits.is_empty());
    let echoes = answer.echoes.unwrap();
    assert_eq!((echoes.messages, echoes.complete), (30, true));
    let text = answer.to_text();
    assert!(
        text.contains("Left out: 30 calls and results of the memory tools"),
        "{text}"
    );
    assert_eq!(tools.grep(literal("nowhere")).await.unwrap().echoes, None);
}

#[tokio::test]
async fn a_tool_narrows_and_neighbours_are_shown_in_short() {
    let world = World::new().await;
    let mut said = vec![Message::user("first"), Message::user("before the call")];
    said.extend(used("r", "read_file", "a heron in a file"));
    said.push(Message::assistant(format!(
        "behind {}",
        "long ".repeat(100)
    )));
    said.push(Message::user("a heron, said"));
    world.say(said).await;
    let tools = world.tools();
    let asked = |text: &str| format!(r#"{{"pattern":"heron","mode":"literal",{text}}}"#);
    let call = |arguments: String| {
        let tools = &tools;
        async move {
            let answer = tools.call("memory_grep", &arguments).await;
            assert!(!answer.is_error, "{answer:?}");
            let json = answer.json;
            (json, answer.text)
        }
    };
    let (json, _) = call(asked(r#""tool":"read_file""#)).await;
    let found: Vec<&serde_json::Value> = json["hits"].as_array().unwrap().iter().collect();
    assert_eq!(
        (found.len(), &found[0]["seq"], &found[1]["seq"]),
        (2, &3.into(), &4.into())
    );
    let (json, text) = call(asked(r#""tool":"read_file","around":2"#)).await;
    let of = |hit: usize, side: &str| -> Vec<u64> {
        let near = json["hits"][hit][side]
            .as_array()
            .cloned()
            .unwrap_or_default();
        near.iter()
            .map(|one| one["seq"].as_u64().unwrap())
            .collect()
    };
    // Each message is shown once.
    assert_eq!((of(0, "before"), of(0, "after")), (vec![1, 2], vec![5]));
    assert_eq!((of(1, "before"), of(1, "after")), (vec![], vec![6]));
    assert!(text.contains("\nbefore: [2] user") && text.contains("\nafter: [5] "));
    let snippet = json["hits"][0]["after"][0]["snippet"].as_str().unwrap();
    assert_eq!(snippet.chars().count(), 161);
    // The neighbouring messages stay within the answer's limit of tokens.
    let limits = RetrievalLimits::default().set(|it| it.answer_tokens = 120);
    let few = world.tools().with_limits(limits);
    let answer = few
        .grep(literal("heron").set(|it| it.around = 99))
        .await
        .unwrap();
    let counts = crate::world::Counts(token_estimate::HeuristicEstimator::Bytes4);
    assert!(memory_model::Accounting::text(&counts, &answer.to_text()) <= 120);
    assert!(answer.hits.iter().any(|hit| !hit.before.is_empty()));
}

#[tokio::test]
async fn no_hit_comes_with_the_result_of_a_wider_search() {
    let (world, _) = tree().await;
    let tools = world.tools();
    let args = literal("green tests").set(|it| it.scope = SearchScope::Messages);
    let answer = tools.grep(args.clone()).await.unwrap();
    assert_eq!(
        answer.to_text(),
        "No matches found.\n0 in messages; 2 in both.\n"
    );
    let json = serde_json::to_value(&answer).unwrap();
    let wider =
        serde_json::json!({"scope": "both", "unfiltered": false, "hits": 2, "complete": true});
    assert_eq!(json["wider"], wider);
    let args = literal("number 12").set(|it| it.roles = [Role::Tool].into());
    let nowhere = literal("nowhere").set(|it| it.scope = SearchScope::Summaries);
    for (args, end) in [
        (
            args,
            "0 in both; 1 in both without roles, tools, positions and times.\n",
        ),
        (nowhere, "0 in summaries; 0 in both.\n"),
    ] {
        let text = tools.grep(args).await.unwrap().to_text();
        assert!(text.ends_with(end), "{text}");
    }
    // No search is wider than one over all content.
    assert_eq!(tools.grep(literal("nowhere")).await.unwrap().wider, None);
}

/// A search that counts its calls and changes its hits.
#[derive(Debug)]
struct Altered {
    search: SegmentSearch<Arc<memory_store::InMemoryStore>>,
    asked: AtomicUsize,
    alter: fn(&Query, Hits) -> memory_search::Result<Hits>,
}

impl Altered {
    fn new(world: &World, alter: fn(&Query, Hits) -> memory_search::Result<Hits>) -> Arc<Self> {
        Arc::new(Self {
            search: SegmentSearch::without_index(Arc::clone(&world.store)),
            asked: AtomicUsize::new(0),
            alter,
        })
    }
}

#[async_trait]
impl Search for Altered {
    async fn search(&self, of: ConversationId, query: &Query) -> memory_search::Result<Hits> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        (self.alter)(query, self.search.search(of, query).await?)
    }
}

#[tokio::test]
async fn a_search_of_fewer_modes_is_asked_in_those_it_has() {
    let world = build().await;
    let search = Altered::new(&world, |query, hits| match query.mode {
        SearchMode::Auto | SearchMode::Prose => Err(memory_search::Error::new(
            memory_search::ErrorKind::Unsupported,
            "no such mode",
        )),
        _ => Ok(hits),
    });
    let tools = world.tools().with_search(search);
    let answer = tools.grep("memory linker").await.unwrap();
    assert_eq!(answer.fallback, Some(Fallback::AllWords));
    assert_eq!(seqs(&answer), [2]);
    assert!(tools.grep("zebra linker").await.unwrap().hits.is_empty());
    let prose = GrepArgs::new("linker").set(|it| it.mode = SearchMode::Prose);
    let error = tools.grep(prose.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let recalled = tools.recall("memory linker").await.unwrap();
    assert_eq!(recalled.passages[0].seq, Seq(2));
}

#[tokio::test]
async fn answers_say_that_the_index_is_damaged() {
    let world = build().await;
    let told = "Note: the search index is damaged: the messages were read instead";
    let search = Altered::new(&world, |_, mut hits| {
        hits.index_damaged = true;
        Ok(hits)
    });
    let tools = world.tools().with_search(search);
    for pattern in ["memory linker", "zebra"] {
        let answer = tools.grep(pattern).await.unwrap();
        assert!(answer.to_text().starts_with(told), "{}", answer.to_text());
        assert!(serde_json::to_value(&answer).unwrap()["note"].is_string());
    }
    let recalled = tools.recall("memory linker").await.unwrap();
    assert!(recalled.to_text().starts_with(told));
    assert!(serde_json::to_value(&recalled).unwrap()["note"].is_string());
    let sound = world.tools().grep("memory linker").await.unwrap();
    assert!(serde_json::to_value(&sound).unwrap().get("note").is_none());
}

#[tokio::test]
async fn a_message_without_a_time_has_none_and_a_question_about_a_time_says_so() {
    let world = World::new().await;
    world
        .say(vec![
            Message::user("The valve is at 3 bar."),
            Message::user("The valve is at 4 bar.").with_created_at(at(10)),
        ])
        .await;
    let tools = world.tools();
    let args = literal("valve");
    let all = tools.grep(args.clone()).await.unwrap();
    assert_eq!((seqs(&all), all.undated), (vec![1, 2], None));
    assert!(!all.to_text().contains("1970"));
    assert!(all.to_text().contains("[1] user: The valve"));
    let json = serde_json::to_value(&all).unwrap();
    assert!(json["hits"][0]["created_at"].is_null() && json["hits"][1]["created_at"].is_string());

    let mut out = String::new();
    for (args, count) in [
        (args.clone().set(|it| it.since = Some(at(0))), Some(true)),
        (args.clone().set(|it| it.since = Some(at(20))), Some(true)),
        (args.set(|it| it.until = Some(at(5))), Some(false)),
        (literal("4 bar").set(|it| it.since = Some(at(0))), None),
    ] {
        let answer = tools.grep(args).await.unwrap();
        let undated = answer
            .undated
            .map(|one| (one.messages, one.complete, one.left_out));
        assert_eq!(undated, count.map(|left_out| (1, true, left_out)));
        out += &answer.to_text();
    }
    insta::assert_snapshot!("grep_undated", out);
    for pointer in ["message:1", "messages:1-2"] {
        let read = tools.expand(pointer).await.unwrap();
        assert!(!read.to_text().contains("1970"), "{}", read.to_text());
    }
}

#[tokio::test]
async fn a_shortened_answer_searches_once_and_continues_at_the_next_hit() {
    let world = World::new().await;
    let long = |n: usize| Message::user(format!("{} needle {n}", "緑😀 ".repeat(n % 7 * 60)));
    world.say((1..=40).map(long).collect()).await;
    let search = Altered::new(&world, |_, hits| Ok(hits));
    for (most, limit) in [(60, 100), (300, 100), (300, 7), (2_000, 100), (2_000, 11)] {
        let limits = RetrievalLimits::default().set(|it| it.answer_tokens = most);
        let tools = world.tools().with_limits(limits);
        let tools = tools.with_search(Arc::clone(&search) as Arc<dyn Search>);
        search.asked.store(0, Ordering::Relaxed);
        let answers = pages(&tools, literal("needle").set(|it| it.limit = limit)).await;
        for answer in &answers {
            let cost = HeuristicEstimator::Bytes4.text(&answer.to_text());
            assert!(cost <= most, "{cost} of {most}: {}", answer.to_text());
            assert!(!answer.hits.is_empty());
        }
        let all: Vec<u32> = answers.iter().flat_map(seqs).collect();
        assert_eq!(all, (1..=40).collect::<Vec<_>>(), "{most} {limit}");
        assert_eq!(
            search.asked.load(Ordering::Relaxed),
            answers.len(),
            "{most} {limit}"
        );
    }
}

//! Cases of search modes other than the literal mode. A search that refuses a mode passes the cases of this mode.

use memory_model::{Message, Role, Timestamp};
use memory_search::{ErrorKind, Fallback, HitOrder, Query, SearchMode};

use super::search::{MODES, ORDERS, SCOPES, World, name, short, sorted};
use crate::SearchFixture;
use crate::builders::range;

/// Checks that every search mode accepts any pattern except the empty one.
pub async fn every_mode_takes_any_input<F: SearchFixture>(world: &World<F>) {
    let chat = world
        .chat(&["(a|b", "what's up?", "数据库", "🎉 done"])
        .await;
    let long = "x".repeat(3_000);
    for mode in MODES {
        if !world.has(chat, mode).await {
            continue;
        }
        for pattern in [
            "(a|b",
            "*",
            "\\",
            "[",
            "a{9999}{9999}",
            "(?P<",
            "?",
            "'",
            "\"",
            "\0",
            " ",
            "\u{200d}",
            "NOT",
            "a:b",
            "-x",
            "🎉",
            "数",
            "\u{301}",
            &long,
        ] {
            let answer = world
                .answer(chat, &Query::new(pattern).with_mode(mode))
                .await;
            assert!(answer.is_ok(), "{mode:?}, {pattern:?}: {answer:?}");
        }
        let error = world.answer(chat, &Query::new("").with_mode(mode)).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid, "{mode:?}");
    }
    if world.has(chat, SearchMode::Regex).await {
        let query = Query::new("(A|b").with_mode(SearchMode::Regex);
        let hits = world.search(chat, &query).await;
        assert_eq!(short(&hits), ["m1"], "it was taken literally");
        let fallback = hits.fallback;
        assert!(
            matches!(fallback, Some(Fallback::InvalidRegex { .. })),
            "{fallback:?}"
        );
    }
}

/// Checks in every mode, order and scope that a word is found, that the pages have every hit once and in the requested
/// order, and that filters are applied.
pub async fn every_mode_pages_and_filters<F: SearchFixture>(world: &World<F>) {
    let chat = world.haystack().await;
    for mode in MODES {
        if !world.has(chat, mode).await {
            continue;
        }
        let query = Query::new("needle").with_mode(mode).with_limit(100);
        for order in ORDERS {
            for scope in SCOPES {
                let query = query.clone().with_order(order).with_scope(scope);
                let all = world.search(chat, &query).await.hits;
                assert!(!all.is_empty(), "{mode:?} finds a word");
                for limit in [1, 2, 3, 5, 10, 12, 13] {
                    let paged = world.pages(chat, &query.clone().with_limit(limit)).await;
                    let (paged, all) = match order {
                        HitOrder::Relevance => (sorted(paged), sorted(all.clone())),
                        _ => (paged, all.clone()),
                    };
                    assert_eq!(paged, all, "{mode:?}, {order:?}, {scope:?}, {limit}");
                }
            }
        }
        let narrow = query.with_range(range(5, 8)).with_roles([Role::User]);
        for (at, query) in [
            (6, narrow.clone().with_until(Timestamp(8))),
            (8, narrow.with_since(Timestamp(8))),
        ] {
            let names = short(&world.search(chat, &query).await);
            assert!(names.contains(&format!("m{at}")), "{mode:?}: {names:?}");
            let outside = |name: &String| !["m5", "m6", "m7", "m8"].contains(&name.as_str());
            assert!(!names.iter().any(outside), "{mode:?}: {names:?}");
        }
    }
}

/// Checks regular expressions: `^` and `$` match at line breaks, and case is ignored unless smart case is on and the
/// pattern has a capital letter.
pub async fn regular_expressions_match_lines<F: SearchFixture>(world: &World<F>) {
    let texts = [
        "one\nfn Main() {",
        "main",
        "a main",
        "Привет 12",
        "fn\tmain2",
    ];
    let chat = world.chat(&texts).await;
    if !world.has(chat, SearchMode::Regex).await {
        return;
    }
    for (pattern, smart, expected) in [
        (r"^fn\s+main", false, &["m1", "m5"][..]),
        (r"^main$", false, &["m2"]),
        ("MAIN", true, &[]),
        ("Main|fn", true, &["m1", "m5"]),
        (r"привет \d+", false, &["m4"]),
        (r"\W\d", false, &["m4"]),
    ] {
        let mut query = Query::new(pattern).with_mode(SearchMode::Regex);
        query.smart_case = smart;
        let hits = world.search(chat, &query).await;
        assert_eq!(short(&hits), expected, "{pattern}");
        assert_eq!(hits.fallback, None);
    }
    let query = Query::new("m[a-z]+n").with_mode(SearchMode::Regex);
    let hits = sorted(world.search(chat, &query).await.hits);
    assert_eq!(&hits[2].snippet[hits[2].matches[0].clone()], "main");
}

/// Checks that a search for words finds the texts that contain all of them, in any order, each as a whole word in any
/// form.
pub async fn words_are_found_in_any_order<F: SearchFixture>(world: &World<F>) {
    let texts = [
        "The tests were running on the new machine.",
        "run(test) failed",
        "testament of a runner",
        "数据库很慢",
        "собаки бегали",
        "snake_case: don't",
    ];
    let chat = world.chat(&texts).await;
    if !world.has(chat, SearchMode::Words).await {
        return;
    }
    for (pattern, expected) in [
        ("RUN, tests!", &["m1", "m2"][..]),
        ("test run machines", &["m1"]),
        ("run test nothing", &[]),
        ("数据", &["m4"]),
        ("慢 数据库", &["m4"]),
        ("собака", &["m5"]),
        ("case snake", &["m6"]),
        ("cas", &[]),
        ("don’t", &["m6"]),
    ] {
        for order in [HitOrder::Relevance, HitOrder::Oldest] {
            let query = Query::new(pattern)
                .with_mode(SearchMode::Words)
                .with_order(order);
            let hits = world.search(chat, &query).await;
            assert_eq!(short(&hits), expected, "{pattern}, {order:?}");
            assert_eq!(hits.fallback, None);
        }
    }
}

/// Checks that the best answer to a question is the first hit, that it has a score, and that its marked matches are
/// words of the question.
pub async fn questions_are_answered_best_first<F: SearchFixture>(world: &World<F>) {
    let chat = world.empty_chat("chat").await;
    let said = [
        ("Ann", "I adopted a puppy called Bruno."),
        ("Ben", "We painted the kitchen."),
        ("Ann", "The kitchen is fine."),
        ("Ben", "My puppy chewed the sofa."),
    ];
    let mut messages = Vec::new();
    for (hour, (name, text)) in (0..).zip(said) {
        // The messages are two hours apart, so that each is a separate episode.
        let time = Timestamp(hour * 7_200_000_000);
        messages.push(Message::user(text).with_name(name).with_created_at(time));
    }
    chat.append(messages).await;
    if !world.has(chat, SearchMode::Prose).await {
        return;
    }
    for (question, expected) in [
        ("Which puppies did Ann adopt?", &["m1", "m4"][..]),
        ("What happened to Ben's puppy?", &["m4", "m1"]),
        ("kitchen painting", &["m2", "m3"]),
    ] {
        let query = Query::new(question).with_mode(SearchMode::Prose);
        let hits = world.search(chat, &query).await.hits;
        let names: Vec<String> = hits.iter().map(name).collect();
        assert_eq!(names, expected, "{question}");
        assert!(hits[0].score > 0.0 && hits.is_sorted_by(|a, b| a.score >= b.score));
        assert!(hits.iter().all(|hit| !hit.matches.is_empty()), "{hits:?}");
    }
}

/// Checks a search without a mode: it finds the exact phrase, else texts with all words, else texts with any of them.
/// Each page of the answer names the mode that was used.
pub async fn a_search_without_a_mode_falls_back<F: SearchFixture>(world: &World<F>) {
    let texts = ["red green", "green and red", "red", "blue", "green or red"];
    let chat = world.chat(&texts).await;
    if !world.has(chat, SearchMode::Auto).await {
        return;
    }
    let ranks =
        world.has(chat, SearchMode::Words).await && world.has(chat, SearchMode::Prose).await;
    for (pattern, fallback, some) in [
        ("red GREEN", None, &["m1"][..]),
        (
            "reds, greens",
            Some(Fallback::AllWords),
            &["m1", "m2", "m5"],
        ),
        ("blue sky?", Some(Fallback::AnyWord), &["m4"]),
    ] {
        if fallback.is_some() && !ranks {
            continue;
        }
        let query = Query::new(pattern)
            .with_mode(SearchMode::Auto)
            .with_limit(1);
        let first = world.search(chat, &query).await;
        assert_eq!(first.fallback, fallback, "{pattern}");
        let hits = sorted(world.pages(chat, &query).await);
        let names: Vec<String> = hits.iter().map(name).collect();
        assert!(
            some.iter().all(|name| names.contains(&(*name).to_owned())),
            "{names:?}"
        );
        assert!(
            fallback == Some(Fallback::AnyWord) || names == some,
            "{names:?}"
        );
    }
}

/// Checks that messages appended between two pages of a ranked answer do not change the later pages.
pub async fn ranked_pages_stay_as_they_were<F: SearchFixture>(world: &World<F>) {
    let chat = world.haystack().await;
    if !world.has(chat, SearchMode::Prose).await {
        return;
    }
    let query = Query::new("needle")
        .with_mode(SearchMode::Prose)
        .with_limit(5);
    let whole = world
        .search(chat, &query.clone().with_limit(100))
        .await
        .hits;
    let mut hits = Vec::new();
    let mut page = world.search(chat, &query).await;
    loop {
        hits.extend(page.hits);
        let Some(cursor) = page.cursor else { break };
        chat.append([Message::user("needle needle needle")]).await;
        page = world.search(chat, &query.clone().with_cursor(cursor)).await;
    }
    assert_eq!(hits, whole);
}

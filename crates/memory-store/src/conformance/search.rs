//! Search: literal, complete, paged.

use memory_model::{ConversationId, Message, Part, RawJson, ResultContent, Role, Seq, Timestamp};

use super::Fixture;
use super::build::{
    PlainCounts, Source, append, fill, message, publish_summary, range, root, sound, summary_of,
};
use crate::error::ErrorKind;
use crate::search::{Cursor, Found, Hits, Query, Scope};
use crate::store::{Search, Store};
use crate::types::{NewConversation, Origin};
use memory_model::Accounting;

async fn search<S: Search>(store: &S, chat: ConversationId, query: &Query) -> Hits {
    let hits = store.search(chat, query).await.unwrap();
    assert_eq!(hits.scope, query.scope);
    assert!(!hits.strategy.is_empty(), "an answer says how it was found");
    assert_eq!(hits.complete, hits.cursor.is_none());
    assert!(hits.hits.len() <= query.limit.max(1), "the limit holds");
    hits
}

/// Hits in short: `m7` for a message, `s3` for the summary whose range begins at 3.
fn short(hits: &Hits) -> Vec<String> {
    let name = |hit: &crate::search::Hit| match &hit.found {
        Found::Message { seq, .. } => format!("m{seq}"),
        Found::Summary { range, .. } => format!("s{}", range.first),
    };
    hits.hits.iter().map(name).collect()
}

async fn found<S: Search>(store: &S, chat: ConversationId, pattern: &str) -> Vec<String> {
    short(&search(store, chat, &Query::new(pattern)).await)
}

/// No character of a pattern has a special meaning.
pub async fn search_is_literal<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let texts = [
        "100% done",
        "100 percent done",
        "snake_case",
        "snakeXcase",
        "a*b",
        "aab",
        "what? [x] (y) {z} ^$ | \\ / ~",
        "it's \"quoted\"",
        "NEAR AND OR NOT",
        "back\\slash",
        "line one\nline two",
        "nul\0nul",
        "x",
    ];
    append(
        &store,
        chat,
        texts.iter().map(|text| Message::user(*text)).collect(),
    )
    .await;
    for (pattern, expected) in [
        ("100%", &["m1"][..]),
        ("%", &["m1"]),
        ("0", &["m1", "m2"]),
        ("snake_case", &["m3"]),
        ("_", &["m3"]),
        ("a*b", &["m5"]),
        ("*", &["m5"]),
        ("?", &["m7"]),
        ("[x]", &["m7"]),
        ("^$ | \\", &["m7"]),
        ("'", &["m8"]),
        ("\"quoted\"", &["m8"]),
        ("AND", &["m9"]),
        ("near and", &["m9"]),
        ("k\\s", &["m10"]),
        ("one\nline", &["m11"]),
        ("l\0n", &["m12"]),
        (" ", &["m1", "m2", "m7", "m8", "m9", "m11"]),
        ("nothing of the kind", &[]),
        ("done ", &[]),
    ] {
        assert_eq!(found(&store, chat, pattern).await, expected, "{pattern:?}");
    }
    sound(&store).await;
}

/// Case is ignored, in every script.
pub async fn search_ignores_case<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let texts = [
        "The Tests are GREEN",
        "Привет МИР",
        "ΟΔΟΣ οδός",
        "ÅÄÖ straße",
        "緑 は みどり",
    ];
    append(
        &store,
        chat,
        texts.iter().map(|text| Message::user(*text)).collect(),
    )
    .await;
    for (pattern, expected) in [
        ("tests ARE green", "m1"),
        ("пРИВЕТ мир", "m2"),
        ("οδοσ", "m3"),
        ("ΟΔΟΣ", "m3"),
        ("åäö STRA", "m4"),
        ("緑", "m5"),
        ("みどり", "m5"),
    ] {
        assert_eq!(
            found(&store, chat, pattern).await,
            [expected],
            "{pattern:?}"
        );
    }
    sound(&store).await;
}

/// Calls, arguments, results, reasoning and unknown parts are searched; image data is not.
pub async fn search_reads_every_part<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let json = |text: &str| RawJson::parse(text).unwrap();
    let result = Part::ToolResult {
        call_id: "c".to_owned(),
        content: ResultContent::Parts(vec![Part::text("needle4")]),
        is_error: None,
    };
    let image = Part::Image(memory_model::Media {
        media_type: "image/png".to_owned(),
        source: memory_model::MediaSource::Data("needle6".to_owned()),
    });
    let reasoning = Part::Reasoning {
        text: "needle7".to_owned(),
        signature: None,
    };
    let unknown = Part::Unknown {
        raw: json(r#"{"x":"needle8"}"#),
    };
    let messages = vec![
        Message::tool_call("c", "needle1", json(r#"{"path":"needle2 \u00e9t\u00e9"}"#)),
        Message::tool_result("c", "needle3"),
        Message::new(Role::Tool, vec![result]),
        Message::new(Role::User, vec![Part::text("needle5"), image]),
        Message::new(Role::Assistant, vec![reasoning, unknown]),
    ];
    append(&store, chat, messages).await;
    for (pattern, expected) in [
        ("needle1", &["m1"][..]),
        ("needle2", &["m1"]),
        ("été", &["m1"]),
        (r"\u00e9t", &["m1"]),
        ("needle3", &["m2"]),
        ("needle4", &["m3"]),
        ("needle5", &["m4"]),
        ("needle6", &[]),
        ("needle7", &["m5"]),
        ("needle8", &["m5"]),
    ] {
        assert_eq!(found(&store, chat, pattern).await, expected, "{pattern:?}");
    }
    sound(&store).await;
}

/// Notes are never found.
pub async fn search_skips_notes<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let note = Message::note(Role::User, vec![Part::text("needle")]);
    append(&store, chat, vec![note, message("id", "a needle")]).await;
    let hits = search(&store, chat, &Query::new("needle")).await;
    assert_eq!(short(&hits), ["m2"]);
    let expected = Found::Message {
        seq: Seq(2),
        external_id: Some("id".to_owned()),
        role: Role::User,
    };
    assert_eq!(hits.hits[0].found, expected);
    assert_eq!(hits.hits[0].snippet, "a needle");
    assert!(hits.complete);
    sound(&store).await;
}

/// Ten messages and three summaries with a needle, and as many without.
async fn haystack<S: Store>(store: &S) -> ConversationId {
    let chat = root(store, "chat").await.id;
    let messages = (1..=20).map(|n| {
        let text = match n % 2 {
            0 => format!("needle {n}"),
            _ => format!("straw {n}"),
        };
        Message::user(text).with_created_at(Timestamp(n))
    });
    append(store, chat, messages.collect()).await;
    for (first, text) in [
        (1, "needle a"),
        (4, "straw"),
        (7, "Needle b"),
        (10, "needle c"),
    ] {
        let at = range(first, first + 2);
        let leaf = summary_of(store, chat, &[Source::Messages(at)], text).await;
        publish_summary(store, chat, "dag", &leaf).await;
    }
    chat
}

/// The limit counts all hits, messages and summaries together.
pub async fn search_keeps_its_limit<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = haystack(&store).await;
    let query = |scope, limit| Query::new("needle").with_scope(scope).with_limit(limit);
    for (scope, total) in [
        (Scope::Messages, 10),
        (Scope::Summaries, 3),
        (Scope::Both, 13),
    ] {
        for limit in [0, 1, 2, 3, 9, 10, 11, 12, 13, 14, usize::MAX] {
            let hits = search(&store, chat, &query(scope, limit)).await;
            assert_eq!(
                hits.hits.len(),
                limit.max(1).min(total),
                "{scope:?}, limit {limit}"
            );
            assert_eq!(hits.complete, limit >= total, "{scope:?}, limit {limit}");
        }
    }
    let all = search(&store, chat, &query(Scope::Both, 100)).await;
    assert_eq!(short(&all)[8..], ["m18", "m20", "s1", "s7", "s10"]);
    assert_eq!(all.hits[0].created_at, Timestamp(2));
    sound(&store).await;
}

/// Following cursors gives every hit exactly once, in order.
pub async fn search_pages_give_every_hit_once<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = haystack(&store).await;
    for scope in [Scope::Messages, Scope::Summaries, Scope::Both] {
        let query = Query::new("needle").with_scope(scope);
        let all = search(&store, chat, &query.clone().with_limit(100)).await;
        for limit in [1, 2, 3, 5, 10, 12, 13] {
            let mut paged = Vec::new();
            let mut page = search(&store, chat, &query.clone().with_limit(limit)).await;
            loop {
                paged.append(&mut page.hits);
                let Some(cursor) = page.cursor.take() else {
                    break;
                };
                assert!(paged.len() <= all.hits.len(), "cursors go round in circles");
                // A cursor survives being written down.
                let cursor: Cursor = cursor.to_string().parse().unwrap();
                let next = query.clone().with_limit(limit).with_cursor(cursor);
                page = search(&store, chat, &next).await;
                assert!(
                    !page.hits.is_empty(),
                    "a cursor is only given when there is more"
                );
            }
            assert_eq!(paged, all.hits, "{scope:?}, in pages of {limit}");
        }
    }
    sound(&store).await;
}

/// A search sees what its conversation sees.
pub async fn search_stays_in_its_conversation<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = haystack(&store).await;
    let other = root(&store, "other").await.id;
    append(&store, other, vec![message("a", "another needle")]).await;
    let new = NewConversation {
        origin: Origin::Fork {
            parent: chat,
            at: Seq(5),
        },
        ..NewConversation::root("child", PlainCounts.estimator_id(), Timestamp(9))
    };
    let child = store.open(&new).await.unwrap().id;
    append(&store, child, vec![message("b", "the child's needle")]).await;
    fill(&store, child, 1).await;
    assert_eq!(found(&store, other, "needle").await, ["m1"]);
    assert_eq!(
        found(&store, child, "needle").await,
        ["m2", "m4", "m6", "s1"],
        "of the summaries that of what is shared"
    );
    assert_eq!(
        search(&store, chat, &Query::new("needle")).await.hits.len(),
        13
    );
    sound(&store).await;
}

/// An empty pattern is refused; a cursor of something else leads nowhere.
pub async fn bad_queries_are_refused<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = haystack(&store).await;
    let error = store.search(chat, &Query::new("")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let cursor = Cursor::AfterSummary("sum_0123456789abcdef".into());
    let query = Query::new("needle").with_cursor(cursor);
    let error = store.search(chat, &query).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let far = Query::new("needle").with_cursor(Cursor::AfterMessage(Seq(u32::MAX)));
    assert_eq!(
        short(&search(&store, chat, &far).await),
        ["s1", "s7", "s10"]
    );
    sound(&store).await;
}

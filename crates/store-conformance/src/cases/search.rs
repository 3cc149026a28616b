//! Cases of search: literal patterns, filters, completeness and pages. The hits of an answer are fixed. Their order is
//! fixed only for queries that request an order.

use std::sync::Arc;

use memory_model::{
    ConversationId, Media, MediaSource, Message, Part, RawJson, ResultContent, Role, Seq, Timestamp,
};
use memory_search::{
    ErrorKind, Hit, HitOrder, HitTarget, Hits, Query, Result, Search, SearchMode, SearchScope,
};

use crate::SearchFixture;
use crate::builders::{message, range, sound};
use crate::chat::Chat;

/// All search modes.
pub(crate) const MODES: [SearchMode; 5] = [
    SearchMode::Literal,
    SearchMode::Regex,
    SearchMode::Words,
    SearchMode::Prose,
    SearchMode::Auto,
];

/// All orders of hits.
pub(crate) const ORDERS: [HitOrder; 3] = [HitOrder::Relevance, HitOrder::Oldest, HitOrder::Newest];

/// All scopes of a search: messages, summaries, or both.
pub(crate) const SCOPES: [SearchScope; 3] = [
    SearchScope::Messages,
    SearchScope::Summaries,
    SearchScope::Both,
];

/// An empty store with a search in it, for one case of the suite.
#[derive(Debug)]
pub struct World<F: SearchFixture> {
    fixture: F,
    store: Arc<F::Store>,
    search: F::Search,
}

impl<F: SearchFixture> World<F> {
    /// Creates an empty store and a search in it.
    pub async fn new(fixture: F) -> Self {
        let (store, search) = fixture.fresh_search().await;
        Self {
            fixture,
            store,
            search,
        }
    }

    /// Verifies all data of the store, and panics on a violation.
    pub async fn sound(&self) {
        sound(&*self.store).await;
    }

    pub(super) async fn empty_chat(&self, key: &str) -> Chat<'_, F::Store> {
        Chat::root(&*self.store, key).await
    }

    /// Creates a conversation with user's messages of these texts.
    pub(super) async fn chat(&self, texts: &[&str]) -> Chat<'_, F::Store> {
        let chat = self.empty_chat("chat").await;
        chat.append(texts.iter().map(|text| Message::user(*text)))
            .await;
        chat
    }

    /// Creates a conversation in which ten messages and three summaries contain the word to find, and the same number
    /// of others do not.
    pub(super) async fn haystack(&self) -> Chat<'_, F::Store> {
        let chat = self.empty_chat("chat").await;
        let messages = (1..=20).map(|n| {
            let what = ["needle", "straw"][n as usize % 2];
            Message::user(format!("{what} {n}")).with_created_at(Timestamp(n))
        });
        chat.append(messages).await;
        for (first, text) in [
            (1, "needle a"),
            (4, "straw"),
            (7, "Needle b"),
            (10, "needle c"),
        ] {
            chat.show_leaf("dag", range(first, first + 2), text).await;
        }
        chat
    }

    pub(super) async fn answer(&self, chat: Chat<'_, F::Store>, query: &Query) -> Result<Hits> {
        let (store, search) = (&*self.store, &self.search);
        self.fixture.catch_up(store, search, chat.id).await;
        search.search(chat.id, query).await
    }

    pub(super) async fn search(&self, chat: Chat<'_, F::Store>, query: &Query) -> Hits {
        let hits = self.answer(chat, query).await.unwrap();
        assert_eq!(hits.scope, query.scope);
        assert!(!hits.strategy.is_empty(), "an answer says how it was found");
        assert_eq!(hits.complete, hits.cursor.is_none());
        assert!(hits.hits.len() <= query.limit.max(1), "the limit holds");
        hits
    }

    /// Returns whether the search supports a mode.
    pub(super) async fn has(&self, chat: Chat<'_, F::Store>, mode: SearchMode) -> bool {
        match self.answer(chat, &Query::new("x").with_mode(mode)).await {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                assert!(error.to_string().contains(mode.as_str()), "{error}");
                false
            }
        }
    }

    /// Asserts the hits of literal patterns, by their short names and sorted.
    async fn finds(&self, chat: Chat<'_, F::Store>, cases: &[(&str, &[&str])]) {
        for (pattern, expected) in cases {
            let hits = self.search(chat, &Query::new(*pattern)).await;
            assert_eq!(short(&hits), *expected, "{pattern:?}");
        }
    }

    /// Returns the hits of all pages of a query.
    pub(super) async fn pages(&self, chat: Chat<'_, F::Store>, query: &Query) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut query = query.clone();
        loop {
            let page = self.search(chat, &query).await;
            assert!(
                query.cursor.is_none() || !page.hits.is_empty(),
                "a cursor is only given when there is more"
            );
            hits.extend(page.hits);
            let Some(cursor) = page.cursor else {
                return hits;
            };
            assert!(hits.len() < 1_000, "cursors go round in circles");
            // A cursor can be converted to a text and back.
            query = query.with_cursor(cursor.to_string());
        }
    }
}

/// Returns the short name of a hit: `m7` for the message at position 7, `s3` for the summary with a range that begins
/// at 3.
pub(super) fn name(hit: &Hit) -> String {
    match &hit.target {
        HitTarget::Message { seq, .. } => format!("m{seq}"),
        HitTarget::Summary { range, .. } => format!("s{}", range.first),
    }
}

/// Returns the hits sorted: messages by position, then summaries by the first message that they cover.
pub(super) fn sorted(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| match &hit.target {
        HitTarget::Summary { range, .. } => (1, range.first),
        HitTarget::Message { seq, .. } => (0, *seq),
    });
    hits
}

pub(super) fn short(hits: &Hits) -> Vec<String> {
    sorted(hits.hits.clone()).iter().map(name).collect()
}

/// Checks that no character of a literal pattern has a special meaning.
pub async fn search_is_literal<F: SearchFixture>(world: &World<F>) {
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
    let chat = world.chat(&texts).await;
    let cases: &[(&str, &[&str])] = &[
        ("100%", &["m1"]),
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
    ];
    world.finds(chat, cases).await;
}

/// Checks that a letter with a mark matches in both Unicode forms, as one character or as a letter with a combining
/// mark, in every mode. Hits must show the text as it was written.
pub async fn search_ignores_normal_forms<F: SearchFixture>(world: &World<F>) {
    let texts = [
        "the CAFE\u{301} is open",
        "open ~/Vie\u{323}\u{302}t/re\u{301}sume\u{301}-Zoe\u{308}.pdf",
        "der Überblick",
        "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} 한국어",
        "カ\u{3099}ス と パン",
        "10 \u{212b} wide, \u{915}\u{93c}लम",
    ];
    let chat = world.chat(&texts).await;
    for (pattern, expected) in [
        ("café", "m1"),
        ("CAFE\u{301} is", "m1"),
        ("việt/résumé-zoë.pdf", "m2"),
        ("Vie\u{302}\u{323}t", "m2"),
        ("U\u{308}berblick", "m3"),
        ("한글", "m4"),
        (
            "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}",
            "m4",
        ),
        ("ガス", "m5"),
        ("ハ\u{309a}ン", "m5"),
        ("10 å", "m6"),
        ("\u{958}लम", "m6"),
    ] {
        world.finds(chat, &[(pattern, &[expected])]).await;
        for mode in [SearchMode::Regex, SearchMode::Words, SearchMode::Auto] {
            let query = Query::new(pattern).with_mode(mode);
            match world.answer(chat, &query).await {
                Ok(answer) => {
                    let found: Vec<String> = answer.hits.iter().map(name).collect();
                    assert_eq!(found, [expected], "{mode:?}, {pattern:?}");
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
            }
        }
    }
    let query = Query::new("café").with_snippet_chars(7);
    let answer = world.answer(chat, &query).await.expect("an answer");
    let hit = &answer.hits[0];
    assert_eq!(hit.snippet, "… CAFE\u{301} …");
    assert_eq!(&hit.snippet[hit.matches[0].clone()], "CAFE\u{301}");
}

/// Checks that case is ignored in every script.
pub async fn search_ignores_case<F: SearchFixture>(world: &World<F>) {
    let texts = [
        "The Tests are GREEN",
        "Привет МИР",
        "ΟΔΟΣ οδός",
        "ÅÄÖ straße",
        "緑 は みどり",
    ];
    let chat = world.chat(&texts).await;
    let cases: &[(&str, &[&str])] = &[
        ("tests ARE green", &["m1"]),
        ("пРИВЕТ мир", &["m2"]),
        ("οδοσ", &["m3"]),
        ("ΟΔΟΣ", &["m3"]),
        ("åäö STRA", &["m4"]),
        ("緑", &["m5"]),
        ("みどり", &["m5"]),
    ];
    world.finds(chat, cases).await;
}

/// Checks that tool calls, arguments, results, reasoning and unknown message parts are searched, and that image data
/// are not.
pub async fn search_reads_every_part<F: SearchFixture>(world: &World<F>) {
    let chat = world.empty_chat("chat").await;
    let json = |text: &str| RawJson::parse(text).unwrap();
    let result = Part::ToolResult {
        call_id: "c".to_owned(),
        content: ResultContent::Parts(vec![Part::text("needle4")]),
        is_error: None,
    };
    let image = Part::Image(Media {
        media_type: "image/png".to_owned(),
        source: MediaSource::Data("needle6".to_owned()),
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
    chat.append(messages).await;
    let cases: &[(&str, &[&str])] = &[
        ("needle1", &["m1"]),
        ("needle2", &["m1"]),
        ("été", &["m1"]),
        (r"\u00e9t", &["m1"]),
        ("needle3", &["m2"]),
        ("needle4", &["m3"]),
        ("needle5", &["m4"]),
        ("needle6", &[]),
        ("needle7", &["m5"]),
        ("needle8", &["m5"]),
    ];
    world.finds(chat, cases).await;
}

/// Checks that notes are never found. A note is an entry that is never sent to a model.
pub async fn search_skips_notes<F: SearchFixture>(world: &World<F>) {
    let chat = world.empty_chat("chat").await;
    let note = Message::note(Role::User, vec![Part::text("needle")]);
    chat.append([note, message("id", "a needle")]).await;
    let hits = world.search(chat, &Query::new("needle")).await;
    assert_eq!(short(&hits), ["m2"]);
    let expected = HitTarget::Message {
        seq: Seq(2),
        external_id: Some("id".to_owned()),
        role: Role::User,
    };
    assert_eq!(hits.hits[0].target, expected);
    assert_eq!(hits.hits[0].snippet, "a needle");
    assert!(hits.complete);
}

/// Checks that the limit of a search counts messages and summaries together.
pub async fn search_keeps_its_limit<F: SearchFixture>(world: &World<F>) {
    let chat = world.haystack().await;
    let query = |scope, limit| Query::new("needle").with_scope(scope).with_limit(limit);
    for (scope, total) in [
        (SearchScope::Messages, 10),
        (SearchScope::Summaries, 3),
        (SearchScope::Both, 13),
    ] {
        for limit in [0, 1, 2, 3, 9, 10, 11, 12, 13, 14, usize::MAX] {
            let hits = world.search(chat, &query(scope, limit)).await;
            let expected = limit.clamp(1, total);
            assert_eq!(hits.hits.len(), expected, "{scope:?}, limit {limit}");
            assert_eq!(hits.complete, limit >= total, "{scope:?}, limit {limit}");
        }
    }
    let all = world.search(chat, &query(SearchScope::Both, 100)).await;
    assert_eq!(short(&all)[8..], ["m18", "m20", "s1", "s7", "s10"]);
    assert_eq!(sorted(all.hits)[0].created_at, Timestamp(2));
}

/// Checks that a search reads and counts only the log that its conversation sees, in every mode.
pub async fn search_stays_in_its_conversation<F: SearchFixture>(world: &World<F>) {
    let chat = world.haystack().await;
    let other = world.empty_chat("other").await;
    other.append([message("a", "another needle")]).await;
    let child = chat.fork("child", 5).await;
    child.append([message("b", "the child's needle")]).await;
    child.fill(1).await;
    world.finds(other, &[("needle", &["m1"])]).await;
    // Only the summary of shared positions is found.
    let shared: &[&str] = &["m2", "m4", "m6", "s1"];
    world.finds(child, &[("needle", shared)]).await;
    let hits = world.search(chat, &Query::new("needle")).await.hits;
    assert_eq!(hits.len(), 13);
    for mode in [SearchMode::Words, SearchMode::Prose] {
        if !world.has(chat, mode).await {
            continue;
        }
        let query = Query::new("needle").with_mode(mode).with_limit(100);
        let seen = short(&world.search(child, &query).await);
        let all = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "s1"];
        let is_seen = |name: &String| all.contains(&name.as_str());
        assert!(seen.iter().all(is_seen), "{mode:?}: {seen:?}");
        let is_found = |name: &&str| seen.iter().any(|one| one == name);
        assert!(shared.iter().all(is_found), "{mode:?}: {seen:?}");
        let query = Query::new("child").with_mode(mode);
        assert!(world.search(chat, &query).await.hits.is_empty(), "{mode:?}");
    }
}

/// Checks that each filter of a search is applied, alone and together with the others.
pub async fn filters_narrow_each_other<F: SearchFixture>(world: &World<F>) {
    let chat = world.haystack().await;
    let said = Message::assistant("a needle, said").with_created_at(Timestamp(21));
    chat.append([said]).await;
    let query = || Query::new("needle").with_limit(100);
    let user = query().with_roles([Role::User]);
    let early = query().with_until(Timestamp(4));
    for (query, expected) in [
        (query().with_roles([Role::Assistant]), &["m21"][..]),
        (query().with_roles([Role::Tool]), &[]),
        (
            user.clone().with_range(range(15, 21)),
            &["m16", "m18", "m20"],
        ),
        // A summary is found if it covers one of the messages.
        (query().with_range(range(9, 10)), &["m10", "s7", "s10"]),
        (query().with_range(range(12, 12)), &["m12", "s10"]),
        (query().with_range(range(22, 90)), &[]),
        (
            query().with_since(Timestamp(12)).with_until(Timestamp(16)),
            &["m12", "m14", "s10"],
        ),
        (early.clone(), &["m2", "s1"]),
        (early.clone().with_scope(SearchScope::Summaries), &["s1"]),
        (early.with_range(range(3, 3)), &["s1"]),
        (user.with_scope(SearchScope::Summaries), &[]),
        (
            query().with_since(Timestamp(16)).with_until(Timestamp(12)),
            &[],
        ),
    ] {
        let hits = world.search(chat, &query).await;
        assert_eq!(short(&hits), expected, "{query:?}");
    }
}

/// Returns a message with a tool call, and a message with its result.
fn used(id: &str, tool: &str, result: &str) -> [Message; 2] {
    let arguments = RawJson::parse("{\"pattern\":\"needle\"}").unwrap();
    [
        Message::tool_call(id, tool, arguments),
        Message::tool_result(id, result),
    ]
}

/// Creates a conversation in which a fact is stated, looked up repeatedly, and corrected.
async fn looked_up<F: SearchFixture>(world: &World<F>) -> Chat<'_, F::Store> {
    let chat = world.empty_chat("chat").await;
    let mut messages = vec![Message::user("the needle is in the barn")];
    for round in 0..30 {
        let tool = ["memory_grep", "mcp__memory__memory_recall"][round % 2];
        let id = ["again", &round.to_string()][round / 15].to_owned();
        messages.extend(used(&id, tool, "message:1 user: the needle is in the barn"));
    }
    messages.push(Message::user("no, the needle is in the shed"));
    messages.extend(used("again", "read_file", "a needle in a file"));
    chat.append(messages).await;
    chat
}

/// Checks that calls of the tools for searching the memory, and their results, are found only if the query asks for
/// them, for any order, page and positions. Other parts of the same messages must be found.
pub async fn echoes_are_found_on_demand<F: SearchFixture>(world: &World<F>) {
    let chat = looked_up(world).await;
    let query = || Query::new("NEEDLE").with_scope(SearchScope::Messages);
    let said = ["m1", "m62", "m63", "m64"];
    for order in ORDERS {
        for limit in [1, 3, 100] {
            let query = query().with_order(order).with_limit(limit);
            let hits = world.pages(chat, &query).await;
            let mut found: Vec<String> = hits.iter().map(name).collect();
            found.sort();
            assert_eq!(found, said, "{order:?} in pages of {limit}");
            let all = world.pages(chat, &query.with_echoes()).await;
            assert_eq!(all.len(), 64, "{order:?} in pages of {limit}");
        }
    }
    // The tool calls come before the searched positions.
    for (first, last, expected) in [(3, 3, &[][..]), (61, 62, &["m62"]), (64, 64, &["m64"])] {
        let query = query().with_range(range(first, last));
        assert_eq!(short(&world.search(chat, &query).await), expected);
    }
    let [mut call, result] = used("beside", "memory_grep", "echo: a needle");
    call.parts.insert(0, Part::text("I look for the needle."));
    chat.append([call, result]).await;
    let last = world.search(chat, &query().with_range(range(65, 66))).await;
    assert_eq!(short(&last), ["m65"]);
    assert_eq!(last.hits[0].snippet, "I look for the needle.");
}

/// Checks that a filter by tools finds only calls and results of these tools, and no summaries.
pub async fn tools_narrow_a_search<F: SearchFixture>(world: &World<F>) {
    let chat = looked_up(world).await;
    chat.append(used("x", "mcp__files__read_file", "needle"))
        .await;
    chat.show_leaf("dag", range(1, 2), "the needle").await;
    let query = || Query::new("needle").with_limit(100);
    for (tools, expected) in [
        (&["read_file"][..], &["m63", "m64", "m65", "m66"][..]),
        (&["mcp__files__read_file"], &["m65", "m66"]),
        (&["write_file"], &[]),
        (&["file"], &[]),
    ] {
        let query = query().with_tools(tools.iter().copied());
        let hits = world.search(chat, &query).await;
        assert_eq!(short(&hits), expected, "{tools:?}");
    }
    let count = |hits: Hits| hits.hits.len();
    let own = query().with_tools(["memory_grep"]);
    assert_eq!(count(world.search(chat, &own).await), 30);
    let both = query()
        .with_tools(["memory_grep", "memory_recall"])
        .with_range(range(1, 21));
    assert_eq!(count(world.search(chat, &both).await), 20);
    let roles = query().with_tools(["read_file"]).with_roles([Role::Tool]);
    assert_eq!(short(&world.search(chat, &roles).await), ["m64", "m66"]);
}

/// Checks that hits are in the requested order by position, also from page to page.
pub async fn hits_come_in_the_order_asked<F: SearchFixture>(world: &World<F>) {
    let chat = world.haystack().await;
    let messages: Vec<String> = (1..=10).map(|n| format!("m{}", n * 2)).collect();
    let summaries = ["s1", "s7", "s10"].map(str::to_owned).to_vec();
    let newest = [&messages, &summaries].into_iter();
    let newest = newest
        .flat_map(|names| names.iter().rev().cloned())
        .collect();
    let oldest = [messages, summaries].concat();
    for (order, expected) in [(HitOrder::Oldest, oldest), (HitOrder::Newest, newest)] {
        let query = Query::new("needle").with_order(order);
        for limit in [1, 4, 10, 11, 100] {
            let query = query.clone().with_limit(limit);
            let paged: Vec<String> = world.pages(chat, &query).await.iter().map(name).collect();
            assert_eq!(paged, expected, "{order:?}, in pages of {limit}");
        }
    }
}

/// Checks that the matches of a hit lie in its snippet and equal the pattern.
pub async fn matches_lie_in_their_snippet<F: SearchFixture>(world: &World<F>) {
    let chat = world.empty_chat("chat").await;
    let long = format!("{}needle{}", "é".repeat(900), "緑 needle ".repeat(90));
    let texts = ["Needle", "a needle and a NEEDLE", long.as_str()];
    chat.append(texts.map(Message::user)).await;
    let hits = world.search(chat, &Query::new("needle")).await;
    assert_eq!(hits.hits.len(), 3);
    for hit in sorted(hits.hits) {
        assert!(!hit.matches.is_empty(), "{hit:?}");
        let mut end = 0;
        for found in &hit.matches {
            assert!(end <= found.start, "in order: {hit:?}");
            end = found.end;
            let text = &hit.snippet[found.clone()];
            assert!(text.eq_ignore_ascii_case("needle"), "{text} in {hit:?}");
        }
        assert!(hit.snippet.chars().count() <= 502, "{hit:?}");
    }
}

/// Checks that a search is refused for an empty pattern, for an invalid cursor, and for a conversation that does not
/// exist.
pub async fn bad_queries_are_refused<F: SearchFixture>(world: &World<F>) {
    let chat = world.haystack().await;
    let error = world.answer(chat, &Query::new("")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    for cursor in ["", "no cursor", "ssum_0123456789abcdef"] {
        let query = Query::new("needle").with_cursor(cursor);
        let error = world.answer(chat, &query).await.unwrap_err();
        let kinds = [ErrorKind::Invalid, ErrorKind::NotFound];
        assert!(kinds.contains(&error.kind()), "{cursor:?}: {error}");
    }
    let nowhere = ConversationId(chat.id.0 + 1);
    let error = world.search.search(nowhere, &Query::new("needle")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}

//! Every search mode finds exactly the messages that a simple matcher finds, which tries all possibilities.

mod brute;
pub(crate) mod scripts;

use brute::Tree;
use fastrand::Rng;
use memory_model::{ConversationId, Message, RawJson, Timestamp};
use memory_search::{
    Fallback, Hit, HitOrder, HitTarget, Hits, Query, Search, SearchMode, SearchScope, SegmentSearch,
};
use memory_store::InMemoryStore;
use scripts::{MARKS, SCRIPTS};
use store_conformance::Chat;

/// Tools that have results. The last three are this memory's own tools.
const TOOLS: [&str; 5] = [
    "read_file",
    "mcp__notes__read_file",
    "memory_grep",
    "mcp__memory__memory_recall",
    "memory.memory_expand",
];

/// Separator between the texts of one message.
const BETWEEN: char = '\u{1}';

/// A conversation of random texts: messages, or results of tools with their calls before them. Five texts form an
/// episode.
struct World {
    store: InMemoryStore,
    chat: ConversationId,
    texts: Vec<String>,
    episodes: Vec<usize>,
    /// For each message, the tool that it calls or of which it is a result.
    tools: Vec<Option<&'static str>>,
}

/// The filters of a query.
#[derive(Debug, Clone, Copy)]
struct Narrowed {
    echoes: bool,
    tool: Option<&'static str>,
}

impl Narrowed {
    fn random(rng: &mut Rng) -> Self {
        Self {
            echoes: rng.u8(..3) == 0,
            tool: (rng.u8(..3) == 0).then(|| rng.choice(["read_file", "memory_grep"]).unwrap()),
        }
    }
}

impl World {
    async fn new(rng: &mut Rng, letters: &str) -> Self {
        let store = InMemoryStore::new();
        let chat = Chat::root(&store, "chat").await.id;
        let mut world = Self {
            store,
            chat,
            texts: Vec::new(),
            episodes: Vec::new(),
            tools: Vec::new(),
        };
        let (mut messages, mut called) = (Vec::new(), [None; 3]);
        for (at, text) in scripts::texts(rng, letters, 25).into_iter().enumerate() {
            let time = Timestamp((at / 5) as i64 * 2 * 3_600_000_000);
            let id = rng.usize(..3);
            let mut add = |message: Message, text: String, tool| {
                messages.push(message.with_created_at(time));
                world.texts.push(text);
                world.episodes.push(at / 5);
                world.tools.push(tool);
            };
            if rng.u8(..4) == 0 {
                let tool = *rng.choice(&TOOLS).unwrap();
                let call = Message::tool_call(id.to_string(), tool, RawJson::parse("{}").unwrap());
                add(call, format!("{tool}{BETWEEN}{{}}"), Some(tool));
                called[id] = Some(tool);
            }
            match rng.u8(..5) {
                0..=1 => {
                    let result = Message::tool_result(id.to_string(), text.as_str());
                    add(result, text, called[id]);
                }
                _ => add(Message::user(text.as_str()), text, None),
            }
        }
        Chat::new(&world.store, chat).append(messages).await;
        world
    }

    /// Returns the messages that a test function finds among those that pass the filter for tools. The function gets
    /// the searched texts and their episodes.
    fn expected<T>(
        &self,
        by: Narrowed,
        test: impl FnOnce(&[String], &[usize]) -> Option<T>,
    ) -> Option<Vec<bool>>
    where
        T: IntoIterator<Item = bool>,
    {
        let is_own = |tool: Option<&str>| tool.is_some_and(|tool| tool.contains("memory_"));
        let searched: Vec<usize> = (0..self.texts.len())
            .filter(|at| by.echoes || is_own(by.tool) || !is_own(self.tools[*at]))
            .collect();
        let texts: Vec<String> = searched.iter().map(|at| self.texts[*at].clone()).collect();
        let episodes: Vec<usize> = searched.iter().map(|at| self.episodes[*at]).collect();
        let mut found = vec![false; self.texts.len()];
        for (at, matches) in searched.into_iter().zip(test(&texts, &episodes)?) {
            let is_asked = |wanted: &str| self.tools[at].is_some_and(|tool| tool.ends_with(wanted));
            found[at] = matches && by.tool.is_none_or(is_asked);
        }
        Some(found)
    }

    /// Returns the hits of all pages of an answer, and the last page.
    async fn pages(&self, query: &Query) -> (Vec<Hit>, Hits) {
        let search = SegmentSearch::without_index(&self.store);
        let mut query = query.clone();
        let mut hits = Vec::new();
        loop {
            let page = search.search(self.chat, &query).await.unwrap();
            assert!(page.hits.len() <= query.limit);
            hits.extend(page.hits.clone());
            match page.cursor.clone() {
                Some(cursor) => query = query.with_cursor(cursor),
                None => return (hits, page),
            }
        }
    }

    /// Makes a query and compares the answer with the expected one.
    async fn check(
        &self,
        rng: &mut Rng,
        pattern: &str,
        mode: SearchMode,
        by: Narrowed,
        expected: &[bool],
    ) -> Hits {
        let order = rng
            .choice([HitOrder::Relevance, HitOrder::Oldest, HitOrder::Newest])
            .unwrap();
        let mut query = Query::new(pattern)
            .with_mode(mode)
            .with_tools(by.tool)
            .with_scope(SearchScope::Messages)
            .with_order(order)
            .with_limit(rng.usize(1..30))
            .with_snippet_chars(rng.usize(1..60));
        query.echoes = by.echoes;
        let (hits, last) = self.pages(&query).await;
        let positions: Vec<usize> = hits.iter().map(position).collect();
        let mut sorted = positions.clone();
        sorted.sort_unstable();
        let expected: Vec<usize> = (0..expected.len()).filter(|at| expected[*at]).collect();
        assert_eq!(
            sorted, expected,
            "{mode:?}, {order:?}, {by:?}: {pattern:?} in {:?}",
            self.texts
        );
        match order {
            HitOrder::Oldest => assert_eq!(positions, expected),
            HitOrder::Newest => assert!(positions.iter().rev().eq(&expected)),
            _ => assert!(hits.is_sorted_by(|a, b| a.score >= b.score), "{hits:?}"),
        }
        hits.iter()
            .for_each(|hit| self.check_snippet(hit, query.snippet_chars));
        last
    }

    fn check_snippet(&self, hit: &Hit, chars: usize) {
        let text = &self.texts[position(hit)];
        let body = hit.snippet.strip_prefix('…').unwrap_or(&hit.snippet);
        let body = body.strip_suffix('…').unwrap_or(body);
        assert!(text.contains(body), "{hit:?} of {text:?}");
        assert!(body.chars().count() <= chars, "{hit:?}");
        let mut end = 0;
        for found in &hit.matches {
            assert!(end <= found.start && !found.is_empty(), "{hit:?}");
            assert!(hit.snippet.get(found.clone()).is_some(), "{hit:?}");
            end = found.end;
        }
    }
}

fn position(hit: &Hit) -> usize {
    match hit.target {
        HitTarget::Message { seq, .. } => seq.0 as usize - 1,
        HitTarget::Summary { .. } => unreachable!("only messages are searched"),
    }
}

fn any_text(text: &str, test: impl Fn(&str) -> bool) -> bool {
    text.split(BETWEEN).any(test)
}

fn literal(pattern: &str, texts: &[String]) -> Vec<bool> {
    let texts = texts.iter();
    texts
        .map(|text| any_text(text, |text| brute::literal(pattern, text)))
        .collect()
}

/// Makes one query in each mode.
async fn check_modes(world: &World, rng: &mut Rng, pattern: &str) {
    let by = Narrowed::random(rng);
    let phrase = world.expected(by, |texts, _| Some(literal(pattern, texts)));
    let phrase = phrase.unwrap();
    let answer = world
        .check(rng, pattern, SearchMode::Literal, by, &phrase)
        .await;
    assert_eq!(answer.fallback, None);

    let all = world.expected(by, |texts, _| brute::all_words(pattern, texts));
    let expected = all.as_ref().unwrap_or(&phrase);
    let answer = world
        .check(rng, pattern, SearchMode::Words, by, expected)
        .await;
    assert_eq!(
        answer.fallback,
        all.is_none().then_some(Fallback::NoWords),
        "{pattern:?}"
    );

    let any = world.expected(by, |texts, episodes| {
        brute::any_word(pattern, texts, episodes)
    });
    let expected = any.as_ref().unwrap_or(&phrase);
    let answer = world
        .check(rng, pattern, SearchMode::Prose, by, expected)
        .await;
    assert_eq!(
        answer.fallback,
        any.is_none().then_some(Fallback::NoWords),
        "{pattern:?}"
    );

    let stages = [Some(&phrase), all.as_ref(), any.as_ref()];
    let found = |stage: &Option<&Vec<bool>>| stage.is_some_and(|stage| stage.contains(&true));
    let stage = stages.iter().position(found);
    let expected = stage.and_then(|stage| stages[stage]).unwrap_or(&phrase);
    let answer = world
        .check(rng, pattern, SearchMode::Auto, by, expected)
        .await;
    let fallbacks = [None, Some(Fallback::AllWords), Some(Fallback::AnyWord)];
    if let Some(stage) = stage {
        assert_eq!(answer.fallback, fallbacks[stage], "{pattern:?}");
    }

    if regex::Regex::new(pattern).is_err() {
        let answer = world
            .check(rng, pattern, SearchMode::Regex, by, &phrase)
            .await;
        let is_told = matches!(answer.fallback, Some(Fallback::InvalidRegex { .. }));
        assert!(is_told, "{pattern:?}: {:?}", answer.fallback);
        assert_eq!(answer.strategy, "literal-scan");
    }
}

#[tokio::test]
async fn every_mode_finds_what_brute_force_finds() {
    for (seed, (name, letters)) in (7..).zip(SCRIPTS) {
        println!("{name}");
        let mut rng = Rng::with_seed(seed);
        let world = World::new(&mut rng, letters).await;
        for mark in MARKS.chars().chain(MARKS.chars()) {
            let pattern = scripts::query(&mut rng, &world.texts, letters, mark);
            check_modes(&world, &mut rng, &pattern).await;
        }
    }
}

#[tokio::test]
async fn regular_expressions_find_what_brute_force_finds() {
    for (seed, (name, letters)) in (70..).zip(SCRIPTS) {
        println!("{name}");
        let mut rng = Rng::with_seed(seed);
        let world = World::new(&mut rng, letters).await;
        let chars: Vec<char> = letters.chars().chain("s ( -.".chars()).collect();
        for _ in 0..60 {
            let tree = Tree::random(&mut rng, &chars, 3);
            // Composing characters across two parts of an expression changes the expression.
            if brute::composed(&tree.written()) != tree.written() {
                continue;
            }
            let by = Narrowed::random(&mut rng);
            let matches = |text: &str| tree.matches(text) || tree.matches(&brute::composed(text));
            let matches = |text: &String| any_text(text, matches);
            let expected = world.expected(by, |texts, _| {
                Some(texts.iter().map(matches).collect::<Vec<_>>())
            });
            let written = tree.written();
            let answer = world
                .check(
                    &mut rng,
                    &written,
                    SearchMode::Regex,
                    by,
                    &expected.unwrap(),
                )
                .await;
            assert_eq!(answer.fallback, None, "{}", tree.written());
        }
    }
}

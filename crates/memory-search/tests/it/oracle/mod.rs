//! Every mode finds what a matcher that tries everything finds: nothing missed, nothing extra.

mod brute;
pub(crate) mod scripts;

use brute::Tree;
use fastrand::Rng;
use memory_model::{ConversationId, Message, Timestamp};
use memory_search::{
    Fallback, Hit, HitOrder, HitTarget, Hits, Query, Search, SearchMode, SearchScope,
};
use memory_store::{InMemoryStore, ScanSearch};
use scripts::{MARKS, SCRIPTS};
use store_conformance::{append, root};

/// A conversation of random texts. An episode is five messages long.
struct World {
    store: InMemoryStore,
    chat: ConversationId,
    texts: Vec<String>,
    episodes: Vec<usize>,
}

impl World {
    async fn new(rng: &mut Rng, letters: &str) -> Self {
        let texts = scripts::texts(rng, letters, 25);
        let episodes: Vec<usize> = (0..texts.len()).map(|at| at / 5).collect();
        let store = InMemoryStore::new();
        let chat = root(&store, "chat").await.id;
        let messages = texts.iter().zip(&episodes).map(|(text, episode)| {
            let time = *episode as i64 * 2 * 3_600_000_000;
            Message::user(text.as_str()).with_created_at(Timestamp(time))
        });
        append(&store, chat, messages.collect()).await;
        Self {
            store,
            chat,
            texts,
            episodes,
        }
    }

    /// All pages of an answer: hits, and what the pages say beside them.
    async fn pages(&self, query: &Query) -> (Vec<Hit>, Hits) {
        let search = ScanSearch::new(&self.store);
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

    /// Asks, and holds the answer against what is expected.
    async fn check(
        &self,
        rng: &mut Rng,
        pattern: &str,
        mode: SearchMode,
        expected: &[bool],
    ) -> Hits {
        let order = rng
            .choice([HitOrder::Relevance, HitOrder::Oldest, HitOrder::Newest])
            .unwrap();
        let query = Query::new(pattern)
            .with_mode(mode)
            .with_scope(SearchScope::Messages)
            .with_order(order)
            .with_limit(rng.usize(1..30))
            .with_snippet_chars(rng.usize(1..60));
        let (hits, last) = self.pages(&query).await;
        let positions: Vec<usize> = hits.iter().map(position).collect();
        let mut sorted = positions.clone();
        sorted.sort_unstable();
        let expected: Vec<usize> = (0..expected.len()).filter(|at| expected[*at]).collect();
        assert_eq!(
            sorted, expected,
            "{mode:?}, {order:?}: {pattern:?} in {:?}",
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

fn literal(pattern: &str, texts: &[String]) -> Vec<bool> {
    texts
        .iter()
        .map(|text| brute::literal(pattern, text))
        .collect()
}

/// Asks one query in each mode.
async fn check_modes(world: &World, rng: &mut Rng, pattern: &str) {
    let texts = &world.texts;
    let phrase = literal(pattern, texts);
    let answer = world
        .check(rng, pattern, SearchMode::Literal, &phrase)
        .await;
    assert_eq!(answer.fallback, None);

    let all = brute::all_words(pattern, texts);
    let expected = all.as_ref().unwrap_or(&phrase);
    let answer = world.check(rng, pattern, SearchMode::Words, expected).await;
    assert_eq!(
        answer.fallback,
        all.is_none().then_some(Fallback::NoWords),
        "{pattern:?}"
    );

    let any = brute::any_word(pattern, texts, &world.episodes);
    let expected = any.as_ref().unwrap_or(&phrase);
    let answer = world.check(rng, pattern, SearchMode::Prose, expected).await;
    assert_eq!(
        answer.fallback,
        any.is_none().then_some(Fallback::NoWords),
        "{pattern:?}"
    );

    let stages = [Some(&phrase), all.as_ref(), any.as_ref()];
    let found = |stage: &Option<&Vec<bool>>| stage.is_some_and(|stage| stage.contains(&true));
    let stage = stages.iter().position(found);
    let expected = stage.and_then(|stage| stages[stage]).unwrap_or(&phrase);
    let answer = world.check(rng, pattern, SearchMode::Auto, expected).await;
    let fallbacks = [None, Some(Fallback::AllWords), Some(Fallback::AnyWord)];
    if let Some(stage) = stage {
        assert_eq!(answer.fallback, fallbacks[stage], "{pattern:?}");
    }

    if regex::Regex::new(pattern).is_err() {
        let answer = world.check(rng, pattern, SearchMode::Regex, &phrase).await;
        let is_told = matches!(answer.fallback, Some(Fallback::InvalidRegex { .. }));
        assert!(is_told, "{pattern:?}: {:?}", answer.fallback);
        assert_eq!(answer.strategy, memory_store::SCAN);
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
            let expected: Vec<bool> = world.texts.iter().map(|text| tree.matches(text)).collect();
            let answer = world
                .check(&mut rng, &tree.written(), SearchMode::Regex, &expected)
                .await;
            assert_eq!(answer.fallback, None, "{}", tree.written());
        }
    }
}

//! Tests of stored vectors, and of searches that rank by them.

use std::sync::Arc;

use async_trait::async_trait;
use fastrand::Rng;
use memory_model::{ConversationId, Message, Part, Role, Seq, Timestamp};
use memory_search::{
    Embedder, Error, ErrorKind, HitOrder, Hits, Query, Result, Search, SearchMode, SegmentSearch,
    check_vectors, extend_index, extend_vectors,
};
use memory_store::{Erase, FullStore, NewVectors, PlacedVector, Vector, VectorState, VectorStore};

use crate::builders::{range, refused};
use crate::chat::Chat;
use crate::indexed::pages;

/// An embedder for tests. Its vectors have one component for each of four subjects, for example dogs: the number of
/// words of the text that belong to the subject.
#[derive(Debug, Clone)]
pub struct Subjects {
    /// Id of the embedder.
    pub id: &'static str,
    /// Whether the embedder is cheap. A search may embed whole conversations with a cheap embedder.
    pub is_cheap: bool,
    /// Whether every call of the embedder fails, as if its service were down.
    pub is_down: bool,
}

impl Default for Subjects {
    fn default() -> Self {
        Self {
            id: "subjects/1",
            is_cheap: false,
            is_down: false,
        }
    }
}

/// Words that belong to each subject.
const SUBJECTS: [&[&str]; 4] = [
    &["dog", "puppy", "hound"],
    &["car", "truck", "van"],
    &["rain", "snow", "storm"],
    &["bread", "cake", "bun"],
];

impl Subjects {
    fn vector(text: &str) -> Vec<f32> {
        let count = |subject: &[&str]| {
            let words = text.split(|c: char| !c.is_alphabetic());
            words.filter(|word| subject.contains(word)).count() as f32
        };
        SUBJECTS.iter().map(|subject| count(subject)).collect()
    }
}

#[async_trait]
impl Embedder for Subjects {
    fn id(&self) -> &str {
        self.id
    }

    fn dimension(&self) -> usize {
        SUBJECTS.len()
    }

    fn is_cheap(&self) -> bool {
        self.is_cheap
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        if self.is_down {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "the embedder is down: try later",
            ));
        }
        Ok(texts.iter().map(|text| Self::vector(text)).collect())
    }
}

fn shared(embedder: Subjects) -> Arc<dyn Embedder> {
    Arc::new(embedder)
}

fn users(texts: &[&str]) -> Vec<Message> {
    texts.iter().map(|text| Message::user(*text)).collect()
}

impl<'a, S: FullStore> Chat<'a, S> {
    fn vector_store(&self) -> &'a dyn VectorStore {
        self.store.vector_store().expect("the store keeps vectors")
    }

    /// Returns all stored vectors of the conversation's own log.
    async fn vectors(&self, embedder: &str) -> Vec<PlacedVector> {
        let all = range(1, u32::MAX);
        let found = self
            .vector_store()
            .vectors(self.id, embedder, SUBJECTS.len(), all);
        found.await.expect("they are read")
    }

    /// Returns the positions of the messages with a stored vector.
    async fn with_vector(&self, embedder: &str) -> Vec<u32> {
        let kept = self.vectors(embedder).await.into_iter();
        let kept = kept.filter(|(_, vector)| vector.is_some());
        kept.map(|(seq, _)| seq.0).collect()
    }

    async fn vector_state(&self, embedder: &str) -> VectorState {
        let state = self.vector_store().vector_state(self.id, embedder).await;
        state.expect("its state is read")
    }

    async fn put_vectors(&self, vectors: &[PlacedVector], state: VectorState) -> bool {
        let embedder = "subjects/1";
        let new = NewVectors {
            embedder,
            vectors,
            state,
        };
        self.vector_store()
            .put_vectors(self.id, &new)
            .await
            .expect("an answer")
    }

    async fn extend_vectors(&self, embedder: &Arc<dyn Embedder>, messages: u64) -> u64 {
        let made = extend_vectors(self.store, self.id, &**embedder, messages).await;
        made.expect("it is embedded").messages
    }

    async fn extend_index(&self) {
        let made = extend_index(self.store, self.id, u64::MAX).await;
        made.expect("it is indexed");
    }
}

/// Checks that vectors are stored unchanged, separately for each embedder and conversation. Vectors that do not
/// directly follow the stored ones must be refused. Forks must read their ancestors' vectors.
///
/// # Panics
/// If the store keeps no vectors, or returns other vectors.
pub async fn vectors_are_kept<S: FullStore>(store: Arc<S>) {
    let store = &*store;
    let chat = Chat::root(store, "vectors").await;
    let other = Chat::root(store, "other").await;
    let vectors = chat.vector_store();
    let mut messages = users(&["a dog", "nothing known", "a van and a car"]);
    messages.push(Message::note(Role::User, vec![Part::text("a hound")]));
    chat.append(messages).await;
    other.append(users(&["snow"])).await;
    let embedder = shared(Subjects::default());
    assert_eq!(chat.extend_vectors(&embedder, u64::MAX).await, 2);
    assert_eq!(chat.extend_vectors(&embedder, u64::MAX).await, 0);
    let expected: Vec<PlacedVector> = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0; 4],
        [0.0, 2.0, 0.0, 0.0],
        [0.0; 4],
    ]
    .iter()
    .zip(1..)
    .map(|(vector, seq)| (Seq(seq), Vector::from_slice(vector)))
    .collect();
    assert_eq!(chat.vectors("subjects/1").await, expected);
    assert!(other.vectors("subjects/1").await.is_empty());
    assert!(chat.vectors("subjects/2").await.is_empty());
    let partly = vectors.vectors(chat.id, "subjects/1", 4, range(2, 3)).await;
    assert_eq!(partly.expect("they are read"), expected[1..3]);
    let embedders = vectors.embedders(chat.id).await;
    assert_eq!(embedders.expect("they are listed"), ["subjects/1"]);
    let wrong = vectors.vectors(chat.id, "subjects/1", 5, range(1, 4)).await;
    refused(wrong, memory_store::ErrorKind::Corrupt);

    let child = chat.fork("child", 2).await;
    child.append(users(&["a storm"])).await;
    assert_eq!(child.extend_vectors(&embedder, u64::MAX).await, 1);
    assert_eq!(child.with_vector("subjects/1").await, [3]);
    let own = child.vectors("subjects/1").await;
    assert_eq!(own.len(), 1, "what a fork shares is not kept twice");

    chat.append(users(&["a bun"])).await;
    let state = chat.vector_state("subjects/1").await;
    assert_eq!(state.last, Seq(4));
    let mut stale = state;
    stale.erasures += 1;
    for (state, seq) in [(state, 4), (state, 6), (stale, 5), (Default::default(), 5)] {
        let place = [(Seq(seq), Vector::from_slice(&[1.0; 4]))];
        assert!(!chat.put_vectors(&place, state).await, "{seq} {state:?}");
    }
    let dropped = vectors.drop_vectors(chat.id, "subjects/1").await;
    dropped.expect("they are dropped");
    assert!(chat.vectors("subjects/1").await.is_empty());
    let none = ConversationId(999);
    let unknown = vectors.vector_state(none, "subjects/1").await;
    refused(unknown, memory_store::ErrorKind::NotFound);
}

/// Checks that an erasure removes the vectors of the erased messages, of all embedders, and that the vectors cannot
/// come back. Vectors of words that were read before the erasure must be refused.
///
/// # Panics
/// If a vector of an erased message remains.
pub async fn an_erasure_leaves_no_vector<S: FullStore>(store: Arc<S>) {
    let store = &*store;
    let chat = Chat::root(store, "erased").await;
    chat.append(users(&["a dog", "a car", "the rain", "bread"]))
        .await;
    let child = chat.fork("erased child", 3).await;
    let [one, two] = ["subjects/1", "subjects/2"].map(|id| {
        shared(Subjects {
            id,
            ..Subjects::default()
        })
    });
    for embedder in [&one, &two] {
        child.extend_vectors(embedder, u64::MAX).await;
        assert_eq!(chat.extend_vectors(embedder, 3).await, 1);
    }
    chat.append(users(&["a cake"])).await;
    let before = chat.vector_state("subjects/1").await;
    let erase = Erase::range(range(2, 3), "test", Timestamp(1));
    store.erase(child.id, &erase).await.expect("it is erased");
    for embedder in ["subjects/1", "subjects/2"] {
        assert_eq!(chat.with_vector(embedder).await, [1, 4]);
    }
    let late = [(Seq(5), Vector::from_slice(&[1.0; 4]))];
    let late = chat.put_vectors(&late, before).await;
    assert!(!late, "it was made before the erasure");
    chat.extend_vectors(&one, u64::MAX).await;
    assert_eq!(chat.with_vector("subjects/1").await, [1, 4, 5]);
    let all = Erase::all("test", Timestamp(2));
    for chat in [child, chat] {
        store.erase(chat.id, &all).await.expect("it is erased");
    }
    for embedder in [&one, &two] {
        chat.extend_vectors(embedder, u64::MAX).await;
        assert_eq!(chat.with_vector(embedder.id()).await, [0; 0]);
    }
}

/// Checks searches that rank by vectors. Search modes with exact matches must answer as without vectors, and questions
/// must find texts of nearly the same meaning. With a cheap embedder, answers must not depend on the vectors that are
/// stored, even if an ancestor's are missing. Answers must not depend on an index. Other conversations must not count.
/// If the embedder fails, the ranking must use words alone.
///
/// # Panics
/// If an answer differs from the expected one.
pub async fn searches_count_vectors<S: FullStore>(store: Arc<S>, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let words: Vec<&str> = SUBJECTS.iter().copied().flatten().copied().collect();
    let text = |rng: &mut Rng| {
        let count = 1 + rng.usize(..4);
        let words: Vec<&str> = (0..count)
            .map(|_| words[rng.usize(..words.len())])
            .collect();
        words.join(" and ")
    };
    let chat = Chat::root(&*store, "counted").await;
    chat.append((0..90).map(|_| Message::user(text(&mut rng))))
        .await;
    let child = chat.fork("counted child", 60).await;
    child
        .append((0..30).map(|_| Message::user(text(&mut rng))))
        .await;

    let kept_only = shared(Subjects::default());
    let cheap = shared(Subjects {
        is_cheap: true,
        ..Subjects::default()
    });
    // No vector is stored under the id of this embedder.
    let unkept = shared(Subjects {
        id: "subjects/unkept",
        is_cheap: true,
        ..Subjects::default()
    });
    let down = shared(Subjects {
        is_down: true,
        ..Subjects::default()
    });
    let scan = || SegmentSearch::without_index(Arc::clone(&store));
    let index = || SegmentSearch::new(Arc::clone(&store));
    for step in 0..6 {
        match step {
            1 => child.extend_index().await,
            2 => drop(child.extend_vectors(&kept_only, 70).await),
            3 => {
                child.extend_vectors(&kept_only, u64::MAX).await;
                chat.extend_index().await;
            }
            4 => {
                let dropped = chat.vector_store().drop_vectors(chat.id, kept_only.id());
                dropped.await.expect("they are dropped");
            }
            5 => drop(child.extend_vectors(&kept_only, u64::MAX).await),
            _ => {}
        }
        for chat in [chat.id, child.id] {
            for mode in [
                SearchMode::Literal,
                SearchMode::Regex,
                SearchMode::Words,
                SearchMode::Prose,
            ] {
                for order in [HitOrder::Relevance, HitOrder::Newest] {
                    let query = Query::new(text(&mut rng))
                        .with_mode(mode)
                        .with_order(order)
                        .with_limit(7);
                    let plain = pages(&scan(), chat, &query).await;
                    let by_cheap = scan().with_embedder(cheap.clone());
                    let by_cheap = pages(&by_cheap, chat, &query).await;
                    let by_index = index().with_embedder(cheap.clone());
                    let by_index = pages(&by_index, chat, &query).await;
                    // The cursors differ, because a cursor contains the vectors that count.
                    let hits = |pages: &[Hits]| -> Vec<_> {
                        let mut hits: Vec<_> =
                            pages.iter().flat_map(|page| page.hits.clone()).collect();
                        hits.iter_mut().for_each(|hit| hit.cursor.clear());
                        hits
                    };
                    assert_eq!(hits(&by_index), hits(&by_cheap), "{query:?}");
                    let by_unkept = scan().with_embedder(unkept.clone());
                    let by_unkept = pages(&by_unkept, chat, &query).await;
                    assert_eq!(hits(&by_unkept), hits(&by_cheap), "{query:?}");
                    let broken = scan().with_embedder(down.clone());
                    assert_eq!(pages(&broken, chat, &query).await, plain);
                    if mode != SearchMode::Prose {
                        assert_eq!(by_cheap, plain, "{query:?}");
                        continue;
                    }
                    let counts = |page: &Hits| page.strategy.contains("vectors");
                    assert!(by_cheap.iter().all(counts));
                    let stored = index().with_embedder(kept_only.clone());
                    let stored = pages(&stored, chat, &query).await;
                    match (step, chat == child.id) {
                        (0 | 1 | 4, _) => assert_eq!(hits(&stored), hits(&plain), "{query:?}"),
                        (3 | 5, true) => assert_eq!(hits(&stored), hits(&by_cheap), "{query:?}"),
                        _ => {}
                    }
                }
            }
        }
        for embedder in [&kept_only, &cheap] {
            for chat in [chat.id, child.id] {
                let check = check_vectors(&*store, chat, &**embedder).await;
                assert_eq!(check.expect("it is checked").damage, [""; 0]);
            }
        }
    }
    let lonely = Chat::root(&*store, "lonely").await;
    lonely
        .append(users(&["a puppy", "a storm", "x", "y"]))
        .await;
    let lonely = lonely.id;
    let query = Query::new("hound").with_mode(SearchMode::Prose);
    let found = scan().search(lonely, &query).await.expect("an answer");
    assert!(found.hits.is_empty());
    let search = scan().with_embedder(cheap);
    let found = search.search(lonely, &query).await.expect("an answer");
    let found: Vec<&str> = found.hits.iter().map(|hit| hit.snippet.as_str()).collect();
    assert_eq!(found, ["a puppy"]);
}

/// Checks that all pages of an answer come from one ranking, even if vectors are stored between two pages.
///
/// # Panics
/// If a hit is on two pages, or on none.
pub async fn pages_are_of_one_ranking<S: FullStore>(store: Arc<S>) {
    let filled = Chat::root(&*store, "pages").await;
    let said = (0..80).map(|at| {
        let what = ["the dog ", "a puppy ", ""][at % 3];
        Message::user(format!("{what}number {at}"))
    });
    filled.append(said).await;
    let chat = filled.id;
    let embedder = shared(Subjects::default());
    filled.extend_vectors(&embedder, 1).await;
    let search = SegmentSearch::without_index(Arc::clone(&store)).with_embedder(embedder.clone());
    let mut query = Query::new("dog number")
        .with_mode(SearchMode::Prose)
        .with_limit(20);
    let undisturbed = pages(&search, chat, &query).await;
    let mut pages = Vec::new();
    loop {
        let page = search.search(chat, &query).await.expect("an answer");
        let cursor = page.cursor.clone();
        pages.push(page);
        let Some(cursor) = cursor else { break };
        query = query.with_cursor(cursor);
        filled.extend_vectors(&embedder, u64::MAX).await;
    }
    assert_eq!(pages, undisturbed);
    assert!(pages.len() > 2);
}

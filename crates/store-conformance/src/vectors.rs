//! Vectors that a store keeps, and searches that count them.

use std::sync::Arc;

use async_trait::async_trait;
use fastrand::Rng;
use memory_model::{ConversationId, Message, Part, Role, Seq, SeqRange, Timestamp};
use memory_search::{
    Embedder, Error, ErrorKind, HitOrder, Hits, Query, Result, Search, SearchMode, SegmentSearch,
    check_vectors, extend_index, extend_vectors,
};
use memory_store::{
    Append, AppendAt, Erase, FullStore, NewConversation, NewEntry, NewVectors, Origin, Vector,
};
use token_estimate::{HeuristicEstimator, TokenEstimator as _};

use crate::builders::root;
use crate::indexed::pages;

/// Counts the words of a few subjects, whatever they are called: an embedder for tests.
#[derive(Debug, Clone)]
pub struct Subjects {
    /// Its id.
    pub id: &'static str,
    /// Whether a search may embed conversations with it.
    pub is_cheap: bool,
    /// Whether every call fails.
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

/// The words of each subject.
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

async fn say<S: FullStore + ?Sized>(store: &S, chat: ConversationId, messages: Vec<Message>) {
    let entries = messages.into_iter();
    let append = Append {
        at: AppendAt::Any,
        estimator: HeuristicEstimator::Bytes4.id(),
        entries: entries.map(|message| NewEntry::new(message, 9)).collect(),
        now: Timestamp(0),
    };
    store.append(chat, &append).await.expect("it is appended");
}

async fn fork<S: FullStore + ?Sized>(
    store: &S,
    parent: ConversationId,
    key: &str,
    at: u32,
) -> ConversationId {
    let new = NewConversation {
        origin: Origin::Fork {
            parent,
            at: Seq(at),
        },
        ..NewConversation::root(key, HeuristicEstimator::Bytes4.id(), Timestamp(0))
    };
    store.open(&new).await.expect("a fork").id
}

fn users(texts: &[&str]) -> Vec<Message> {
    texts.iter().map(|text| Message::user(*text)).collect()
}

fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(Seq(first), Seq(last)).expect("a range")
}

/// Every vector that is kept of a conversation's own log.
async fn kept<S: FullStore + ?Sized>(
    store: &S,
    chat: ConversationId,
    embedder: &str,
) -> Vec<(Seq, Option<Vector>)> {
    let vectors = store.vector_store().expect("the store keeps vectors");
    let all = range(1, u32::MAX);
    let found = vectors.vectors(chat, embedder, SUBJECTS.len(), all);
    found.await.expect("they are read")
}

fn with_vector(kept: &[(Seq, Option<Vector>)]) -> Vec<u32> {
    let kept = kept.iter().filter(|(_, vector)| vector.is_some());
    kept.map(|(seq, _)| seq.0).collect()
}

/// Vectors are kept by embedder and conversation, are those that were given, are refused where they do
/// not follow those that are kept, and forks read their ancestors'.
///
/// # Panics
/// When the store keeps no vectors, or others.
pub async fn vectors_are_kept<S: FullStore>(store: Arc<S>) {
    let store = &*store;
    let vectors = store.vector_store().expect("the store keeps vectors");
    let chat = root(store, "vectors").await.id;
    let other = root(store, "other").await.id;
    let mut messages = users(&["a dog", "nothing known", "a van and a car"]);
    messages.push(Message::note(Role::User, vec![Part::text("a hound")]));
    say(store, chat, messages).await;
    say(store, other, users(&["snow"])).await;
    let embedder = shared(Subjects::default());
    let made = extend_vectors(store, chat, &*embedder, u64::MAX).await;
    assert_eq!(made.expect("it is embedded").messages, 2);
    let made = extend_vectors(store, chat, &*embedder, u64::MAX).await;
    assert_eq!(made.expect("all is embedded").messages, 0);
    let expected: Vec<(Seq, Option<Vector>)> = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0; 4],
        [0.0, 2.0, 0.0, 0.0],
        [0.0; 4],
    ]
    .iter()
    .zip(1..)
    .map(|(vector, seq)| (Seq(seq), Vector::from_slice(vector)))
    .collect();
    assert_eq!(kept(store, chat, "subjects/1").await, expected);
    assert!(kept(store, other, "subjects/1").await.is_empty());
    assert!(kept(store, chat, "subjects/2").await.is_empty());
    let partly = vectors.vectors(chat, "subjects/1", 4, range(2, 3)).await;
    assert_eq!(partly.expect("they are read"), expected[1..3]);
    assert_eq!(
        vectors.embedders(chat).await.expect("they are listed"),
        ["subjects/1"]
    );
    let wrong = vectors.vectors(chat, "subjects/1", 5, range(1, 4)).await;
    let wrong = wrong.expect_err("the dimension is another");
    assert_eq!(wrong.kind(), memory_store::ErrorKind::Corrupt);

    let child = fork(store, chat, "child", 2).await;
    say(store, child, users(&["a storm"])).await;
    let made = extend_vectors(store, child, &*embedder, u64::MAX).await;
    assert_eq!(made.expect("it is embedded").messages, 1);
    let own = kept(store, child, "subjects/1").await;
    assert_eq!(with_vector(&own), [3]);
    assert_eq!(own.len(), 1, "what a fork shares is not kept twice");

    say(store, chat, users(&["a bun"])).await;
    let state = vectors.vector_state(chat, "subjects/1").await;
    let state = state.expect("its state is read");
    assert_eq!(state.last, Seq(4));
    let place = |seq| vec![(Seq(seq), Vector::from_slice(&[1.0; 4]))];
    let mut stale = state;
    stale.erasures += 1;
    for (state, seq) in [(state, 4), (state, 6), (stale, 5), (Default::default(), 5)] {
        let new = NewVectors {
            embedder: "subjects/1",
            vectors: &place(seq),
            state,
        };
        let kept = vectors.put_vectors(chat, &new).await.expect("an answer");
        assert!(!kept, "{new:?}");
    }
    vectors
        .drop_vectors(chat, "subjects/1")
        .await
        .expect("they are dropped");
    assert!(kept(store, chat, "subjects/1").await.is_empty());
    let unknown = vectors
        .vector_state(ConversationId(999), "subjects/1")
        .await;
    let unknown = unknown.expect_err("there is none");
    assert_eq!(unknown.kind(), memory_store::ErrorKind::NotFound);
}

/// An erasure removes the vectors of what it erases, by whichever embedder, and none comes back; one that
/// is made of words from before it is refused.
///
/// # Panics
/// When a vector is left.
pub async fn an_erasure_leaves_no_vector<S: FullStore>(store: Arc<S>) {
    let store = &*store;
    let vectors = store.vector_store().expect("the store keeps vectors");
    let chat = root(store, "erased").await.id;
    say(store, chat, users(&["a dog", "a car", "the rain", "bread"])).await;
    let child = fork(store, chat, "erased child", 3).await;
    let [one, two] = ["subjects/1", "subjects/2"].map(|id| {
        shared(Subjects {
            id,
            ..Subjects::default()
        })
    });
    for embedder in [&one, &two] {
        extend_vectors(store, child, &**embedder, u64::MAX)
            .await
            .expect("it is embedded");
        let made = extend_vectors(store, chat, &**embedder, 3).await;
        assert_eq!(made.expect("it is embedded").messages, 1);
    }
    say(store, chat, users(&["a cake"])).await;
    let before = vectors.vector_state(chat, "subjects/1").await;
    let before = before.expect("its state is read");
    let erase = Erase::range(range(2, 3), "test", Timestamp(1));
    store.erase(child, &erase).await.expect("it is erased");
    for embedder in ["subjects/1", "subjects/2"] {
        assert_eq!(with_vector(&kept(store, chat, embedder).await), [1, 4]);
    }
    let late = NewVectors {
        embedder: "subjects/1",
        vectors: &[(Seq(5), Vector::from_slice(&[1.0; 4]))],
        state: before,
    };
    let late = vectors.put_vectors(chat, &late).await.expect("an answer");
    assert!(!late, "it was made before the erasure");
    extend_vectors(store, chat, &*one, u64::MAX)
        .await
        .expect("it is embedded");
    assert_eq!(
        with_vector(&kept(store, chat, "subjects/1").await),
        [1, 4, 5]
    );
    let all = Erase::all("test", Timestamp(2));
    store.erase(child, &all).await.expect("it is erased");
    store.erase(chat, &all).await.expect("it is erased");
    for embedder in [&one, &two] {
        extend_vectors(store, chat, &**embedder, u64::MAX)
            .await
            .expect("it is embedded");
        let found = kept(store, chat, embedder.id()).await;
        assert!(with_vector(&found).is_empty(), "{found:?}");
    }
}

/// A search that counts vectors: exact modes answer as without; what means nearly what is asked is found;
/// the vectors that are kept, also where an ancestor's are gone, those that a cheap embedder makes, and an
/// index make no difference; nothing of another conversation counts; and an embedder that is down leaves the
/// ranking by words.
///
/// # Panics
/// When an answer differs.
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
    let chat = root(&*store, "counted").await.id;
    let said = |rng: &mut Rng, count| (0..count).map(|_| Message::user(text(rng))).collect();
    say(&*store, chat, said(&mut rng, 90)).await;
    let child = fork(&*store, chat, "counted child", 60).await;
    say(&*store, child, said(&mut rng, 30)).await;

    let kept_only = shared(Subjects::default());
    let cheap = shared(Subjects {
        is_cheap: true,
        ..Subjects::default()
    });
    // No vector is kept under its id.
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
        if step == 1 {
            extend_index(&*store, child, u64::MAX)
                .await
                .expect("it is indexed");
        }
        if step == 2 {
            extend_vectors(&*store, child, &*kept_only, 70)
                .await
                .expect("it is embedded");
        }
        if step == 3 {
            extend_vectors(&*store, child, &*kept_only, u64::MAX)
                .await
                .expect("it is embedded");
            extend_index(&*store, chat, u64::MAX)
                .await
                .expect("it is indexed");
        }
        if step == 4 {
            let vectors = store.vector_store().expect("the store keeps vectors");
            let dropped = vectors.drop_vectors(chat, kept_only.id());
            dropped.await.expect("they are dropped");
        }
        if step == 5 {
            extend_vectors(&*store, child, &*kept_only, u64::MAX)
                .await
                .expect("it is embedded");
        }
        for chat in [chat, child] {
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
                    // Their cursors tell which vectors count.
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
                    assert!(
                        by_cheap
                            .iter()
                            .all(|page| page.strategy.contains("vectors"))
                    );
                    let stored = index().with_embedder(kept_only.clone());
                    let stored = pages(&stored, chat, &query).await;
                    match (step, chat == child) {
                        (0 | 1 | 4, _) => assert_eq!(hits(&stored), hits(&plain), "{query:?}"),
                        (3 | 5, true) => assert_eq!(hits(&stored), hits(&by_cheap), "{query:?}"),
                        _ => {}
                    }
                }
            }
        }
        for embedder in [&kept_only, &cheap] {
            for chat in [chat, child] {
                let check = check_vectors(&*store, chat, &**embedder).await;
                assert_eq!(check.expect("it is checked").damage, [""; 0]);
            }
        }
    }
    let lonely = root(&*store, "lonely").await.id;
    say(&*store, lonely, users(&["a puppy", "a storm", "x", "y"])).await;
    let query = Query::new("hound").with_mode(SearchMode::Prose);
    let found = scan().search(lonely, &query).await.expect("an answer");
    assert!(found.hits.is_empty());
    let search = scan().with_embedder(cheap);
    let found = search.search(lonely, &query).await.expect("an answer");
    let found: Vec<&str> = found.hits.iter().map(|hit| hit.snippet.as_str()).collect();
    assert_eq!(found, ["a puppy"]);
}

/// The pages of an answer come from one ranking, however many vectors are kept meanwhile.
///
/// # Panics
/// When a hit comes twice or never.
pub async fn pages_are_of_one_ranking<S: FullStore>(store: Arc<S>) {
    let chat = root(&*store, "pages").await.id;
    let said: Vec<String> = (0..80)
        .map(|at| match at % 3 {
            0 => format!("the dog number {at}"),
            1 => format!("a puppy number {at}"),
            _ => format!("number {at}"),
        })
        .collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    say(&*store, chat, users(&said)).await;
    let embedder = shared(Subjects::default());
    extend_vectors(&*store, chat, &*embedder, 1)
        .await
        .expect("it is embedded");
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
        extend_vectors(&*store, chat, &*embedder, u64::MAX)
            .await
            .expect("it is embedded");
    }
    assert_eq!(pages, undisturbed);
    assert!(pages.len() > 2);
}

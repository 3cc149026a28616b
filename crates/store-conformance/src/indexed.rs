//! Tests that compare a search by the store's index with a search that scans the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use fastrand::Rng;
use memory_model::{ConversationId, Message, Part, RawJson, Role, Seq, SeqRange, Timestamp};
use memory_search::{
    Hits, Query, Search, SearchMode, SegmentSearch, check_index, extend_index, rebuild_index,
};
use memory_store::{
    AppendAt, Chunk, Erase, ErrorKind, FullStore, IndexedKind, NewEntry, NewIndexSegment, Origin,
};

use crate::builders::{batch, new_conversation, range, refused};
use crate::cases::{MODES, ORDERS, SCOPES};
use crate::chat::Chat;
use crate::layer::{Layer, Layered};

/// Letters of many scripts. There are only a few of each, so that words occur repeatedly. Some have combining marks.
const SCRIPTS: [&str; 16] = [
    "aabceinorstAEIſİéß'",
    "абвеиноРСТы",
    "αβγεηικνοσςΣΆ",
    "ابتجدرسكلمنوي",
    "אבגדהולמנרשת",
    "अकखगतनपमरला",
    "กขคงจชดตนบะาิ",
    "数据库搜索的是不了",
    "あいうかきアイウカ",
    "가나다라마한국어",
    "🎉🚀😀👩💻❤",
    "0123456789aAbB",
    "aeoJTé\u{301}\u{302}\u{302}\u{30c}\u{323}ộǰ\u{212b}=\u{338}≠",
    "가각나한\u{1100}\u{1102}\u{1161}\u{1161}\u{11a8}\u{11ab}",
    "かはがカハガパ\u{3099}\u{3099}\u{309a}ｶ\u{ff9e}",
    "कनरल\u{958}ऩ\u{93c}\u{93c}ाि",
];

/// Ids of tool calls. There are only a few, so that ids occur repeatedly.
const IDS: [&str; 4] = ["a", "b", "c", "d"];

/// Names of tools. Some are tools for searching the memory.
const TOOLS: [&str; 4] = [
    "read_file",
    "mcp__files__read_file",
    "memory_grep",
    "mcp__m__memory_grep",
];

const MARKS: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// Returns a random character of a text.
fn char_of(rng: &mut Rng, of: &str) -> char {
    let chars: Vec<char> = of.chars().collect();
    one(rng, &chars)
}

fn one<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

/// Generator of random texts with a small vocabulary.
struct RandomTexts {
    words: Vec<String>,
}

impl RandomTexts {
    fn new(rng: &mut Rng, letters: &str) -> Self {
        let mut word = || -> String {
            let length = 1 + rng.usize(..5);
            (0..length).map(|_| char_of(rng, letters)).collect()
        };
        let mut words: Vec<String> = (0..30).map(|_| word()).collect();
        let english = [
            "the", "went", "going", "leaves", "running", "when", "I", "kids",
        ];
        words.extend(english.map(str::to_owned));
        words.push("x".repeat(90));
        Self { words }
    }

    fn text(&self, rng: &mut Rng) -> String {
        let mut text = String::new();
        for _ in 0..rng.usize(..12) {
            let word = &self.words[rng.usize(..self.words.len())];
            text.push_str(&match rng.usize(..4) {
                0 => word.to_uppercase(),
                _ => word.clone(),
            });
            match rng.usize(..4) {
                0 => text.push(char_of(rng, MARKS)),
                1 => text.push(one(rng, &['\n', '\n', '\u{a0}', '\u{3000}', '\u{200b}'])),
                _ => text.push(' '),
            }
        }
        text
    }

    fn message(&self, rng: &mut Rng, time: i64) -> Message {
        let text = self.text(rng);
        let message = match rng.usize(..8) {
            0 => Message::note(Role::User, vec![Part::text(text)]),
            1 => {
                let word = &self.words[rng.usize(..self.words.len())];
                let arguments = RawJson::from_value(&BTreeMap::from([(word, &text)]));
                let arguments = arguments.expect("it is JSON");
                let mut call = Message::tool_call(one(rng, &IDS), one(rng, &TOOLS), arguments);
                if rng.usize(..3) == 0 {
                    call.parts.insert(0, Part::text(self.text(rng)));
                }
                call
            }
            2 => Message::tool_result(one(rng, &IDS), text),
            3 => Message::assistant(text),
            _ => Message::user(text).with_name(one(rng, &["Ann", "Ben", "Ann Lee"])),
        };
        message.with_created_at(Timestamp(time))
    }

    fn query(&self, rng: &mut Rng, texts: &[String]) -> Query {
        let text: Vec<char> = texts[rng.usize(..texts.len())].chars().collect();
        let length = 1 + rng.usize(..40);
        let mut pattern: Vec<char> = match text.is_empty() || rng.usize(..5) == 0 {
            true => self.words[rng.usize(..self.words.len())].chars().collect(),
            false => {
                let from = rng.usize(..text.len());
                text[from..text.len().min(from + length)].to_vec()
            }
        };
        if rng.usize(..3) == 0 {
            let at = rng.usize(..pattern.len() + 1);
            pattern.insert(at, char_of(rng, MARKS));
        }
        let pattern: String = pattern.into_iter().collect();
        let mode = one(rng, &MODES);
        let pattern = match mode {
            SearchMode::Regex if rng.usize(..6) == 0 => long_stretch(rng),
            SearchMode::Regex if rng.usize(..4) > 0 => expression(rng, &pattern),
            _ => pattern,
        };
        let mut query = Query::new(pattern)
            .with_mode(mode)
            .with_order(one(rng, &ORDERS))
            .with_scope(one(rng, &SCOPES))
            .with_limit(1 + rng.usize(..30));
        if rng.usize(..5) == 0 {
            query = query.with_roles([Role::User]);
        }
        if rng.usize(..5) == 0 {
            let first = 1 + rng.usize(..80) as u32;
            query.range = SeqRange::new(Seq(first), Seq(first + rng.usize(..60) as u32));
        }
        if rng.usize(..8) == 0 {
            query = query.with_since(Timestamp(rng.usize(..100) as i64 * 1_000_000_000));
        }
        if rng.usize(..8) == 0 {
            query = query.with_smart_case();
        }
        if rng.usize(..6) == 0 {
            query = query.with_tools([one(rng, &["read_file", "memory_grep", "run"])]);
        }
        query.echoes = rng.usize(..6) == 0;
        query
    }
}

/// Returns a regular expression that matches a text, and usually other texts too.
fn expression(rng: &mut Rng, text: &str) -> String {
    let mut out = String::new();
    let mut open = false;
    let escaped = |c: char| match c.is_alphanumeric() || !c.is_ascii() {
        true => c.to_string(),
        false => format!("\\x{{{:x}}}", u32::from(c)),
    };
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped_next = |chars: &mut std::str::Chars<'_>| chars.next().map(escaped);
        let escaped = escaped(c);
        match rng.usize(..12) {
            0 => out.push_str(&format!("[{escaped}0-9]")),
            1 => out.push_str(&format!("[a-d{escaped}я한]")),
            2 => {
                let next = escaped_next(&mut chars).unwrap_or_default();
                out.push_str(&format!("[{escaped}{next}]{{1,3}}"));
            }
            3 => out.push_str(&format!("(?:zz{escaped}|{escaped}|[{escaped}x]q)")),
            4 => out.push_str(&format!("x?{escaped}")),
            5 => out.push('.'),
            6 => out.push_str(&format!("\\b?{escaped}+")),
            7 if !open => {
                out.push_str(&format!("(?:нет|{escaped}"));
                open = true;
            }
            8 if open => {
                out.push_str(&format!("{escaped})"));
                open = false;
            }
            9 => out.push_str(&format!("[{escaped}-{escaped}]{{1}}")),
            _ => out.push_str(&escaped),
        }
    }
    if open {
        out.push(')');
    }
    out
}

/// Returns a regular expression for a long run of characters, usually without white space.
fn long_stretch(rng: &mut Rng) -> String {
    let chars = 10 + rng.usize(..30);
    match rng.usize(..7) {
        0 => format!(r"\S{{{chars}}}"),
        1 => format!(r"(?:\s|^)\S{{{chars},}}(?:\s|$)"),
        2 => format!(r"[^\sa1]{{{chars}}}"),
        3 => format!(r"(?:\w+[^\w\s]){{{}}}", chars / 4),
        4 => format!(r"\w\S{{{chars}}}|x{{{}}}|\S{{60,200}}", 80 + chars),
        5 => format!("[^é1]{{{chars}}}"),
        _ => format!(r"\S+(?:x|\S\s?){{{chars}}}"),
    }
}

/// Reads all pages of the answer to a query.
pub(crate) async fn pages(search: &dyn Search, chat: ConversationId, query: &Query) -> Vec<Hits> {
    let (mut query, mut pages) = (query.clone(), Vec::new());
    loop {
        let page = search.search(chat, &query).await.expect("a search answers");
        let cursor = page.cursor.clone();
        pages.push(page);
        match cursor {
            Some(cursor) => query = query.with_cursor(cursor),
            None => return pages,
        }
    }
}

/// Checks that a search by the store's index gives the same answers as a scan of the log. The conversation grows, is
/// indexed from time to time, gets summaries, is forked, and is erased in part. For each query all pages must have the
/// same hits, scores and snippets, whichever part is indexed. The index must also equal the index that its own check
/// builds.
///
/// # Panics
/// If an answer differs, or if the index is not sound.
pub async fn index_answers_as_a_scan<S: FullStore>(store: Arc<S>, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let search = SegmentSearch::new(Arc::clone(&store));
    let scan = SegmentSearch::without_index(Arc::clone(&store));
    let (mut by_index, mut asked) = (0, 0);
    for (script, letters) in SCRIPTS.iter().enumerate() {
        let words = RandomTexts::new(&mut rng, letters);
        let chat = Chat::root(&*store, &format!("{seed} {script}")).await;
        let (mut chats, mut texts) = (vec![chat], vec![String::from("a")]);
        let mut begun: Option<(ConversationId, [Query; 2])> = None;
        let mut time = 0;
        for step in 0..16_u32 {
            let chat = one(&mut rng, &chats);
            let mut entries = Vec::new();
            for _ in 0..1 + rng.usize(..25) {
                time += [1_000_000, 5_000_000_000][usize::from(rng.usize(..6) == 0)];
                let message = words.message(&mut rng, time);
                texts.extend(message.parts.first().map(|part| {
                    let mut all = String::new();
                    part.visit_texts(&mut |text| all.push_str(&text));
                    all
                }));
                entries.push(NewEntry::new(message, 3));
            }
            let append = batch(AppendAt::Any, entries);
            store
                .append(chat.id, &append)
                .await
                .expect("it is appended");
            let info = chat.info().await;
            let head = info.head.0;
            if rng.usize(..2) == 0 {
                let first = head.saturating_sub(rng.usize(..6) as u32);
                let first = first.max(info.own_first().0);
                let text = words.text(&mut rng) + &step.to_string();
                chat.show_leaf(&format!("view {step}"), range(first, head), &text)
                    .await;
            }
            if rng.usize(..9) == 0 {
                let at = 1 + rng.usize(..head as usize) as u32;
                let key = format!("{seed} {script} {step}");
                chats.push(match rng.usize(..3) {
                    0 => {
                        let (parent, at, call) = (chat.id, Seq(at), None);
                        let spawn = Origin::Spawn { parent, at, call };
                        Chat::open(&*store, &new_conversation(&key, spawn)).await
                    }
                    _ => chat.fork(&key, at).await,
                });
            }
            if rng.usize(..12) == 0 {
                let at = 1 + rng.usize(..head as usize) as u32;
                let erase = Erase::range(range(at, at), "test", Timestamp(time));
                if let Err(error) = store.erase(chat.id, &erase).await {
                    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                }
            }
            if rng.usize(..3) > 0 {
                let made = extend_index(&*store, chat.id, u64::MAX).await;
                made.expect("it is indexed");
            }
            if rng.usize(..15) == 0 {
                let made = rebuild_index(&*store, chat.id).await;
                made.expect("it is indexed");
            }
            same_snapshot(one(&mut rng, &chats)).await;
            for _ in 0..8 {
                let chat = one(&mut rng, &chats).id;
                let query = words.query(&mut rng, &texts);
                let asked_of = [(&search as &dyn Search, query.clone()), (&scan, query)];
                by_index += usize::from(compare(asked_of, chat).await);
                asked += 1;
            }
            // The first page was read before the conversation grew. The other pages are read after it.
            if let Some((chat, [by_index, by_scan])) = begun.take() {
                compare([(&search, by_index), (&scan, by_scan)], chat).await;
            }
            let (chat, query) = (one(&mut rng, &chats).id, words.query(&mut rng, &texts));
            let query = query.with_limit(1);
            let next = [
                behind_first(&search, chat, &query).await,
                behind_first(&scan, chat, &query).await,
            ];
            if let [Some(by_index), Some(by_scan)] = next {
                begun = Some((chat, [by_index, by_scan]));
            }
        }
        for chat in chats {
            let found = check_index(&*store, chat.id).await.expect("it is checked");
            assert_eq!(found.damage, [""; 0]);
        }
    }
    assert!(
        by_index * 9 > asked * 4,
        "{by_index} of {asked} by the index"
    );
}

#[derive(Debug)]
struct Merging<S> {
    inner: Arc<S>,
    chat: ConversationId,
    reads: AtomicUsize,
}

#[async_trait]
impl<S: FullStore> Layer for Merging<S> {
    fn inner(&self) -> &dyn FullStore {
        &*self.inner
    }

    async fn before_read(&self) {
        if self.reads.fetch_add(1, Ordering::Relaxed) == 1 {
            grow_index(&*self.inner, self.chat).await;
        }
    }
}

/// Appends the messages of one segment and indexes them. Every fourth time, segments of the index are merged.
async fn grow_index<S: FullStore + ?Sized>(store: &S, chat: ConversationId) {
    Chat::new(store, chat).fill(16).await;
    let made = extend_index(store, chat, u64::MAX).await;
    assert_eq!(made.expect("it is indexed").messages, 16);
}

/// Checks that an index is not reported as damaged if another process changes it while it is checked.
///
/// # Panics
/// If damage is reported for a sound index.
pub async fn an_index_is_checked_while_it_changes<S: FullStore>(store: Arc<S>) {
    let chat = Chat::root(&*store, "changing").await.id;
    for _ in 0..3 {
        grow_index(&*store, chat).await;
    }
    let changing = Layered(Merging {
        inner: store,
        chat,
        reads: AtomicUsize::new(0),
    });
    let check = check_index(&changing, chat).await.expect("it is checked");
    assert_eq!(check.damage, [""; 0]);
    assert_eq!((check.segments, check.documents), (1, 64));
}

/// Asserts that the index snapshot, which is read in one request, equals the separate reads.
async fn same_snapshot<S: FullStore>(chat: Chat<'_, S>) {
    let index = chat.store.index().expect("the store keeps an index");
    let found = index.index_snapshot(chat.id).await.expect("it is read");
    let info = chat.info().await;
    assert_eq!(found.logs.len(), info.segments.len());
    for (log, part) in found.logs.iter().zip(&info.segments) {
        let state = index.index_state(part.source).await;
        assert_eq!(*log, state.expect("it is read").segments);
    }
    assert_eq!(found.conversation, info);
    let own = chat.store.own_summaries(chat.id, None, usize::MAX).await;
    let last = own.expect("they are read").items.pop();
    assert_eq!(found.last_summary, last.map(|last| last.id));
}

/// Returns the query for the pages after the first page of an answer. Returns `None` if there is only one page.
async fn behind_first(search: &dyn Search, chat: ConversationId, query: &Query) -> Option<Query> {
    let page = search.search(chat, query).await.expect("a search answers");
    Some(query.clone().with_cursor(page.cursor?))
}

/// Asserts that two searches give the same answer to a query. Returns whether the first search used an index.
async fn compare(asked: [(&dyn Search, Query); 2], chat: ConversationId) -> bool {
    let [(search, query), (other, others)] = &asked;
    let (found, expected) = (
        pages(*search, chat, query).await,
        pages(*other, chat, others).await,
    );
    assert_eq!(found.len(), expected.len(), "{query:?}");
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.hits, expected.hits, "{query:?}, {}", found.strategy);
        assert_eq!(found.fallback, expected.fallback, "{query:?}");
        assert_eq!(found.complete, expected.complete, "{query:?}");
    }
    found.iter().all(|page| page.strategy.ends_with("-index"))
}

/// Checks that the index grows by sixteen messages at a time, has few segments for any number of messages, and refuses
/// a segment that does not fit.
///
/// # Panics
/// If the store has no index, or accepts a segment that does not fit.
pub async fn index_segments_are_few<S: FullStore>(store: Arc<S>) {
    let chat = Chat::root(&*store, "few").await.id;
    let index = store.index().expect("the store keeps an index");
    let none = ConversationId(chat.0 + 1);
    refused(index.index_snapshot(none).await, ErrorKind::NotFound);
    for _ in 0..300 {
        grow_index(&*store, chat).await;
    }
    let state = index.index_state(chat).await.expect("its state is read");
    let segments = state.of(IndexedKind::Messages);
    let documents: Vec<u32> = segments.map(|one| one.documents).collect();
    // Segments are merged by fours, and 300 in base 4 is 10230: each digit gives the number of segments of a size.
    assert_eq!(documents, [4096, 256, 256, 64, 64, 64]);
    let again = extend_index(&*store, chat, u64::MAX).await;
    let again = again.expect("it is indexed");
    assert_eq!((again.messages, again.summaries), (0, 0));
    let new = NewIndexSegment {
        kind: IndexedKind::Messages,
        first: 1,
        last: 16,
        documents: 16,
        format: "other",
        chunks: &[],
        erasures: state.erasures,
        replaces: &[],
    };
    let put = async |first, last, erasures, replaces| {
        let new = NewIndexSegment {
            first,
            last,
            erasures,
            replaces,
            ..new.clone()
        };
        index
            .put_index_segment(chat, &new)
            .await
            .expect("an answer")
    };
    for (first, last, erasures, replaces) in [
        (1, 16, 0, &[][..]),
        (4_802, 4_817, 0, &[]),
        (4_800, 4_816, 0, &[]),
        (4_801, 4_800, 0, &[]),
        (4_801, 4_816, 1, &[]),
        (4_801, 4_816, 0, &[u64::MAX]),
    ] {
        assert_eq!(put(first, last, erasures, replaces).await, None);
    }
    let unchanged = index.index_state(chat).await;
    assert_eq!(unchanged.expect("its state is read"), state);
    // Storing a segment returns the state with this segment. Its chunks are read all at once or by key.
    let chunk = |key: u8| Chunk {
        key: vec![key],
        data: vec![key; 3],
    };
    let chunks = [chunk(1), chunk(2)];
    let new = NewIndexSegment {
        first: 4_801,
        last: 4_816,
        chunks: &chunks,
        ..new.clone()
    };
    let put = index.put_index_segment(chat, &new).await;
    let put = put.expect("an answer").expect("it is kept");
    let state = index.index_state(chat).await;
    assert_eq!(put, state.expect("its state is read"));
    let last = put.of(IndexedKind::Messages).next_back();
    let id = last.expect("a segment").id;
    let whole = index.index_chunks(id, None).await;
    assert_eq!(whole.expect("its chunks"), chunks);
    let second = index.index_chunks(id, Some(&[vec![2]])).await;
    assert_eq!(second.expect("one chunk"), [chunk(2)]);
}

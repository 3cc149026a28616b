//! Measures the time of searches, compared with SQLite's own full-text index over the same messages.
//!
//! `cargo bench -p store-sqlite --bench search` searches a log of 10,000 messages. With `-- 100000 1000000` it searches
//! logs of these lengths. Figures are medians of 21 runs of a question, or of the runs that begin within five seconds.
//! `--quick` makes three runs, and `--test` uses a log of 1,000 messages. Other flags have no effect.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memory_model::{ConversationId, Message, Timestamp};
use memory_search::{HitOrder, Query, Search as _, SearchMode, SegmentSearch, extend_index};
use memory_store::{Append, AppendAt, Maintain as _, NewConversation, NewEntry, Store as _};
use store_sqlite::SqliteStore;
use token_estimate::EstimatorId;

/// Returns texts of about 220 tokens: 150 words of about 20,000 by Zipf's law, a unique number, and in every second
/// text the word `harbour`.
fn texts() -> impl Iterator<Item = String> {
    let syllables = [
        "ba", "co", "den", "fi", "gur", "ha", "in", "jo", "kal", "le", "mi", "nor", "or", "pe",
        "qua", "ri",
    ];
    let mut rng = fastrand::Rng::with_seed(7);
    (0_u64..).map(move |n| {
        let mut text = String::new();
        for _ in 0..150 {
            // All powers of two are equally likely.
            let bits = rng.u64(..15);
            let mut word = (1_u64 << bits) + rng.u64(..1 << bits);
            while word > 0 {
                text.push_str(syllables[(word % 16) as usize]);
                word /= 16;
            }
            text.push(if rng.u8(..12) == 0 { '\n' } else { ' ' });
        }
        if n % 2 == 0 {
            text.push_str("harbour ");
        }
        let _ = write!(text, "needle{n}x");
        text
    })
}

/// Maximum time in which runs of one question begin.
const LONGEST: Duration = Duration::from_secs(5);

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

struct Asked {
    name: &'static str,
    questions: Vec<Question>,
}

struct Question {
    query: Query,
    /// The same question for the full-text index: its match expression, and the order of its answer.
    fts: Option<(&'static str, String)>,
}

/// Returns words each of which occurs in one message.
fn rare_words(count: usize) -> Vec<String> {
    let mut rng = fastrand::Rng::with_seed(11);
    let mut word = || format!("needle{}x", rng.usize(..count));
    (0..7).map(|_| word()).collect()
}

fn questions(count: usize) -> Vec<Asked> {
    let prose = |pattern: &str| Query::new(pattern).with_mode(SearchMode::Prose);
    let words = |pattern: &str| Query::new(pattern).with_mode(SearchMode::Words);
    let regex = |pattern: &str| Query::new(pattern).with_mode(SearchMode::Regex);
    let question = |query: Query, fts| Question {
        query: query.with_limit(50),
        fts,
    };
    let asked = |name, query, fts| Asked {
        name,
        questions: vec![question(query, fts)],
    };
    let (best, newest) = ("order by rank", "order by rowid desc");
    let rare = |name, query: &dyn Fn(&str) -> Query| {
        let of = |word: String| question(query(&word), Some((best, word)));
        Asked {
            name,
            questions: rare_words(count).into_iter().map(of).collect(),
        }
    };
    // All runs of three characters of this word are in other messages too.
    let repeating = format!("needle{}x", count / 3);
    vec![
        rare("rare words, literally", &|word| Query::new(word)),
        asked(
            "one of repeated characters",
            Query::new(repeating.as_str()),
            Some((best, repeating.clone())),
        ),
        rare("rare words", &words),
        asked(
            "word in half, by relevance",
            prose("harbour"),
            Some((best, "harbour".into())),
        ),
        asked(
            "word in half, all words",
            words("harbour"),
            Some((best, "harbour".into())),
        ),
        asked(
            "word in half, newest first",
            words("harbour").with_order(HitOrder::Newest),
            Some((newest, "harbour".into())),
        ),
        asked(
            "question of six words",
            prose("when did the harbour norden open"),
            Some((best, "harbour OR norden OR open".into())),
        ),
        asked(
            "regex with a literal",
            regex(&format!("needle{}[xy]", count / 3)),
            None,
        ),
        asked("regex of two words", regex("needle7[x]|harbours"), None),
        asked("regex of classes", regex("[q-z]{9}"), None),
        asked("regex of a long stretch", regex(r"\S{40}"), None),
        asked("regex of anything", regex(r"\w{13}\s\d"), None),
        asked("no such text", Query::new("zzzyx"), None),
    ]
}

async fn fill(store: &SqliteStore, count: usize) -> (ConversationId, u64) {
    let estimator: EstimatorId = "anna@2".parse().unwrap();
    let new = NewConversation::root("bench", estimator.clone(), Timestamp(1));
    let chat = store.open(&new).await.unwrap().id;
    let (mut bytes, mut all) = (0, texts().take(count).enumerate().peekable());
    while all.peek().is_some() {
        let mut entries = Vec::new();
        for (n, text) in all.by_ref().take(640) {
            bytes += text.len() as u64;
            let message = Message::user(text).with_created_at(Timestamp(n as i64 * 60_000_000));
            entries.push(NewEntry {
                message,
                tokens: 220,
                clocked: false,
            });
        }
        let append = Append {
            at: AppendAt::Any,
            estimator: estimator.clone(),
            entries,
            now: Timestamp(2),
        };
        store.append(chat, &append).await.unwrap();
    }
    (chat, bytes)
}

fn full_text(folder: &std::path::Path, count: usize) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(folder.join("fts.db")).unwrap();
    db.execute_batch("pragma journal_mode = wal; create virtual table t using fts5(text, tokenize = 'porter unicode61')")
        .unwrap();
    let tx = db.unchecked_transaction().unwrap();
    {
        let mut insert = tx.prepare("insert into t (text) values (?)").unwrap();
        for text in texts().take(count) {
            insert.execute([text]).unwrap();
        }
    }
    tx.commit().unwrap();
    db
}

async fn measure(count: usize, times: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.db");
    let store = Arc::new(SqliteStore::open(&path).await.unwrap());
    let (chat, bytes) = fill(&store, count).await;
    let before = {
        store.close().await.unwrap();
        std::fs::metadata(&path).unwrap().len()
    };
    let store = Arc::new(SqliteStore::open(&path).await.unwrap());
    let begun = Instant::now();
    extend_index(&*store, chat, u64::MAX).await.unwrap();
    let indexed = begun.elapsed();
    store.close().await.unwrap();
    let after = std::fs::metadata(&path).unwrap().len();
    println!(
        "{count} messages: indexing {:.1} us a message; database {:.2} of the text's bytes, with the index {:.2}",
        indexed.as_secs_f64() * 1e6 / count as f64,
        before as f64 / bytes as f64,
        after as f64 / bytes as f64,
    );
    let store = Arc::new(SqliteStore::open(&path).await.unwrap());
    let search = SegmentSearch::new(Arc::clone(&store));
    let fts = full_text(folder.path(), count);
    for Asked { name, questions } in questions(count) {
        let (all, mut ours) = (Instant::now(), Vec::new());
        for question in &questions {
            for _ in 0..times {
                if all.elapsed() > LONGEST {
                    break;
                }
                let begun = Instant::now();
                let hits = search.search(chat, &question.query).await.unwrap();
                ours.push(begun.elapsed());
                let _ = black_box(hits);
            }
        }
        let (all, mut theirs) = (Instant::now(), Vec::new());
        for (order, text) in questions.into_iter().filter_map(|question| question.fts) {
            let sql = format!(
                "select rowid, snippet(t, 0, '', '', '', 32) from t where t match ? {order} limit 50"
            );
            let mut statement = fts.prepare(&sql).unwrap();
            for _ in 0..times {
                if all.elapsed() > LONGEST {
                    break;
                }
                let begun = Instant::now();
                let rows = statement
                    .query_map([&text], |row| row.get::<_, i64>(0))
                    .unwrap();
                black_box(rows.collect::<Vec<_>>());
                theirs.push(begun.elapsed());
            }
        }
        let first = ours[0].as_secs_f64() * 1e3;
        let ours = median(ours);
        let theirs = match theirs.is_empty() {
            true => String::from("-"),
            false => {
                let theirs = median(theirs);
                format!("{theirs:.3} ms, {:.1} times ours", theirs / ours)
            }
        };
        println!("  {name:<28} {ours:>9.3} ms (first {first:.1})   full-text index {theirs}");
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let named = |flag: &str| words.iter().any(|word| word == flag);
    let mut counts: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let times = if named("--test") || named("--quick") {
        3
    } else {
        21
    };
    if counts.is_empty() {
        counts.push(if named("--test") { 1_000 } else { 10_000 });
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    for count in counts {
        runtime.block_on(measure(count, times));
    }
}

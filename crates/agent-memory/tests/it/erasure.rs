//! Erasures of random ranges in real transcripts. No erased word is found anywhere.

use std::collections::BTreeSet;

use agent_memory::{
    Budget, Memory, Message, Mode, Seq, SeqRange, Session, SessionKey,
    retrieval::{ExpandArgs, GrepArgs},
    search::SearchMode,
};

use crate::corpus::{corpus, is_deep, parse, transcripts};
use crate::laws::random::Random;
use crate::support::Inspect as _;

/// Number of erasures in each session of each store.
const ERASURES: u32 = 8;
/// Number of words to search for after each erasure.
const WORDS: usize = 24;

fn json(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

/// Returns the long words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| (10..60).contains(&word.len()))
}

/// Returns the data of an erased message that stays: its ids and the data of its position.
fn kept(message: &Message) -> String {
    let mut kept = message.clone();
    (kept.parts, kept.meta, kept.name) = (Vec::new(), None, None);
    json(&kept)
}

#[derive(Default)]
struct Counts {
    erasures: u32,
    summaries: u64,
    words: usize,
}

async fn erase_and_look(session: &Session, random: &mut Random, counts: &mut Counts) {
    let head = session.info().await.unwrap().conversation.head;
    if head < Seq(4) {
        return;
    }
    session.compact(Mode::Full).await.unwrap();
    let before = session.entries().await.unwrap();
    let mut gone: BTreeSet<Seq> = BTreeSet::new();
    for _ in 0..ERASURES {
        let first = 1 + random.below(head.0.into()) as u32;
        let last = (first + random.below(12) as u32).min(head.0);
        let range = SeqRange::new(Seq(first), Seq(last)).unwrap();
        let planned = session.erase(range, None).await.unwrap();
        let erased = session.erase(range, "asked for").await.unwrap();
        assert_eq!(planned, erased);
        counts.erasures += 1;
        counts.summaries += erased.summaries;
        gone.extend((first..=last).map(Seq));
        // The view is compacted again, of what is left.
        session.compact(Mode::Full).await.unwrap();
    }
    let left: String = before
        .iter()
        .map(|entry| match gone.contains(&entry.seq) {
            true => kept(&entry.message),
            false => json(&entry.message),
        })
        .collect();
    // A search ignores case.
    let left = left.to_lowercase();
    let known: BTreeSet<&str> = words(&left).collect();
    let is_left = |word: &str| known.contains(word) || left.contains(word);
    let mut looked_for: BTreeSet<&str> = BTreeSet::new();
    let texts: Vec<String> = before
        .iter()
        .filter(|entry| gone.contains(&entry.seq))
        .map(|entry| json(&entry.message))
        .collect();
    for text in &texts {
        let unknown = words(text).filter(|word| !is_left(&word.to_lowercase()));
        looked_for.extend(unknown.take(WORDS));
    }
    counts.words += looked_for.len();

    let after = session.entries().await.unwrap();
    let mut found = String::new();
    for (old, new) in before.iter().zip(&after) {
        assert_eq!(
            (old.hash, old.tokens, old.running),
            (new.hash, new.tokens, new.running)
        );
        if !gone.contains(&old.seq) {
            assert_eq!(old.message, new.message);
        }
        found.push_str(&json(&new.message));
    }
    assert_eq!(before.len(), after.len());
    let tree = session.tree(usize::MAX).await.unwrap();
    found.push_str(&tree.to_string());
    for budget in [2_000, 16_000, 200_000] {
        let context = session.assemble(Budget::tokens(budget)).await.unwrap();
        assert!(context.tokens <= budget);
        for message in context.to_messages() {
            found.push_str(&json(&message));
        }
    }
    let retrieval = session.retrieval();
    let some: Vec<Seq> = gone.iter().copied().step_by(5).take(8).collect();
    for seq in some {
        let args = ExpandArgs::from(format!("message:{seq}").as_str());
        if let Ok(answer) = retrieval.expand(args).await {
            found.push_str(&serde_json::to_string(&answer).unwrap());
        }
    }
    for word in looked_for.iter().step_by(9).take(6) {
        let args = GrepArgs {
            mode: SearchMode::Literal,
            ..GrepArgs::new(*word)
        };
        let hits = retrieval.grep(args).await.unwrap();
        assert!(hits.hits.is_empty(), "{}: {word}: {hits:?}", session.key());
    }
    for word in &looked_for {
        assert!(
            !found.contains(word),
            "{}: {word} is still there",
            session.key()
        );
    }
    let report = session.verify().await.unwrap();
    assert!(report.is_ok(), "{report:?}");
}

#[tokio::test]
async fn nothing_that_was_erased_is_found() {
    let Some(corpus) = corpus() else { return };
    let folder = tempfile::tempdir().unwrap();
    for sqlite in [false, true] {
        let (mut random, mut counts) = (Random(11), Counts::default());
        for (number, path) in transcripts(&corpus).into_iter().enumerate() {
            let builder = Memory::builder();
            let memory = match sqlite {
                true => builder.sqlite(folder.path().join(format!("{number}.db"))),
                false => builder.store(agent_memory::store::InMemoryStore::new()),
            };
            let memory = memory.open().await.unwrap();
            let transcript = parse(&std::fs::read(&path).unwrap());
            let imported = memory.import(&transcript).await.unwrap().sessions;
            for one in imported {
                let session = memory.get_session(one.session).await.unwrap();
                erase_and_look(&session, &mut random, &mut counts).await;
            }
            assert!(memory.verify().await.unwrap().is_ok());
            memory.close().await.unwrap();
        }
        let (erasures, words, summaries) = match is_deep() {
            true => (200, 1_000, 100),
            false => (60, 300, 30),
        };
        assert!(
            counts.erasures >= erasures,
            "only {} erasures",
            counts.erasures
        );
        assert!(counts.words >= words && counts.summaries >= summaries);
    }
}

#[tokio::test]
async fn a_deleted_session_says_nothing_and_can_be_told_apart() {
    let memory = Memory::in_memory().await.unwrap();
    let session = memory.session(SessionKey::new("chat")).await.unwrap();
    for n in 1..=30 {
        let text = format!("Bucephalus eats {n} bales of hay, and a bucket of oats.");
        session.ingest(Message::user(text)).await.unwrap();
    }
    session.compact(Mode::Full).await.unwrap();
    let planned = session.delete(None).await.unwrap();
    assert_eq!(planned.entries, 30);
    assert!(session.delete(" ").await.is_err(), "a reason is needed");
    let erased = session.delete("the horse was sold").await.unwrap();
    assert_eq!(erased.entries, 30);
    let context = session.assemble(Budget::tokens(4_000)).await.unwrap();
    let said: String = context.to_messages().iter().map(json).collect();
    assert!(!said.contains("Bucephalus"), "{said}");
    assert!(said.contains("[erased]"), "{said}");
    assert!(session.verify().await.unwrap().is_ok());
    let erasures = session
        .memory()
        .store()
        .erasures(session.id())
        .await
        .unwrap();
    assert_eq!(erasures.entries[0].reason, "the horse was sold");
}

//! Cases of erasing words.

use std::time::Duration;

use memory_model::{
    ConversationId, Hash, Message, RawJson, Seq, SeqRange, SpanBody, SummaryId, Timestamp,
};
use memory_store::{
    Chunk, Claim, ConversationRef, Draft, ERASED, Erase, Erased, ErasedRange, ErrorKind, FullStore,
    IndexedKind, JobKey, LeaseUpdate, NewConversation, NewIndexSegment, Origin, Owner, PREPARED,
    Publish, Published, Store, erase,
};

use crate::builders::{new_conversation, range, refused, showing, sound};
use crate::chat::{Chat, Source};

const SECRET: &str = "the horse is called Bucephalus";

fn said(n: u32) -> Message {
    let text = match n % 3 {
        0 => format!("message {n}: {SECRET}, and nobody else may know it"),
        _ => format!("message {n}: a line about the weather of this day"),
    };
    let meta = format!(r#"{{"id":{n},"folder":"/home/bucephalus/{}"}}"#, n % 3);
    let message = Message::user(text).with_external_id(format!("e{n}"));
    message.with_meta(json(&meta))
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

fn request(first: u32, last: u32) -> Erase {
    Erase::range(range(first, last), "they asked for it", Timestamp(7))
}

impl<S: Store + ?Sized> Chat<'_, S> {
    async fn erase(&self, request: &Erase) -> Erased {
        let erased = erase(self.store, &ConversationRef::Id(self.id), request).await;
        erased.expect("words are erased")
    }
}

impl<S: FullStore> Chat<'_, S> {
    /// Keeps a state at the end of a range of the own log, if the store has an index.
    async fn keep_state(&self, at: SeqRange) {
        let Some(index) = self.store.index() else {
            return;
        };
        let data = b"Bucephalus".to_vec();
        let new = NewIndexSegment {
            kind: IndexedKind::States,
            first: at.first.0,
            last: at.last.0,
            documents: 0,
            format: "a test",
            chunks: &[Chunk { key: vec![1], data }],
            erasures: 0,
            replaces: &[],
        };
        let put = index.put_index_segment(self.id, &new).await;
        assert!(put.expect("it is kept").is_some());
    }

    /// Returns the ranges of the kept states.
    async fn kept_states(&self) -> Vec<SeqRange> {
        let index = self.store.index().expect("it has an index");
        let state = index.index_state(self.id).await.expect("it is read");
        let kept = state.of(IndexedKind::States);
        kept.map(|one| range(one.first, one.last)).collect()
    }
}

/// Checks that an erasure removes the words of the entries and of all summaries made from them, and that all other data
/// stay and can be verified.
pub async fn an_erasure_removes_words_and_derived_summaries<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    chat.append((1..=20).map(said)).await;
    let untouched = chat.show_leaf("dag", range(1, 2), "dry").await;
    let leaf = chat
        .show_leaf("dag", range(3, 6), "A horse, Bucephalus.")
        .await;
    let above = [Source::Summary(&untouched), Source::Summary(&leaf)];
    let above = chat.show_summary("dag", &above, "Still Bucephalus.").await;
    let key = JobKey("leaf 7-8".to_owned());
    let owner = Owner("somebody".to_owned());
    let claim = store.claim(chat.id, &key, &owner, Duration::from_secs(60), 0);
    let Claim::Granted(fence) = claim.await.unwrap() else {
        panic!("nobody else holds it");
    };
    let draft = LeaseUpdate::Prepared(Draft(json(r#"{"text":"Bucephalus"}"#)));
    store.settle(&fence, &draft).await.unwrap();

    let request = request(3, 3);
    let dry = request.clone().with_dry_run(true);
    let planned = chat.erase(&dry).await;
    let counts = |erased: &Erased| [erased.entries, erased.summaries, erased.drafts];
    assert_eq!(counts(&planned), [1, 2, 1]);
    let entries = chat.entries().await;
    assert!(
        entries[2].text().contains(SECRET),
        "a dry run changes nothing"
    );

    assert_eq!(chat.erase(&request).await, planned);
    let after = chat.entries().await;
    for (old, new) in entries.iter().zip(&after) {
        assert_eq!(
            (old.hash, old.tokens, old.running),
            (new.hash, new.tokens, new.running)
        );
        if new.seq == Seq(3) {
            assert_eq!(new.text(), ERASED);
            assert_eq!((&new.message.meta, &new.message.name), (&None, &None));
            assert_eq!(new.message.external_id, old.message.external_id);
        } else {
            assert_eq!(old, new);
        }
    }
    let ids: Vec<SummaryId> = [&untouched, &leaf, &above].map(|s| s.id.clone()).into();
    let found = chat.summaries(&ids).await;
    let found: Vec<_> = found.into_iter().flatten().collect();
    let now: Vec<&str> = found.iter().map(|summary| summary.text()).collect();
    assert_eq!(now, ["dry", ERASED, ERASED]);
    assert_eq!(found[1].hash, leaf.hash, "the hash stays");

    // An erased summary is not reused. The view shows the messages until a new one is made.
    let made = chat.summary_by_source(leaf.source_hash, &leaf.recipe).await;
    assert_eq!(made, None);
    let spans = chat.spans("dag").await;
    assert!(
        spans.iter().all(|span| span.body == SpanBody::Raw),
        "{spans:?}"
    );
    let lost = store.settle(&fence, &LeaseUpdate::Failed).await;
    refused(lost, ErrorKind::Stale);

    let erasures = chat.erasures().await;
    assert_eq!(erasures.entries.len(), 1);
    assert_eq!(erasures.entries[0].reason, "they asked for it");
    assert!(erasures.covers(Seq(3)) && !erasures.covers(Seq(4)));
    assert_eq!(erasures.summaries, [leaf.id, above.id].into());

    // The log continues with its chain hash, and repeating the erasure has no effect.
    chat.append([said(21)]).await;
    assert_eq!(counts(&chat.erase(&request).await), [0; 3]);
    sound(store).await;

    // An erased entry is recognised as a duplicate if it is appended again.
    let told = chat.append([said(3)]).await;
    assert_eq!(told.head, Seq(21));
}

/// Checks that a summary is not published if its sources were read before an erasure, and that a job is not granted if
/// its words were read before an erasure.
pub async fn an_erasure_outdates_earlier_reads<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    chat.append((1..=20).map(said)).await;
    let fork = chat.fork("fork", 10).await;
    let leaf = chat.leaf(range(3, 6), "A horse, Bucephalus.").await;
    let publish = showing("dag", &leaf);
    let (prepared, value) = (format!("{PREPARED}dag"), json("[1]"));
    let put = store.put_state(chat.id, &prepared, 0, Some(&value)).await;
    put.unwrap();

    chat.erase(&request(3, 3)).await;

    assert_eq!(chat.publish(&publish).await, Published::Outdated);
    assert_eq!(chat.summary_by_id(&leaf.id).await, None);
    let (job, owner) = (JobKey("leaf 3-6".to_owned()), Owner("me".to_owned()));
    let hour = Duration::from_secs(3_600);
    for (chat, seen, outdated) in [(chat.id, 0, true), (chat.id, 1, false), (fork.id, 0, true)] {
        let claim = store.claim(chat, &job, &owner, hour, seen).await;
        assert_eq!(claim.unwrap() == Claim::Outdated, outdated, "{chat} {seen}");
    }
    assert_eq!(store.state(chat.id, &prepared).await.unwrap(), None);
    assert_eq!(chat.snapshot("dag").await.erasures, 1);
    let publish = Publish {
        erasures: 1,
        ..publish
    };
    let outcome = chat.publish(&publish).await;
    assert!(matches!(outcome, Published::Done(_)), "{outcome:?}");
}

/// Checks that a range shared with forks is erased in all of them, and in their summaries.
pub async fn an_erasure_reaches_every_fork_that_shows_it<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    chat.append((1..=9).map(said)).await;
    let early = chat.fork("early", 2).await;
    let late = chat.fork("late", 7).await;
    late.append((10..=14).map(said)).await;
    late.show_leaf("dag", range(6, 9), "It is Bucephalus.")
        .await;
    for (chat, at) in [
        (&chat, range(1, 4)),
        (&chat, range(5, 9)),
        (&late, range(8, 14)),
    ] {
        chat.keep_state(at).await;
    }

    // An erasure through the fork, over shared positions and its own.
    let erased = late.erase(&request(5, 8)).await;
    let named = |ranges: &[ErasedRange]| -> Vec<String> {
        let name = |one: &ErasedRange| format!("{} {}", one.key, one.range);
        ranges.iter().map(name).collect()
    };
    assert_eq!(named(&erased.logs), ["chat 5-7", "late 8-8"]);
    assert_eq!(named(&erased.seen_by), ["chat 5-7", "late 5-8"]);
    assert_eq!(erased.summaries, 1);
    for (chat, gone) in [(early, &[][..]), (chat, &[5, 6, 7]), (late, &[5, 6, 7, 8])] {
        let entries = chat.entries().await;
        let erased = entries.iter().filter(|entry| entry.text() == ERASED);
        assert!(erased.map(|entry| &entry.seq.0).eq(gone));
    }
    // The state of a fork is of the shared messages, too.
    if store.index().is_some() {
        assert_eq!(chat.kept_states().await, [range(1, 4)]);
        assert_eq!(late.kept_states().await, []);
    }
    assert_eq!(early.erasures().await.entries, []);
    assert_eq!(late.erasures().await.entries.len(), 2);
    sound(store).await;

    // A later fork has the same content as its parent.
    let later = chat.fork("later", 6).await;
    assert!(later.erasures().await.covers(Seq(6)));
}

/// Checks that the own log of a deleted conversation has no words left, and that the log it shares with its parent
/// stays.
pub async fn a_deleted_conversation_keeps_its_place<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    chat.append((1..=6).map(said)).await;
    let (parent, at) = (chat.id, Seq(4));
    let fork = NewConversation {
        title: Some("Bucephalus".to_owned()),
        meta: Some(json(r#"{"horse":"Bucephalus"}"#)),
        ..new_conversation("fork", Origin::Fork { parent, at })
    };
    let fork = Chat::open(store, &fork).await;
    fork.append((7..=9).map(said)).await;
    let value = json(r#""Bucephalus""#);
    let put = store.put_state(fork.id, "pin", 0, Some(&value)).await;
    put.unwrap();
    let request = Erase::all("over", Timestamp(9));
    let erased = fork.erase(&request).await;
    assert_eq!((erased.entries, erased.logs.len()), (3, 1));
    let found = fork.info().await;
    assert!(found.archived && found.title.is_none() && found.meta.is_none());
    assert!(found.head == Seq(7) && found.chain != Hash::ZERO);
    assert_eq!(store.state(fork.id, "pin").await.unwrap(), None);
    let said = chat.texts().await;
    assert!(said.iter().all(|text| text != ERASED));
    sound(store).await;

    // A conversation without any word can be deleted too.
    let empty = Chat::root(store, "empty").await;
    assert_eq!(empty.erase(&request).await.entries, 0);
}

/// Checks that invalid erasures are refused with a reason and have no effect.
pub async fn bad_erasures_are_refused<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    chat.append((1..=3).map(said)).await;
    for (first, last, reason) in [(1, 4, "x"), (9, 9, "x"), (1, 2, " ")] {
        let request = Erase::range(range(first, last), reason, Timestamp(1));
        refused(store.erase(chat.id, &request).await, ErrorKind::Invalid);
    }
    let missing = ConversationId(77);
    let request = Erase::all("x", Timestamp(1));
    refused(store.erase(missing, &request).await, ErrorKind::NotFound);
    refused(store.erasures(missing).await, ErrorKind::NotFound);
    assert!(chat.texts().await[2].contains(SECRET));
}

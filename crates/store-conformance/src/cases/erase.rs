//! Erasing words on purpose.

use std::time::Duration;

use memory_model::{Message, RawJson, Seq, SessionKey, SummaryId, Timestamp, ViewName};
use memory_store::{
    Claim, ConversationRef, Draft, ERASED, Erase, ErrorKind, JobKey, LeaseUpdate, LogRead,
    NewConversation, Origin, Owner, PREPARED, Publish, Published, Store, erase, read_entries,
};

use crate::Fixture;
use crate::builders::{
    Source, append, clipped, publish_summary, range, raw, replace, root, shown, sound,
    spans_of_view, summary_of, texts,
};

const SECRET: &str = "the horse is called Bucephalus";

fn said(n: u32) -> Message {
    let text = match n % 3 {
        0 => format!("message {n}: {SECRET}, and nobody else may know it"),
        _ => format!("message {n}: a line about the weather of this day"),
    };
    let meta = format!(r#"{{"id":{n},"folder":"/home/bucephalus/{}"}}"#, n % 3);
    let mut message = Message::user(text).with_external_id(format!("e{n}"));
    message.meta = Some(RawJson::parse(meta).unwrap());
    message
}

/// Words of the entries and of all that was made from them are gone; the rest stays and verifies.
pub async fn an_erasure_takes_words_and_what_was_made_from_them<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    append(&store, chat.id, (1..=20).map(said).collect()).await;
    let untouched = summary_of(&store, chat.id, &[Source::Messages(range(1, 2))], "dry").await;
    let leaf = summary_of(
        &store,
        chat.id,
        &[Source::Messages(range(3, 6))],
        "A horse, Bucephalus.",
    )
    .await;
    publish_summary(&store, chat.id, "dag", &untouched).await;
    publish_summary(&store, chat.id, "dag", &leaf).await;
    let above = [Source::Summary(&untouched), Source::Summary(&leaf)];
    let above = summary_of(&store, chat.id, &above, "Still Bucephalus.").await;
    publish_summary(&store, chat.id, "dag", &above).await;
    let key = JobKey("leaf 7-8".to_owned());
    let owner = Owner("somebody".to_owned());
    let claim = store.claim(chat.id, &key, &owner, Duration::from_secs(60), 0);
    let memory_store::Claim::Granted(fence) = claim.await.unwrap() else {
        panic!("nobody else holds it");
    };
    let draft = Draft(RawJson::parse(r#"{"text":"Bucephalus"}"#).unwrap());
    store
        .settle(&fence, &LeaseUpdate::Prepared(draft))
        .await
        .unwrap();

    let before = store.conversation(&ConversationRef::Id(chat.id)).await;
    let request = Erase::range(range(3, 3), "they asked for it", Timestamp(7));
    let which = ConversationRef::Id(chat.id);
    let dry = request.clone().with_dry_run(true);
    let planned = erase(&store, &which, &dry).await.unwrap();
    assert_eq!(
        (planned.entries, planned.summaries, planned.drafts),
        (1, 2, 1)
    );
    let entries = read_entries(&store, chat.id, range(1, 20)).await.unwrap();
    assert!(
        entries[2].text().contains(SECRET),
        "a dry run changes nothing"
    );

    let erased = erase(&store, &which, &request).await.unwrap();
    assert_eq!(erased, planned);
    let after = read_entries(&store, chat.id, range(1, 20)).await.unwrap();
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
    let found = store.summaries(chat.id, &ids).await.unwrap();
    let found: Vec<_> = found.into_iter().flatten().collect();
    let now: Vec<&str> = found.iter().map(|summary| summary.text()).collect();
    assert_eq!(now, ["dry", ERASED, ERASED]);
    assert_eq!(found[1].hash, leaf.hash);

    // What is gone is not paid for once, but made again; the view shows the messages until then.
    let made = [(leaf.source_hash, leaf.recipe.clone())];
    assert_eq!(
        store.summaries_by_source(chat.id, &made).await.unwrap(),
        [None]
    );
    let spans = spans_of_view(&store, chat.id, "dag").await;
    assert!(
        spans.iter().all(|span| span.body == raw(range(1, 1)).body),
        "{spans:?}"
    );
    let lost = store.settle(&fence, &LeaseUpdate::Failed).await;
    assert_eq!(lost.unwrap_err().kind(), ErrorKind::Stale);

    let erasures = store.erasures(chat.id).await.unwrap();
    assert_eq!(erasures.entries.len(), 1);
    assert_eq!(erasures.entries[0].reason, "they asked for it");
    assert!(erasures.covers(Seq(3)) && !erasures.covers(Seq(4)));
    let gone: Vec<_> = erasures.summaries.into_iter().collect();
    let mut expected = vec![leaf.id.clone(), above.id.clone()];
    expected.sort();
    assert_eq!(gone, expected);

    // The log goes on, with its chain, and erasing again finds nothing.
    append(&store, chat.id, vec![said(21)]).await;
    let again = erase(&store, &which, &request).await.unwrap();
    assert_eq!((again.entries, again.summaries, again.drafts), (0, 0, 0));
    assert_eq!(before.unwrap().unwrap().head, Seq(20));
    sound(&store).await;

    // An entry that is told again is known again.
    let told = append(&store, chat.id, vec![said(3)]).await;
    assert_eq!(told.head, Seq(21));
}

/// A summary of sources that were read before an erasure is not published, and no job planned before it is granted.
pub async fn an_erasure_outdates_what_was_read_before_it<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    append(&store, chat.id, (1..=20).map(said).collect()).await;
    let fork = NewConversation {
        origin: Origin::Fork {
            parent: chat.id,
            at: Seq(10),
        },
        ..NewConversation::root("fork", chat.estimator.clone(), Timestamp(5))
    };
    let fork = store.open(&fork).await.unwrap();
    let sources = [Source::Messages(range(3, 6))];
    let leaf = summary_of(&store, chat.id, &sources, "A horse, Bucephalus.").await;
    let expect = clipped(&store, chat.id, "dag", range(3, 6)).await;
    let spans = vec![shown(&leaf)];
    let publish = replace("dag", range(3, 6), expect, spans, vec![leaf.clone()]);
    store
        .put_state(
            chat.id,
            &format!("{PREPARED}dag"),
            0,
            Some(&RawJson::parse("[1]").unwrap()),
        )
        .await
        .unwrap();

    let which = ConversationRef::Id(chat.id);
    let request = Erase::range(range(3, 3), "they asked for it", Timestamp(7));
    erase(&store, &which, &request).await.unwrap();

    let outcome = store.publish(chat.id, &publish).await.unwrap();
    assert_eq!(outcome, Published::Outdated);
    let ids = [leaf.id.clone()];
    assert_eq!(store.summaries(chat.id, &ids).await.unwrap(), [None]);
    let (job, owner) = (JobKey("leaf 3-6".to_owned()), Owner("me".to_owned()));
    let hour = Duration::from_secs(3_600);
    for (chat, seen, outdated) in [(chat.id, 0, true), (chat.id, 1, false), (fork.id, 0, true)] {
        let claim = store.claim(chat, &job, &owner, hour, seen).await.unwrap();
        assert_eq!(claim == Claim::Outdated, outdated, "{chat} {seen}");
    }
    let prepared = store.state(chat.id, &format!("{PREPARED}dag")).await;
    assert_eq!(prepared.unwrap(), None);
    let dag = ViewName::from("dag");
    let now = store.snapshot(chat.id, &dag).await.unwrap();
    assert_eq!(now.erasures, 1);
    let publish = Publish {
        erasures: 1,
        ..publish
    };
    let outcome = store.publish(chat.id, &publish).await.unwrap();
    assert!(matches!(outcome, Published::Done(_)), "{outcome:?}");
    sound(&store).await;
}

/// A range that forks share is gone in all of them, in their summaries too.
pub async fn an_erasure_reaches_every_fork_that_shows_it<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    append(&store, chat.id, (1..=9).map(said).collect()).await;
    let open = |key: &str, at| NewConversation {
        key: SessionKey::new(key),
        origin: Origin::Fork {
            parent: chat.id,
            at,
        },
        estimator: chat.estimator.clone(),
        title: None,
        meta: None,
        now: Timestamp(1),
    };
    let early = store.open(&open("early", Seq(2))).await.unwrap();
    let late = store.open(&open("late", Seq(7))).await.unwrap();
    append(&store, late.id, (10..=14).map(said).collect()).await;
    let across = [Source::Messages(range(6, 9))];
    let across = summary_of(&store, late.id, &across, "It is Bucephalus.").await;
    publish_summary(&store, late.id, "dag", &across).await;

    // From the fork, over the shared part and its own.
    let request = Erase::range(range(5, 8), "they asked for it", Timestamp(7));
    let erased = erase(&store, &ConversationRef::Id(late.id), &request)
        .await
        .unwrap();
    let named = |ranges: &[memory_store::ErasedRange]| -> Vec<String> {
        let name = |one: &memory_store::ErasedRange| format!("{} {}", one.key, one.range);
        ranges.iter().map(name).collect()
    };
    assert_eq!(named(&erased.logs), ["chat 5-7", "late 8-8"]);
    assert_eq!(named(&erased.seen_by), ["chat 5-7", "late 5-8"]);
    assert_eq!(erased.summaries, 1);
    let of = |id| texts(&store, id);
    let words = |all: Vec<String>| all.iter().map(|text| text != ERASED).collect::<Vec<_>>();
    assert_eq!(words(of(early.id).await), [true; 2]);
    let chat_words = words(of(chat.id).await);
    assert_eq!(
        chat_words,
        [true, true, true, true, false, false, false, true, true]
    );
    let late_words = words(of(late.id).await);
    let expected = [
        true, true, true, true, false, false, false, false, true, true, true, true,
    ];
    assert_eq!(late_words, expected);
    assert_eq!(store.erasures(early.id).await.unwrap().entries, []);
    assert_eq!(store.erasures(late.id).await.unwrap().entries.len(), 2);
    sound(&store).await;

    // Made later, a fork shows what its parent shows.
    let later = store.open(&open("later", Seq(6))).await.unwrap();
    assert!(store.erasures(later.id).await.unwrap().covers(Seq(6)));
    sound(&store).await;
}

/// A deleted conversation says nothing any more, and what it shares with its parent stays.
pub async fn a_deleted_conversation_keeps_its_place<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    append(&store, chat.id, (1..=6).map(said).collect()).await;
    let fork = NewConversation {
        key: SessionKey::new("fork"),
        origin: Origin::Fork {
            parent: chat.id,
            at: Seq(4),
        },
        estimator: chat.estimator.clone(),
        title: Some("Bucephalus".to_owned()),
        meta: Some(RawJson::parse(r#"{"horse":"Bucephalus"}"#).unwrap()),
        now: Timestamp(1),
    };
    let fork = store.open(&fork).await.unwrap();
    append(&store, fork.id, (7..=9).map(said).collect()).await;
    let value = RawJson::parse(r#""Bucephalus""#).unwrap();
    store
        .put_state(fork.id, "pin", 0, Some(&value))
        .await
        .unwrap();
    let request = Erase::all("over", Timestamp(9));
    let erased = erase(&store, &ConversationRef::Id(fork.id), &request)
        .await
        .unwrap();
    assert_eq!((erased.entries, erased.logs.len()), (3, 1));
    let found = store
        .conversation(&ConversationRef::Id(fork.id))
        .await
        .unwrap()
        .unwrap();
    assert!(found.archived && found.title.is_none() && found.meta.is_none());
    assert_eq!(
        (found.head, found.chain != memory_model::Hash::ZERO),
        (Seq(7), true)
    );
    assert_eq!(store.state(fork.id, "pin").await.unwrap(), None);
    let said = texts(&store, chat.id).await;
    assert!(said.iter().all(|text| text != ERASED));
    sound(&store).await;

    // One without a word can be deleted too.
    let empty = root(&store, "empty").await;
    let erased = erase(&store, &ConversationRef::Id(empty.id), &request)
        .await
        .unwrap();
    assert_eq!(erased.entries, 0);
    sound(&store).await;
}

/// What cannot be erased is refused with a reason, and nothing is changed.
pub async fn bad_erasures_are_refused<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    append(&store, chat.id, (1..=3).map(said).collect()).await;
    for (first, last, reason) in [(1, 4, "x"), (9, 9, "x"), (1, 2, " ")] {
        let request = Erase::range(range(first, last), reason, Timestamp(1));
        let refused = store.erase(chat.id, &request).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let missing = memory_model::ConversationId(77);
    let request = Erase::all("x", Timestamp(1));
    let refused = store.erase(missing, &request).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    let refused = store.erasures(missing).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    let said = store
        .read(chat.id, &LogRead::new(range(1, 3)))
        .await
        .unwrap();
    assert!(said.items[2].text().contains(SECRET));
    sound(&store).await;
}

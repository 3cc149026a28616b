//! The same message appended twice.

use agent_memory::testing::memory;
use agent_memory::{Message, Seq, model::Timestamp, store::EntryOutcome};

use crate::support::plain;

fn said(text: &str) -> Message {
    Message::user(text).with_external_id("m1")
}

fn at(micros: i64, mut message: Message) -> Message {
    message.created_at = Timestamp(micros);
    message
}

/// The clock advances between the two, so that they get different times.
#[tokio::test]
async fn a_message_without_a_time_is_a_duplicate_of_itself() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        session.ingest(said("Hello.")).await.unwrap();
        let again = session.ingest(said("Hello.")).await.unwrap();
        assert_eq!(again, EntryOutcome::Duplicate(Seq(1)), "{}", place.name);
    }
}

/// One of the two has no time.
#[tokio::test]
async fn a_missing_time_is_not_compared_with_a_given_one() {
    for place in plain().await {
        let session = place.memory.session("given first").await.unwrap();
        session.ingest(at(7, said("Hello."))).await.unwrap();
        let again = session.ingest(said("Hello.")).await.unwrap();
        assert_eq!(again, EntryOutcome::Duplicate(Seq(1)), "{}", place.name);

        let session = place.memory.session("given second").await.unwrap();
        session.ingest(said("Hello.")).await.unwrap();
        let again = session.ingest(at(7, said("Hello."))).await.unwrap();
        assert_eq!(again, EntryOutcome::Duplicate(Seq(1)), "{}", place.name);
        // What was stored stays as it is.
        let stored = &session.entries().await.unwrap()[0].message;
        assert_ne!(stored.created_at, Timestamp(7));

        // Within one batch, and in a fork of the session.
        let batch = vec![said("Hello."), at(9, said("Hello."))];
        let both = place.memory.session("batch").await.unwrap();
        let ingested = both.ingest_batch(batch).await.unwrap();
        assert_eq!((ingested.inserted(), ingested.duplicates()), (1, 1));
        let fork = both.fork(Seq(1), "fork").await.unwrap();
        let again = fork.ingest(said("Hello.")).await.unwrap();
        assert_eq!(again, EntryOutcome::Duplicate(Seq(1)), "{}", place.name);
    }
}

#[tokio::test]
async fn another_message_under_the_same_id_is_an_error() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        session.ingest(said("Hello.")).await.unwrap();
        let error = session.ingest(said("Good bye.")).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("m1") && text.contains("position 1"), "{text}");
        // Two times that were given are compared.
        let timed = place.memory.session("timed").await.unwrap();
        timed.ingest(at(7, said("Hello."))).await.unwrap();
        timed.ingest(at(8, said("Hello."))).await.unwrap_err();
        assert_eq!(session.entries().await.unwrap().len(), 1);
        // A batch goes on and tells which were refused.
        let batch = vec![said("Good bye."), Message::user("And more.")];
        let ingested = session.ingest_batch(batch).await.unwrap();
        assert_eq!((ingested.inserted(), ingested.conflicts()), (1, 1));
    }
}

/// The two get different times from fake clocks.
#[tokio::test]
async fn the_clock_goes_on_between_the_two() {
    let memory = memory().open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    for text in ["One.", "Two."] {
        session.ingest(Message::user(text)).await.unwrap();
    }
    let log = session.entries().await.unwrap();
    assert_ne!(log[0].message.created_at, log[1].message.created_at);
}

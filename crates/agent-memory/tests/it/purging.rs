//! Erasing messages that contexts no longer show, by age.

use std::sync::Arc;
use std::time::Duration;

use agent_memory::testing::memory;
use agent_memory::{
    DagPolicy, ErrorKind, Message, Mode, Seq, SeqRange, Session,
    compaction::FreshTail,
    model::{Clock, Timestamp},
};

use crate::support::{both, said};

const DAY: i64 = 86_400_000_000;
const DAYS: Duration = Duration::from_secs(86_400);

/// A clock that always shows day 100.
#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp(100 * DAY)
    }
}

/// Appends a message for each day, from the first day on, and summarizes all except the last ten.
async fn ninety_days(session: &Session) {
    let message = |n: i64| said(n as usize).with_created_at(Timestamp(n * DAY));
    let messages: Vec<Message> = (1..=90).map(message).collect();
    let _ = session.ingest_batch(messages).await.unwrap();
    session.compact(Mode::Full).await.unwrap();
}

#[tokio::test]
async fn archived_messages_are_purged_by_age_with_figures_before() {
    let builder = || {
        let tail = FreshTail::messages(10);
        let dag = DagPolicy {
            fresh_tail: tail,
            max_source_tokens: Some(600),
            ..DagPolicy::default()
        };
        memory().clock(Arc::new(Fixed)).dag(dag)
    };
    for place in both(builder).await {
        let session = place.memory.session("s").await.unwrap();
        ninety_days(&session).await;
        let before = session.entries().await.unwrap();
        // 40 days and older: the first sixty messages.
        let figures = session.purge(DAYS * 40, None).await.unwrap();
        let range = SeqRange::new(Seq(1), Seq(60)).unwrap();
        assert_eq!((&*figures.ranges, figures.messages), (&[range][..], 60));
        let tokens: u64 = before.iter().take(60).map(|entry| entry.tokens).sum();
        assert_eq!(figures.tokens, tokens);
        let times = (Some(Timestamp(DAY)), Some(Timestamp(60 * DAY)));
        assert_eq!((figures.oldest, figures.newest), times);
        assert_eq!(figures.erased.entries, 60);
        assert!(figures.erased.summaries > 0);
        assert_eq!(session.entries().await.unwrap(), before, "nothing changed");

        let blank = session.purge(DAYS * 40, " ").await.unwrap_err();
        assert_eq!(blank.kind(), ErrorKind::Invalid);
        let purged = session.purge(DAYS * 40, "kept for 40 days").await.unwrap();
        assert_eq!(purged, figures);
        let after = session.entries().await.unwrap();
        assert!(
            after[..60]
                .iter()
                .all(|entry| !entry.text().contains("Step"))
        );
        assert_eq!(after[60..], before[60..]);
        let record = session
            .memory()
            .store()
            .erasures(session.id())
            .await
            .unwrap();
        assert_eq!(record.entries[0].reason, "kept for 40 days");
        let report = place.memory.verify().await.unwrap();
        assert!(report.is_ok(), "{:?}", report.violations);
        // It is gone: a second purge finds nothing of it.
        let again = session.purge(DAYS * 40, None).await.unwrap();
        assert_eq!(again.messages, 0, "{again:?}");
        // Zero means all that is archived, and never what contexts show as it is.
        session.compact(Mode::Full).await.unwrap();
        let all = session.purge(Duration::ZERO, None).await.unwrap();
        assert!(
            all.messages > 0 && all.ranges.iter().all(|r| r.last <= Seq(80)),
            "{all:?}"
        );
    }
}

/// A message without a time is not old: a time is compared only where there is one.
#[tokio::test]
async fn a_message_without_a_time_has_no_age() {
    let line = |n: i64| {
        let mut line = serde_json::json!({"role": "user", "content": said(n as usize).text()});
        if n % 2 == 0 {
            line["created_at"] = Timestamp(n * DAY).to_string().into();
        }
        line.to_string() + "\n"
    };
    let source: String = (1..=90).map(line).collect();
    let dag = DagPolicy {
        fresh_tail: FreshTail::messages(10),
        max_source_tokens: Some(600),
        ..DagPolicy::default()
    };
    for place in both(|| memory().clock(Arc::new(Fixed)).dag(dag.clone())).await {
        let options = message_formats::ReadOptions::default().with_session("s");
        let transcript = message_formats::read(source.as_bytes(), &options).unwrap();
        place.memory.import(&transcript).await.unwrap();
        let session = place.memory.session("s").await.unwrap();
        session.compact(Mode::Full).await.unwrap();
        // The summaries know the times that are known.
        for summary in session
            .memory()
            .store()
            .own_summaries(session.id(), None, 100)
            .await
            .unwrap()
            .items
        {
            let times = (summary.earliest_at, summary.latest_at);
            assert!(times.0.is_known() && times.1.is_known(), "{times:?}");
        }
        let figures = session.purge(DAYS * 40, None).await.unwrap();
        assert_eq!(figures.messages, 30, "{}", place.name);
        let times = (Some(Timestamp(2 * DAY)), Some(Timestamp(60 * DAY)));
        assert_eq!((figures.oldest, figures.newest), times);
        session.purge(DAYS * 40, "kept for 40 days").await.unwrap();
        let entries = session.entries().await.unwrap();
        let left = entries.iter().filter(|entry| entry.text().contains("Step"));
        assert_eq!(left.count(), 60);
        // Erased summaries show their messages again. Without an age, all archived messages are erased.
        session.compact(Mode::Full).await.unwrap();
        let figures = session.purge(Duration::ZERO, None).await.unwrap();
        assert_eq!(figures.messages, 50);
    }
}

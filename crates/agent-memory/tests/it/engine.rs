//! Properties that an older engine promised, tested with this one on both stores.

use agent_memory::testing::memory;
use agent_memory::{
    Budget, DagPolicy, ErrorKind, Mode, Part, Role, Seq, SeqRange, SessionKey,
    compaction::{FreshTail, StopReason},
    context::MessageOrigin,
    model::ResultContent,
    store::{ConversationFilter, ConversationPatch},
    tokens::estimator,
};
use agent_memory::{
    Message, Session,
    model::{LogEntry, Timestamp},
};
use memory_model::{Accounting as _, Media, MediaSource};
use memory_store::EntryOutcome;

use crate::support::Inspect as _;
use crate::support::{both, dump, json, plain, said, talk};

fn messages(entries: Vec<LogEntry>) -> Vec<Message> {
    entries.into_iter().map(|entry| entry.message).collect()
}

/// Returns every part of every message, in order.
async fn parts(session: &Session) -> Vec<Part> {
    let entries = session.entries().await.unwrap();
    entries.into_iter().flat_map(|e| e.message.parts).collect()
}

#[tokio::test]
async fn opening_a_session_again_gives_the_same_one() {
    for place in plain().await {
        let first = place.memory.session("telegram:42").await.unwrap();
        talk(&first, 3).await;
        let before = dump(&place.memory).await;
        let again = place.memory.session("telegram:42").await.unwrap();
        assert_eq!((first.id(), first.key()), (again.id(), again.key()));
        assert_eq!(dump(&place.memory).await, before, "{}", place.name);
        let other = place.memory.session("telegram:43").await.unwrap();
        assert_ne!(other.id(), first.id());
        assert!(other.entries().await.unwrap().is_empty());

        let place = place.reopen(memory()).await;
        let later = place.memory.session("telegram:42").await.unwrap();
        assert_eq!(later.id(), first.id());
        assert_eq!(later.entries().await.unwrap().len(), 3);
    }
}

#[tokio::test]
async fn what_was_said_comes_back() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        let at = Timestamp(1_700_000_000_000_001);
        let asked = Message::user("Is the build green? 日本語 \u{0} 🙂").with_created_at(at);
        let answered = Message::assistant("Yes.")
            .with_name("bot")
            .with_turn("l", 3);
        let meta = answered.with_meta(json(r#"{"model":"m","n":1.00}"#));
        assert_eq!(
            session.ingest(asked.clone()).await.unwrap(),
            EntryOutcome::Inserted(Seq(1))
        );
        session.ingest(meta.clone()).await.unwrap();
        let found = messages(session.entries().await.unwrap());
        assert_eq!(found[0], asked, "{}", place.name);
        // The clock gave the time that the second had not.
        assert_ne!(found[1].created_at, Timestamp::default());
        assert_eq!(found[1].clone().with_created_at(Timestamp::default()), meta);
    }
}

#[tokio::test]
async fn calls_and_results_come_back() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        let call = |id: &str, name: &str, arguments: &str| Part::ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: json(arguments),
        };
        let result = |id: &str, text: &str, is_error| Part::ToolResult {
            call_id: id.to_owned(),
            content: ResultContent::Text(text.to_owned()),
            is_error,
        };
        let two = vec![
            Part::text("I look into both."),
            call(
                "c1",
                "read",
                r#"{ "path": "a.rs", "path": "b.rs", "n": 1.00 }"#,
            ),
            call("c2", "run", r#""a string""#),
        ];
        let ok = vec![result("c1", "fn main() {}", None)];
        let failed = vec![result("c2", "no such file", Some(true))];
        let unknown = vec![result("c3", "fine", Some(false))];
        for (role, parts) in [
            (Role::Assistant, &two),
            (Role::Tool, &ok),
            (Role::Tool, &failed),
            (Role::Tool, &unknown),
        ] {
            let message = Message::new(role, parts.clone());
            session.ingest(message).await.unwrap();
        }
        let expected: Vec<Part> = [two, ok, failed, unknown].concat();
        assert_eq!(parts(&session).await, expected, "{}", place.name);
    }
}

#[tokio::test]
async fn text_and_images_come_back() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        let image = |source| {
            Part::Image(Media {
                media_type: "image/png".to_owned(),
                source,
            })
        };
        let blocks = vec![
            Part::text("What is wrong in these?"),
            image(MediaSource::Data("iVBORw0KGgo=".repeat(100))),
            image(MediaSource::Url("https://example.org/a.png?b=\"c\"".into())),
            Part::File(Media {
                media_type: "application/pdf".to_owned(),
                source: MediaSource::Data("JVBERi0=".to_owned()),
            }),
            Part::Reasoning {
                text: String::new(),
                signature: Some("sig".to_owned()),
            },
            Part::Unknown {
                raw: json(r#"{"type":"hologram","depth":1e400}"#),
            },
        ];
        let message = Message::new(Role::User, blocks.clone());
        session.ingest(message).await.unwrap();
        assert_eq!(parts(&session).await, blocks, "{}", place.name);
        let context = session.assemble(Budget::tokens(20_000)).await.unwrap();
        assert_eq!(context.messages[0].parts, blocks, "{}", place.name);
    }
}

/// Content that the older engine skipped without notice is kept and shown.
#[tokio::test]
async fn messages_without_content_are_kept() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        let batch = session.ingest_batch(Vec::new()).await.unwrap();
        assert_eq!((batch.outcomes.len(), batch.head), (0, Seq::NONE));
        session.ingest(Message::user("")).await.unwrap();
        let nothing = Message::new(Role::Assistant, Vec::new());
        session.ingest(nothing).await.unwrap();
        let log = session.entries().await.unwrap();
        let kept: Vec<(Role, Vec<Part>)> = log
            .iter()
            .map(|entry| (entry.role, entry.parts.clone()))
            .collect();
        let said = [
            (Role::User, vec![Part::text("")]),
            (Role::Assistant, Vec::new()),
        ];
        assert_eq!(kept, said, "{}", place.name);
        // Providers refuse messages without content, so a remark stands for each.
        let context = session.assemble(Budget::tokens(100)).await.unwrap();
        crate::provider::accepted(&context.messages).unwrap();
        let remark = || vec![Part::text("[… empty message …]")];
        let shown: Vec<_> = context
            .messages
            .iter()
            .map(|message| (message.role, message.parts.clone(), message.source.range()))
            .collect();
        let at = |seq| SeqRange::new(Seq(seq), Seq(seq));
        let expected = [
            (Role::User, remark(), at(1)),
            (Role::Assistant, remark(), at(2)),
        ];
        assert_eq!(shown, expected, "{}", place.name);
        assert!(place.memory.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_batch_is_stored_in_order() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        let ingested = session.ingest_batch((1..=3).map(said).collect()).await;
        let ingested = ingested.unwrap();
        assert_eq!((ingested.inserted(), ingested.head), (3, Seq(3)));
        let texts: Vec<String> = messages(session.entries().await.unwrap())
            .iter()
            .map(Message::text)
            .collect();
        let expected: Vec<String> = (1..=3).map(|n| said(n).text()).collect();
        assert_eq!(texts, expected, "{}", place.name);

        // With ids, again is nothing, and another text under a known id is refused.
        let named = |id: &str, text: &str| {
            Message::user(text)
                .with_external_id(id)
                .with_created_at(Timestamp(1))
        };
        let batch = vec![named("a", "one"), named("b", "two"), named("a", "one")];
        let first = session.ingest_batch(batch.clone()).await.unwrap();
        assert_eq!((first.inserted(), first.duplicates()), (2, 1));
        let again = session.ingest_batch(batch).await.unwrap();
        assert_eq!((again.inserted(), again.duplicates()), (0, 3));
        let other = session.ingest(named("b", "three")).await.unwrap_err();
        assert_eq!(other.kind(), agent_memory::ErrorKind::Conflict);
        assert_eq!(session.entries().await.unwrap().len(), 5);
    }
}

#[tokio::test]
async fn a_large_budget_shows_everything() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        assert!(
            session
                .assemble(Budget::tokens(0))
                .await
                .unwrap()
                .messages
                .is_empty()
        );
        talk(&session, 30).await;
        let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
        let texts: Vec<Vec<Part>> = context.messages.iter().map(|m| m.parts.clone()).collect();
        let expected: Vec<Vec<Part>> = (1..=30).map(|n| said(n).parts).collect();
        assert_eq!(texts, expected, "{}", place.name);
        assert!(context.receipt.dropped.is_empty());
        let recorded = session.info().await.unwrap().conversation.tokens;
        assert_eq!(context.tokens, recorded);
    }
}

/// The context shows the last message, or the error has the smallest sufficient budget.
#[tokio::test]
async fn a_tiny_budget_is_kept_or_refused() {
    for place in plain().await {
        let session = place.talked(30).await;
        let mut shown = 0;
        for budget in 0..=200 {
            match session.assemble(Budget::tokens(budget)).await {
                Ok(context) => {
                    shown += 1;
                    assert!(context.tokens <= budget, "{}: {budget}", place.name);
                    let newest = context.messages.last().unwrap();
                    assert_eq!(newest.source.range().unwrap().last, Seq(30));
                }
                Err(error) => {
                    assert_eq!(shown, 0, "{}: {budget} was enough before", place.name);
                    let ErrorKind::BudgetTooSmall { needed } = error.kind() else {
                        panic!("{}: {error}", place.name);
                    };
                    assert!(needed > budget);
                    session.assemble(Budget::tokens(needed)).await.unwrap();
                    session
                        .assemble(Budget::tokens(needed - 1))
                        .await
                        .unwrap_err();
                }
            }
        }
        assert!(shown > 100, "{}: {shown}", place.name);
    }
}

#[tokio::test]
async fn fifteen_messages_give_a_leaf() {
    let policy = || DagPolicy {
        fresh_tail: FreshTail::messages(2),
        ..DagPolicy::default()
    };
    for place in both(|| memory().dag(policy())).await {
        let session = place.talked(15).await;
        let outcome = session.compact(Mode::Incremental).await.unwrap();
        assert!(
            outcome.published.get("leaf") >= 1,
            "{}: {outcome:?}",
            place.name
        );
        assert_eq!(outcome.messages_compacted, 13);
        assert!(outcome.before.tokens > outcome.after.tokens && outcome.after.tokens > 0);
        assert_eq!(outcome.before.messages, 15);
        let context = session.assemble(Budget::tokens(10_000)).await.unwrap();
        assert_eq!(context.tokens, outcome.after.tokens);
        let first = &context.messages[0];
        assert_eq!(first.role, Role::User);
        assert!(
            matches!(&first.source, MessageOrigin::Summary { first, last, .. }
            if *first == Seq(1) && *last == Seq(13))
        );
        assert_eq!(context.messages.len(), 3);
        // Nothing was lost.
        assert_eq!(session.entries().await.unwrap().len(), 15);
        let expanded = session
            .retrieval()
            .expand(&*outcome.summaries[0].to_string())
            .await;
        assert_eq!(expanded.unwrap().children.len(), 13);
        assert!(place.memory.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn three_messages_are_not_compacted() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        for count in [0, 3] {
            talk(&session, count).await;
            let before = dump(&place.memory).await;
            for mode in [Mode::Incremental, Mode::Full] {
                let outcome = session.compact(mode).await.unwrap();
                assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
                assert_eq!(outcome.before, outcome.after);
            }
            assert_eq!(dump(&place.memory).await, before, "{}", place.name);
        }
    }
}

/// With fewer messages than the tail, all messages are protected. The older engine protected none.
#[tokio::test]
async fn fewer_messages_than_the_tail_are_all_kept() {
    for place in both(|| memory().dag(crate::documents::dag())).await {
        for count in [10, 19, 20] {
            let session = place.memory.session(format!("s{count}")).await.unwrap();
            talk(&session, count).await;
            let outcome = session.compact(Mode::Full).await.unwrap();
            assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
            assert_eq!(outcome.published.total(), 0, "{}", place.name);
            let spans = session.spans().await.unwrap();
            assert_eq!(spans.len(), 1);
        }
    }
}

#[tokio::test]
async fn thirty_messages_are_compacted_fully() {
    let policy = || DagPolicy {
        fresh_tail: FreshTail::messages(4),
        max_source_tokens: Some(330),
        ..DagPolicy::default()
    };
    for place in both(|| memory().dag(policy())).await {
        let session = place.talked(30).await;
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert!(
            outcome.published.get("leaf") >= 2 && outcome.published.get("condensed") >= 1,
            "{outcome:?}"
        );
        assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
        assert!(session.plan().await.unwrap().jobs.is_empty());
        // The last four are raw, and the lineage says so too.
        let spans = session.spans().await.unwrap();
        let raw = spans.last().unwrap();
        assert!(raw.range.last.is_none() && raw.range.first <= Seq(27));
        let all = place
            .memory
            .store()
            .summary_log(session.id(), None, 100)
            .await;
        assert!(all.unwrap().items.iter().all(|s| s.range.last < Seq(27)));
        // Again there is nothing to do.
        let before = dump(&place.memory).await;
        let again = session.compact(Mode::Full).await.unwrap();
        assert_eq!(again.calls + again.published.total(), 0);
        assert_eq!(dump(&place.memory).await, before, "{}", place.name);
        assert!(place.memory.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn the_need_to_compact_is_a_threshold() {
    for place in plain().await {
        let memory = &place.memory;
        assert!(!memory.needs_compaction("nobody", 0).await.unwrap());
        assert!(memory.find_session("nobody").await.unwrap().is_none());
        let session = memory.session("s").await.unwrap();
        assert!(!session.needs_compaction(0).await.unwrap());
        talk(&session, 40).await;
        let tokens = session.info().await.unwrap().conversation.tokens;
        for (threshold, needed) in [(1, true), (tokens - 1, true), (tokens, false)] {
            assert_eq!(session.needs_compaction(threshold).await.unwrap(), needed);
            assert_eq!(
                memory.needs_compaction("s", threshold).await.unwrap(),
                needed
            );
        }
        assert!(!session.needs_compaction(u64::MAX).await.unwrap());
    }
}

#[tokio::test]
async fn a_compaction_is_needed_only_where_there_is_something_to_compact() {
    for place in plain().await {
        let session = place.memory.session("s").await.unwrap();
        // All of it is the fresh tail.
        talk(&session, 5).await;
        assert!(session.usage().await.unwrap().context.tokens() > 1);
        assert!(!session.needs_compaction(1).await.unwrap());
        let more: Vec<Message> = (6..=60).map(said).collect();
        let _ = session.ingest_batch(more).await.unwrap();
        assert!(session.needs_compaction(1).await.unwrap());
        session.compact(Mode::Full).await.unwrap();
        assert!(session.usage().await.unwrap().context.tokens() > 1);
        assert!(!session.needs_compaction(1).await.unwrap());
    }
}

#[tokio::test]
async fn what_is_known_of_a_session_can_be_changed() {
    for place in plain().await {
        let memory_of = &place.memory;
        let session = memory_of.session("a").await.unwrap();
        memory_of.session("b").await.unwrap();
        let change = ConversationPatch {
            title: Some("Release week".to_owned()),
            meta: Some(json(r#"{"channel":"telegram","n":1.0}"#)),
            ..ConversationPatch::default()
        };
        let updated = session.update(&change).await.unwrap();
        assert_eq!(updated.title.as_deref(), Some("Release week"));
        // What a patch does not name stays.
        let put_away = ConversationPatch {
            archived: Some(true),
            ..ConversationPatch::default()
        };
        session.update(&put_away).await.unwrap();
        let info = session.info().await.unwrap().conversation;
        assert!(info.archived && info.updated_at > info.created_at);
        assert_eq!(info.title.as_deref(), Some("Release week"));
        assert_eq!(
            info.meta.unwrap().as_str(),
            r#"{"channel":"telegram","n":1.0}"#
        );

        let mut filter = ConversationFilter::default();
        let keys = async |filter: &ConversationFilter| -> Vec<SessionKey> {
            let sessions = memory_of.sessions(filter).await.unwrap();
            sessions.into_iter().map(|s| s.conversation.key).collect()
        };
        assert_eq!(keys(&filter).await, ["b".into()], "{}", place.name);
        filter.archived = true;
        assert_eq!(keys(&filter).await, ["a".into(), "b".into()]);

        // Something said moves the time of the last change, and nothing else.
        session.ingest(Message::user("still here")).await.unwrap();
        let later = session.info().await.unwrap().conversation;
        assert!(later.updated_at > info.updated_at && later.archived);

        let place = place.reopen(memory()).await;
        let session = place.memory.get_session("a").await.unwrap();
        let found = session.info().await.unwrap().conversation;
        assert_eq!(found, later, "{}", place.name);
    }
}

#[tokio::test]
async fn a_log_that_is_not_there_is_told_from_an_empty_one() {
    for place in plain().await {
        assert!(place.memory.find_session("nobody").await.unwrap().is_none());
        let error = place.memory.get_session("nobody").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("nobody"), "{error}");
        let session = place.memory.session("empty").await.unwrap();
        assert!(session.entries().await.unwrap().is_empty());
        assert!(session.spans().await.unwrap().is_empty());
        let again = place.memory.get_session("empty").await.unwrap();
        assert_eq!(again.id(), session.id());
    }
}

#[tokio::test]
async fn a_long_log_is_loaded_whole() {
    for place in plain().await {
        let session = place.talked(3_000).await;
        let log = session.entries().await.unwrap();
        let seqs: Vec<u32> = log.iter().map(|entry| entry.seq.0).collect();
        assert_eq!(seqs, (1..=3_000).collect::<Vec<_>>(), "{}", place.name);
        assert_eq!(log[2_999].text(), said(3_000).text());
    }
}

#[tokio::test]
async fn the_identity_comes_first_and_is_counted() {
    let soul = "You are Anna. </memory> You answer in short sentences.";
    for place in both(|| memory().identity(soul)).await {
        let session = place.memory.session("s").await.unwrap();
        let alone = session.assemble(Budget::tokens(1_000)).await.unwrap();
        assert_eq!(alone.messages.len(), 1, "{}", place.name);
        talk(&session, 50).await;
        for budget in [100, 200, 400, 10_000] {
            let context = session.assemble(Budget::tokens(budget)).await.unwrap();
            let first = &context.messages[0];
            assert_eq!(
                (first.role, &first.source),
                (Role::System, &MessageOrigin::Identity)
            );
            assert!(first.tokens > 0 && first.tokens == context.receipt.identity_tokens);
            // The text cannot close the tag that it stands in.
            let text =
                "<memory>\nYou are Anna. &lt;/memory> You answer in short sentences.\n</memory>";
            assert_eq!(first.parts, [Part::text(text)], "{}", place.name);
            let sum: u64 = context.messages.iter().map(|m| m.tokens).sum();
            assert_eq!(sum, context.tokens);
            assert!(context.tokens <= budget);
            assert!(context.messages.len() > 1);
        }
        // It is no part of the log.
        assert_eq!(session.entries().await.unwrap().len(), 50);
        let error = session.assemble(Budget::tokens(5)).await.unwrap_err();
        let ErrorKind::BudgetTooSmall { needed } = error.kind() else {
            panic!("{error}");
        };
        assert!(needed > alone.tokens, "the newest message needs room too");
        session.assemble(Budget::tokens(needed)).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_stays_with_its_estimator() {
    for place in plain().await {
        let session = place.memory.session("old").await.unwrap();
        talk(&session, 30).await;
        let before = session.entries().await.unwrap();
        let name = session.accounting().estimator_id();
        let koda = estimator("koda").unwrap();
        assert_ne!(koda.id(), name);

        let place = place.reopen(memory().estimator(koda.clone())).await;
        let old = place.memory.session("old").await.unwrap();
        let new = place.memory.session("new").await.unwrap();
        assert_eq!(old.accounting().estimator_id(), name, "{}", place.name);
        assert_eq!(new.accounting().estimator_id(), koda.id());
        talk(&new, 30).await;
        assert_ne!(new.entries().await.unwrap()[0].tokens, before[0].tokens);
        old.ingest(said(1)).await.unwrap();
        assert_eq!(old.entries().await.unwrap()[30].tokens, before[0].tokens);
        old.compact(Mode::Full).await.unwrap();
        new.compact(Mode::Full).await.unwrap();
        for session in [&old, &new] {
            let context = session.assemble(Budget::tokens(500)).await.unwrap();
            assert!(context.tokens <= 500);
        }
        // A fork is counted as its parent.
        let fork = old.fork(Seq(5), "fork").await;
        assert_eq!(fork.unwrap().accounting().estimator_id(), name);
        let verified = place.memory.verify().await.unwrap();
        assert!(verified.is_ok(), "{:?}", verified.violations);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_lose_nothing() {
    for place in plain().await {
        let mut tasks = Vec::new();
        for task in 0..20 {
            let memory = place.memory.clone();
            tasks.push(tokio::spawn(async move {
                let session = memory.session("shared").await.unwrap();
                for n in 0..25 {
                    let text = format!("task {task} message {n}");
                    match n % 5 {
                        0 => drop(
                            session
                                .ingest_batch(vec![Message::user(text)])
                                .await
                                .unwrap(),
                        ),
                        _ => drop(session.ingest(Message::user(text)).await.unwrap()),
                    }
                    if n % 10 == 9 {
                        session.assemble(Budget::tokens(500)).await.unwrap();
                        session.compact(Mode::Incremental).await.unwrap();
                    }
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let session = place.memory.get_session("shared").await.unwrap();
        let log = session.entries().await.unwrap();
        assert_eq!(log.len(), 500, "{}", place.name);
        assert!((1..).zip(&log).all(|(seq, entry)| entry.seq == Seq(seq)));
        for task in 0..20 {
            let prefix = format!("task {task} message ");
            let mine: Vec<String> = log
                .iter()
                .filter_map(|entry| Some(entry.text().strip_prefix(&prefix)?.to_owned()))
                .collect();
            let expected: Vec<String> = (0..25).map(|n| n.to_string()).collect();
            assert_eq!(mine, expected, "each task's messages stay in its order");
        }
        let verified = place.memory.verify().await.unwrap();
        assert!(
            verified.is_ok(),
            "{}: {:?}",
            place.name,
            verified.violations
        );
    }
}

#[tokio::test]
async fn closing_a_memory_closes_its_database() {
    let [_, place] = plain().await;
    let session = place.talked(3).await;
    place.memory.close().await.unwrap();
    let error = session.entries().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Store(_)), "{error}");
}

//! The log: what goes in comes out.

use std::time::Duration;

use memory_model::{
    Accounting, Media, MediaSource, Message, Part, RawJson, ResultContent, Role, Seq, SeqRange,
    Timestamp,
};
use memory_store::{
    Append, AppendAt, Claim, EntryOutcome, ErrorKind, JobKey, LogRead, Maintain, NewConversation,
    NewEntry, Order, Owner, Store,
};

use crate::Fixture;
use crate::builders::Source;
use crate::builders::{
    PlainCounts, append, entries, entry, fill, info, join3, message, publish_summary, range, root,
    sound, summary_of, texts,
};

/// Entries get positions 1, 2, 3 … in the order given, with hashes, sums and a chain.
pub async fn appends_are_dense_and_in_order<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let mut running = 0;
    let mut chain = memory_model::Hash::ZERO;
    for batch in 0..3u32 {
        let messages: Vec<Message> = (0..4)
            .map(|n| message(&format!("{batch}.{n}"), &format!("text {batch} {n}")))
            .collect();
        let appended = append(&store, chat.id, messages.clone()).await;
        let expected: Vec<EntryOutcome> = (1..=4)
            .map(|n| EntryOutcome::Inserted(Seq(batch * 4 + n)))
            .collect();
        assert_eq!(appended.outcomes, expected);
        for message in &messages {
            running += PlainCounts.message(message);
            chain = chain.chain(message.hash(&message.body().unwrap()));
        }
        assert_eq!(
            (appended.head, appended.tokens),
            (Seq(batch * 4 + 4), running)
        );
        let now = info(&store, chat.id).await;
        assert_eq!(
            (now.head, now.tokens, now.chain),
            (appended.head, running, chain)
        );
        assert_eq!(now.updated_at, Timestamp(2));
    }
    // Equal text without an id is two messages.
    let twice = vec![Message::user("same"), Message::user("same")];
    append(&store, chat.id, twice).await;
    let all = entries(&store, chat.id).await;
    let positions: Vec<u32> = all.iter().map(|e| e.seq.0).collect();
    assert_eq!(positions, (1..=14).collect::<Vec<u32>>());
    // Nothing to append changes nothing.
    let before = info(&store, chat.id).await;
    let nothing = Append {
        at: AppendAt::Head(Seq(14)),
        estimator: PlainCounts.estimator_id(),
        entries: Vec::new(),
        now: Timestamp(99),
    };
    let appended = store.append(chat.id, &nothing).await.unwrap();
    assert_eq!(appended.outcomes, []);
    assert_eq!(
        (appended.head, appended.tokens),
        (before.head, before.tokens)
    );
    assert_eq!(info(&store, chat.id).await, before);
    sound(&store).await;
}

/// Batches of every size around the usual statement sizes.
pub async fn batches_of_every_size<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    for size in [1u32, 2, 7, 8, 9, 63, 64, 65, 72, 73, 128, 129, 200, 1025] {
        let chat = root(&store, &format!("chat {size}")).await;
        fill(&store, chat.id, 3).await;
        fill(&store, chat.id, size).await;
        let all = texts(&store, chat.id).await;
        assert_eq!(all.len(), size as usize + 3);
        for (index, text) in all.iter().enumerate() {
            let start = format!("message {} ", index + 1);
            assert!(text.starts_with(&start), "{text} at {index}");
        }
        let ids: Vec<String> = (1..=size + 4).map(|seq| format!("m{seq}")).collect();
        let found = store.find(chat.id, &ids).await.unwrap();
        let expected: Vec<Option<Seq>> = (1..=size + 4)
            .map(|seq| (seq <= size + 3).then_some(Seq(seq)))
            .collect();
        assert_eq!(found, expected);
    }
    sound(&store).await;
}

/// An entry whose external id is visible is not stored again.
pub async fn an_external_id_is_stored_once<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    append(
        &store,
        chat.id,
        vec![message("a", "one"), message("b", "two")],
    )
    .await;
    let before = info(&store, chat.id).await;
    let append_again = Append {
        at: AppendAt::Any,
        estimator: PlainCounts.estimator_id(),
        entries: vec![entry(message("b", "two")), entry(message("a", "other"))],
        now: Timestamp(77),
    };
    let again = store.append(chat.id, &append_again).await.unwrap();
    assert_eq!(
        again.outcomes,
        [
            EntryOutcome::Duplicate(Seq(2)),
            EntryOutcome::Conflict(Seq(1))
        ]
    );
    assert_eq!((again.head, again.tokens), (before.head, before.tokens));
    assert_eq!(
        info(&store, chat.id).await,
        before,
        "nothing was stored, nothing changed"
    );
    // Within one call, mixed with new entries and with none.
    let mixed = append(
        &store,
        chat.id,
        vec![
            message("c", "three"),
            message("c", "three"),
            message("c", "not three"),
            message("a", "one"),
            Message::user("no id"),
            message("d", "four"),
            message("d ", "an id of its own"),
            message("", "an empty id is an id"),
            message("", "and used"),
        ],
    )
    .await;
    assert_eq!(
        mixed.outcomes,
        [
            EntryOutcome::Inserted(Seq(3)),
            EntryOutcome::Duplicate(Seq(3)),
            EntryOutcome::Conflict(Seq(3)),
            EntryOutcome::Duplicate(Seq(1)),
            EntryOutcome::Inserted(Seq(4)),
            EntryOutcome::Inserted(Seq(5)),
            EntryOutcome::Inserted(Seq(6)),
            EntryOutcome::Inserted(Seq(7)),
            EntryOutcome::Conflict(Seq(7)),
        ]
    );
    // Another time or fact is another entry; a time that one of the two came without is not compared.
    let later = message("a", "one").with_created_at(Timestamp(1));
    let outcome = append(&store, chat.id, vec![later]).await.outcomes;
    assert_eq!(outcome, [EntryOutcome::Duplicate(Seq(1))]);
    let timed = |micros| message("timed", "one").with_created_at(Timestamp(micros));
    let told = vec![timed(1), timed(1), timed(2), message("timed", "one")];
    let outcomes = append(&store, chat.id, told).await.outcomes;
    assert_eq!(
        outcomes,
        [
            EntryOutcome::Inserted(Seq(8)),
            EntryOutcome::Duplicate(Seq(8)),
            EntryOutcome::Conflict(Seq(8)),
            EntryOutcome::Duplicate(Seq(8)),
        ]
    );
    // Nor is one that the clock gave, in the same call or a later one, in the same log or a fork's.
    let clocked = |micros| NewEntry {
        clocked: true,
        ..entry(message("clocked", "one").with_created_at(Timestamp(micros)))
    };
    let given = entry(message("clocked", "one").with_created_at(Timestamp(9)));
    let other = entry(message("clocked", "two").with_created_at(Timestamp(9)));
    let mut tell = Append {
        at: AppendAt::Any,
        estimator: PlainCounts.estimator_id(),
        entries: vec![clocked(3), clocked(4)],
        now: Timestamp(77),
    };
    let first = store.append(chat.id, &tell).await.unwrap().outcomes;
    assert_eq!(
        first,
        [
            EntryOutcome::Inserted(Seq(9)),
            EntryOutcome::Duplicate(Seq(9))
        ]
    );
    tell.entries = vec![clocked(5), given, other];
    let again = [
        EntryOutcome::Duplicate(Seq(9)),
        EntryOutcome::Duplicate(Seq(9)),
        EntryOutcome::Conflict(Seq(9)),
    ];
    assert_eq!(store.append(chat.id, &tell).await.unwrap().outcomes, again);
    let fork = super::inherit::fork(&store, "a fork", chat.id, 9).await;
    assert_eq!(store.append(fork.id, &tell).await.unwrap().outcomes, again);
    // Another conversation has its own ids.
    let other = root(&store, "other").await;
    let outcome = append(&store, other.id, vec![message("a", "one")])
        .await
        .outcomes;
    assert_eq!(outcome, [EntryOutcome::Inserted(Seq(1))]);
    // A whole import again, in one call.
    let many: Vec<Message> = (0..150)
        .map(|n| message(&format!("x{n}"), "text"))
        .collect();
    append(&store, other.id, many.clone()).await;
    let again = append(&store, other.id, many).await;
    let expected: Vec<EntryOutcome> = (2..152).map(|n| EntryOutcome::Duplicate(Seq(n))).collect();
    assert_eq!(again.outcomes, expected);
    sound(&store).await;
}

/// An append that demands a head is refused when the log ends elsewhere.
pub async fn an_append_can_demand_the_head<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let mut demand = Append {
        at: AppendAt::Head(Seq(0)),
        estimator: PlainCounts.estimator_id(),
        entries: vec![entry(Message::user("one"))],
        now: Timestamp(2),
    };
    store.append(chat.id, &demand).await.unwrap();
    for wrong in [0, 2] {
        demand.at = AppendAt::Head(Seq(wrong));
        let error = store.append(chat.id, &demand).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HeadMoved, "{error}");
    }
    demand.at = AppendAt::Head(Seq(1));
    assert_eq!(store.append(chat.id, &demand).await.unwrap().head, Seq(2));
    sound(&store).await;
}

/// Figures of another estimator, or another version of it, are refused.
pub async fn figures_of_another_estimator_are_refused<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let right = PlainCounts.estimator_id();
    let newer = token_estimate::EstimatorId::new(right.name(), right.version() + 1).unwrap();
    let other = token_estimate::EstimatorId::new("other", right.version()).unwrap();
    for estimator in [newer, other] {
        let mixed = Append {
            at: AppendAt::Any,
            estimator,
            entries: vec![entry(Message::user("one"))],
            now: Timestamp(2),
        };
        let error = store.append(chat.id, &mixed).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::EstimatorMismatch, "{error}");
    }
    assert_eq!(info(&store, chat.id).await, chat, "nothing changed");
    sound(&store).await;
}

/// A note has a position and costs nothing, whatever the caller says.
pub async fn notes_are_kept_and_cost_nothing<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let note = Message::note(Role::System, vec![Part::text("the model changed")]);
    let mut noted = entry(note.clone());
    noted.tokens = 50;
    let mixed = Append {
        at: AppendAt::Any,
        estimator: PlainCounts.estimator_id(),
        entries: vec![
            entry(Message::user("one")),
            noted,
            entry(Message::user("two")),
        ],
        now: Timestamp(2),
    };
    store.append(chat.id, &mixed).await.unwrap();
    let all = entries(&store, chat.id).await;
    assert_eq!(all[1].message, note);
    assert_eq!((all[1].tokens, all[1].running), (0, all[0].running));
    assert_eq!(all[2].seq, Seq(3));
    sound(&store).await;
}

fn hard_messages() -> Vec<Message> {
    let arguments =
        r#"{"b":1.00,"b":2,"n":1e400,"big":123456789012345678901234567890,"s":"\ud800"}"#;
    let parts = vec![
        Part::text("NUL \0, \u{10ffff}, \r\n\t, 'quotes\" \\, %_*?, 緑, e\u{301}"),
        Part::text(""),
        Part::Reasoning {
            text: String::new(),
            signature: Some("c2ln".to_owned()),
        },
        Part::ToolCall {
            id: "call".to_owned(),
            name: "run\0it".to_owned(),
            arguments: RawJson::parse(arguments).unwrap(),
        },
        Part::ToolResult {
            call_id: "call".to_owned(),
            content: ResultContent::Parts(vec![
                Part::text("inside"),
                Part::Unknown {
                    raw: RawJson::parse(r#"{ "type" : "x", "x":"\udfff\u0000", "x":-0.0 }"#)
                        .unwrap(),
                },
            ]),
            is_error: Some(true),
        },
        Part::Image(Media {
            media_type: "image/png".to_owned(),
            source: MediaSource::Data("AAAA".to_owned()),
        }),
        Part::File(Media {
            media_type: "text/plain".to_owned(),
            source: MediaSource::Url("file:///a".to_owned()),
        }),
    ];
    let full = Message::new(Role::Assistant, parts)
        .with_external_id("id\0with NUL")
        .with_response("response\0")
        .with_name("名前\0")
        .with_turn("loop\0", u32::MAX)
        .with_created_at(Timestamp(i64::MIN))
        .with_meta(RawJson::parse(r#"{"a":1,"a":2,"s":"\ud800","n":1E+400 }"#).unwrap());
    let text = ResultContent::Text("a result \0".to_owned());
    let result = Part::ToolResult {
        call_id: String::new(),
        content: text,
        is_error: None,
    };
    vec![
        full,
        Message::new(Role::User, Vec::new()),
        Message::new(Role::Tool, vec![result])
            .with_created_at(Timestamp(i64::MAX))
            .with_turn("", 0)
            .with_name(""),
        Message::note(Role::Tool, vec![Part::text("a note")]).with_response(""),
    ]
}

/// Messages come back byte for byte, with every field and odd content.
pub async fn every_byte_comes_back<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    append(&store, chat.id, hard_messages()).await;
    let stored = entries(&store, chat.id).await;
    let bodies = |messages: Vec<Message>| -> Vec<Vec<u8>> {
        messages.iter().map(|m| m.body().unwrap()).collect()
    };
    let messages: Vec<Message> = stored.iter().map(|e| e.message.clone()).collect();
    assert_eq!(messages, hard_messages());
    assert_eq!(bodies(messages), bodies(hard_messages()));
    let again = append(&store, chat.id, hard_messages()).await;
    assert_eq!(again.outcomes[0], EntryOutcome::Duplicate(Seq(1)));
    assert_eq!(again.head, Seq(7), "those without an id are stored again");
    let ids = ["id\0with NUL".to_owned(), "id".to_owned()];
    assert_eq!(
        store.find(chat.id, &ids).await.unwrap(),
        [Some(Seq(1)), None]
    );
    sound(&store).await;
}

/// A body of two megabytes comes back, and so do its neighbours.
pub async fn large_bodies_come_back<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let large = "large \u{1F600} ".repeat(200_000);
    let messages = vec![
        message("a", "small"),
        message("b", &large),
        message("c", "small again"),
    ];
    append(&store, chat.id, messages).await;
    assert_eq!(
        texts(&store, chat.id).await,
        ["small", large.as_str(), "small again"]
    );
    sound(&store).await;
}

async fn pages<S: Store>(
    store: &S,
    conversation: memory_model::ConversationId,
    first: LogRead,
) -> Vec<Vec<u32>> {
    let mut pages = Vec::new();
    let mut read = first;
    loop {
        let page = store.read(conversation, &read).await.unwrap();
        pages.push(page.items.iter().map(|e| e.seq.0).collect());
        match page.next {
            Some(next) => read.range = next,
            None => return pages,
        }
    }
}

/// Pages join to the range, in both orders; the last one has no next.
pub async fn a_log_is_read_in_pages<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 10).await;
    let oldest = LogRead::new(range(2, 9)).with_max_rows(3);
    assert_eq!(
        pages(&store, chat.id, oldest.clone()).await,
        [vec![2, 3, 4], vec![5, 6, 7], vec![8, 9]]
    );
    assert_eq!(
        pages(&store, chat.id, oldest.newest_first()).await,
        [vec![9, 8, 7], vec![6, 5, 4], vec![3, 2]]
    );
    // A page that just holds the rest is the last.
    let exact = LogRead::new(range(1, 6)).with_max_rows(3);
    assert_eq!(pages(&store, chat.id, exact).await.len(), 2);
    let single = store
        .read(chat.id, &LogRead::new(range(4, 4)))
        .await
        .unwrap();
    assert_eq!((single.items.len(), single.next), (1, None));
    sound(&store).await;
}

/// A page stops when it has its bytes, but never before the first entry.
pub async fn a_page_holds_at_least_one_entry<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let mut messages: Vec<Message> = (0..6).map(|_| Message::user("x".repeat(100))).collect();
    messages[2] = Message::user("y".repeat(5_000));
    append(&store, chat.id, messages.clone()).await;
    let size = messages[0].body().unwrap().len() as u64;
    let by_bytes = |max_bytes, order| LogRead {
        max_bytes,
        order,
        ..LogRead::new(range(1, 6))
    };
    for order in [Order::OldestFirst, Order::NewestFirst] {
        for (bytes, rows) in [(0, 100), (1, 100), (u64::MAX, 0), (u64::MAX, 1)] {
            let read = by_bytes(bytes, order).with_max_rows(rows);
            let pages = pages(&store, chat.id, read).await;
            assert_eq!(
                pages.len(),
                6,
                "{bytes} bytes, {rows} rows, {order:?}: {pages:?}"
            );
        }
    }
    // Two small ones reach twice the size; the large one ends its page.
    assert_eq!(
        pages(&store, chat.id, by_bytes(2 * size, Order::OldestFirst)).await,
        [vec![1, 2], vec![3], vec![4, 5], vec![6]]
    );
    assert_eq!(
        pages(&store, chat.id, by_bytes(2 * size + 1, Order::NewestFirst)).await,
        [vec![6, 5, 4], vec![3], vec![2, 1]]
    );
    let all = LogRead {
        max_rows: usize::MAX,
        ..by_bytes(u64::MAX, Order::OldestFirst)
    };
    assert_eq!(pages(&store, chat.id, all).await.len(), 1);
    sound(&store).await;
}

/// Of a range only some positions are read, in both orders, page by page, across segments and whatever their size.
pub async fn entries_are_read_by_their_positions<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let parent = root(&store, "parent").await;
    let mut messages: Vec<Message> = (1..=150)
        .map(|n| Message::user(format!("text {n}")))
        .collect();
    messages[19] = Message::user("y".repeat(200_000));
    append(&store, parent.id, messages).await;
    let new = NewConversation {
        origin: memory_store::Origin::Fork {
            parent: parent.id,
            at: Seq(120),
        },
        ..NewConversation::root("chat", PlainCounts.estimator_id(), Timestamp(1))
    };
    let chat = store.open(&new).await.unwrap();
    fill(&store, chat.id, 60).await;
    assert_eq!(LogRead::at([]), None);
    let wanted: Vec<u32> = (1..=300)
        .filter(|seq| seq % 3 != 0 || *seq == 120)
        .collect();
    let seen: Vec<u32> = wanted.iter().copied().filter(|seq| *seq <= 180).collect();
    // The order in which they are named makes no difference.
    let read = LogRead::at(wanted.iter().rev().map(|seq| Seq(*seq))).unwrap();
    for rows in [1, 7, 64, 65, 1_000] {
        let read = read.clone().with_max_rows(rows);
        let oldest = pages(&store, chat.id, read.clone()).await;
        let newest = pages(&store, chat.id, read.newest_first()).await;
        assert_eq!(oldest.len(), seen.len().div_ceil(rows), "{rows} a page");
        assert_eq!(oldest.concat(), seen, "{rows} a page");
        assert_eq!(newest.len(), oldest.len(), "{rows} a page");
        assert!(
            newest.concat().iter().eq(seen.iter().rev()),
            "{rows} a page"
        );
    }
    let all = entries(&store, chat.id).await;
    let page = store.read(chat.id, &read).await.unwrap();
    for entry in &page.items {
        assert_eq!(entry, &all[entry.seq.0 as usize - 1]);
    }
    let none = LogRead::at([Seq(500)]).unwrap();
    assert_eq!(pages(&store, chat.id, none).await, [[0_u32; 0]]);
    sound(&store).await;
}

/// Positions beyond the head are ignored.
pub async fn reads_beyond_the_head_end_there<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let empty = store
        .read(chat.id, &LogRead::new(range(1, 5)))
        .await
        .unwrap();
    assert_eq!((empty.items.len(), empty.next), (0, None));
    fill(&store, chat.id, 4).await;
    let far = LogRead::new(range(3, u32::MAX)).with_max_rows(1);
    assert_eq!(pages(&store, chat.id, far.clone()).await, [[3], [4]]);
    assert_eq!(pages(&store, chat.id, far.newest_first()).await, [[4], [3]]);
    let beyond = store
        .read(chat.id, &LogRead::new(range(5, 9)))
        .await
        .unwrap();
    assert_eq!((beyond.items.len(), beyond.next), (0, None));
    sound(&store).await;
}

/// Sums by position and positions by sum agree with the entries, across segments.
pub async fn running_sums_and_positions<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let parent = root(&store, "parent").await;
    assert_eq!(store.running(parent.id, &[]).await.unwrap(), [0u64; 0]);
    assert_eq!(
        store.running(parent.id, &[Seq(0), Seq(9)]).await.unwrap(),
        [0, 0]
    );
    assert_eq!(store.seq_at(parent.id, 0).await.unwrap(), None);
    fill(&store, parent.id, 3).await;
    append(
        &store,
        parent.id,
        vec![Message::note(Role::User, vec![Part::text("note")])],
    )
    .await;
    fill(&store, parent.id, 3).await;
    let new = memory_store::NewConversation {
        origin: memory_store::Origin::Fork {
            parent: parent.id,
            at: Seq(5),
        },
        ..memory_store::NewConversation::root("child", PlainCounts.estimator_id(), Timestamp(3))
    };
    let child = store.open(&new).await.unwrap();
    append(
        &store,
        child.id,
        (0..4).map(|n| Message::user(format!("more {n}"))).collect(),
    )
    .await;
    for id in [parent.id, child.id] {
        let all = entries(&store, id).await;
        let head = all.len() as u32;
        let mut at: Vec<Seq> = (0..=head + 2).rev().map(Seq).collect();
        at.extend([Seq(2), Seq(2), Seq(u32::MAX)]);
        let sums = store.running(id, &at).await.unwrap();
        let sum_at = |seq: Seq| match seq.0.min(head) {
            0 => 0,
            n => all[n as usize - 1].running,
        };
        let expected: Vec<u64> = at.iter().map(|seq| sum_at(*seq)).collect();
        assert_eq!(sums, expected);
        let total = sum_at(Seq(head));
        for tokens in 0..=total + 1 {
            let expected = all.iter().find(|e| e.running >= tokens).map(|e| e.seq);
            assert_eq!(
                store.seq_at(id, tokens).await.unwrap(),
                expected,
                "{tokens} tokens"
            );
        }
        assert_eq!(store.seq_at(id, u64::MAX).await.unwrap(), None);
    }
    assert_eq!(store.find(parent.id, &[]).await.unwrap(), []);
    sound(&store).await;
}

/// What was stored is there when the store is opened again.
pub async fn a_store_opens_again<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    append(&store, chat.id, hard_messages()).await;
    fill(&store, chat.id, 10).await;
    let leaf = summary_of(&store, chat.id, &[Source::Messages(range(2, 8))], "short").await;
    publish_summary(&store, chat.id, "dag", &leaf).await;
    let before = (
        info(&store, chat.id).await,
        entries(&store, chat.id).await,
        crate::builders::spans_of_view(&store, chat.id, "dag").await,
    );
    let store = fixture.reopen(store).await;
    let after = (
        info(&store, chat.id).await,
        entries(&store, chat.id).await,
        crate::builders::spans_of_view(&store, chat.id, "dag").await,
    );
    assert_eq!(after, before);
    assert!(!store.location().is_empty(), "a store says where it is");
    fill(&store, chat.id, 1).await;
    let head = info(&store, chat.id).await.head;
    assert_eq!(SeqRange::new(head, head).map(|r| r.len()), Some(1));
    assert_eq!(head, Seq(15));
    sound(&store).await;
}

/// Writers side by side: logs stay dense, a key is one conversation, one demand of a head is met.
pub async fn writers_side_by_side<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let new = NewConversation::root("chat", PlainCounts.estimator_id(), Timestamp(1));
    let (a, b, c) = join3(store.open(&new), store.open(&new), store.open(&new)).await;
    let chat = a.unwrap();
    assert_eq!((b.unwrap().id, c.unwrap().id), (chat.id, chat.id));
    let batch = |name: &str, at| Append {
        at,
        estimator: PlainCounts.estimator_id(),
        entries: (0..5)
            .map(|n| entry(message(&format!("{name}{n}"), &format!("{name} says {n}"))))
            .collect(),
        now: Timestamp(2),
    };
    let (a, b, c) = ["a", "b", "c"]
        .map(|name| batch(name, AppendAt::Any))
        .into();
    let (a, b, c) = join3(
        store.append(chat.id, &a),
        store.append(chat.id, &b),
        store.append(chat.id, &c),
    )
    .await;
    for appended in [a, b, c] {
        let outcomes = appended.unwrap().outcomes;
        let positions: Vec<u32> = outcomes
            .iter()
            .map(|outcome| match outcome {
                EntryOutcome::Inserted(seq) => seq.0,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(
            positions.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{positions:?}"
        );
    }
    assert_eq!(texts(&store, chat.id).await.len(), 15);
    // The same batch thrice is stored once.
    let same = batch("d", AppendAt::Any);
    let (a, b, c) = join3(
        store.append(chat.id, &same),
        store.append(chat.id, &same),
        store.append(chat.id, &same),
    )
    .await;
    assert_eq!([a, b, c].map(|done| done.unwrap().head), [Seq(20); 3]);
    let (a, b, c) = ["e", "f", "g"]
        .map(|name| batch(name, AppendAt::Head(Seq(20))))
        .into();
    let (a, b, c) = join3(
        store.append(chat.id, &a),
        store.append(chat.id, &b),
        store.append(chat.id, &c),
    )
    .await;
    let refused: Vec<ErrorKind> = [a, b, c]
        .into_iter()
        .filter_map(|done| done.err().map(|error| error.kind()))
        .collect();
    assert_eq!(refused, [ErrorKind::HeadMoved; 2]);
    let job = JobKey("job".to_owned());
    let owners = ["a", "b", "c"].map(|name| Owner(name.to_owned()));
    let claim = |owner| store.claim(chat.id, &job, owner, Duration::from_secs(3_600), 0);
    let (a, b, c) = join3(claim(&owners[0]), claim(&owners[1]), claim(&owners[2])).await;
    let granted = [a, b, c].into_iter().map(|claim| claim.unwrap());
    let granted = granted.filter(|claim| matches!(claim, Claim::Granted(_)));
    assert_eq!(granted.count(), 1, "one of three claims is granted");
    sound(&store).await;
}

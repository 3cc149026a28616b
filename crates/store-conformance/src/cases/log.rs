//! Cases of the log: stored messages are read back unchanged.

use std::time::Duration;

use futures::future::join_all;
use memory_model::{
    Accounting, Hash, LogEntry, Media, MediaSource, Message, Part, RawJson, ResultContent, Role,
    Seq, Timestamp,
};
use memory_store::EntryOutcome::{Conflict, Duplicate, Inserted};
use memory_store::{
    Append, AppendAt, Claim, ErrorKind, FullStore, JobKey, LogRead, Maintain as _, NewEntry, Order,
    Origin, Owner, Page, Store,
};
use token_estimate::EstimatorId;

use crate::Fixture;
use crate::builders::{
    PlainCounts, batch, entry, message, new_conversation, pages, range, refused, sound,
};
use crate::chat::Chat;

/// Checks that entries get the positions 1, 2, 3 … in the given order, with hashes, running sums and a chain hash.
pub async fn appends_are_dense_and_in_order<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let mut running = 0;
    let mut chain = Hash::ZERO;
    for start in [0, 4, 8_u32] {
        let positions = [1, 2, 3, 4].map(|n| Seq(start + n));
        let messages = positions.map(|seq| message(&format!("id {seq}"), &format!("text {seq}")));
        let appended = chat.append(messages.clone()).await;
        assert_eq!(appended.outcomes, positions.map(Inserted));
        for message in &messages {
            running += PlainCounts.message(message);
            chain = chain.chain(message.hash(&message.body().unwrap()));
        }
        assert_eq!((appended.head, appended.tokens), (positions[3], running));
        let now = chat.info().await;
        assert_eq!(
            (now.head, now.tokens, now.chain),
            (appended.head, running, chain)
        );
        assert_eq!(now.updated_at, Timestamp(2));
    }
    // Two messages with equal text and no external id are two entries.
    chat.append([Message::user("same"), Message::user("same")])
        .await;
    let all = chat.entries().await;
    assert!(all.iter().map(|entry| entry.seq.0).eq(1..=14));
    // An empty append has no effect.
    let before = chat.info().await;
    let nothing = Append {
        now: Timestamp(99),
        ..batch(AppendAt::Head(Seq(14)), [])
    };
    let appended = store.append(chat.id, &nothing).await.unwrap();
    assert_eq!(appended.outcomes, []);
    assert_eq!(
        (appended.head, appended.tokens),
        (before.head, before.tokens)
    );
    assert_eq!(chat.info().await, before);
}

/// Checks appends of many sizes: the fixed sizes of insert statements, and sizes just below and above them.
pub async fn batches_of_every_size<S: FullStore>(store: &S) {
    for size in [1u32, 2, 7, 8, 9, 63, 64, 65, 72, 73, 128, 129, 200, 1025] {
        let chat = Chat::root(store, &format!("chat {size}")).await;
        chat.fill(3).await;
        chat.fill(size).await;
        let all = chat.texts().await;
        assert_eq!(all.len(), size as usize + 3);
        for (index, text) in all.iter().enumerate() {
            let start = format!("message {} ", index + 1);
            assert!(text.starts_with(&start), "{text} at {index}");
        }
        let ids: Vec<String> = (1..=size + 4).map(|seq| format!("m{seq}")).collect();
        let found = chat.find(&ids).await;
        let expected = (1..=size + 4).map(|seq| (seq <= size + 3).then_some(Seq(seq)));
        assert!(found.into_iter().eq(expected));
    }
}

/// Checks that an entry is not stored again if the conversation, or the log that it inherits from its parent, has an
/// entry with the same external id.
pub async fn an_external_id_is_stored_once<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    chat.append([message("a", "one"), message("b", "two")])
        .await;
    let before = chat.info().await;
    let again = chat
        .append([message("b", "two"), message("a", "other")])
        .await;
    assert_eq!(again.outcomes, [Duplicate(Seq(2)), Conflict(Seq(1))]);
    assert_eq!((again.head, again.tokens), (before.head, before.tokens));
    assert_eq!(
        chat.info().await,
        before,
        "nothing was stored, nothing changed"
    );
    // Duplicates within one call, together with new entries and entries without an id.
    let mixed = chat
        .append([
            message("c", "three"),
            message("c", "three"),
            message("c", "not three"),
            message("a", "one"),
            Message::user("no id"),
            message("d", "four"),
            message("d ", "an id of its own"),
            message("", "an empty id is an id"),
            message("", "and used"),
        ])
        .await;
    assert_eq!(
        mixed.outcomes,
        [
            Inserted(Seq(3)),
            Duplicate(Seq(3)),
            Conflict(Seq(3)),
            Duplicate(Seq(1)),
            Inserted(Seq(4)),
            Inserted(Seq(5)),
            Inserted(Seq(6)),
            Inserted(Seq(7)),
            Conflict(Seq(7)),
        ]
    );
    // An entry with another time or another field is different. Times are compared only if both entries have one.
    let later = message("a", "one").with_created_at(Timestamp(1));
    let outcome = chat.append([later]).await.outcomes;
    assert_eq!(outcome, [Duplicate(Seq(1))]);
    let timed = |micros| message("timed", "one").with_created_at(Timestamp(micros));
    let told = [timed(1), timed(1), timed(2), message("timed", "one")];
    let outcomes = chat.append(told).await.outcomes;
    assert_eq!(
        outcomes,
        [
            Inserted(Seq(8)),
            Duplicate(Seq(8)),
            Conflict(Seq(8)),
            Duplicate(Seq(8)),
        ]
    );
    // A time from the clock is not compared either, in the same call or a later one, in the same log or a fork's.
    let clocked = |micros| NewEntry {
        clocked: true,
        ..entry(message("clocked", "one").with_created_at(Timestamp(micros)))
    };
    let given = entry(message("clocked", "one").with_created_at(Timestamp(9)));
    let other = entry(message("clocked", "two").with_created_at(Timestamp(9)));
    let mut tell = batch(AppendAt::Any, [clocked(3), clocked(4)]);
    let first = store.append(chat.id, &tell).await.unwrap().outcomes;
    assert_eq!(first, [Inserted(Seq(9)), Duplicate(Seq(9))]);
    tell.entries = vec![clocked(5), given, other];
    let again = [Duplicate(Seq(9)), Duplicate(Seq(9)), Conflict(Seq(9))];
    assert_eq!(store.append(chat.id, &tell).await.unwrap().outcomes, again);
    let fork = chat.fork("a fork", 9).await;
    assert_eq!(store.append(fork.id, &tell).await.unwrap().outcomes, again);
    // External ids of other conversations do not count.
    let other = Chat::root(store, "other").await;
    let outcome = other.append([message("a", "one")]).await.outcomes;
    assert_eq!(outcome, [Inserted(Seq(1))]);
    // A whole import is repeated in one call.
    let many = (0..150).map(|n| message(&format!("x{n}"), "text"));
    other.append(many.clone()).await;
    let again = other.append(many).await.outcomes;
    assert!(again.into_iter().eq((2..152).map(|n| Duplicate(Seq(n)))));
}

/// Checks that an append that expects the log to end at a position is refused if the log ends elsewhere.
pub async fn an_append_can_demand_the_head<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let mut demand = batch(AppendAt::Head(Seq(0)), [entry(Message::user("one"))]);
    store.append(chat.id, &demand).await.unwrap();
    for wrong in [0, 2] {
        demand.at = AppendAt::Head(Seq(wrong));
        refused(store.append(chat.id, &demand).await, ErrorKind::HeadMoved);
    }
    demand.at = AppendAt::Head(Seq(1));
    assert_eq!(store.append(chat.id, &demand).await.unwrap().head, Seq(2));
}

/// Checks that costs counted by another estimator, or by another version of it, are refused.
pub async fn figures_of_another_estimator_are_refused<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let before = chat.info().await;
    let right = PlainCounts.estimator_id();
    let newer = EstimatorId::new(right.name(), right.version() + 1).unwrap();
    let other = EstimatorId::new("other", right.version()).unwrap();
    for estimator in [newer, other] {
        let mixed = Append {
            estimator,
            ..batch(AppendAt::Any, [entry(Message::user("one"))])
        };
        let answer = store.append(chat.id, &mixed).await;
        refused(answer, ErrorKind::EstimatorMismatch);
    }
    assert_eq!(chat.info().await, before, "nothing changed");
}

/// Checks that a note has a position and costs 0 tokens, even if the caller gives another cost.
pub async fn notes_are_kept_and_free<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let note = Message::note(Role::System, vec![Part::text("the model changed")]);
    let mut noted = entry(note.clone());
    noted.tokens = 50;
    let user = |text: &str| entry(Message::user(text));
    let mixed = batch(AppendAt::Any, [user("one"), noted, user("two")]);
    store.append(chat.id, &mixed).await.unwrap();
    let all = chat.entries().await;
    assert_eq!(all[1].message, note);
    assert_eq!((all[1].tokens, all[1].running), (0, all[0].running));
    assert_eq!(all[2].seq, Seq(3));
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

/// Checks that messages are read back byte for byte, with every field and with unusual content.
pub async fn every_byte_comes_back<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    chat.append(hard_messages()).await;
    let stored = chat.entries().await;
    let bodies = |messages: Vec<Message>| -> Vec<Vec<u8>> {
        messages.iter().map(|m| m.body().unwrap()).collect()
    };
    let messages: Vec<Message> = stored.iter().map(|e| e.message.clone()).collect();
    assert_eq!(messages, hard_messages());
    assert_eq!(bodies(messages), bodies(hard_messages()));
    let again = chat.append(hard_messages()).await;
    assert_eq!(again.outcomes[0], Duplicate(Seq(1)));
    assert_eq!(again.head, Seq(7), "those without an id are stored again");
    let ids = ["id\0with NUL".to_owned(), "id".to_owned()];
    assert_eq!(chat.find(&ids).await, [Some(Seq(1)), None]);
}

/// Checks that a body of two megabytes is read back, and the entries before and after it.
pub async fn large_bodies_come_back<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let large = "large \u{1F600} ".repeat(200_000);
    let texts = ["small", large.as_str(), "small again"];
    chat.append(texts.map(Message::user)).await;
    assert_eq!(chat.texts().await, texts);
}

impl<S: Store + ?Sized> Chat<'_, S> {
    async fn page(&self, read: &LogRead) -> Page<LogEntry> {
        let page = self.store.read(self.id, read).await;
        page.expect("a page is read")
    }

    /// Returns the positions in each page of a range.
    async fn pages(&self, mut read: LogRead) -> Vec<Vec<u32>> {
        let pages = pages(async |next| {
            read.range = next.unwrap_or(read.range);
            self.store.read(self.id, &read).await
        });
        let positions = |page: Vec<LogEntry>| page.iter().map(|entry| entry.seq.0).collect();
        pages.await.into_iter().map(positions).collect()
    }
}

/// Checks that the pages of a range join without gaps, in both orders, and that the last page has no `next`.
pub async fn a_log_is_read_in_pages<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    chat.fill(10).await;
    let oldest = LogRead::new(range(2, 9)).with_max_rows(3);
    assert_eq!(
        chat.pages(oldest.clone()).await,
        [vec![2, 3, 4], vec![5, 6, 7], vec![8, 9]]
    );
    assert_eq!(
        chat.pages(oldest.newest_first()).await,
        [vec![9, 8, 7], vec![6, 5, 4], vec![3, 2]]
    );
    // A full page with all remaining entries is the last page.
    let exact = LogRead::new(range(1, 6)).with_max_rows(3);
    assert_eq!(chat.pages(exact).await.len(), 2);
    let single = chat.page(&LogRead::new(range(4, 4))).await;
    assert_eq!((single.items.len(), single.next), (1, None));
}

/// Checks that a page ends when it reaches its maximum number of bytes, and has at least one entry.
pub async fn a_page_holds_at_least_one_entry<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let mut messages: Vec<Message> = (0..6).map(|_| Message::user("x".repeat(100))).collect();
    messages[2] = Message::user("y".repeat(5_000));
    chat.append(messages.clone()).await;
    let size = messages[0].body().unwrap().len() as u64;
    let by_bytes = |max_bytes, order| LogRead {
        max_bytes,
        order,
        ..LogRead::new(range(1, 6))
    };
    for order in [Order::OldestFirst, Order::NewestFirst] {
        for (bytes, rows) in [(0, 100), (1, 100), (u64::MAX, 0), (u64::MAX, 1)] {
            let read = by_bytes(bytes, order).with_max_rows(rows);
            assert_eq!(
                chat.pages(read).await.len(),
                6,
                "{bytes} bytes, {rows} rows, {order:?}"
            );
        }
    }
    // Two small entries reach twice the size. The large entry ends its page.
    assert_eq!(
        chat.pages(by_bytes(2 * size, Order::OldestFirst)).await,
        [vec![1, 2], vec![3], vec![4, 5], vec![6]]
    );
    assert_eq!(
        chat.pages(by_bytes(2 * size + 1, Order::NewestFirst)).await,
        [vec![6, 5, 4], vec![3], vec![2, 1]]
    );
    let all = LogRead {
        max_rows: usize::MAX,
        ..by_bytes(u64::MAX, Order::OldestFirst)
    };
    assert_eq!(chat.pages(all).await.len(), 1);
}

/// Checks reads of single positions of a range, in both orders, page by page, across segments, and for entries of any
/// size.
pub async fn entries_are_read_by_their_positions<S: FullStore>(store: &S) {
    let parent = Chat::root(store, "parent").await;
    let mut messages: Vec<Message> = (1..=150)
        .map(|n| Message::user(format!("text {n}")))
        .collect();
    messages[19] = Message::user("y".repeat(200_000));
    parent.append(messages).await;
    let chat = parent.fork("chat", 120).await;
    chat.fill(60).await;
    assert_eq!(LogRead::at([]), None);
    let wanted: Vec<u32> = (1..=300)
        .filter(|seq| seq % 3 != 0 || *seq == 120)
        .collect();
    let seen: Vec<u32> = wanted.iter().copied().filter(|seq| *seq <= 180).collect();
    // The order of the given positions does not matter.
    let read = LogRead::at(wanted.iter().rev().map(|seq| Seq(*seq))).unwrap();
    for rows in [1, 7, 64, 65, 1_000] {
        let read = read.clone().with_max_rows(rows);
        let oldest = chat.pages(read.clone()).await;
        let newest = chat.pages(read.newest_first()).await;
        assert_eq!(oldest.len(), seen.len().div_ceil(rows), "{rows} a page");
        assert_eq!(oldest.concat(), seen, "{rows} a page");
        assert_eq!(newest.len(), oldest.len(), "{rows} a page");
        assert!(
            newest.concat().iter().eq(seen.iter().rev()),
            "{rows} a page"
        );
    }
    let all = chat.entries().await;
    let page = chat.page(&read).await;
    for entry in &page.items {
        assert_eq!(entry, &all[entry.seq.0 as usize - 1]);
    }
    let none = LogRead::at([Seq(500)]).unwrap();
    assert_eq!(chat.pages(none).await, [[0_u32; 0]]);
}

/// Checks that a read ignores positions beyond the end of the log.
pub async fn reads_beyond_the_head_end_there<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let empty = chat.page(&LogRead::new(range(1, 5))).await;
    assert_eq!((empty.items.len(), empty.next), (0, None));
    chat.fill(4).await;
    let far = LogRead::new(range(3, u32::MAX)).with_max_rows(1);
    assert_eq!(chat.pages(far.clone()).await, [[3], [4]]);
    assert_eq!(chat.pages(far.newest_first()).await, [[4], [3]]);
    let beyond = chat.page(&LogRead::new(range(5, 9))).await;
    assert_eq!((beyond.items.len(), beyond.next), (0, None));
}

/// Checks that running sums at positions, and positions found by running sums, agree with the entries, across segments.
pub async fn running_sums_and_positions<S: FullStore>(store: &S) {
    let parent = Chat::root(store, "parent").await;
    assert_eq!(parent.running(&[]).await, [0u64; 0]);
    assert_eq!(parent.running(&[Seq(0), Seq(9)]).await, [0, 0]);
    assert_eq!(store.seq_at(parent.id, 0).await.unwrap(), None);
    parent.fill(3).await;
    let note = Message::note(Role::User, vec![Part::text("note")]);
    parent.append([note]).await;
    parent.fill(3).await;
    let child = parent.fork("child", 5).await;
    let more = (0..4).map(|n| Message::user(format!("more {n}")));
    child.append(more).await;
    for chat in [parent, child] {
        let all = chat.entries().await;
        let head = all.len() as u32;
        let mut at: Vec<Seq> = (0..=head + 2).rev().map(Seq).collect();
        at.extend([Seq(2), Seq(2), Seq(u32::MAX)]);
        let sums = chat.running(&at).await;
        let sum_at = |seq: Seq| match seq.0.min(head) {
            0 => 0,
            n => all[n as usize - 1].running,
        };
        assert!(sums.into_iter().eq(at.into_iter().map(sum_at)));
        let total = sum_at(Seq(head));
        for tokens in 0..=total + 1 {
            let expected = all.iter().find(|e| e.running >= tokens).map(|e| e.seq);
            let found = store.seq_at(chat.id, tokens).await.unwrap();
            assert_eq!(found, expected, "{tokens} tokens");
        }
        assert_eq!(store.seq_at(chat.id, u64::MAX).await.unwrap(), None);
    }
    assert_eq!(parent.find(&[]).await, []);
}

/// Checks that stored data are still present after the store is opened again.
pub async fn a_store_opens_again<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = Chat::root(&store, "chat").await;
    chat.append(hard_messages()).await;
    chat.fill(10).await;
    chat.show_leaf("dag", range(2, 8), "short").await;
    let all = async |chat: Chat<'_, F::Store>| {
        (
            chat.info().await,
            chat.entries().await,
            chat.spans("dag").await,
        )
    };
    let (id, before) = (chat.id, all(chat).await);
    let store = fixture.reopen(store).await;
    let chat = Chat::new(&store, id);
    assert_eq!(all(chat).await, before);
    assert!(!store.location().is_empty(), "a store says where it is");
    chat.fill(1).await;
    assert_eq!(chat.info().await.head, Seq(15));
    sound(&store).await;
}

/// Checks concurrent writers: logs have no gaps, a key is one conversation, and of two appends that expect the same end
/// of the log one succeeds.
pub async fn writers_side_by_side<S: FullStore>(store: &S) {
    let new = new_conversation("chat", Origin::Root);
    let opened = join_all([(); 3].map(|()| store.open(&new))).await;
    let ids: Vec<_> = opened.into_iter().map(|one| one.unwrap().id).collect();
    let chat = Chat::new(store, ids[0]);
    assert_eq!(ids, [chat.id; 3]);
    let append = async |names: [&str; 3], at| {
        let said = |name: &str| {
            let said = |n| entry(message(&format!("{name}{n}"), &format!("{name} says {n}")));
            batch(at, (0..5).map(said))
        };
        let appends = names.map(said);
        join_all(
            appends
                .each_ref()
                .map(|append| store.append(chat.id, append)),
        )
        .await
    };
    for appended in append(["a", "b", "c"], AppendAt::Any).await {
        let outcomes = appended.unwrap().outcomes;
        let Inserted(first) = outcomes[0] else {
            panic!("{outcomes:?}");
        };
        let dense = (first.0..first.0 + 5).map(|seq| Inserted(Seq(seq)));
        assert!(dense.eq(outcomes.iter().copied()), "{outcomes:?}");
    }
    assert_eq!(chat.texts().await.len(), 15);
    // A batch that is appended three times is stored once.
    for appended in append(["d"; 3], AppendAt::Any).await {
        assert_eq!(appended.unwrap().head, Seq(20));
    }
    let demands = append(["e", "f", "g"], AppendAt::Head(Seq(20))).await;
    let refused = demands.into_iter().filter_map(Result::err);
    let refused: Vec<ErrorKind> = refused.map(|error| error.kind()).collect();
    assert_eq!(refused, [ErrorKind::HeadMoved; 2]);
    let job = JobKey("job".to_owned());
    let owners = ["a", "b", "c"].map(|name| Owner(name.to_owned()));
    let hour = Duration::from_secs(3_600);
    let claims = owners
        .each_ref()
        .map(|owner| store.claim(chat.id, &job, owner, hour, 0));
    let claims = join_all(claims).await.into_iter();
    let granted = claims.filter(|claim| matches!(claim, Ok(Claim::Granted(_))));
    assert_eq!(granted.count(), 1, "one of three claims is granted");
}

//! Tests with connections that are lost, and servers that stop and start again.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use memory_model::ConversationId;
use memory_store::{ErrorKind, Owner, Result, Store as _, WorkQueue as _};
use store_conformance::{Chat, sound};
use store_postgres::{PostgresOptions, PostgresStore};

use crate::common::{batch, column, run, schemas, stranger, texts, with};

/// A way to the server that can be cut, as a network or a server that stops does.
struct Relay {
    port: u16,
    state: Arc<State>,
}

struct State {
    server: SocketAddr,
    is_open: AtomicBool,
    /// Word at which the connection that sends it is cut: before the server gets it, or instead of the answer.
    cut_at: Mutex<Option<(&'static str, Cut)>>,
    ends: Mutex<Vec<TcpStream>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Before,
    After,
}

impl Relay {
    /// Returns a relay to the server of a URL, and the URL that leads through it.
    fn new(url: &str) -> (Self, String) {
        let (head, tail) = url.split_once('@').unwrap();
        let (server, tail) = tail.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            server: server.parse().expect("a server at an address with a port"),
            is_open: AtomicBool::new(true),
            cut_at: Mutex::new(None),
            ends: Mutex::default(),
        });
        let accepting = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.is_open.load(Ordering::SeqCst) {
                    accepting.connect(client);
                }
            }
        });
        (
            Self { port, state },
            format!("{head}@127.0.0.1:{port}/{tail}"),
        )
    }

    /// Cuts all connections.
    fn cut(&self) {
        for end in self.state.ends.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    /// Cuts all connections, and those that are made until the relay is opened.
    fn close(&self) {
        self.state.is_open.store(false, Ordering::SeqCst);
        self.cut();
    }

    fn open(&self) {
        self.state.is_open.store(true, Ordering::SeqCst);
    }

    fn cut_at(&self, word: &'static str, when: Cut) {
        *self.state.cut_at.lock().unwrap() = Some((word, when));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.close();
        // Wakes the thread, which then fails to pass anything on.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn connect(self: &Arc<Self>, client: TcpStream) {
        let server = TcpStream::connect(self.server).unwrap();
        let both = [&client, &server].map(|end| {
            end.set_nodelay(true).unwrap();
            end.try_clone().unwrap()
        });
        self.ends.lock().unwrap().extend(both);
        let is_mute = Arc::new(AtomicBool::new(false));
        let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let (state, mutes) = (self.clone(), is_mute.clone());
        std::thread::spawn(move || {
            pass(from, to, |sent| {
                let mut cut_at = state.cut_at.lock().unwrap();
                let sent = String::from_utf8_lossy(sent);
                let cut = cut_at.take_if(|(word, _)| sent.contains(*word));
                let cut = cut.map(|(_, when)| when);
                mutes.fetch_or(cut == Some(Cut::After), Ordering::SeqCst);
                cut != Some(Cut::Before)
            });
        });
        std::thread::spawn(move || pass(server, client, |_| !is_mute.load(Ordering::SeqCst)));
    }
}

/// Passes on what comes from one end while `passes` accepts it. Then closes both.
fn pass(mut from: TcpStream, mut to: TcpStream, mut passes: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !passes(&buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}

/// Checks that `is_retryable` says what the kind of an error means: a lost change may be repeated blindly, one that is
/// uncertain may not.
fn is_lost(error: &memory_store::Error) {
    let kinds = [ErrorKind::Disconnected, ErrorKind::Uncertain];
    assert!(kinds.contains(&error.kind()), "{error:?}");
    assert_eq!(
        error.is_retryable(),
        error.kind() == ErrorKind::Disconnected
    );
}

/// Appends numbered messages until this succeeds, as a program does that gives its messages ids.
async fn append(store: &PostgresStore, id: ConversationId, first: u32) -> u32 {
    let append = batch(texts(first, 3));
    for failures in 0..100 {
        match store.append(id, &append).await {
            Ok(_) => return failures,
            Err(error) => is_lost(&error),
        }
    }
    panic!("the append succeeds at last");
}

/// Checks that the log has each of the messages from 1 to `last` once, in order.
async fn whole(store: &PostgresStore, id: ConversationId, last: u32) {
    let expected: Vec<String> = (1..=last).map(|n| format!("message {n}")).collect();
    assert_eq!(Chat::new(store, id).texts().await, expected);
    sound(store).await;
}

/// Ends all connections of a program on the server. Returns how many there were.
async fn terminate(db: &mut sqlx::PgConnection, name: &str) -> usize {
    let sql = format!(
        "select pg_terminate_backend(pid)::text from pg_stat_activity where application_name = '{name}'"
    );
    column(db, &sql).await.len()
}

#[tokio::test]
async fn connections_that_were_lost_between_two_calls_are_made_again() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let id = Chat::root(&store, "a").await.id;
    let name = format!("test_lost_{}", std::process::id());
    let (relay, through) = Relay::new(&with(&url, &format!("application_name={name}")));
    let options = PostgresOptions::new().with_max_connections(3);
    let store = options.open(&through).await.unwrap();
    let mut db = stranger(&url).await;
    let mut last = 0;
    for round in 0..10 {
        if round % 2 == 0 {
            relay.cut();
        } else {
            assert!(terminate(&mut db, &name).await > 0);
        }
        // A read never fails, nor does a write of which nothing was sent yet.
        let found = Chat::new(&store, id).texts().await;
        assert_eq!(found.len(), last as usize);
        relay.cut();
        assert_eq!(append(&store, id, last + 1).await, 0);
        last += 3;
    }
    whole(&store, id, last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_goes_on_while_connections_are_lost() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 900)).await;
    let (relay, through) = Relay::new(&url);
    let options = PostgresOptions::new().with_max_connections(2);
    let store = options.open(&through).await.unwrap();
    let is_done = AtomicBool::new(false);
    let cutting = async {
        for pause in [5, 10, 20, 40, 80, 160, 320] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            relay.cut();
        }
        is_done.store(true, Ordering::SeqCst);
    };
    let reading = async {
        while !is_done.load(Ordering::SeqCst) {
            // A page of which rows were passed on already is not read again by the store, but by its caller.
            match read_all(&store, chat.id).await {
                Ok(count) => assert_eq!(count, 900),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}"),
            }
        }
    };
    tokio::join!(cutting, reading);
    assert_eq!(read_all(&store, chat.id).await.unwrap(), 900);
}

async fn read_all(store: &PostgresStore, id: ConversationId) -> Result<usize> {
    let range = store_conformance::range(1, 900);
    let entries = memory_store::read_entries(store, id, range).await?;
    Ok(entries.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_while_connections_are_lost_are_stored_once() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let id = Chat::root(&store, "a").await.id;
    let (relay, through) = Relay::new(&url);
    let options = PostgresOptions::new().with_max_connections(2);
    let unlucky = options.open(&through).await.unwrap();
    let is_done = AtomicBool::new(false);
    let cutting = async {
        let mut pause = 30;
        while !is_done.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            pause = (pause * 7 + 3) % 53;
            relay.cut();
        }
    };
    let writing = async {
        let (mut appends, mut failures) = (0, 0);
        while failures < 3 && appends < 300 {
            failures += append(&unlucky, id, 3 * appends + 1).await;
            appends += 1;
        }
        is_done.store(true, Ordering::SeqCst);
        (appends, failures)
    };
    let ((), (appends, failures)) = tokio::join!(cutting, writing);
    assert!(failures > 0, "no append met a cut");
    whole(&store, id, 3 * appends).await;
}

#[tokio::test]
async fn a_commit_without_an_answer_is_uncertain_and_may_be_repeated() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let id = Chat::root(&store, "a").await.id;
    let (relay, through) = Relay::new(&url);
    let unlucky = PostgresOptions::new().open(&through).await.unwrap();
    for (n, cut) in (0..).zip([Cut::Before, Cut::After]) {
        append(&unlucky, id, 6 * n + 1).await;
        relay.cut_at("COMMIT", cut);
        let next = batch(texts(6 * n + 4, 3));
        let error = unlucky.append(id, &next).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Uncertain, "{error:?}");
        assert!(!error.is_retryable());
        let text = error.to_string();
        assert!(
            text.contains(&format!(":{}/", relay.port)) && text.contains("read again"),
            "{text}"
        );
        let stored = Chat::new(&store, id).texts().await.len();
        let expected = 6 * n + 3 + if cut == Cut::After { 3 } else { 0 };
        assert_eq!(stored, expected as usize, "{cut:?}");
        assert_eq!(append(&unlucky, id, 6 * n + 4).await, 0);
        whole(&store, id, 6 * n + 6).await;
    }
}

/// Checks a write that is a transaction by itself: it takes a conversation from the queue of the workers.
#[tokio::test]
async fn a_write_without_an_answer_is_uncertain_also_if_it_returns_rows() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    Chat::root(&store, "a").await.append(texts(1, 3)).await;
    let (relay, through) = Relay::new(&url);
    let unlucky = PostgresOptions::new().open(&through).await.unwrap();
    relay.cut_at("RETURNING", Cut::Before);
    let owner = Owner("worker".to_owned());
    let minute = Duration::from_secs(60);
    let error = unlucky.take_changed(&owner, minute).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Uncertain, "{error:?}");
    let taken = unlucky.take_changed(&owner, minute).await.unwrap();
    assert!(taken.is_some());
}

#[tokio::test]
async fn a_server_that_is_away_for_a_while_is_waited_for() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let id = Chat::root(&store, "a").await.id;
    let (relay, through) = Relay::new(&url);
    let patient = PostgresOptions::new().open(&through).await.unwrap();
    let timeout = Duration::from_millis(300);
    let hasty = PostgresOptions::new().with_timeout(timeout);
    let hasty = hasty.open(&through).await.unwrap();
    for store in [&patient, &hasty] {
        assert_eq!(Chat::new(store, id).texts().await, [""; 0]);
    }
    relay.close();
    let away = async {
        // One that does not wait for long says that it got no answer.
        for _ in 0..2 {
            let begun = Instant::now();
            let read = Chat::new(&hasty, id);
            let read = hasty.views(read.id).await.unwrap_err();
            let append = hasty.append(id, &batch(texts(1, 3))).await.unwrap_err();
            for error in [read, append] {
                assert!(error.is_retryable(), "{error:?}");
                assert!(
                    error.to_string().contains(&relay.port.to_string()),
                    "{error}"
                );
            }
            assert!(begun.elapsed() < Duration::from_secs(10));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        relay.open();
    };
    let reading = async { patient.views(id).await };
    let writing = async { append(&patient, id, 1).await };
    let ((), read, failures) = tokio::join!(away, reading, writing);
    assert_eq!((read.unwrap().len(), failures), (0, 0));
    append(&hasty, id, 4).await;
    whole(&store, id, 6).await;
}

/// Checks that a lost transaction does not end as another call's: the server ends it, and its lock.
#[tokio::test]
async fn a_connection_that_is_lost_within_a_transaction_frees_the_family() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let id = Chat::root(&store, "a").await.id;
    let (relay, through) = Relay::new(&url);
    let unlucky = PostgresOptions::new().open(&through).await.unwrap();
    let mut held = stranger(&url).await;
    run(&mut held, "begin; lock table message in exclusive mode")
        .await
        .unwrap();
    let next = batch(texts(1, 3));
    let waiting = unlucky.append(id, &next);
    let cutting = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        relay.cut();
        tokio::time::sleep(Duration::from_millis(100)).await;
        run(&mut held, "commit").await.unwrap();
    };
    let (appended, ()) = tokio::join!(waiting, cutting);
    let error = appended.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
    append(&unlucky, id, 1).await;
    whole(&store, id, 3).await;
}

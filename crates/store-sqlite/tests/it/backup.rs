//! Tests of backups and of putting them in the place of a database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use memory_model::{Message, Seq, SeqRange, Timestamp};
use memory_store::{ConversationRef, Erase, ErrorKind, Maintain as _, Origin, Store as _, erase};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use store_conformance::{Chat, new_conversation};
use store_sqlite::{Replaced, SqliteOptions, SqliteStore};

use crate::common::{store, texts};

/// Returns the settings of a database file, as another connection sees them.
async fn settings(path: &Path) -> (i64, i64, i64, i64, String) {
    let options = SqliteConnectOptions::new().filename(path);
    let mut connection: SqliteConnection = options.connect().await.unwrap();
    let row = sqlx::query_as(
        "select application_id, user_version, auto_vacuum, page_size, journal_mode from pragma_application_id,
           pragma_user_version, pragma_auto_vacuum, pragma_page_size, pragma_journal_mode",
    );
    let row = row.fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    row
}

fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Replaces the database by the backup, with the erasures that the backup lacks.
pub(crate) async fn restore(backup: &Path, place: &Path) -> memory_store::Result<Replaced> {
    let options = SqliteOptions::new().with_lock_timeout(Duration::from_millis(50));
    let mut restore = options.begin_restore(backup, place).await?;
    let replaced = restore.compare().await?;
    restore.finish(&replaced.erasures).await?;
    Ok(replaced)
}

/// Reads the texts of a conversation.
pub(crate) async fn words(path: &Path, key: &str) -> Vec<String> {
    let store = SqliteOptions::new().read_only().open(path).await.unwrap();
    let found = store.conversation(&ConversationRef::Key(key.into())).await;
    let texts = match found.unwrap() {
        Some(found) => {
            let entries = Chat::new(&store, found.id).entries().await;
            entries
                .iter()
                .map(|entry| entry.text().to_string())
                .collect()
        }
        None => Vec::new(),
    };
    assert_eq!(store.check().await.unwrap(), []);
    store.close().await.unwrap();
    texts
}

#[tokio::test]
async fn a_backup_is_a_database_like_the_original_while_a_writer_goes_on() {
    let (folder, writing) = store().await;
    let path = folder.path().join("memory.db");
    let chat = Chat::root(&writing, "a").await;
    chat.append(texts(1, 500)).await;
    let to = folder.path().join("copy.db");
    // A write transaction of another connection stops no backup, and is not in it.
    let options = SqliteConnectOptions::new().filename(&path);
    let mut other = options.connect().await.unwrap();
    let open = "begin immediate; update conversation set updated_at = 7";
    sqlx::raw_sql(open).execute(&mut other).await.unwrap();
    let report = SqliteOptions::new().backup(&path, &to).await.unwrap();
    sqlx::raw_sql("rollback").execute(&mut other).await.unwrap();
    assert_eq!((report.conversations, report.entries), (1, 500));
    assert_eq!(report.bytes, std::fs::metadata(&to).unwrap().len());
    assert!(
        !names(folder.path())
            .iter()
            .any(|name| name.starts_with("copy.db-"))
    );

    assert_eq!(settings(&to).await, settings(&path).await);
    assert_eq!(settings(&to).await.4, "wal");
    assert_eq!(words(&to, "a").await, words(&path, "a").await);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&to).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // The copy is written like any database.
    let copy = SqliteStore::open(&to).await.unwrap();
    Chat::root(&copy, "b").await.append(texts(1, 3)).await;
    copy.close().await.unwrap();

    // An existing file stays as it is, and a database of another program is no source.
    let before = std::fs::read(&to).unwrap();
    let error = SqliteOptions::new().backup(&path, &to).await.unwrap_err();
    assert!(error.to_string().contains("exists"), "{error}");
    assert_eq!(std::fs::read(&to).unwrap(), before);
    let text = folder.path().join("text");
    std::fs::write(&text, "no database").unwrap();
    let new = folder.path().join("new.db");
    let error = SqliteOptions::new().backup(&text, &new).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignDatabase);
    assert!(!new.exists());
}

/// Creates a database with a backup that is older than its last entries.
pub(crate) async fn with_backup() -> (tempfile::TempDir, SqliteStore, [PathBuf; 2]) {
    let (folder, store) = store().await;
    let paths = [
        folder.path().join("memory.db"),
        folder.path().join("old.db"),
    ];
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 20)).await;
    Chat::root(&store, "kept").await.append(texts(100, 5)).await;
    SqliteOptions::new()
        .backup(&paths[0], &paths[1])
        .await
        .unwrap();
    chat.append(texts(21, 4)).await;
    Chat::root(&store, "new").await.append(texts(50, 3)).await;
    (folder, store, paths)
}

#[tokio::test]
async fn a_restore_says_what_is_lost_and_has_the_content_of_the_backup() {
    let (folder, store, [path, old]) = with_backup().await;
    let expected = words(&old, "a").await;
    store.close().await.unwrap();
    let replaced = restore(&old, &path).await.unwrap();
    assert_eq!(replaced.conversations, 3);
    let lost = replaced.lost.iter();
    let lost: Vec<_> = lost
        .map(|one| (one.key.as_str(), one.entries, one.conversation))
        .collect();
    assert_eq!(lost, [("a", 4, false), ("new", 3, true)]);
    assert_eq!(replaced.erasures, []);
    assert_eq!(words(&path, "a").await, expected);
    assert!(words(&path, "new").await.is_empty());
    assert_eq!(settings(&path).await, settings(&old).await);
    assert_eq!(names(folder.path()), ["memory.db", "old.db"]);
    // It is written as before.
    let store = SqliteStore::open(&path).await.unwrap();
    Chat::root(&store, "later").await.append(texts(1, 3)).await;
    assert_eq!(store.check().await.unwrap(), []);
    store.close().await.unwrap();

    // A place without a database gets one.
    let place = folder.path().join("place.db");
    let replaced = restore(&old, &place).await.unwrap();
    assert_eq!(replaced, Replaced::default());
    assert_eq!(words(&place, "a").await, expected);
    assert_eq!(settings(&place).await, settings(&old).await);
}

#[tokio::test]
async fn erased_words_do_not_come_back_from_a_backup() {
    let (folder, store, [path, old]) = with_backup().await;
    let word = "xylograph";
    let backup = folder.path().join("words.db");
    let secrets = Chat::root(&store, "secret").await;
    secrets
        .append(std::iter::once(Message::user(format!("{word} one"))))
        .await;
    SqliteOptions::new().backup(&path, &backup).await.unwrap();
    let first = SeqRange::new(Seq(3), Seq(6)).unwrap();
    for (key, request) in [
        ("a", Erase::range(first, "wish", Timestamp(5))),
        (
            "a",
            Erase::range(SeqRange::single(Seq(9)), "other", Timestamp(6)),
        ),
        // The older backup does not have this entry.
        (
            "a",
            Erase::range(SeqRange::single(Seq(24)), "late", Timestamp(7)),
        ),
        ("secret", Erase::all("gone", Timestamp(8))),
    ] {
        erase(&store, &ConversationRef::Key(key.into()), &request)
            .await
            .unwrap();
    }
    store.close().await.unwrap();
    let again = restore(&backup, &path).await.unwrap().erasures;
    let again: Vec<_> = again
        .iter()
        .map(|one| {
            (
                one.key.as_str(),
                one.range.to_string(),
                one.at.0,
                one.reason.as_str(),
            )
        })
        .collect();
    let expected = [
        ("a", "3-6", 5, "wish"),
        ("a", "9-9", 6, "other"),
        ("a", "24-24", 7, "late"),
        ("secret", "1-1", 8, "gone"),
    ];
    assert_eq!(
        again,
        expected.map(|(key, range, at, reason)| (key, range.to_owned(), at, reason))
    );
    let texts = words(&path, "a").await;
    for erased in [3, 4, 5, 6, 9, 24] {
        assert!(
            !texts[erased - 1].contains("message"),
            "{erased}: {texts:?}"
        );
    }
    assert_eq!(texts[1], "message 2");
    let bytes = std::fs::read(&path).unwrap();
    assert!(
        !bytes
            .windows(word.len())
            .any(|window| window == word.as_bytes())
    );
    // The erasures are recorded as before, so that an older backup does not bring the words back either.
    let again = restore(&old, &path).await.unwrap().erasures;
    let again: Vec<_> = again
        .iter()
        .map(|one| (one.range.to_string(), one.at.0))
        .collect();
    assert_eq!(again, [("3-6".to_owned(), 5), ("9-9".to_owned(), 6)]);
    assert!(!words(&path, "a").await[2].contains("message"));
    assert_eq!(words(&path, "a").await.len(), 20);
}

/// Erases one entry of a conversation.
async fn erase_one(store: &SqliteStore, key: &str, seq: u32) {
    let request = Erase::range(SeqRange::single(Seq(seq)), "wish", Timestamp(5));
    erase(store, &ConversationRef::Key(key.into()), &request)
        .await
        .unwrap();
}

fn again(replaced: &Replaced) -> Vec<(&str, String)> {
    let erasures = replaced.erasures.iter();
    erasures
        .map(|one| (one.key.as_str(), one.range.to_string()))
        .collect()
}

#[tokio::test]
async fn words_that_were_not_erased_are_kept() {
    let (folder, store) = store().await;
    let path = folder.path().join("memory.db");
    let backup = folder.path().join("old.db");
    let moved = folder.path().join("moved.db");
    for key in ["a", "copy"] {
        Chat::root(&store, key).await.append(texts(1, 3)).await;
    }
    let twice = ["same", "other", "same"].map(Message::user);
    Chat::root(&store, "twice").await.append(twice).await;
    SqliteOptions::new().backup(&path, &backup).await.unwrap();
    erase_one(&store, "a", 2).await;
    erase_one(&store, "twice", 1).await;
    store.close().await.unwrap();
    let expected = [("a", "2-2".to_owned()), ("twice", "1-1".to_owned())];
    assert_eq!(again(&restore(&backup, &path).await.unwrap()), expected);
    let kept = ["message 1", "message 2", "message 3"];
    assert_eq!(words(&path, "copy").await, kept);
    assert_eq!(words(&path, "twice").await[1..], ["other", "same"]);

    // In a database that has the entries at other positions.
    let store = SqliteStore::open(&moved).await.unwrap();
    for key in ["a", "copy", "third"] {
        let chat = Chat::root(&store, key).await;
        chat.append(texts(9, 1).chain(texts(1, 3))).await;
    }
    erase_one(&store, "third", 2).await;
    erase_one(&store, "a", 3).await;
    store.close().await.unwrap();
    let replaced = restore(&backup, &moved).await.unwrap();
    let expected = [("a", "2-2".to_owned())];
    assert_eq!(again(&replaced), expected);
    assert_eq!(words(&moved, "copy").await, kept);
}

#[tokio::test]
async fn a_database_that_is_open_elsewhere_is_not_replaced() {
    let (folder, store, [path, old]) = with_backup().await;
    let before = words(&path, "a").await;
    // The store is idle, but it remembers numbers of conversations.
    let error = restore(&old, &path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(
        error
            .to_string()
            .contains("has been open in another process"),
        "{error}"
    );
    store.close().await.unwrap();
    let reading = SqliteOptions::new().read_only().open(&path).await.unwrap();
    reading.list(&Default::default(), None, 9).await.unwrap();
    let error = restore(&old, &path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    reading.close().await.unwrap();
    assert_eq!(words(&path, "a").await, before);

    // While a restore holds the lock, another process waits, and then sees the new content.
    let options = || SqliteOptions::new().with_lock_timeout(Duration::from_millis(50));
    let restore = options().begin_restore(&old, &path).await.unwrap();
    let error = options().open(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    // So no erasure removes the copy of a restore that runs.
    assert!(folder.path().join("memory.db-restore").exists());
    let waiting = tokio::spawn(SqliteOptions::new().open(path.clone()));
    restore.finish(&[]).await.unwrap();
    let store = waiting.await.unwrap().unwrap();
    let new = new_conversation("new", Origin::Root);
    let new = store
        .conversation(&ConversationRef::Key(new.key))
        .await
        .unwrap();
    assert_eq!(new, None);
    store.close().await.unwrap();
    assert_eq!(words(&path, "a").await.len(), 20);

    // A restore that is given up changes nothing.
    let restore = options().begin_restore(&old, &path).await.unwrap();
    drop(restore);
    assert_eq!(words(&path, "a").await.len(), 20);
    assert_eq!(names(folder.path()), ["memory.db", "old.db"]);
}

#[tokio::test]
async fn a_restore_refuses_what_it_cannot_use_and_changes_nothing() {
    let (folder, store, [path, old]) = with_backup().await;
    store.close().await.unwrap();
    let before = words(&path, "a").await;
    let foreign = folder.path().join("foreign.db");
    let mut other = SqliteConnectOptions::new()
        .filename(&foreign)
        .create_if_missing(true)
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql("create table t (x)")
        .execute(&mut other)
        .await
        .unwrap();
    other.close().await.unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "no database, only a text of some length".repeat(99)).unwrap();
    // The copy of a restore has this name.
    let named = folder.path().join("memory.db-restore");
    std::fs::copy(&old, &named).unwrap();
    for (backup, place, kind) in [
        (&named, &path, ErrorKind::Invalid),
        (&foreign, &path, ErrorKind::ForeignDatabase),
        (&text, &path, ErrorKind::ForeignDatabase),
        (&old, &foreign, ErrorKind::ForeignDatabase),
        (&old, &text, ErrorKind::ForeignDatabase),
        (&path, &path, ErrorKind::Invalid),
    ] {
        let bytes = std::fs::read(place).unwrap();
        let error = restore(backup, place).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(std::fs::read(place).unwrap() == bytes, "{error}");
    }
    #[cfg(unix)]
    for target in ["memory.db", "new.db"] {
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(folder.path().join(target), &link).unwrap();
        let copy = folder.path().join(format!("{target}-restore"));
        std::fs::copy(&old, &copy).unwrap();
        let error = restore(&copy, &link).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(std::fs::read(&copy).unwrap() == std::fs::read(&old).unwrap());
        std::fs::remove_file(link).unwrap();
    }
    assert_eq!(words(&path, "a").await, before);
    assert!(std::fs::read(&named).unwrap() == std::fs::read(&old).unwrap());
    // No backup is made under the name.
    std::fs::remove_file(&named).unwrap();
    let refused = SqliteOptions::new().backup(&path, &named).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!named.exists());
}

#[tokio::test]
async fn a_damaged_database_is_replaced_without_a_comparison() {
    let (_folder, store, [path, old]) = with_backup().await;
    store.close().await.unwrap();
    // All pages but the first.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8192..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let mut restore = SqliteOptions::new()
        .begin_restore(&old, &path)
        .await
        .unwrap();
    let error = restore.compare().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    restore.finish(&[]).await.unwrap();
    assert_eq!(words(&path, "a").await, words(&old, "a").await);

    let mut other = SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql("drop table erasure")
        .execute(&mut other)
        .await
        .unwrap();
    other.close().await.unwrap();
    let error = self::restore(&old, &path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// If the erasures cannot be read only now, a restore without them would bring erased words back.
#[tokio::test]
async fn a_failure_to_compare_is_no_damage() {
    let (folder, store, [path, old]) = with_backup().await;
    store.close().await.unwrap();
    let mut restore = SqliteOptions::new()
        .begin_restore(&old, &path)
        .await
        .unwrap();
    let copy = folder.path().join("memory.db-restore");
    std::fs::remove_file(&copy).unwrap();
    std::fs::create_dir(&copy).unwrap();
    let error = restore.compare().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}

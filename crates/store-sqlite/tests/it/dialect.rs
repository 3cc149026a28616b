#![allow(
    clippy::disallowed_types,
    reason = "a second executor trusts what sea-query built"
)]
//! The shared logic of SQL stores in another dialect: PostgreSQL's statements, one at a time, on SQLite.

use std::marker::PhantomData;
use std::ops::{ControlFlow, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};

use futures::TryStreamExt as _;
use memory_model::{Clock as _, Seq, SystemClock, Timestamp};
use memory_store::{
    Error, ErrorKind, LogRead, Maintain as _, NewConversation, Order, Origin, Result, Store as _,
    Violation,
};
use sea_query::{PostgresQueryBuilder, QueryBuilder, QueryStatementWriter, SqliteQueryBuilder};
use sea_query_sqlx::SqlxValues;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Sqlite, Transaction};
use store_conformance::Fixture;
use store_sql::{Batch, Database, Executor, Prepared, PreparedTexts, SqlStore};
use store_sqlite::SqliteStore;
use tokio::sync::{Mutex, MutexGuard};

use crate::common::{append, dag, leaf, range, root, texts};

/// A dialect whose statements are recorded.
trait Dialect: QueryBuilder + Default + std::fmt::Debug + Send + Sync + 'static {
    fn texts() -> &'static PreparedTexts;
}

impl Dialect for PostgresQueryBuilder {
    fn texts() -> &'static PreparedTexts {
        static TEXTS: PreparedTexts = PreparedTexts::new();
        &TEXTS
    }
}

impl Dialect for SqliteQueryBuilder {
    fn texts() -> &'static PreparedTexts {
        static TEXTS: PreparedTexts = PreparedTexts::new();
        &TEXTS
    }
}

/// A database of one connection, and the texts of the statements that ran on it.
#[derive(Debug)]
struct Recorded<D> {
    path: PathBuf,
    connection: Mutex<Option<SqliteConnection>>,
    texts: Texts,
    dialect: PhantomData<D>,
}

type Texts = Arc<std::sync::Mutex<Vec<String>>>;

impl<D: Dialect> Recorded<D> {
    async fn open(path: PathBuf) -> Self {
        // The schema is SQLite's.
        let store = SqliteStore::open(&path).await.unwrap();
        store.close().await.unwrap();
        let options = SqliteConnectOptions::new().foreign_keys(true);
        let connection = options.filename(&path).connect().await.unwrap();
        Self {
            path,
            connection: Mutex::new(Some(connection)),
            texts: Texts::default(),
            dialect: PhantomData,
        }
    }

    /// Returns the statements that ran since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.texts.lock().unwrap())
    }

    async fn session(&self) -> Session<D, Held<'_>> {
        let held = self.connection.lock().await;
        let held = MutexGuard::map(held, |held| held.as_mut().unwrap());
        self.on(held)
    }

    fn on<C>(&self, connection: C) -> Session<D, C> {
        Session {
            connection,
            texts: Arc::clone(&self.texts),
            dialect: PhantomData,
        }
    }
}

type Held<'a> = tokio::sync::MappedMutexGuard<'a, SqliteConnection>;

fn failed(error: sqlx::Error) -> Error {
    Error::new(ErrorKind::Io, "a statement failed").with_source(error)
}

impl<D: Dialect> Database for Recorded<D> {
    type Reader<'a> = Session<D, Held<'a>>;
    type Writer<'a> = Session<D, Held<'a>>;
    type Transaction<'a> = Session<D, Transaction<'a, Sqlite>>;

    async fn read(&self) -> Result<Self::Reader<'_>> {
        Ok(self.session().await)
    }

    async fn write(&self) -> Result<Self::Writer<'_>> {
        Ok(self.session().await)
    }

    async fn begin<'a>(
        &'a self,
        writer: &'a mut Self::Writer<'_>,
    ) -> Result<Self::Transaction<'a>> {
        let begun = writer.connection.begin_with("begin immediate").await;
        Ok(self.on(begun.map_err(failed)?))
    }

    async fn commit(&self, transaction: Self::Transaction<'_>) -> Result<()> {
        transaction.connection.commit().await.map_err(failed)
    }

    async fn check(&self) -> Result<Vec<Violation>> {
        Ok(Vec::new())
    }

    async fn wipe(&self) -> Result<()> {
        Ok(())
    }

    fn location(&self) -> String {
        self.path.display().to_string()
    }

    async fn close(&self) -> Result<()> {
        match self.connection.lock().await.take() {
            Some(connection) => connection.close().await.map_err(failed),
            None => Ok(()),
        }
    }
}

struct Session<D, C> {
    connection: C,
    texts: Texts,
    dialect: PhantomData<D>,
}

impl<D: Dialect, C> Session<D, C> {
    fn record(&self, sql: &str) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.push(sql.to_owned());
    }

    fn built(
        &self,
        (sql, values): (String, sea_query::Values),
    ) -> (AssertSqlSafe<String>, SqlxValues) {
        self.record(&sql);
        (AssertSqlSafe(without_parentheses(sql)), SqlxValues(values))
    }

    fn prepared(&self, statement: Prepared) -> Result<AssertSqlSafe<String>> {
        let text = D::texts().get(statement, |statement| statement.build(D::default()).0)?;
        self.record(&text);
        Ok(AssertSqlSafe(without_parentheses(text.to_string())))
    }
}

/// SQLite takes no parentheses around a part of a union.
fn without_parentheses(mut sql: String) -> String {
    const UNION: [&str; 2] = ["UNION ALL (", "UNION ("];
    while let Some((at, union)) = UNION.into_iter().find_map(|u| Some((sql.find(u)?, u))) {
        let open = at + union.len() - 1;
        let mut depth = 0;
        let close = sql[open..].find(|c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        sql.remove(open + close.unwrap());
        sql.remove(open);
    }
    sql
}

impl<D: Dialect, C> Executor for Session<D, C>
where
    C: DerefMut<Target = SqliteConnection> + Send,
{
    type Row = SqliteRow;
    type Values = SqliteArguments;

    async fn all(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> Result<Vec<SqliteRow>> {
        let (sql, values) = self.built(statement.build(D::default()));
        let rows = sqlx::query_with(sql, values).fetch_all(&mut *self.connection);
        rows.await.map_err(failed)
    }

    async fn first(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> Result<Option<SqliteRow>> {
        let (sql, values) = self.built(statement.build(D::default()));
        let row = sqlx::query_with(sql, values).fetch_optional(&mut *self.connection);
        row.await.map_err(failed)
    }

    async fn each(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
        mut row: impl FnMut(&SqliteRow) -> Result<ControlFlow<()>> + Send,
    ) -> Result<()> {
        let (sql, values) = self.built(statement.build(D::default()));
        let mut rows = sqlx::query_with(sql, values).fetch(&mut *self.connection);
        while let Some(found) = rows.try_next().await.map_err(failed)? {
            if row(&found)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    async fn run(&mut self, statement: &(impl QueryStatementWriter + Sync)) -> Result<u64> {
        let (sql, values) = self.built(statement.build(D::default()));
        let done = sqlx::query_with(sql, values).execute(&mut *self.connection);
        done.await.map(|done| done.rows_affected()).map_err(failed)
    }

    async fn run_batch(&mut self, batch: Batch) -> Result<()> {
        self.all_of_batch(batch).await.map(|_| ())
    }

    async fn all_of_batch(&mut self, batch: Batch) -> Result<Vec<Vec<SqliteRow>>> {
        let mut all = Vec::new();
        for statement in batch.statements() {
            let (sql, values) = self.built(statement.build(D::default()));
            let found = sqlx::query_with(sql, values).fetch_all(&mut *self.connection);
            all.push(found.await.map_err(failed)?);
        }
        Ok(all)
    }

    async fn now(&mut self) -> Result<Timestamp> {
        Ok(SystemClock.now())
    }

    async fn run_prepared(&mut self, statement: Prepared, values: SqliteArguments) -> Result<()> {
        let sql = self.prepared(statement)?;
        let done = sqlx::query_with(sql, values).execute(&mut *self.connection);
        done.await.map(|_| ()).map_err(failed)
    }

    async fn all_prepared(
        &mut self,
        statement: Prepared,
        values: SqliteArguments,
    ) -> Result<Vec<SqliteRow>> {
        let sql = self.prepared(statement)?;
        let rows = sqlx::query_with(sql, values).fetch_all(&mut *self.connection);
        rows.await.map_err(failed)
    }
}

/// Stores whose statements are PostgreSQL's.
struct Numbered {
    folder: tempfile::TempDir,
    made: AtomicU32,
}

impl Numbered {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            made: AtomicU32::new(0),
        }
    }
}

impl Fixture for Numbered {
    type Store = SqlStore<Recorded<PostgresQueryBuilder>>;

    async fn fresh(&self) -> Self::Store {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(format!("{number}.db"));
        SqlStore::new(Recorded::open(path).await)
    }

    async fn reopen(&self, store: Self::Store) -> Self::Store {
        store.close().await.unwrap();
        SqlStore::new(Recorded::open(store.location().into()).await)
    }
}

mod numbered {
    use super::Numbered;

    store_conformance::conformance_tests!(Numbered::new());
}

#[tokio::test]
async fn random_operations_agree_with_the_reference() {
    store_conformance::random_ops(&Numbered::new(), 16).await;
}

/// The statements of one of each kind of operation.
async fn operations<D: Dialect>() -> Vec<(&'static str, Vec<String>)> {
    let folder = tempfile::tempdir().unwrap();
    let store = SqlStore::new(Recorded::<D>::open(folder.path().join("a.db")).await);
    let mut ran = Vec::new();
    let mut note = |what| ran.push((what, store.database().take()));
    let id = root(&store, "a").await;
    note("open");
    append(&store, id, texts(1, 9)).await;
    note("append");
    let read = LogRead::new(range(1, 9));
    store.read(id, &read).await.unwrap();
    note("read");
    store.seq_at(id, 5).await.unwrap();
    note("seq_at");
    let made = leaf(&store, id, range(1, 4)).await;
    note("publish");
    let shot = store.snapshot(id, &dag()).await.unwrap();
    let newest = store.spans(&shot, range(1, 9), Order::NewestFirst, 2);
    newest.await.unwrap();
    note("spans");
    let new = NewConversation {
        origin: Origin::Fork {
            parent: id,
            at: Seq(3),
        },
        ..NewConversation::root("b", crate::common::estimator(), Timestamp(9))
    };
    let fork = store.open(&new).await.unwrap().id;
    note("fork");
    store.find(fork, &["e2".to_owned()]).await.unwrap();
    note("find in a fork");
    let sources = [(made.source_hash, made.recipe.clone())];
    store.summaries_by_source(fork, &sources).await.unwrap();
    note("summaries_by_source");
    ran
}

/// The statements of both dialects are the same but for placeholders and the parentheses of unions.
#[tokio::test]
async fn dialects_differ_in_placeholders_alone() {
    let (first, second) = (
        operations::<SqliteQueryBuilder>().await,
        operations::<PostgresQueryBuilder>().await,
    );
    let unnumbered = |sql: &str| {
        let flat = without_parentheses(sql.to_owned());
        let mut pieces = flat.split('$');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            text.push('?');
            text.push_str(piece.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        text
    };
    assert_eq!(first.len(), second.len());
    for ((what, first), (_, second)) in first.iter().zip(&second) {
        let second: Vec<String> = second.iter().map(|sql| unnumbered(sql)).collect();
        assert_eq!(*first, second, "{what}");
    }
    let shown: Vec<String> = second
        .iter()
        .map(|(what, texts)| format!("-- {what}\n{}", texts.join("\n")))
        .collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

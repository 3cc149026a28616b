//! Functions that the tests share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use memory_model::Message;
use memory_store::{Append, AppendAt, Maintain as _};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use store_conformance::{Fixture, entry};
use store_postgres::{PostgresOptions, PostgresStore};

/// Variable with the URL of a server in which the tests may create schemas.
const URL: &str = "AGENT_MEMORY_TEST_POSTGRES_URL";

/// Returns the URL of the server for tests. Says that a test is left out if there is none.
pub(crate) fn server() -> Option<String> {
    let url = std::env::var(URL).ok().filter(|url| !url.is_empty());
    if url.is_none() {
        assert!(
            !is_required(),
            "{URL} is not set: give it the URL of a PostgreSQL server, as `cargo xtask postgres` does"
        );
        eprintln!("left out: {URL} is not set");
    }
    url
}

/// Evaluates to a fixture, or ends the test if there is no server.
macro_rules! schemas {
    () => {
        match $crate::common::server() {
            Some(url) => $crate::common::Schemas::new(&url),
            None => return,
        }
    };
}
pub(crate) use schemas;

/// Returns whether no test may be left out.
pub(crate) fn is_required() -> bool {
    std::env::var_os("AGENT_MEMORY_REQUIRE_POSTGRES").is_some()
}

/// Adds a parameter to a URL.
pub(crate) fn with(url: &str, parameter: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{parameter}")
}

/// Creates stores in schemas of the server for tests.
pub(crate) struct Schemas {
    url: String,
    /// URL of the server itself, where `url` leads to a pooler.
    direct: String,
    options: PostgresOptions,
    made: Mutex<Vec<String>>,
}

impl Schemas {
    pub(crate) fn new(url: &str) -> Self {
        Self::with_options(url, PostgresOptions::new().with_max_connections(3))
    }

    pub(crate) fn with_options(url: &str, options: PostgresOptions) -> Self {
        Self {
            url: url.to_owned(),
            direct: url.to_owned(),
            options,
            made: Mutex::default(),
        }
    }

    /// Has the stores connect by another URL.
    pub(crate) fn through(mut self, url: String) -> Self {
        self.url = url;
        self
    }

    /// Returns the URL of a schema that does not exist.
    pub(crate) fn unused(&self) -> String {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        let url = with(&self.url, &format!("schema={schema}"));
        self.made.lock().unwrap().push(schema);
        url
    }

    /// Opens a store in a new schema. Returns its URL too.
    pub(crate) async fn store(&self) -> (String, PostgresStore) {
        let url = self.unused();
        let store = self.open(&url).await;
        (url, store)
    }

    pub(crate) async fn open(&self, url: &str) -> PostgresStore {
        self.options.clone().open(url).await.unwrap()
    }
}

impl Drop for Schemas {
    /// Drops the schemas.
    fn drop(&mut self) {
        let url = self.direct.clone();
        let made = std::mem::take(self.made.get_mut().unwrap());
        // On a thread with a runtime of its own, because a drop cannot wait.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                for schema in made {
                    let drop =
                        format!("set lock_timeout = '20s'; drop schema if exists {schema} cascade");
                    run(&mut connection, &drop).await.unwrap();
                }
            });
        });
        let dropped = dropping.join();
        assert!(dropped.is_ok() || std::thread::panicking());
    }
}

/// Returns the schema in a URL, and the URL without it.
pub(crate) fn schema_of(url: &str) -> (&str, &str) {
    let (plain, schema) = url.split_once("schema=").unwrap();
    (schema, plain.trim_end_matches(['?', '&']))
}

/// Opens a connection to the schema of a store.
pub(crate) async fn stranger(url: &str) -> PgConnection {
    let (schema, plain) = schema_of(url);
    let mut connection = PgConnection::connect(plain).await.unwrap();
    let path = format!("set search_path = {schema}");
    run(&mut connection, &path).await.unwrap();
    connection
}

/// Runs SQL statements.
pub(crate) async fn run(on: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    sqlx::raw_sql(sql).execute(on).await.map(drop)
}

/// Returns the first column of an answer, as texts.
pub(crate) async fn column(on: &mut PgConnection, sql: &str) -> Vec<String> {
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    sqlx::query_scalar(sql).fetch_all(on).await.unwrap()
}

/// Returns messages with the numbers from `from` on. Each costs three tokens, up to number 9,999.
pub(crate) fn texts(from: u32, count: u32) -> impl Iterator<Item = Message> {
    let text = |n| Message::user(format!("message {n}")).with_external_id(format!("e{n}"));
    (from..from + count).map(text)
}

/// Creates an append of messages to the end of the log.
pub(crate) fn batch(messages: impl IntoIterator<Item = Message>) -> Append {
    store_conformance::batch(AppendAt::Any, messages.into_iter().map(entry))
}

impl Fixture for Schemas {
    type Store = PostgresStore;

    async fn fresh(&self) -> PostgresStore {
        self.open(&self.unused()).await
    }

    async fn reopen(&self, store: PostgresStore) -> PostgresStore {
        store.close().await.unwrap();
        self.open(&self.again(&store)).await
    }

    async fn second_store(&self, store: &PostgresStore) -> Option<PostgresStore> {
        Some(self.open(&self.again(store)).await)
    }
}

impl Schemas {
    /// Returns the URL of the schema that a store is in.
    fn again(&self, store: &PostgresStore) -> String {
        let location = store.location();
        let (_, schema) = location.split_once("schema=").unwrap();
        with(&self.url, &format!("schema={schema}"))
    }
}

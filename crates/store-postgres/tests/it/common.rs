//! Functions that the tests share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use memory_store::Maintain as _;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use store_conformance::Fixture;
use store_postgres::{PostgresOptions, PostgresStore};

/// Variable with the URL of a server in which the tests may create schemas.
const URL: &str = "AGENT_MEMORY_TEST_POSTGRES_URL";

/// Returns the URL of the server for tests. Says that a test is left out if there is none.
pub(crate) fn server() -> Option<String> {
    let url = std::env::var(URL).ok().filter(|url| !url.is_empty());
    if url.is_none() {
        assert!(
            std::env::var_os("AGENT_MEMORY_REQUIRE_POSTGRES").is_none(),
            "{URL} is not set: give it the URL of a PostgreSQL server, as `cargo xtask postgres` does"
        );
        eprintln!("left out: {URL} is not set");
    }
    url
}

/// Adds a parameter to a URL.
pub(crate) fn with(url: &str, parameter: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{parameter}")
}

/// Creates stores in schemas of the server for tests.
pub(crate) struct Schemas {
    url: String,
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
            options,
            made: Mutex::default(),
        }
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

    async fn open(&self, url: &str) -> PostgresStore {
        self.options.clone().open(url).await.unwrap()
    }
}

impl Drop for Schemas {
    /// Drops the schemas.
    fn drop(&mut self) {
        let url = self.url.clone();
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
                        sqlx::AssertSqlSafe(format!("drop schema if exists {schema} cascade"));
                    sqlx::raw_sql(drop).execute(&mut connection).await.unwrap();
                }
            });
        });
        dropping.join().unwrap();
    }
}

/// Opens a connection to the schema of a store.
pub(crate) async fn stranger(url: &str) -> PgConnection {
    let (plain, schema) = url.split_once("schema=").unwrap();
    let mut connection = PgConnection::connect(plain.trim_end_matches(['?', '&']))
        .await
        .unwrap();
    sqlx::query("select set_config('search_path', $1, false)")
        .bind(schema)
        .execute(&mut connection)
        .await
        .unwrap();
    connection
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

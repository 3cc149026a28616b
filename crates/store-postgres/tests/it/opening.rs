//! Tests of opening: servers, roles and schemas that do not fit.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use memory_model::{RawJson, Timestamp};
use memory_store::{Erase, Error, ErrorKind, Maintain as _, Origin, Store as _};
use sqlx::postgres::PgConnection;
use store_conformance::{Chat, new_conversation};
use store_postgres::{PostgresOptions, PostgresStore};

use crate::common::{
    Schemas, batch, column, is_required, run, schema_of, schemas, server, stranger, texts, with,
};

/// Word in every URL with a password.
const PASSWORD: &str = "hushed";

async fn refused(url: &str) -> Error {
    let opened = PostgresStore::open(url).await;
    opened.expect_err(url)
}

/// Checks the kind of an error, the words of its text, and that no text of it has the password.
#[track_caller]
fn tells(error: &Error, kind: ErrorKind, words: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{error:?}");
    for word in words {
        assert!(text.contains(word), "{word:?} is in: {text}");
    }
    assert!(!format!("{error:?}").contains(PASSWORD), "{error:?}");
}

/// Replaces the role and the password in a URL.
fn as_role(url: &str, role: &str) -> String {
    let (_, place) = url.split_once('@').unwrap();
    format!("postgres://{role}:{PASSWORD}@{place}")
}

/// Replaces the name of the database in a URL.
fn in_database(url: &str, name: &str) -> String {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (server, _) = base.rsplit_once('/').unwrap();
    format!("{server}/{name}?{query}")
}

/// A role that is dropped at the end of a test, after the schemas in which it has rights.
struct Role(String);

impl Role {
    /// Creates a role that may use a schema, and gives it the rights of `schema/grants.sql`, of which it keeps those that
    /// `keeps` accepts.
    async fn new(url: &str, keeps: impl Fn(&str) -> bool) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let role = format!("test_role_{}_{number}", std::process::id());
        let mut owner = stranger(url).await;
        let (schema, _) = schema_of(url);
        let usage = format!(
            "create role {role} login password '{PASSWORD}'; grant usage on schema {schema} to {role}"
        );
        run(&mut owner, &usage).await.unwrap();
        for grant in include_str!("../../schema/grants.sql").split_inclusive(';') {
            if keeps(grant) {
                let grant = grant.replace("agent_memory_app", &role);
                run(&mut owner, &grant).await.unwrap();
            }
        }
        Self(role)
    }

    async fn drop(self, schemas: Schemas) {
        let url = schemas.unused();
        let mut owner = stranger(&url).await;
        let Self(role) = self;
        run(
            &mut owner,
            &format!("drop owned by {role}; drop role {role}"),
        )
        .await
        .unwrap();
    }
}

/// Returns everything in a schema by name, with the rows of `schema_migrations`.
async fn content(url: &str) -> Vec<String> {
    let (schema, _) = schema_of(url);
    let mut db = stranger(url).await;
    let names = format!(
        "select relname || ' ' || relfilenode from pg_class where relnamespace = to_regnamespace('{schema}') \
         union all select proname || ' ' || pg_proc.xmin from pg_proc where pronamespace = to_regnamespace('{schema}') \
         union all select nspname || ' ' || pg_namespace.xmin from pg_namespace where nspname = '{schema}' order by 1"
    );
    let mut all = column(&mut db, &names).await;
    if all
        .iter()
        .any(|name| name.starts_with("schema_migrations "))
    {
        all.extend(column(&mut db, "select t::text from schema_migrations t").await);
    }
    all
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("postgres://somebody:{PASSWORD}@127.0.0.1:{port}/memory");
    let error = refused(&url).await;
    let place = format!("postgres://somebody@127.0.0.1:{port}/memory?schema=agent_memory");
    tells(
        &error,
        ErrorKind::Disconnected,
        &[&place, "cannot be reached", "check the address"],
    );
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_after_the_time_out() {
    // It takes connections and never says a word.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let options = PostgresOptions::new().with_timeout(Duration::from_millis(200));
    let url = format!("postgres://somebody:{PASSWORD}@127.0.0.1:{port}/memory");
    let opened = tokio::time::timeout(Duration::from_secs(20), options.open(&url)).await;
    let error = opened.unwrap().unwrap_err();
    tells(&error, ErrorKind::Disconnected, &["cannot be reached"]);
}

#[tokio::test]
async fn roles_passwords_and_databases_that_do_not_fit_are_named() {
    let schemas = schemas!();
    let url = schemas.unused();
    let error = refused(&as_role(&url, "nobody_of_this_name")).await;
    tells(
        &error,
        ErrorKind::Io,
        &["nobody_of_this_name@", "refuses the role or its password"],
    );
    let error = refused(&in_database(&url, "no_database_of_this_name")).await;
    tells(
        &error,
        ErrorKind::Io,
        &["/no_database_of_this_name?", "create it"],
    );

    // The server of `cargo xtask postgres` asks this role for its password.
    let mut owner = stranger(&url).await;
    let role = "agent_memory_password";
    // Another run may create it too.
    let _ = run(
        &mut owner,
        &format!("create role {role} login password 'another'"),
    )
    .await;
    match PostgresStore::open(&as_role(&url, role)).await {
        Err(error) if error.kind() == ErrorKind::Io => {
            tells(
                &error,
                ErrorKind::Io,
                &["agent_memory_password@", "password", "pg_hba.conf"],
            );
        }
        opened => {
            assert!(
                !is_required(),
                "the server asks no role for a password: {opened:?}"
            );
            eprintln!("left out: the server asks no role for a password");
        }
    }
    assert_eq!(content(&url).await, [""; 0]);
}

#[tokio::test]
async fn urls_and_names_of_schemas_that_are_not_valid_are_refused() {
    for url in [
        "memory.db",
        "mysql://a@b/c",
        "postgres://u:hushed@host:port/db",
        "",
    ] {
        tells(
            &refused(url).await,
            ErrorKind::Invalid,
            &["URL", "postgres://user"],
        );
    }
    let url = format!("postgres://u:{PASSWORD}@127.0.0.1:1/db");
    let long = "a".repeat(64);
    for name in [
        "",
        "Memory",
        "a-b",
        "a;b",
        "a b",
        "a\"",
        "1a",
        "pg_memory",
        "a%62",
        &long,
    ] {
        let error = refused(&with(&url, &format!("schema={name}"))).await;
        tells(
            &error,
            ErrorKind::Invalid,
            &[&format!("schema={name}"), "a-z, 0-9 and _"],
        );
    }
}

#[tokio::test]
async fn tables_of_other_programs_and_of_newer_versions_are_left_alone() {
    let schemas = schemas!();
    for (script, kind, words) in [
        (
            "create table message (x integer)",
            ErrorKind::ForeignDatabase,
            ["a table message of another program", "add schema=NAME"],
        ),
        (
            "create view summary as select 1 as x",
            ErrorKind::ForeignDatabase,
            ["a table summary of another program", "add schema=NAME"],
        ),
        (
            "create table schema_migrations (version varchar primary key); \
             insert into schema_migrations values ('20240101000000')",
            ErrorKind::ForeignDatabase,
            [
                "a table schema_migrations of another program",
                "add schema=NAME",
            ],
        ),
        (
            "create table schema_migrations (version varchar, name varchar, checksum varchar); \
             insert into schema_migrations values ('20240101000000', 'a', 'b')",
            ErrorKind::ForeignDatabase,
            [
                "a table schema_migrations of another program",
                "add schema=NAME",
            ],
        ),
    ] {
        let url = schemas.unused();
        let (schema, _) = schema_of(&url);
        let mut db = stranger(&url).await;
        run(&mut db, &format!("create schema {schema}; {script}"))
            .await
            .unwrap();
        let before = content(&url).await;
        for options in [PostgresOptions::new(), PostgresOptions::new().read_only()] {
            let error = options.open(&url).await.expect_err(script);
            tells(&error, kind, &words);
            tells(&error, kind, &[schema]);
        }
        assert_eq!(content(&url).await, before, "{script}");
    }
    for (script, kind, words) in [
        (
            "insert into schema_migrations (version, name, checksum) values (99, 'later', 'x')",
            ErrorKind::NewerSchema,
            ["has schema 99", "update the program"],
        ),
        (
            "update schema_migrations set checksum = 'x'",
            ErrorKind::ForeignDatabase,
            ["migration 1", "use the program that made it"],
        ),
    ] {
        let (url, store) = schemas.store().await;
        store.close().await.unwrap();
        run(&mut stranger(&url).await, script).await.unwrap();
        let before = content(&url).await;
        for options in [PostgresOptions::new(), PostgresOptions::new().read_only()] {
            tells(&options.open(&url).await.expect_err(script), kind, &words);
        }
        assert_eq!(content(&url).await, before, "{script}");
    }
}

#[tokio::test]
async fn other_tables_in_the_schema_are_no_obstacle() {
    let schemas = schemas!();
    let url = schemas.unused();
    let (schema, _) = schema_of(&url);
    let mut db = stranger(&url).await;
    let script = format!("create schema {schema}; create table guest (x integer)");
    run(&mut db, &script).await.unwrap();
    let store = schemas.open(&url).await;
    Chat::root(&store, "a").await.append(texts(1, 3)).await;
    assert_eq!(store.check().await.unwrap(), []);
}

/// Checks that a store which may only read reads, and that each of its writes is refused with this kind and these words.
async fn only_reads(store: &PostgresStore, chat: Chat<'_, PostgresStore>, words: &[&str]) {
    let read = Chat::new(store, chat.id);
    assert_eq!(read.entries().await.len(), 3);
    let value = RawJson::parse("1").unwrap();
    let new = new_conversation("b", Origin::Root);
    for error in [
        store
            .append(chat.id, &batch(texts(6, 1)))
            .await
            .unwrap_err(),
        store.open(&new).await.unwrap_err(),
        store
            .put_state(chat.id, "k", 0, Some(&value))
            .await
            .unwrap_err(),
    ] {
        tells(&error, ErrorKind::ReadOnly, words);
        tells(&error, ErrorKind::ReadOnly, &[&store.location()]);
    }
    assert_eq!(chat.info().await.head.0, 3);
}

#[tokio::test]
async fn a_store_that_is_open_for_reading_reads_and_refuses_to_write() {
    let schemas = schemas!();
    let (url, writing) = schemas.store().await;
    let chat = Chat::root(&writing, "a").await;
    chat.append(texts(1, 3)).await;
    let reading = PostgresOptions::new().read_only().open(&url).await.unwrap();
    assert_eq!(reading.check().await.unwrap(), []);
    only_reads(&reading, chat, &["open for reading only"]).await;
}

#[tokio::test]
async fn a_role_that_may_only_read_reads_and_is_told_what_it_lacks() {
    let schemas = schemas!();
    let (url, writing) = schemas.store().await;
    let chat = Chat::root(&writing, "a").await;
    chat.append(texts(1, 3)).await;
    let role = Role::new(&url, |_| false).await;
    let mut owner = stranger(&url).await;
    let reads = format!(
        "grant select on all tables in schema {} to {}",
        schema_of(&url).0,
        role.0
    );
    run(&mut owner, &reads).await.unwrap();
    let by_role = as_role(&url, &role.0);
    for options in [PostgresOptions::new(), PostgresOptions::new().read_only()] {
        let store = options.open(&by_role).await.unwrap();
        let words = match store.append(chat.id, &batch([])).await {
            Err(error) if error.to_string().contains("open for reading only") => "for reading only",
            _ => "grant it the privileges",
        };
        only_reads(&store, chat, &[words]).await;
    }
    role.drop(schemas).await;
}

#[tokio::test]
async fn a_role_with_the_grants_of_the_program_writes_and_changes_nothing_stored() {
    let schemas = schemas!();
    let (url, owning) = schemas.store().await;
    let role = Role::new(&url, |_| true).await;
    let store = PostgresStore::open(&as_role(&url, &role.0)).await.unwrap();
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 12)).await;
    chat.show_leaf("dag", store_conformance::range(1, 4), "what happened")
        .await;
    chat.fork("fork", 6).await.append(texts(20, 3)).await;
    store_conformance::sound(&store).await;

    let mut db = stranger(&as_role(&url, &role.0)).await;
    for sql in [
        "update message set tokens = 1",
        "update message set seq = seq + 1, id = id + 1",
        "update conversation set key = 'b'",
        "update summary set hash = hash",
        "update publication set at = 0",
        "update schema_migrations set version = 2",
        "delete from message",
        "delete from conversation",
        "delete from summary",
        "delete from publication",
        "delete from family",
        "delete from schema_migrations",
        "truncate message",
        "truncate conversation cascade",
        "truncate work",
        "drop table message",
        "alter table message disable trigger all",
        "drop trigger message_delete on message",
        "set session_replication_role = replica",
        "create table other (x integer)",
    ] {
        let error = run(&mut db, sql).await.expect_err(sql);
        let code = error.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some("42501"), "{sql}: {error}");
    }
    store_conformance::sound(&owning).await;
    drop((store, owning));
    role.drop(schemas).await;
}

#[tokio::test]
async fn a_role_without_grants_is_told_so() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    store.close().await.unwrap();
    let role = Role::new(&url, |_| false).await;
    let mut owner = stranger(&url).await;
    let (schema, _) = schema_of(&url);
    let unused = schemas.unused();
    for url in [&url, &unused] {
        let error = refused(&as_role(url, &role.0)).await;
        tells(
            &error,
            ErrorKind::ReadOnly,
            &["may not create or read", "grant"],
        );
    }
    let revoke = format!("revoke usage on schema {schema} from {}", role.0);
    run(&mut owner, &revoke).await.unwrap();
    let error = refused(&as_role(&url, &role.0)).await;
    tells(
        &error,
        ErrorKind::ReadOnly,
        &["may not create or read", "grant"],
    );
    role.drop(schemas).await;
}

#[tokio::test]
async fn a_role_whose_transactions_only_read_is_told_so() {
    let schemas = schemas!();
    let (url, writing) = schemas.store().await;
    let chat = Chat::root(&writing, "a").await;
    chat.append(texts(1, 3)).await;
    let role = Role::new(&url, |_| true).await;
    let mut owner = stranger(&url).await;
    let reads_only = format!(
        "alter role {} set default_transaction_read_only = on",
        role.0
    );
    run(&mut owner, &reads_only).await.unwrap();
    let store = PostgresStore::open(&as_role(&url, &role.0)).await.unwrap();
    only_reads(&store, chat, &["reads only", "connect to the primary"]).await;
    let unused = as_role(&schemas.unused(), &role.0);
    let database: String = sqlx::query_scalar("select current_database()")
        .fetch_one(&mut owner)
        .await
        .unwrap();
    let create = format!("grant create on database {database} to {}", role.0);
    run(&mut owner, &create).await.unwrap();
    tells(
        &refused(&unused).await,
        ErrorKind::ReadOnly,
        &["reads only", "connect to the primary"],
    );
    let revoke = format!("revoke create on database {database} from {}", role.0);
    run(&mut owner, &revoke).await.unwrap();
    drop(store);
    role.drop(schemas).await;
}

#[tokio::test]
async fn reading_creates_nothing() {
    let Some(url) = server() else { return };
    let schemas = Schemas::new(&url);
    let url = schemas.unused();
    let error = PostgresOptions::new()
        .read_only()
        .open(&url)
        .await
        .unwrap_err();
    tells(
        &error,
        ErrorKind::OlderSchema,
        &[schema_of(&url).0, "open it for writing"],
    );
    assert_eq!(content(&url).await, [""; 0]);
}

/// Checks that a write waits for another one to the same family for no longer than the lock time-out, and that others do
/// not wait.
#[tokio::test]
async fn a_family_that_stays_locked_ends_a_write_with_the_time_out() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let (a, b) = (Chat::root(&store, "a").await, Chat::root(&store, "b").await);
    let options = PostgresOptions::new().with_lock_timeout(Duration::from_millis(50));
    let store = options.open(&url).await.unwrap();
    let mut held: PgConnection = stranger(&url).await;
    let hold = format!(
        "begin; select 1 from family where tree = {} for update",
        a.id.0
    );
    run(&mut held, &hold).await.unwrap();
    let error = store.append(a.id, &batch(texts(1, 1))).await.unwrap_err();
    tells(
        &error,
        ErrorKind::Busy,
        &["another process writes to the same conversation"],
    );
    store.append(b.id, &batch(texts(1, 1))).await.unwrap();
    assert_eq!(Chat::new(&store, a.id).texts().await, [""; 0]);
    run(&mut held, "commit").await.unwrap();
    store.append(a.id, &batch(texts(1, 1))).await.unwrap();
}

/// Only the owner of the tables can vacuum them: the erasure is not finished before.
#[tokio::test]
async fn an_erasure_by_a_role_that_cannot_vacuum_is_finished_by_the_owner() {
    let schemas = schemas!();
    let (url, owning) = schemas.store().await;
    let role = Role::new(&url, |_| true).await;
    let as_role = as_role(&url, &role.0);
    let store = PostgresStore::open(&as_role).await.unwrap();
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 12)).await;
    let erase = Erase::range(store_conformance::range(2, 4), "asked for", Timestamp(1));
    let refused = store.erase(chat.id, &erase).await.unwrap_err();
    tells(&refused, ErrorKind::NotGone, &["as their owner"]);
    // The words are blank all the same, and no opening by the role says that they are gone.
    assert!(!chat.texts().await[2].contains("message"));
    drop(PostgresStore::open(&as_role).await.unwrap());
    assert!(store.pending_wipe().await.unwrap().is_some());
    drop(owning);
    let owning = PostgresStore::open(&url).await.unwrap();
    assert_eq!(owning.pending_wipe().await.unwrap(), None);
    role.drop(schemas).await;
}

#[tokio::test]
async fn a_url_can_ask_for_partitions_and_knows_no_other_parameters() {
    let schemas = schemas!();
    let url = schemas.unused();
    PostgresStore::open(&with(&url, "partitions=2"))
        .await
        .unwrap();
    let mut db = stranger(&url).await;
    let partitioned = "select relname::text from pg_class where relkind = 'p' and relname = 'message' \
                       and relnamespace = current_schema()::regnamespace";
    assert_eq!(column(&mut db, partitioned).await, ["message"]);
    for parameter in ["partition=2", "partitions=two", "statement-cache-capcity=0"] {
        let refused = refused(&with(&url, parameter)).await;
        tells(
            &refused,
            ErrorKind::Invalid,
            &["no such parameter", parameter.split('=').next().unwrap()],
        );
    }
}

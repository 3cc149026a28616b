//! Tests of the tables that the migrations create.

use store_conformance::{Chat, sound};
use store_postgres::PostgresOptions;

use crate::common::{Schemas, column, run, schema_of, schemas, server, stranger, texts};

/// Everything that is defined in the schema of the search path. Partitions are not in it.
const DEFINITIONS: &str = "
with ours as (
  select * from pg_class where relnamespace = current_schema()::regnamespace and not relispartition
)
select relname || ' ' || case relkind when 'p' then 'r' when 'I' then 'i' else relkind::text end from ours
union all
select format('%s.%s %s: %s not null %s collate %s default %s identity %s', relname, attname, attnum,
              format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation,
              pg_get_expr(adbin, adrelid), attidentity)
  from ours join pg_attribute on attrelid = ours.oid
  left join pg_attrdef on adrelid = attrelid and adnum = attnum
 where attnum > 0 and relkind in ('r', 'p')
union all
select relname || ': ' || conname || ' ' || pg_get_constraintdef(pg_constraint.oid)
  from ours join pg_constraint on conrelid = ours.oid where conparentid = 0
union all
select pg_get_indexdef(indexrelid) from ours join pg_index on indexrelid = ours.oid
union all
select pg_get_triggerdef(pg_trigger.oid) || ' ' || tgenabled::text
  from ours join pg_trigger on tgrelid = ours.oid where not tgisinternal
union all
select format('%s %s %s', proname, prorettype::regtype, prosrc)
  from pg_proc where pronamespace = current_schema()::regnamespace
order by 1";

async fn definitions(url: &str) -> Vec<String> {
    let (schema, _) = schema_of(url);
    let found = column(&mut stranger(url).await, DEFINITIONS).await;
    let mut found: Vec<String> = found
        .iter()
        .map(|one| {
            one.replace(&format!("{schema}."), "")
                .replace(" ON ONLY ", " ON ")
        })
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn the_migrations_lead_to_the_schema_source() {
    let schemas = schemas!();
    let (source, (migrated, _store)) = (schemas.unused(), schemas.store().await);
    let mut db = stranger(&source).await;
    let (schema, _) = schema_of(&source);
    let expanded = include_str!("../../schema/expanded.sql");
    run(&mut db, &format!("create schema {schema}; {expanded}"))
        .await
        .unwrap();
    let expected = definitions(&source).await;
    assert!(expected.len() > 300, "{}", expected.len());
    assert_eq!(definitions(&migrated).await, expected);

    // Partitions change no definition of a table.
    let Some(url) = server() else { return };
    let options = PostgresOptions::new().with_partitions(3);
    let parts = Schemas::with_options(&url, options);
    let (url, _store) = parts.store().await;
    assert_eq!(definitions(&url).await, expected);
    let partitioned = "select relname::text from pg_class
        where relkind = 'p' and relnamespace = current_schema()::regnamespace";
    let (mut tables, mut db) = (0, stranger(&url).await);
    for table in column(&mut db, partitioned).await {
        let parts = format!(
            "select relname::text from pg_inherits join pg_class on oid = inhrelid \
            where inhparent = '{table}'::regclass order by 1"
        );
        let expected = [0, 1, 2].map(|part| format!("{table}_p{part}"));
        assert_eq!(column(&mut db, &parts).await, expected);
        tables += 1;
    }
    assert_eq!(tables, expanded.matches("/* by tree */").count());
}

#[tokio::test]
async fn functions_find_their_tables_by_themselves() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    Chat::root(&store, "a").await.append(texts(1, 3)).await;
    let (schema, plain) = schema_of(&url);
    let settings = "select distinct proconfig::text from pg_proc
        where pronamespace = current_schema()::regnamespace";
    let settings = column(&mut stranger(&url).await, settings).await;
    assert_eq!(settings, [format!("{{search_path={schema}}}")]);
    // A client with another search path meets the same triggers.
    let mut db = <sqlx::PgConnection as sqlx::Connection>::connect(plain)
        .await
        .unwrap();
    let sql = format!("update {schema}.message set body = null where seq = 2");
    let error = run(&mut db, &sql).await.unwrap_err().to_string();
    assert!(error.contains("append-only"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_create_the_same_tables_at_the_same_time_all_succeed() {
    let schemas = schemas!();
    for partitions in [0, 2] {
        let url = schemas.unused();
        let options = PostgresOptions::new()
            .with_max_connections(1)
            .with_partitions(partitions);
        let opening: Vec<_> = (0..16)
            .map(|_| {
                let (options, url) = (options.clone(), url.clone());
                tokio::spawn(async move { options.open(&url).await.unwrap() })
            })
            .collect();
        let mut stores = Vec::new();
        for opened in opening {
            stores.push(opened.await.unwrap());
        }
        let mut db = stranger(&url).await;
        let applied = column(&mut db, "select version::text from schema_migrations").await;
        assert_eq!(applied, ["1"]);
        for (n, store) in stores.iter().enumerate() {
            let chat = Chat::root(store, "shared").await;
            chat.append(texts(u32::try_from(n).unwrap() * 10, 2)).await;
        }
        sound(&stores[0]).await;
        assert_eq!(
            Chat::root(&stores[0], "shared").await.texts().await.len(),
            32
        );
    }
}

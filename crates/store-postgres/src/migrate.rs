//! Checks of the tables when a database is opened: whether they belong to agent-memory, and the version of their
//! schema. Creates and migrates them.

use std::fmt::Write as _;

use sqlx::postgres::{PgConnection, Postgres};
use sqlx::{Connection as _, Transaction};
use store_sql::Family;

use crate::error::{self, Result};
use crate::migration::created;
use crate::migrations::MIGRATIONS;
use crate::options::Target;
use crate::sql;

/// Mark in the migrations after each table whose keys begin with the family.
const BY_TREE: &str = "/* by tree */";

/// Lets only one process create or migrate the tables of a schema at a time.
const LOCK: &str = "select pg_advisory_xact_lock(1634559342, hashtext($1))";

/// Sets the schema in which the triggers look for tables, so that they work for clients with other settings too.
const BIND_FUNCTIONS: &str = "do $$ declare function regprocedure; begin \
    for function in select oid::regprocedure from pg_proc where pronamespace = current_schema()::text::regnamespace \
    loop execute format('alter function %s set search_path = %I', function, current_schema()); end loop; end $$";

/// Returns the version of the schema that this program writes.
fn known() -> i64 {
    MIGRATIONS.last().map_or(0, |last| last.version)
}

async fn begin<'c>(
    connection: &'c mut PgConnection,
    target: &Target,
    read_only: bool,
) -> std::result::Result<Transaction<'c, Postgres>, sqlx::Error> {
    let settings = vec![("search_path", target.schema.clone())];
    let begin = sql::begin(&settings, read_only, Family::ANY);
    connection.begin_with(begin).await
}

/// Returns the version of the tables in the schema, or 0 if there are none. Leaves the database as it is.
async fn version(on: &mut PgConnection, target: &Target) -> Result<i64> {
    let opening = |e| error::opening(&target.place, e);
    let tables: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class where relkind in ('r', 'p', 'v', 'm', 'f') \
         and relnamespace = (select oid from pg_namespace where nspname = $1)",
    )
    .bind(&target.schema)
    .persistent(false)
    .fetch_all(&mut *on)
    .await
    .map_err(opening)?;
    if !tables.iter().any(|table| table == "schema_migrations") {
        let mut ours = MIGRATIONS
            .iter()
            .flat_map(|migration| created("table", migration.sql));
        return match ours.find(|ours| tables.iter().any(|table| table == ours)) {
            Some(table) => Err(error::foreign(&target.place, table)),
            None => Ok(0),
        };
    }
    let columns: i64 = sqlx::query_scalar(
        "select count(*) from pg_attribute join pg_class on pg_class.oid = attrelid \
         where relname = 'schema_migrations' and (attname, atttypid::regtype::text) in \
         (('version', 'bigint'), ('name', 'text'), ('checksum', 'text')) \
         and relnamespace = (select oid from pg_namespace where nspname = $1)",
    )
    .bind(&target.schema)
    .persistent(false)
    .fetch_one(&mut *on)
    .await
    .map_err(opening)?;
    if columns != 3 {
        return Err(error::foreign(&target.place, "schema_migrations"));
    }
    // With the schema's name, because the search path leaves out a schema that the role may not use.
    let applied = format!(
        "select version, checksum from {}.schema_migrations order by version",
        target.schema
    );
    let applied: Vec<(i64, String)> = sqlx::query_as(sql::trusted(applied))
        .persistent(false)
        .fetch_all(&mut *on)
        .await
        .map_err(opening)?;
    for (version, checksum) in &applied {
        let migration = MIGRATIONS.iter().find(|one| one.version == *version);
        if migration.is_some_and(|one| one.checksum != checksum) {
            return Err(error::changed(&target.place, *version));
        }
    }
    let version = applied.last().map_or(0, |(version, _)| *version);
    match version > known() {
        true => Err(error::newer_schema(&target.place, version, known())),
        false => Ok(version),
    }
}

/// Checks that the tables belong to agent-memory and have the schema of this program. Leaves the database as it is.
pub(crate) async fn check(connection: &mut PgConnection, target: &Target) -> Result<()> {
    let opening = |e| error::opening(&target.place, e);
    let mut tx = begin(connection, target, true).await.map_err(opening)?;
    match version(&mut tx, target).await? {
        found if found < known() => Err(error::older_schema(&target.place, found, known())),
        _ => Ok(()),
    }
}

/// Checks that the tables belong to agent-memory, and creates or migrates them.
pub(crate) async fn bring_up(connection: &mut PgConnection, target: &Target) -> Result<()> {
    let opening = |e| error::opening(&target.place, e);
    let mut tx = begin(connection, target, true).await.map_err(opening)?;
    if version(&mut tx, target).await? == known() {
        return Ok(());
    }
    tx.rollback().await.map_err(opening)?;
    let mut tx = begin(connection, target, false).await.map_err(opening)?;
    sqlx::query(LOCK)
        .bind(&target.schema)
        .persistent(false)
        .execute(&mut *tx)
        .await
        .map_err(opening)?;
    // Another process may have migrated the tables meanwhile.
    let found = version(&mut tx, target).await?;
    let mut script = match found {
        0 => format!("create schema if not exists {};\n", target.schema),
        _ => String::new(),
    };
    for migration in MIGRATIONS.iter().filter(|one| one.version > found) {
        script.push_str(&partitioned(migration.sql, target.partitions));
        let (version, name, checksum) = (migration.version, migration.name, migration.checksum);
        let _ = writeln!(
            script,
            "\ninsert into schema_migrations (version, name, checksum) values ({version}, '{name}', '{checksum}');"
        );
    }
    script.push_str(BIND_FUNCTIONS);
    // A large table may take longer than other statements.
    for script in ["set local statement_timeout = 0".to_owned(), script] {
        let run = sqlx::raw_sql(sql::trusted(script)).execute(&mut *tx).await;
        run.map_err(opening)?;
    }
    tx.commit().await.map_err(opening)
}

/// Returns an SQL text in which each table that is keyed by family is divided into partitions.
fn partitioned(sql: &str, partitions: u32) -> String {
    if partitions == 0 {
        return sql.to_owned();
    }
    let mut script = String::new();
    let mut rest = sql;
    while let Some((table, after)) = rest.split_once(BY_TREE) {
        script.push_str(table);
        script.push_str("partition by hash (tree);\n");
        if let Some(name) = created("table", table).last() {
            for number in 0..partitions {
                let _ = writeln!(
                    script,
                    "create table {name}_p{number} partition of {name} for values with (modulus {partitions}, remainder {number});"
                );
            }
        }
        rest = after.strip_prefix(';').unwrap_or(after);
    }
    script.push_str(rest);
    // The settings of a table's statistics do not hold for its partitions.
    for line in sql.lines() {
        let set = line
            .strip_prefix("alter table ")
            .and_then(|set| set.split_once(' '));
        if let Some((name, set)) = set.filter(|(_, set)| set.contains("n_distinct")) {
            for number in 0..partitions {
                let _ = writeln!(script, "\nalter table {name}_p{number} {set}");
            }
        }
    }
    script
}

/// Returns whether an erasure was interrupted before dead rows were removed.
pub(crate) async fn has_wipes(connection: &mut PgConnection, target: &Target) -> Result<bool> {
    let opening = |e| error::opening(&target.place, e);
    let mut tx = begin(connection, target, true).await.map_err(opening)?;
    sqlx::query_scalar("select exists (select 1 from wipe)")
        .persistent(false)
        .fetch_one(&mut *tx)
        .await
        .map_err(opening)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_families_are_partitioned() {
        let sql = "-- A table.\ncreate table a (\n  tree integer\n) /* by tree */;\n\ncreate table b (x integer);\n";
        assert_eq!(created("table", sql).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(partitioned(sql, 0), sql);
        let two = partitioned(sql, 2);
        assert!(two.contains(") partition by hash (tree);\ncreate table a_p0 partition of a "));
        assert!(two.contains("create table a_p1 ") && !two.contains("b_p0"));
        let set = format!("{sql}\nalter table a alter column tree set (n_distinct = 100);\n");
        let two = partitioned(&set, 2);
        assert!(two.contains("\nalter table a_p1 alter column tree set (n_distinct = 100);\n"));
    }

    #[test]
    fn numbers_are_dense() {
        for (number, migration) in (1_i64..).zip(MIGRATIONS) {
            assert_eq!(migration.version, number);
        }
    }
}

//! Checks of a file when it is opened: whether it is a database of agent-memory, and the version of its schema.
//! Migrates older versions.

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Row as _};

use crate::error::{Result, changed, foreign, newer_schema, older_schema, opening};
use crate::migrations::MIGRATIONS;

/// Application id that marks a database of agent-memory: "amem" in ASCII.
pub(crate) const APPLICATION_ID: i64 = 0x616d_656d;

/// Returns the version of the schema that this program writes.
pub(crate) fn known() -> i64 {
    MIGRATIONS.last().map_or(0, |last| last.version)
}

/// Content of a database file, as far as opening needs it.
#[derive(Debug, PartialEq, Eq)]
enum FileContent {
    /// The file is empty: it is new, or another process has just created it.
    Fresh,
    /// The file is a database of agent-memory, with this version of its schema.
    Ours(i64),
}

/// Determines the content of the database without changing it.
async fn look(db: &mut SqliteConnection, place: &str) -> Result<FileContent> {
    // A single statement, because another process may be creating the same database, and its half-created state must
    // not be taken for another program's database.
    let row = sqlx::query(
        "select application_id, user_version, (select count(*) from sqlite_schema) \
           from pragma_application_id, pragma_user_version",
    )
    .fetch_one(&mut *db)
    .await
    .map_err(|e| opening(place, e))?;
    let (application, version, objects): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    match (application, version, objects) {
        (APPLICATION_ID, version, _) if version > known() => {
            Err(newer_schema(place, version, known()))
        }
        (APPLICATION_ID, version, _) => {
            is_of_this_program(db, place).await?;
            Ok(FileContent::Ours(version))
        }
        (0, 0, 0) => Ok(FileContent::Fresh),
        _ => Err(foreign(place)),
    }
}

/// Checks that the migrations of the database are those of this program: until they are released, they may change.
async fn is_of_this_program(db: &mut SqliteConnection, place: &str) -> Result<()> {
    let applied = sqlx::query("select version, checksum from schema_migrations order by version")
        .fetch_all(db)
        .await
        .map_err(|e| opening(place, e))?;
    for row in applied {
        let (version, checksum): (i64, String) = (row.get(0), row.get(1));
        let migration = MIGRATIONS.iter().find(|one| one.version == version);
        if migration.is_some_and(|one| one.checksum != checksum) {
            return Err(changed(place, version));
        }
    }
    Ok(())
}

/// Checks that the database belongs to agent-memory and has the schema of this program. Does not change the database.
/// Returns `false` if it is empty.
pub(crate) async fn check(db: &mut SqliteConnection, place: &str) -> Result<bool> {
    match look(db, place).await? {
        FileContent::Ours(version) if version < known() => {
            Err(older_schema(place, version, known()))
        }
        FileContent::Ours(_) => Ok(true),
        FileContent::Fresh => Ok(false),
    }
}

/// Checks that the database belongs to agent-memory, and migrates it to the schema of this program. A database that has
/// this schema already takes one short read, for any size.
pub(crate) async fn bring_up(db: &mut SqliteConnection, place: &str) -> Result<()> {
    let fail = |e: sqlx::Error| opening(place, e);
    let mut version = match look(db, place).await? {
        FileContent::Fresh => {
            // These settings of the file can only be made while it is empty. Pages of 8 KiB leave less space unused
            // after the last message on a page than pages of 4 KiB.
            sqlx::raw_sql(
                "pragma page_size = 8192; pragma auto_vacuum = incremental; pragma journal_mode = wal",
            )
            .execute(&mut *db)
            .await
            .map_err(fail)?;
            0
        }
        FileContent::Ours(version) => version,
    };
    for migration in MIGRATIONS {
        if migration.version <= version {
            continue;
        }
        let mut tx = db.begin_with("begin exclusive").await.map_err(fail)?;
        // Another process may have migrated the database meanwhile.
        if let FileContent::Ours(now) = look(&mut tx, place).await?
            && now >= migration.version
        {
            version = now;
            tx.rollback().await.map_err(fail)?;
            continue;
        }
        sqlx::raw_sql(migration.sql)
            .execute(&mut *tx)
            .await
            .map_err(fail)?;
        sqlx::query("insert into schema_migrations (version, name, checksum) values (?, ?, ?)")
            .bind(migration.version)
            .bind(migration.name)
            .bind(migration.checksum)
            .execute(&mut *tx)
            .await
            .map_err(fail)?;
        sqlx::raw_sql(migration.mark)
            .execute(&mut *tx)
            .await
            .map_err(fail)?;
        tx.commit().await.map_err(fail)?;
        version = migration.version;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[tokio::test]
    async fn foreign_keys_are_enforced() {
        let connection = crate::SqliteOptions::new().connection().in_memory(true);
        let mut db = crate::db::connect(connection, "it").await.unwrap();
        let on: i64 = sqlx::query_scalar("pragma foreign_keys")
            .fetch_one(&mut db)
            .await
            .unwrap();
        assert_eq!(on, 1);
        let orphan = "insert into message_vector values (7, 'model', 1, x'')";
        let error = sqlx::raw_sql(orphan).execute(&mut db).await.unwrap_err();
        assert!(error.to_string().contains("FOREIGN KEY"), "{error}");
    }

    #[test]
    fn checksums_are_those_of_the_text() {
        for (number, migration) in (1_i64..).zip(MIGRATIONS) {
            let sum: String = Sha256::digest(migration.sql.as_bytes())
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(
                (migration.version, migration.checksum),
                (number, sum.as_str())
            );
        }
    }
}

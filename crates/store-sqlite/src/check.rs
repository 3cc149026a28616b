//! Checks that only the database itself can make.

use std::collections::{BTreeMap, BTreeSet};

use memory_store::{ErrorKind, Result, Violation, ViolationKind};
use sqlx::sqlite::SqliteRow;
use sqlx::{ConnectOptions as _, Row as _};
use store_sql::Columns as _;

use crate::connection::{Connection, Source};
use crate::error::failed;
use crate::migrate;
use crate::options::SqliteOptions;

/// Connection for reading.
type Reader<'a> = Connection<'a, Source<'a>>;

/// Queries that must return no rows. Each has the kind of violation, a text that describes a row of the answer, and the
/// query.
const CHECKS: [(ViolationKind, &str, &str); 10] = [
    (
        ViolationKind::EntryMissing,
        "the log of conversation % ends before its head",
        "select c.no from conversation c where c.head > coalesce(
           (select max(m.seq) from message m where m.id between c.no << 32 and c.no << 32 | 4294967295),
           coalesce(c.shared, 0))",
    ),
    (
        ViolationKind::EntryMisplaced,
        "the log of conversation % continues after its head",
        "select c.no from conversation c where c.head <
           (select max(m.seq) from message m where m.id between c.no << 32 and c.no << 32 | 4294967295)",
    ),
    (
        ViolationKind::EntryUnreadable,
        "a message refers to the payload %, which is missing",
        "select distinct m.payload from message m where m.payload is not null
            and not exists (select 1 from payload p where p.id = m.payload)",
    ),
    (
        ViolationKind::Database,
        "the payload % belongs to no message: it can be deleted",
        "select p.id from payload p where not exists (select 1 from message m where m.payload = p.id)",
    ),
    (
        ViolationKind::SpansOverlap,
        "conversation % has spans of a view that does not exist",
        "select distinct s.conversation from span s where not exists
           (select 1 from view v where v.conversation = s.conversation and v.name = s.view)",
    ),
    (
        ViolationKind::HistoryChanged,
        "a view of conversation % has a history that does not end at its version",
        "select v.conversation from view v where v.version <> coalesce(
           (select max(p.version) from publication p where p.conversation = v.conversation and p.view = v.name), 0)",
    ),
    (
        ViolationKind::HistoryChanged,
        "conversation % has replaced spans that no publication replaced",
        "select distinct h.conversation from span_history h where not exists
           (select 1 from publication p where p.conversation = h.conversation and p.view = h.view
               and p.version = h.removed_in)",
    ),
    (
        ViolationKind::ForeignLineage,
        "the summary % was made from a missing summary",
        "select coalesce(c.public_id, k.parent) from summary_link k left join summary c on c.id = k.parent
          where k.child is not null and not exists (select 1 from summary p where p.id = k.child)",
    ),
    (
        ViolationKind::Cycle,
        "the summary % has a child of at least its depth",
        "select c.public_id from summary_link k join summary c on c.id = k.parent
           join summary p on p.id = k.child where k.role = 0 and p.depth >= c.depth",
    ),
    (
        ViolationKind::ChildRangeWrong,
        "the children of the summary % do not tile its range",
        "select s.public_id from summary s left join summary_link k on k.parent = s.id and k.role = 0 group by s.id
          having min(k.first) is not s.first or max(k.last) is not s.last
              or sum(k.last - k.first + 1) is not s.last - s.first + 1",
    ),
];

/// Tables, indices, triggers and views of a database, by kind and name.
type Objects = BTreeMap<(String, String), Object>;

struct Object {
    /// Table to which the object belongs. A table belongs to itself.
    table: String,
    /// SQL statement that created the object.
    sql: String,
}

const OBJECTS: &str = "select type, name, tbl_name, sql from sqlite_schema where sql is not null";

fn objects(rows: &[SqliteRow]) -> Result<Objects> {
    rows.iter()
        .map(|row| {
            let object = Object {
                table: row.text(2)?,
                sql: row.text(3)?,
            };
            Ok(((row.text(0)?, row.text(1)?), object))
        })
        .collect()
}

/// Checks the pages, references and objects of a database, and whether its rows agree with each other. Returns the
/// violations.
pub(crate) async fn check(on: &mut Reader<'_>, place: &str) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for row in ask(on, "pragma integrity_check(100)", &mut found).await? {
        let line = row.text(0)?;
        if line != "ok" {
            found.push(database(format!("the database is damaged: {line}")));
        }
    }
    let (is, should) = (objects(&on.fixed(OBJECTS).await?)?, expected(place).await?);
    for row in ask(on, "pragma foreign_key_check", &mut found).await? {
        let (table, parent) = (row.text(0)?, row.text(2)?);
        // References from tables that a user added are not checked.
        if is_ours(&should, &table) {
            found.push(database(format!(
                "a row of {table} refers to a missing row of {parent}"
            )));
        }
    }
    compare_objects(&is, &should, &mut found);
    for (kind, text, question) in CHECKS {
        for row in ask(on, question, &mut found).await? {
            let what: String = match row.try_get::<i64, _>(0) {
                Ok(number) => number.to_string(),
                Err(_) => row.text(0)?,
            };
            found.push(Violation::new(kind, text.replace('%', &what)));
        }
    }
    Ok(found)
}

fn database(message: String) -> Violation {
    Violation::new(ViolationKind::Database, message)
}

/// Returns whether a table belongs to the schema.
fn is_ours(should: &Objects, table: &str) -> bool {
    should.contains_key(&("table".to_owned(), table.to_owned()))
}

/// Compares the tables, indices, triggers and views of a database with those of the schema.
fn compare_objects(is: &Objects, should: &Objects, found: &mut Vec<Violation>) {
    for ((kind, name), object) in should {
        match is.get(&(kind.clone(), name.clone())) {
            None => found.push(database(format!("the {kind} {name} is missing"))),
            Some(other) if other.sql != object.sql => {
                found.push(database(format!("the {kind} {name} was changed")));
            }
            Some(_) => {}
        }
    }
    // Tables that a user added and SQLite's statistics are accepted. Additional objects on the schema's tables are not.
    for ((kind, name), object) in is.iter().filter(|(key, _)| !should.contains_key(*key)) {
        if kind == "table" || kind == "view" || !is_ours(should, &object.table) {
            continue;
        }
        found.push(database(format!(
            "the {kind} {name} does not belong to the schema"
        )));
    }
}

/// Returns the kinds and names of the schema's tables and views.
pub(crate) async fn tables_and_views(place: &str) -> Result<BTreeSet<(String, String)>> {
    let objects = expected(place).await?.into_keys();
    Ok(objects
        .filter(|(kind, _)| kind == "table" || kind == "view")
        .collect())
}

/// Runs a query and returns its rows. If the database is too damaged to answer, adds a violation and returns no rows.
async fn ask(
    on: &mut Reader<'_>,
    question: &'static str,
    found: &mut Vec<Violation>,
) -> Result<Vec<SqliteRow>> {
    match on.fixed(question).await {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            let asked = question.split_whitespace().collect::<Vec<_>>().join(" ");
            let message = format!("the database is too damaged to answer `{asked}`");
            found.push(Violation::new(ViolationKind::Database, message));
            Ok(Vec::new())
        }
        answer => answer,
    }
}

/// Returns the objects of a new database with the current schema.
async fn expected(place: &str) -> Result<Objects> {
    let mut fresh = SqliteOptions::default()
        .connection()
        .in_memory(true)
        .connect()
        .await
        .map_err(failed)?;
    migrate::bring_up(&mut fresh, place).await?;
    let rows = sqlx::query(OBJECTS)
        .fetch_all(&mut fresh)
        .await
        .map_err(failed)?;
    objects(&rows)
}

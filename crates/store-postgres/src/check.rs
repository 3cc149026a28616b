//! Checks that only PostgreSQL can make: its triggers, their functions, indices and constraints, and whether rows of
//! different tables agree with each other.

use std::collections::{BTreeMap, BTreeSet};

use memory_store::{Violation, ViolationKind};
use store_sql::Columns as _;

use crate::connection::Connection;
use crate::error::Result;
use crate::migration::created;
use crate::migrations::MIGRATIONS;

/// Names of the triggers that are enabled, and of the indices that can be used.
const WORKING: &str = "select distinct 'trigger ' || tgname from pg_trigger \
    join pg_class on pg_class.oid = tgrelid \
    where not tgisinternal and tgenabled in ('O', 'A') \
    and relnamespace = current_schema()::text::regnamespace \
    union all select 'index ' || relname from pg_index join pg_class on pg_class.oid = indexrelid \
    where relnamespace = current_schema()::text::regnamespace and indisvalid and indisready";

/// Names and bodies of the functions.
const FUNCTIONS: &str = "select proname::text, prosrc from pg_proc \
    where pronamespace = current_schema()::text::regnamespace";

/// Indices and constraints that are not valid.
const INVALID: &str = "select 'index ' || relname from pg_index join pg_class on pg_class.oid = indexrelid \
    where relnamespace = current_schema()::text::regnamespace and not (indisvalid and indisready) \
    union all select 'constraint ' || conname from pg_constraint \
    where connamespace = current_schema()::text::regnamespace and not convalidated";

/// Queries that must return no rows. Each has the kind of violation, a text that describes a row of the answer, and the
/// query.
const CHECKS: [(ViolationKind, &str, &str); 9] = [
    (
        ViolationKind::EntryMissing,
        "the log of conversation % ends before its head",
        "select c.no::text from conversation c where c.head > coalesce(
           (select max(m.seq) from message m where m.tree = c.tree
               and m.id between c.no::bigint << 32 and c.no::bigint << 32 | 4294967295),
           c.shared, 0)",
    ),
    (
        ViolationKind::EntryMisplaced,
        "the log of conversation % continues after its head",
        "select c.no::text from conversation c where c.head <
           (select max(m.seq) from message m where m.tree = c.tree
               and m.id between c.no::bigint << 32 and c.no::bigint << 32 | 4294967295)",
    ),
    (
        ViolationKind::EntryUnreadable,
        "a message of conversation % refers to a payload that is missing",
        "select distinct m.conversation::text from message m where m.payload is not null
            and not exists (select 1 from payload p where p.tree = m.tree and p.id = m.payload)",
    ),
    (
        ViolationKind::Database,
        "the payload % belongs to no message: it can be deleted",
        "select p.id::text from payload p
          where not exists (select 1 from message m where m.tree = p.tree and m.payload = p.id)",
    ),
    (
        ViolationKind::SpansOverlap,
        "conversation % has spans of a view that does not exist",
        "select distinct s.conversation::text from span s where not exists
           (select 1 from view v where v.tree = s.tree and v.conversation = s.conversation and v.name = s.view)",
    ),
    (
        ViolationKind::HistoryChanged,
        "a view of conversation % has a history that does not end at its version",
        "select v.conversation::text from view v where v.version <> coalesce(
           (select max(p.version) from publication p
             where p.tree = v.tree and p.conversation = v.conversation and p.view = v.name), 0)",
    ),
    (
        ViolationKind::HistoryChanged,
        "conversation % has replaced spans that no publication replaced",
        "select distinct h.conversation::text from span_history h where not exists
           (select 1 from publication p where p.tree = h.tree and p.conversation = h.conversation
               and p.view = h.view and p.version = h.removed_in)",
    ),
    (
        ViolationKind::Cycle,
        "the summary % has a child of at least its depth",
        "select c.public_id from summary_link k join summary c on c.tree = k.tree and c.id = k.parent
           join summary p on p.tree = k.tree and p.id = k.child where k.role = 0 and p.depth >= c.depth",
    ),
    (
        ViolationKind::ChildRangeWrong,
        "the children of the summary % do not tile its range",
        "select min(s.public_id) from summary s
           left join summary_link k on k.tree = s.tree and k.parent = s.id and k.role = 0 group by s.tree, s.id
          having min(k.first) is distinct from s.first or max(k.last) is distinct from s.last
              or sum(k.last - k.first + 1) is distinct from s.last - s.first + 1",
    ),
];

pub(crate) async fn check(on: &mut Connection<'_>) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    let mut report = |kind, text: String| found.push(Violation::new(kind, text));
    let mut working = BTreeSet::new();
    for row in on.fixed(WORKING).await? {
        working.insert(row.text(0)?);
    }
    for kind in ["trigger", "index", "unique index"] {
        let made = MIGRATIONS.iter().flat_map(|one| created(kind, one.sql));
        for name in made {
            let name = format!("{} {name}", kind.trim_start_matches("unique "));
            if !working.contains(&name) {
                report(
                    ViolationKind::Database,
                    format!("the {name} is missing or disabled: restore a backup"),
                );
            }
        }
    }
    let mut bodies = BTreeMap::new();
    for row in on.fixed(FUNCTIONS).await? {
        bodies.insert(row.text(0)?, row.text(1)?);
    }
    for (name, body) in functions() {
        if bodies.get(name).is_none_or(|stored| stored != body) {
            report(
                ViolationKind::Database,
                format!("the function {name} is missing or changed: restore a backup"),
            );
        }
    }
    for row in on.fixed(INVALID).await? {
        report(
            ViolationKind::Database,
            format!(
                "the {} is not valid: reindex or restore a backup",
                row.text(0)?
            ),
        );
    }
    for (kind, text, query) in CHECKS {
        for row in on.fixed(query).await? {
            report(kind, text.replace('%', &row.text(0)?));
        }
    }
    Ok(found)
}

/// Returns the functions of the migrations, each with its last body.
fn functions() -> BTreeMap<&'static str, &'static str> {
    let texts = MIGRATIONS
        .iter()
        .flat_map(|one| one.sql.split("create ").skip(1));
    texts
        .filter_map(|text| {
            let text = text.strip_prefix("or replace ").unwrap_or(text);
            let (name, rest) = text.strip_prefix("function ")?.split_once('(')?;
            Some((name, rest.split("$$").nth(1)?))
        })
        .collect()
}

//! Checks that only PostgreSQL can make: its triggers, their functions, indices and constraints.

use std::collections::{BTreeMap, BTreeSet};

use memory_store::{Violation, ViolationKind};
use store_sql::Columns as _;

use crate::connection::Connection;
use crate::error::Result;
use crate::migrate::created;
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

pub(crate) async fn check(on: &mut Connection<'_>) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    let mut report = |text: String| found.push(Violation::new(ViolationKind::Database, text));
    let mut working = BTreeSet::new();
    for row in on.fixed(WORKING).await? {
        working.insert(row.text(0)?);
    }
    for kind in ["trigger", "index", "unique index"] {
        let made = MIGRATIONS.iter().flat_map(|one| created(kind, one.sql));
        for name in made {
            let name = format!("{} {name}", kind.trim_start_matches("unique "));
            if !working.contains(&name) {
                report(format!(
                    "the {name} is missing or disabled: restore a backup"
                ));
            }
        }
    }
    let mut bodies = BTreeMap::new();
    for row in on.fixed(FUNCTIONS).await? {
        bodies.insert(row.text(0)?, row.text(1)?);
    }
    for (name, body) in functions() {
        if bodies.get(name).is_none_or(|stored| stored != body) {
            report(format!(
                "the function {name} is missing or changed: restore a backup"
            ));
        }
    }
    for row in on.fixed(INVALID).await? {
        report(format!(
            "the {} is not valid: reindex or restore a backup",
            row.text(0)?
        ));
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

//! Checks that only PostgreSQL can make: its triggers, indices and constraints.

use std::collections::BTreeSet;

use memory_store::{Violation, ViolationKind};
use store_sql::Columns as _;

use crate::connection::Connection;
use crate::error::Result;
use crate::migrate::created;
use crate::migrations::MIGRATIONS;

/// Names of the triggers that are enabled.
const TRIGGERS: &str = "select distinct tgname::text from pg_trigger \
    join pg_class on pg_class.oid = tgrelid \
    where not tgisinternal and tgenabled in ('O', 'A') \
    and relnamespace = current_schema()::text::regnamespace";

/// Indices and constraints that are not valid.
const INVALID: &str = "select 'index ' || relname from pg_index join pg_class on pg_class.oid = indexrelid \
    where relnamespace = current_schema()::text::regnamespace and not (indisvalid and indisready) \
    union all select 'constraint ' || conname from pg_constraint \
    where connamespace = current_schema()::text::regnamespace and not convalidated";

pub(crate) async fn check(on: &mut Connection<'_>) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    let mut enabled = BTreeSet::new();
    for row in on.fixed(TRIGGERS).await? {
        enabled.insert(row.text(0)?);
    }
    let triggers = MIGRATIONS
        .iter()
        .flat_map(|migration| created("trigger", migration.sql));
    for trigger in triggers.filter(|trigger| !enabled.contains(*trigger)) {
        let message = format!("the trigger {trigger} is missing or disabled: restore a backup");
        found.push(Violation::new(ViolationKind::Database, message));
    }
    for row in on.fixed(INVALID).await? {
        let message = format!(
            "the {} is not valid: reindex or restore a backup",
            row.text(0)?
        );
        found.push(Violation::new(ViolationKind::Database, message));
    }
    Ok(found)
}

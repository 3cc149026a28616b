//! SQL statements that look entries up by their external ids.

use memory_model::Timestamp;
use memory_store::implementors::KnownEntry;
use sea_query::{Expr, ExprTrait as _, Query, SelectStatement, WithQuery};

use super::put_family;
use crate::conversation::{Seen, seen_from};
use crate::convert::{to_hash, to_seq, uuid_bytes, uuid_text};
use crate::error::{Result, corrupt};
use crate::family::Family;
use crate::row::{Columns, TextOrBytes, Values};
use crate::tables::Message as M;

/// Adds an external id to the values of an SQL statement, in its stored form: 16 bytes for a UUID, else the text.
pub(super) fn put_external(values: &mut impl Values, id: Option<&str>) -> Result<()> {
    values.put_text_or_bytes(id.map(|id| match uuid_bytes(id) {
        Some(bytes) => TextOrBytes::Bytes(bytes.to_vec()),
        None => TextOrBytes::Text(id.to_owned()),
    }))
}

/// Reads an external id from column `at` of a row.
pub(super) fn external_id(row: &impl Columns, at: usize) -> Result<Option<String>> {
    Ok(match row.text_or_bytes(at)? {
        None => None,
        Some(TextOrBytes::Text(id)) => Some(id),
        Some(TextOrBytes::Bytes(bytes)) => match <[u8; 16]>::try_from(bytes) {
            Ok(bytes) => Some(uuid_text(bytes)),
            Err(_) => {
                let problem = "an external id in bytes does not have 16 of them";
                return Err(corrupt("message", problem));
            }
        },
    })
}

/// Builds the SQL statement that looks up `ids` external ids in one log. [`put_ids`] adds the values, and [`found`]
/// reads a row of the answer.
pub fn by_external(family: Family, ids: usize) -> SelectStatement {
    found_columns()
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(Expr::col((M::Table, M::Conversation)).eq(0_i64))
        .and_where(Expr::col((M::Table, M::ExternalId)).is_in(vec![Vec::<u8>::new(); ids]))
        .take()
}

/// Builds the SQL statement that looks up `ids` external ids in the log that a fork sees, including its ancestors'
/// shared parts. [`put_seen_ids`] adds the values, and [`found`] reads a row of the answer.
pub fn by_external_seen(family: Family, ids: usize) -> WithQuery {
    found_columns()
        .from(Seen::Table)
        // CROSS JOIN fixes the order of the joins: SQLite then looks each id up in each log.
        .cross_join(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(Expr::col((M::Table, M::Conversation)).equals((Seen::Table, Seen::No)))
        .and_where(Expr::col((M::Table, M::ExternalId)).is_in(vec![Vec::<u8>::new(); ids]))
        .and_where(Expr::col((M::Table, M::Seq)).lte(Expr::col((Seen::Table, Seen::Last))))
        .take()
        .with(seen_from(family, 0))
}

fn found_columns() -> SelectStatement {
    Query::select()
        .columns(
            [M::ExternalId, M::Seq, M::Hash, M::At, M::Clocked].map(|column| (M::Table, column)),
        )
        .take()
}

/// Adds the values of an SQL statement of [`by_external`]: the conversation that owns the log, and the external ids.
///
/// # Errors
/// `Invalid` if the driver refuses a value, which would be a defect of this crate.
pub fn put_ids(values: &mut impl Values, family: Family, source: u32, ids: &[&str]) -> Result<()> {
    put_family(values, family)?;
    values.put_int(i64::from(source))?;
    ids.iter().try_for_each(|id| put_external(values, Some(id)))
}

/// Adds the values of an SQL statement of [`by_external_seen`]: the fork, and the external ids.
///
/// # Errors
/// `Invalid` if the driver refuses a value, which would be a defect of this crate.
pub fn put_seen_ids(
    values: &mut impl Values,
    family: Family,
    conversation: u32,
    ids: &[&str],
) -> Result<()> {
    // Values of `seen_from`: the number of the conversation, the largest position, level 0, the step of a level, and the
    // family of the parents.
    values.put_int(i64::from(conversation))?;
    values.put_int(i64::from(u32::MAX))?;
    values.put_int(0)?;
    values.put_int(1)?;
    put_family(values, family)?;
    put_family(values, family)?;
    ids.iter().try_for_each(|id| put_external(values, Some(id)))
}

/// Reads a row of [`by_external`] or [`by_external_seen`]. Returns the external id, and the position, hash and time of
/// its entry.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn found(row: &impl Columns) -> Result<(String, KnownEntry)> {
    let id = external_id(row, 0)?.ok_or_else(|| corrupt("message", "it has no external id"))?;
    let known = KnownEntry {
        seq: to_seq(row.int(1)?)?,
        hash: to_hash("message", &row.bytes(2)?)?,
        created_at: Timestamp(row.int(3)?),
        clocked: row.int(4)? != 0,
    };
    Ok((id, known))
}

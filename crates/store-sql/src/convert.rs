//! Numbers and digests between the model and the columns.

use memory_model::{Hash, Seq};
use memory_store::{Error, ErrorKind};

use crate::error::{Result, corrupt};

/// A count for a column.
///
/// # Errors
/// When it is greater than the greatest integer of a database.
pub fn to_int(what: &str, number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|source| {
        Error::new(
            ErrorKind::Limit,
            format!("{what}: {number} is too large to be stored"),
        )
        .with_source(source)
    })
}

/// A count from a column.
///
/// # Errors
/// When it is negative.
pub fn to_count(what: &str, number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|e| corrupt(what, format!("{number} is negative")).with_source(e))
}

/// A small number from a column.
///
/// # Errors
/// When it is out of range.
pub fn to_u32(what: &str, number: i64) -> Result<u32> {
    u32::try_from(number)
        .map_err(|e| corrupt(what, format!("{number} is out of range")).with_source(e))
}

/// A position from a column.
///
/// # Errors
/// When it is out of range.
pub fn to_seq(number: i64) -> Result<Seq> {
    to_u32("seq", number).map(Seq)
}

/// A digest from a column.
///
/// # Errors
/// When it has not 32 bytes.
pub fn to_hash(what: &str, bytes: &[u8]) -> Result<Hash> {
    Hash::from_slice(bytes).ok_or_else(|| {
        corrupt(
            what,
            format!("a hash of {} bytes instead of 32", bytes.len()),
        )
    })
}

/// The key of a log row: `conversation << 32 | seq`.
pub fn packed(conversation: u32, seq: u32) -> i64 {
    // At most 31 bits of conversation, so the sign stays clear.
    (i64::from(conversation) << 32) | i64::from(seq)
}

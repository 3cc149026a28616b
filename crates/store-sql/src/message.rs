//! SQL statements for the entries of logs, and functions that read their rows.

mod external_ids;
mod insertion;
mod reading;
mod running_sums;
mod shared_texts;

use crate::error::Result;
use crate::family::Family;
use crate::row::Values;
pub use external_ids::{by_external, by_external_seen, found, put_ids, put_seen_ids};
pub use insertion::{COLUMNS, NewRow, insert, put_row};
pub use reading::{POSITIONS, entry, needed_facts, positions, range, size, unpacked};
pub use running_sums::{running, seq_at};
pub use shared_texts::{facts, insert_facts, insert_payload, payload_log, payloads};

/// Numbers of rows that one prepared SQL statement can insert or look up. There are few numbers, so that the driver's
/// statement cache has room for all these statements.
pub const BATCHES: [usize; 3] = [64, 8, 1];

/// Splits `len` rows into ranges of indices. The length of each range is one of [`BATCHES`].
pub fn batches(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let size = BATCHES.into_iter().find(|size| *size <= len - start)?;
        start += size;
        Some(start - size..start)
    })
}

/// Adds the number of the family to the values of an SQL statement, for a database with a column for it.
fn put_family(values: &mut impl Values, family: Family) -> Result<()> {
    family
        .number()
        .map_or(Ok(()), |number| values.put_int(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_cover_every_row_once_in_three_sizes() {
        for len in [0, 1, 7, 8, 9, 63, 64, 65, 200] {
            let all: Vec<_> = batches(len).collect();
            assert!(all.iter().all(|b| BATCHES.contains(&b.len())));
            let rows: Vec<usize> = all.into_iter().flatten().collect();
            assert_eq!(rows, (0..len).collect::<Vec<_>>());
        }
    }
}

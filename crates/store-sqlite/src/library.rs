//! Version of the SQLite library that the program links.

use memory_store::{Error, ErrorKind};

use crate::error::Result;

/// Versions that do not have the "WAL-reset" bug (<https://sqlite.org/wal.html#walresetbug>), as ranges of
/// `sqlite3_libversion_number`: the fix is in 3.51.3, and was added to two older branches.
const FIXED: [std::ops::Range<i32>; 3] = [
    3_044_006..3_045_000,
    3_050_007..3_051_000,
    3_051_003..i32::MAX,
];

/// Checks that the library of this version can write a database that several connections use. With the bug, a write at
/// the time of two checkpoints can damage the database. Reading is safe with every version.
///
/// # Errors
/// `ReadOnly` if the version has the bug.
pub(crate) fn check_to_write(place: &str, version: i32) -> Result<()> {
    if FIXED.iter().any(|fixed| fixed.contains(&version)) {
        return Ok(());
    }
    let (major, minor, patch) = (version / 1_000_000, version / 1000 % 1000, version % 1000);
    let text = format!(
        "{place} is not written with SQLite {major}.{minor}.{patch}, which can damage it: \
         link SQLite 3.51.3 or newer (or 3.50.7, 3.44.6), or open it for reading only"
    );
    Err(Error::new(ErrorKind::ReadOnly, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_without_the_fix_of_the_log_are_refused() {
        for fixed in [
            3_044_006, 3_044_009, 3_050_007, 3_051_003, 3_052_000, 3_053_001, 4_000_000,
        ] {
            check_to_write("a.db", fixed).unwrap();
        }
        for broken in [
            3_007_000, 3_044_005, 3_045_000, 3_046_001, 3_050_006, 3_051_000, 3_051_002,
        ] {
            let error = check_to_write("a.db", broken).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ReadOnly, "{broken}");
        }
        let error = check_to_write("a.db", 3_046_001).unwrap_err().to_string();
        assert!(
            error.contains("a.db") && error.contains("SQLite 3.46.1"),
            "{error}"
        );
        assert!(error.contains("3.51.3 or newer"), "{error}");
    }

    #[test]
    fn the_linked_library_has_the_fix() {
        check_to_write("a.db", rusqlite::version_number()).unwrap();
    }
}
